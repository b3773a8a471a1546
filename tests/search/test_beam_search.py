"""Beam search finds what a plain search finds, whatever the batch, and stops as early as it may."""

import itertools
import math
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import pytest
import torch

from nmt.data.tokens.tokenizer import EOS, PAD
from nmt.errors import CheckpointError
from nmt.model.transformer import Transformer
from nmt.recipe.config import DecodingConfig, ModelConfig
from nmt.search.beam_search import BLOCK, BLOCKS_PER_RESULT, beam_search, largest
from nmt.search.decoding import EncodedSource
from nmt.search.hypothesis import length_penalty
from nmt.search.sampling import greedy_search, most_probable, single_hypotheses
from tests.search.plain_search import (
    VOCABULARY,
    assert_same,
    padded_source,
    plain_search,
    random_transformer,
    without_padding,
)
from tests.stand_in_models import table_model

SOURCE = padded_source(24)


def test_length_penalty_is_the_papers_formula() -> None:
    for length, alpha in itertools.product((1, 2, 10, 300), (0.0, 0.6, 1.0)):
        expected = math.pow(5 + length, alpha) / math.pow(5 + 1, alpha)  # Wu et al., Eq. 14
        settings = DecodingConfig(length_penalty=alpha)
        assert length_penalty(float(length), settings) == pytest.approx(expected)
        penalty = length_penalty(torch.tensor([length]), settings)
        assert penalty.item() == pytest.approx(expected, rel=1e-6)
    average = DecodingConfig(length_normalization="average", length_penalty=0.6)
    assert length_penalty(7.0, average) == 7.0
    assert length_penalty(torch.tensor([7, 9]), average).tolist() == [7, 9]
    assert length_penalty(7.0, DecodingConfig(length_normalization="none")) == 1.0


@pytest.mark.parametrize("kind", ["transformer", "table"])
@pytest.mark.parametrize("beam_size", [1, 2, 5])
@pytest.mark.parametrize(
    "others",
    [
        {"length_penalty": 0.0},
        {"length_penalty": 0.6},
        {"length_penalty": 2.0},
        {"length_normalization": "average"},
        {"length_normalization": "none", "early_stopping": True},
    ],
)
def test_a_batch_finds_what_a_plain_search_finds_for_each_sentence(
    kind: str, beam_size: int, others: dict[str, Any]
) -> None:
    """Scores, order, ends and limits, though the sentences of a batch end at different steps."""
    model = random_transformer() if kind == "transformer" else table_model(VOCABULARY)
    settings = DecodingConfig(beam_size=beam_size, max_length_offset=6, **others)
    found = beam_search(model, SOURCE, settings, n_best=min(beam_size, 3))
    assert len({len(best.tokens) for best, *_ in found}) > 3
    for row, n_best in zip(SOURCE, found, strict=True):
        expected = plain_search(model, without_padding(row), settings)
        assert_same(n_best, expected[: min(beam_size, 3)])
    if beam_size == 1:
        assert_same(greedy_search(model, SOURCE, settings), [best for best, *_ in found], 1e-5)


@pytest.mark.parametrize("kind", ["gnmt", "average", "none"])
def test_a_wide_beam_is_an_exhaustive_search(kind: Any) -> None:
    source = torch.tensor([[4, EOS], [5, PAD], [7, EOS], [8, PAD]])
    settings = DecodingConfig(beam_size=400, length_normalization=kind, max_length_offset=2)
    for model in (table_model(6, seed) for seed in range(3)):
        found = beam_search(model, source, settings, n_best=12)
        for row, n_best in zip(source, found, strict=True):
            assert_same(n_best, plain_search(model, without_padding(row), settings)[:12])


def test_early_stopping_takes_fewer_steps_than_the_exact_rule_and_that_fewer_than_none() -> None:
    def steps(row: torch.Tensor, **others: Any) -> int:
        model = table_model(VOCABULARY)
        settings = DecodingConfig(
            beam_size=3, length_normalization="average", max_length_offset=30, **others
        )
        with patch.object(model, "step", wraps=model.step) as step:
            beam_search(model, row[None], settings, n_best=3)
        return int(step.call_count)

    exact = sum(steps(row) for row in SOURCE)
    assert sum(steps(row, early_stopping=True) for row in SOURCE) < 0.8 * exact
    assert exact < len(SOURCE) * (SOURCE.shape[1] + 30)


@pytest.mark.parametrize("search", [beam_search, greedy_search])
def test_no_sentences_give_no_translations_and_nan_is_an_error(search: Callable[..., Any]) -> None:
    assert search(random_transformer(), SOURCE[:0], DecodingConfig()) == []
    model = table_model(VOCABULARY)
    model.table[:] = float("nan")
    with pytest.raises(CheckpointError, match="not numbers.*earlier `checkpoint`"):
        search(model, SOURCE, DecodingConfig())


def test_a_model_can_be_trained_after_a_search() -> None:
    config = ModelConfig(d_model=8, heads=2, d_ff=8, encoder_layers=1, decoder_layers=1)
    model = Transformer(config, VOCABULARY, VOCABULARY, PAD).eval()
    source = torch.full((1, 520), EOS + 1)  # the positional table grows during the search
    with torch.inference_mode():
        encoded = EncodedSource(source, model.encode(source), torch.tensor([3]))
    single_hypotheses(model, encoded, DecodingConfig(), most_probable)
    beam_search(model, source[:, :3], DecodingConfig(max_length_offset=1))
    model.train()
    model(source, source[:, :4]).sum().backward()
    assert model.target_embedding.weight.grad is not None


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("columns", [7, BLOCK * BLOCKS_PER_RESULT * 5 + 11])
@pytest.mark.parametrize("k", [1, 5])
def test_the_largest_of_each_row_and_their_columns(
    columns: int, k: int, dtype: torch.dtype
) -> None:
    x = torch.randn(9, columns, generator=torch.Generator().manual_seed(k)).to(dtype)
    values, places = largest(x, k)
    assert torch.equal(values, x.topk(k).values)
    assert torch.equal(x.gather(1, places), values)
    assert all(len(set(row)) == k for row in places.tolist())


def test_the_largest_may_share_a_block_or_stand_at_the_end_or_be_infinite_or_nan() -> None:
    columns = BLOCK * BLOCKS_PER_RESULT * 4 + 3
    blocks = columns // BLOCK
    x = torch.zeros(4, columns)
    x[0, [5, 5 + blocks, 5 + 2 * blocks, 5 + 9 * blocks]] = torch.tensor([4.0, 3.0, 2.0, 1.0])
    x[1, -3:] = torch.tensor([1.0, 3.0, 2.0])
    x[2], x[3] = float("-inf"), float("nan")
    assert largest(x, 4)[1][0].tolist() == [5, 5 + blocks, 5 + 2 * blocks, 5 + 9 * blocks]
    assert largest(x, 3)[1][1].tolist() == [columns - 2, columns - 1, columns - 3]
    values, _ = largest(x, 1)
    assert values[2].item() == float("-inf") and values[3].isnan().item()
