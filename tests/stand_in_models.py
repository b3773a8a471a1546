"""Stand-in models, small enough to search exhaustively or to know every answer of."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from nmt.config import Config, DecodingConfig, ModelConfig, TokenizerConfig
from nmt.data.text.parallel_text import SentencePair
from nmt.data.tokens.tokenizer import BOS, PAD, Tokenizer
from nmt.data.tokens.vocabulary import learn_vocabulary
from nmt.run_directory import LoadedModel, build_model

STATES = 9973


class PrefixCache:
    """All tokens so far of each sentence's hypotheses (N, k, T), and its source ids (N, S)."""

    def __init__(self, source: Tensor) -> None:
        self.source = source
        self.prefix = source.new_empty((len(source), 1, 0))

    def continue_hypotheses(self, parents: Tensor) -> None:
        self.prefix = self.prefix.gather(
            1, parents[:, :, None].expand(-1, -1, self.prefix.shape[2])
        )

    def keep_sentences(self, sentences: Tensor) -> None:
        self.source, self.prefix = self.source[sentences], self.prefix[sentences]

    def append(self, tokens: Tensor) -> None:
        self.prefix = torch.cat((self.prefix, tokens[:, :, None]), dim=2)


class TableModel:
    """Next-token logits drawn at random for each (source, prefix), and PAD and BOS the highest."""

    padding = PAD

    def __init__(self, vocabulary_size: int, seed: int = 0) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.table = 2 * torch.randn(STATES, vocabulary_size, generator=generator)
        self.table[:, [PAD, BOS]] += 5

    def encode(self, source: Tensor) -> Tensor:
        return source

    def start(self, memory: Tensor, source: Tensor) -> PrefixCache:
        return PrefixCache(source)

    def step(self, tokens: Tensor, cache: PrefixCache, attention: None = None) -> Tensor:
        cache.append(tokens)
        return self._after(cache)

    def __call__(self, source: Tensor, target_input: Tensor) -> Tensor:
        """The logits of the last position alone: (B, S), (B, T) -> (B, 1, V)."""
        cache = PrefixCache(source)
        cache.prefix = target_input[:, None]
        return self._after(cache)

    def _after(self, cache: PrefixCache) -> Tensor:
        state = (cache.source[:, :1] * 7919).expand(cache.prefix.shape[:2])
        for position in range(cache.prefix.shape[2]):
            state = (state * 31 + cache.prefix[:, :, position] + 1) % STATES
        return self.table[state]


class Copier(nn.Module):
    """Translates every sentence by itself, token for token."""

    padding = PAD

    def __init__(self, vocabulary_size: int) -> None:
        super().__init__()
        self.certainty = nn.Parameter(50 * torch.eye(vocabulary_size))
        self.batches: list[tuple[int, int]] = []

    def encode(self, source: Tensor) -> Tensor:
        self.batches.append((source.shape[0], source.shape[1]))
        return source

    def start(self, memory: Tensor, source: Tensor) -> PrefixCache:
        return PrefixCache(source)

    def step(self, tokens: Tensor, cache: PrefixCache, attention: None = None) -> Tensor:
        cache.append(tokens)
        position = min(cache.prefix.shape[2], cache.source.shape[1]) - 1
        return self.certainty[cache.source[:, position, None].expand_as(tokens)]

    def __deepcopy__(self, memo: dict[int, object]) -> "Copier":
        return self  # whoever translates with a copy is seen as well


@pytest.fixture
def table_model() -> Callable[..., TableModel]:
    return TableModel


@pytest.fixture(scope="session")
def byte_tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    """Characters and bytes: every text comes back as it was."""
    config = TokenizerConfig(
        kind="char", vocabulary_size=280, byte_fallback=True, normalization="identity"
    )
    pairs = [SentencePair("ein kleiner Hund </s>", "a small dog 123 .")]
    return learn_vocabulary(pairs, config)


@pytest.fixture
def copying_run(byte_tokenizer: Tokenizer) -> LoadedModel:
    """A run whose translation of a text is the text."""
    model = Copier(byte_tokenizer.target.size)
    return LoadedModel(Config(), byte_tokenizer, model, Path("run"))  # type: ignore[arg-type]


@pytest.fixture(scope="session")
def random_run(byte_tokenizer: Tokenizer) -> LoadedModel:
    """An untrained Transformer that sometimes ends a sentence."""
    torch.manual_seed(1)
    sizes = ModelConfig(
        d_model=16, heads=2, d_ff=16, encoder_layers=1, decoder_layers=1, embeddings="separate"
    )
    config = Config(model=sizes, decoding=DecodingConfig(beam_size=3, max_length_offset=5))
    model = build_model(config, byte_tokenizer).eval()
    torch.nn.init.normal_(model.output_embedding.weight, std=1.0)
    return LoadedModel(config, byte_tokenizer, model, Path("run"))
