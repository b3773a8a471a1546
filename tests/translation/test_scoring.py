import copy
import itertools
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from nmt.data.tokens.batch import Batch, collate
from nmt.data.tokens.token_store import TokenStore
from nmt.data.tokens.tokenizer import BOS, EOS
from nmt.errors import CheckpointError
from nmt.recipe.config import DecodingConfig
from nmt.run.model import LoadedModel, build_model
from nmt.translation import scoring as scoring_module
from nmt.translation.line import numbered_lines
from nmt.translation.request import TranslationRequest
from nmt.translation.scoring import Scorer, TargetScore, perplexity, token_log_probabilities
from nmt.translation.translator import Translator

PAIRS = [
    ("a small dog", "ein kleiner Hund"),
    ("", "a"),
    ("a", ""),
    ("x" * 60, "b"),
    ("", ""),
    ("dog", "Hund 😀 " * 6),
    ("  ", "</s> \x00"),
    ("a small dog", "ein Hund"),
]


def batch_of(sources: list[list[int]], targets: list[list[int]]) -> Batch:
    return collate(TokenStore.of(sources, targets), np.arange(len(sources)))


def written_out(loaded: LoadedModel, source: str, target: str) -> list[float]:
    """log p of each token, one position after the other, by the definition of the softmax."""
    (source_ids,) = loaded.tokenizer.source.encode([source])
    (target_ids,) = loaded.tokenizer.target.encode([target])
    found = []
    for t, token in enumerate(target_ids):
        prefix = torch.tensor([[BOS, *target_ids[:t]]])
        with torch.no_grad():
            logits = loaded.model(torch.tensor([source_ids]), prefix)[0, -1].tolist()
        found.append(logits[token] - math.log(sum(map(math.exp, logits))))
    return found


def test_the_score_is_the_log_softmax_written_out(random_run: LoadedModel) -> None:
    done: list[int] = []
    scores = list(Scorer(random_run, batch_tokens=64).score(PAIRS, 3, progress=done.append))
    assert sum(done) == len(PAIRS)
    for pair, found in zip(PAIRS, scores, strict=True):
        expected = written_out(random_run, *pair)
        assert found.token_log_probabilities == pytest.approx(expected, abs=1e-4)
        assert found.log_probability == pytest.approx(sum(expected), abs=1e-4)
        assert found.tokens[-1] == EOS
        assert pair[1] or found.tokens == (EOS,)
    assert list(Scorer(random_run).score([])) == []
    assert Scorer(random_run).batch_tokens == random_run.config.decoding.batch_tokens


@pytest.mark.parametrize(("window_lines", "positions"), [(1, 1024), (3, 1024), (2000, 3)])
def test_neither_batch_nor_window_nor_part_of_the_softmax_change_a_score_or_the_order(
    random_run: LoadedModel, monkeypatch: pytest.MonkeyPatch, window_lines: int, positions: int
) -> None:
    together = list(Scorer(random_run, batch_tokens=4096).score(PAIRS))
    monkeypatch.setattr(scoring_module, "POSITIONS_AT_ONCE", positions)
    alone = list(Scorer(random_run, batch_tokens=1).score(PAIRS, window_lines))
    assert [score.tokens for score in alone] == [score.tokens for score in together]
    for a, b in zip(alone, together, strict=True):
        assert a.token_log_probabilities == pytest.approx(b.token_log_probabilities, abs=1e-5)


def test_batches_hold_at_most_batch_tokens_of_the_longer_side(random_run: LoadedModel) -> None:
    pairs = [("a" * (i % 50), "b" * (i * 7 % 50)) for i in range(100)]
    shapes = []
    hook = random_run.model.register_forward_hook(
        lambda module, inputs, output: shapes.append((inputs[0].shape, inputs[1].shape))
    )
    list(Scorer(random_run, batch_tokens=256).score(pairs))
    hook.remove()
    assert all(rows * max(s, t) <= 256 for (rows, s), (_, t) in shapes)
    assert sum(rows for (rows, _), _ in shapes) == 100
    assert len(shapes) < 50


@pytest.mark.parametrize(
    "normalization",
    [{"length_penalty": 0.0}, {"length_penalty": 0.6}, {"length_normalization": "average"}],
)
@pytest.mark.parametrize(("beam_size", "n_best"), [(1, 1), (4, 3)])
def test_a_search_gives_its_translations_the_same_score(
    random_run: LoadedModel, beam_size: int, n_best: int, normalization: dict[str, Any]
) -> None:
    """A translation that was truncated at its limit has no EOS to count."""
    settings = DecodingConfig(beam_size=beam_size, max_length_offset=30, **normalization)
    texts = ["a small dog", "x", "a dog 123 .", "ein Hund", "dog dog", "small", "x 3", "a a a"]
    loaded = replace(random_run, weights=copy.deepcopy(random_run.model))
    with torch.no_grad():
        loaded.model.output_embedding.weight[EOS] *= 3  # a likely end
    pipeline = Translator(loaded, settings).pipeline(TranslationRequest(n_best))
    found = [
        (text, translation)
        for text, row in zip(texts, pipeline.translate(numbered_lines(texts)), strict=True)
        for translation in row
        if not translation.is_truncated
    ]
    assert len(found) >= 4
    sources = loaded.tokenizer.source.encode([text for text, _ in found])
    targets = [[*translation.tokens, EOS] for _, translation in found]
    rows = token_log_probabilities(loaded.model, batch_of(sources, targets)).tolist()
    for row, target, (_, translation) in zip(rows, targets, found, strict=True):
        scored = TargetScore(tuple(target), tuple(row[: len(target)]))
        assert scored.penalised(settings) == pytest.approx(translation.score, abs=1e-4)


def test_padding_has_no_probability(random_run: LoadedModel) -> None:
    scores = token_log_probabilities(
        random_run.model, batch_of([[5, EOS]] * 2, [[EOS], [5, 6, EOS]])
    )
    assert scores.shape == (2, 3)
    assert scores[0, 1:].tolist() == [0.0, 0.0]
    assert (scores[1] < 0).all()


def test_a_stream_is_read_a_window_at_a_time(random_run: LoadedModel) -> None:
    taken = 0

    def endless() -> Iterator[tuple[str, str]]:
        nonlocal taken
        while True:
            taken += 1
            yield "a", "b"

    scores = Scorer(random_run).score(endless(), window_lines=3)
    assert len(list(itertools.islice(scores, 4))) == 4
    assert taken == 6


def test_too_long_a_side_is_cut_and_named(
    random_run: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scoring_module, "MAX_SOURCE_TOKENS", 6)
    monkeypatch.setattr(scoring_module, "MAX_TARGET_TOKENS", 8)
    warnings: list[str] = []
    pairs = [("a", "b"), ("a" * 9, "b"), ("a", "b" * 9)]
    scores = list(Scorer(random_run).score(pairs, 2, warnings.append))
    assert [len(score.tokens) for score in scores[:2]] == [3, 3]
    assert scores[2].tokens[-1] == EOS and len(scores[2].tokens) == 8
    assert len(warnings) == 2
    assert "the source of line 2 has 11 tokens; only the first 6 count" in warnings[0]
    assert "the target of line 3 has 11 tokens; only the first 8 count" in warnings[1]


def test_bfloat16_is_used_only_with_that_precision(random_run: LoadedModel) -> None:
    products = set()
    linear = random_run.model.decoder.layers[0].feed_forward.inner
    hook = linear.register_forward_hook(lambda module, inputs, output: products.add(output.dtype))
    (exact,) = Scorer(random_run).score(PAIRS[:1])
    assert products == {torch.float32}
    (rough,) = Scorer(random_run, precision="bf16").score(PAIRS[:1])
    assert products == {torch.float32, torch.bfloat16}
    assert rough.log_probability == pytest.approx(exact.log_probability, rel=0.05)
    hook.remove()


def test_a_damaged_model_is_named_and_not_scored(random_run: LoadedModel) -> None:
    model = build_model(random_run.config, random_run.tokenizer).eval()
    torch.nn.init.constant_(model.output_embedding.weight, math.nan)
    with pytest.raises(CheckpointError, match="scores are not numbers"):
        list(Scorer(replace(random_run, weights=model)).score(PAIRS))


def test_perplexity_is_that_of_a_fair_choice() -> None:
    assert perplexity(3 * math.log(1 / 7), 3) == pytest.approx(7)
    assert TargetScore((5, EOS), (math.log(0.5), math.log(0.125))).perplexity == pytest.approx(4)
    assert perplexity(-1e6, 1) == math.inf
