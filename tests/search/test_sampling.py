"""Draws follow the model's probabilities, and depend on nothing but seed and sentence."""

import math
from typing import Any
from unittest.mock import patch

import pytest
import torch
from torch import Tensor

from nmt.data.tokens.tokenizer import BOS, EOS
from nmt.errors import CheckpointError
from nmt.recipe.config import DecodingConfig, Sampling
from nmt.search.sampling import draw, draw_tokens, most_probable, probabilities
from tests.stand_in_models import table_model

SETTINGS = DecodingConfig(max_length_offset=8, length_normalization="none")
LOGITS = torch.tensor([[0.5, 0.2, 0.2, 0.1]]).log()


@pytest.mark.parametrize(
    ("sampling", "expected"),
    [
        (Sampling(), [0.5, 0.2, 0.2, 0.1]),
        (Sampling(temperature=0.5), [25 / 34, 4 / 34, 4 / 34, 1 / 34]),
        (Sampling(temperature=1e-3), [1, 0, 0, 0]),
        (Sampling(top_k=1), [1, 0, 0, 0]),
        (Sampling(top_k=9), [0.5, 0.2, 0.2, 0.1]),
        (Sampling(top_p=0.4), [1, 0, 0, 0]),
        (Sampling(top_p=0.6), [5 / 7, 2 / 7, 0, 0]),
        (Sampling(top_p=1.0), [0.5, 0.2, 0.2, 0.1]),
    ],
)
def test_the_distribution_is_the_softmax_of_its_most_probable_part(
    sampling: Sampling, expected: list[float]
) -> None:
    assert probabilities(LOGITS, sampling)[0].tolist() == pytest.approx(expected)


def test_greedy_search_takes_the_first_of_equally_probable_tokens() -> None:
    log_p = torch.tensor([[0.1, 0.4, 0.4, 0.1], [0.4, 0.1, 0.1, 0.4]]).log()
    assert most_probable(log_p, torch.arange(2)).tolist() == [1, 0]


def test_tokens_come_as_often_as_they_are_probable() -> None:
    count = 4000
    draws = draw_tokens(Sampling(seed=3), [(number,) for number in range(count)])
    tokens = draws(LOGITS.expand(count, -1), torch.arange(count))
    shares = torch.bincount(tokens, minlength=4) / count
    assert shares.tolist() == pytest.approx([0.5, 0.2, 0.2, 0.1], abs=0.03)


def test_what_is_impossible_is_never_drawn() -> None:
    logits = torch.tensor([[-math.inf, 0.0, -math.inf, 0.0, -math.inf]]).expand(500, -1)
    draws = draw_tokens(Sampling(), [(number,) for number in range(500)])
    assert set(draws(logits, torch.arange(500)).tolist()) == {1, 3}


def drawn(model: Any, source: Tensor, numbers: list[int], seed: int = 1) -> list[tuple[int, ...]]:
    found = draw(model, source, SETTINGS, Sampling(seed=seed), numbers, 1)
    return [hypothesis.tokens for (hypothesis,) in found]


def test_a_sentence_draws_the_same_alone_and_in_company() -> None:
    model, source = table_model(12), torch.tensor([[4 + i % 8, EOS] for i in range(10)])
    together = drawn(model, source, list(range(10)))
    assert together == [drawn(model, source[i : i + 1], [i])[0] for i in range(10)]
    assert together != drawn(model, source, list(range(10)), seed=2)


def test_the_score_is_the_models_own() -> None:
    """The sum of the log-probabilities of the tokens, whatever the temperature."""
    model, source = table_model(12), torch.tensor([[5, EOS]])
    ((found,),) = draw(model, source, SETTINGS, Sampling(temperature=3.0, seed=4), [0], 1)
    target = [BOS, *found.tokens, EOS][: 1 + 2 + 8]
    expected = sum(
        model(source, torch.tensor([target[:end]]))[0, 0].log_softmax(0)[target[end]].item()
        for end in range(1, len(target))
    )
    assert found.score == pytest.approx(expected, abs=1e-4)


def test_a_source_is_encoded_once_for_all_its_draws() -> None:
    model, source = table_model(12), torch.tensor([[5, EOS], [6, EOS]])
    with patch.object(model, "encode", wraps=model.encode) as encode:
        found = draw(model, source, SETTINGS, Sampling(), [1, 2], 3)
    assert encode.call_count == 1 and [len(samples) for samples in found] == [3, 3]


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(top_p=0.9), Sampling(top_k=3)])
def test_scores_that_are_not_numbers_are_refused(sampling: Sampling) -> None:
    model = table_model(12)
    model.table[:] = math.nan
    with pytest.raises(CheckpointError, match="not numbers.*earlier `checkpoint`"):
        draw(model, torch.tensor([[5, EOS]]), DecodingConfig(), sampling, [0], 1)
