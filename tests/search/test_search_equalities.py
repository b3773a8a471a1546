"""What must not matter to a search: the batch, the cache. And what a wider one must not lose."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from nmt.config import DecodingConfig, ModelConfig
from nmt.data.tokens.batch import collate_source
from nmt.data.tokens.tokenizer import BOS, EOS, PAD
from nmt.model.transformer import Transformer
from nmt.search.beam_search import beam_search
from nmt.search.greedy import greedy_search
from nmt.search.hypothesis import Hypothesis
from tests.search.hypotheses import assert_same

VOCABULARY = 30
SOURCES = [
    [*(EOS + 1 + (7 * n + k * k) % (VOCABULARY - EOS - 1) for k in range(1 + n % 11)), EOS]
    for n in range(100)
]


@pytest.fixture(scope="module")
def transformer() -> Transformer:
    """Random weights, large enough that every token, EOS included, has its turn."""
    torch.manual_seed(3)
    config = ModelConfig(
        d_model=32, heads=4, d_ff=64, encoder_layers=2, decoder_layers=2, embeddings="separate"
    )
    model = Transformer(config, VOCABULARY, VOCABULARY, PAD).eval()
    torch.nn.init.normal_(model.output_embedding.weight, std=0.5)
    return model


class WithoutCache:
    """The model, which computes the whole of each hypothesis anew for every token."""

    padding = PAD

    def __init__(self, model: Transformer, prefix_cache: Callable[[Tensor], Any]) -> None:
        self.model, self.prefix_cache = model, prefix_cache

    def encode(self, source: Tensor) -> Tensor:
        return source

    def start(self, memory: Tensor, source: Tensor) -> Any:
        return self.prefix_cache(source)

    def step(self, tokens: Tensor, cache: Any) -> Tensor:
        """The latest tokens (N, k) -> logits (N, k, V)."""
        cache.append(tokens)
        source = cache.source.repeat_interleave(tokens.shape[1], 0)
        return self.model(source, cache.prefix.flatten(0, 1))[:, -1].view(*tokens.shape, -1)


def search(model: Any, rows: int, settings: DecodingConfig) -> list[Hypothesis]:
    """The best hypothesis for each of SOURCES, so many at once."""
    found: list[Hypothesis] = []
    for start in range(0, len(SOURCES), rows):
        source = collate_source(SOURCES[start : start + rows])
        if settings.beam_size == 1:
            found += greedy_search(model, source, settings, BOS, EOS)
        else:
            found += [best for best, *_ in beam_search(model, source, settings, BOS, EOS)]
    return found


def settings_of(beam_size: int, **others: Any) -> DecodingConfig:
    return DecodingConfig(beam_size=beam_size, max_length_offset=8, **others)


@pytest.mark.parametrize("beam_size", [1, 4])
def test_batches_of_1_8_and_64_give_the_same(transformer: Transformer, beam_size: int) -> None:
    alone = search(transformer, 1, settings_of(beam_size))
    assert len({hypothesis.tokens for hypothesis in alone}) > 50
    for rows in (8, 64):
        assert_same(search(transformer, rows, settings_of(beam_size)), alone)


@pytest.mark.parametrize("beam_size", [1, 4])
def test_the_cache_changes_nothing(
    transformer: Transformer, prefix_cache: Callable[[Tensor], Any], beam_size: int
) -> None:
    without = WithoutCache(transformer, prefix_cache)
    for rows in (1, 64):
        expected = search(without, rows, settings_of(beam_size))
        assert_same(search(transformer, rows, settings_of(beam_size)), expected)


def stays_in_the_beam(
    model: Transformer, source: list[int], tokens: tuple[int, ...], beam_size: int
) -> bool:
    """Whether a path is among the best continuations at every step, by a plain search."""
    path = (*tokens, EOS)
    live: list[tuple[tuple[int, ...], float]] = [((), 0.0)]
    for length in range(1, len(path) + 1):
        prefixes = torch.tensor([[BOS, *prefix] for prefix, _ in live])
        with torch.no_grad():
            logits = model(torch.tensor([source] * len(live)), prefixes)[:, -1].log_softmax(1)
        logits[:, [PAD, BOS]] = float("-inf")
        values, places = (logits + torch.tensor([[p] for _, p in live])).flatten().topk(beam_size)
        best = [
            ((*live[place // VOCABULARY][0], place % VOCABULARY), log_p)
            for place, log_p in zip(places.tolist(), values.tolist(), strict=True)
        ]
        if path[:length] not in [prefix for prefix, _ in best]:
            return False
        live = [(prefix, log_p) for prefix, log_p in best if prefix[-1] != EOS]
    return True


@pytest.mark.parametrize("others", [{"length_normalization": "none"}, {"length_penalty": 0.6}])
@pytest.mark.parametrize("beam_size", [2, 5])
def test_a_beam_is_worse_than_greedy_search_only_where_it_left_that_path(
    transformer: Transformer, beam_size: int, others: dict[str, Any]
) -> None:
    """Of two good beginnings the better one may end badly: no beam search excludes that."""
    greedy = search(transformer, 64, settings_of(1, **others))
    beam = search(transformer, 64, settings_of(beam_size, **others))
    worse = [i for i in range(len(SOURCES)) if beam[i].score < greedy[i].score - 1e-4]
    for i in worse:
        assert not stays_in_the_beam(transformer, SOURCES[i], greedy[i].tokens, beam_size)
    better = sum(b.score > g.score + 1e-4 for b, g in zip(beam, greedy, strict=True))
    assert better > 5 * len(worse)
