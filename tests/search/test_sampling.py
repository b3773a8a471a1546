"""Draws follow the model's probabilities, and depend on nothing but seed and sentence."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from nmt.config import DecodingConfig
from nmt.data.tokens.tokenizer import BOS, EOS
from nmt.errors import CheckpointError
from nmt.search.greedy import greedy_search
from nmt.search.sampling import Draws, Sampling, draw

LOGITS = torch.tensor([[0.5, 0.2, 0.2, 0.1]]).log()


def probabilities(**sampling: Any) -> list[float]:
    drawn: list[float] = Sampling(**sampling).probabilities(LOGITS)[0].tolist()
    return drawn


def test_the_whole_distribution_is_the_softmax() -> None:
    assert probabilities() == pytest.approx([0.5, 0.2, 0.2, 0.1])


def test_a_temperature_sharpens_or_flattens() -> None:
    powers = [p**2 for p in (0.5, 0.2, 0.2, 0.1)]
    assert probabilities(temperature=0.5) == pytest.approx([p / sum(powers) for p in powers])
    assert probabilities(temperature=1e-3) == pytest.approx([1, 0, 0, 0])


def test_top_k_leaves_the_most_probable() -> None:
    assert probabilities(top_k=1) == [1, 0, 0, 0]
    assert probabilities(top_k=9) == pytest.approx([0.5, 0.2, 0.2, 0.1])


def test_top_p_leaves_what_reaches_it_together() -> None:
    assert probabilities(top_p=0.4) == [1, 0, 0, 0]
    assert probabilities(top_p=0.6) == pytest.approx([5 / 7, 2 / 7, 0, 0])
    assert probabilities(top_p=1.0) == pytest.approx([0.5, 0.2, 0.2, 0.1])


def test_tokens_come_as_often_as_they_are_probable() -> None:
    count = 4000
    draws = Draws(Sampling(seed=3), [(number,) for number in range(count)])
    tokens = draws(LOGITS.expand(count, -1), torch.arange(count))
    shares = torch.bincount(tokens, minlength=4) / count
    assert shares.tolist() == pytest.approx([0.5, 0.2, 0.2, 0.1], abs=0.03)


def test_what_is_impossible_is_never_drawn() -> None:
    logits = torch.tensor([[-math.inf, 0.0, -math.inf, 0.0, -math.inf]]).expand(500, -1)
    draws = Draws(Sampling(), [(number,) for number in range(500)])
    assert set(draws(logits, torch.arange(500)).tolist()) == {1, 3}


def drawn(model: Any, source: Tensor, numbers: list[int], seed: int = 1) -> list[tuple[int, ...]]:
    draws = Draws(Sampling(seed=seed), [(number, 0) for number in numbers])
    settings = DecodingConfig(max_length_offset=8)
    return [h.tokens for h in greedy_search(model, source, settings, BOS, EOS, draws)]


def test_a_sentence_draws_the_same_alone_and_in_company(table_model: Callable[..., Any]) -> None:
    model, source = table_model(12), torch.tensor([[4 + i % 8, EOS] for i in range(10)])
    together = drawn(model, source, list(range(10)))
    alone = [drawn(model, source[i : i + 1], [i])[0] for i in range(10)]
    assert together == alone
    assert together != drawn(model, source, list(range(10)), seed=2)


def test_the_score_is_the_models_own(table_model: Callable[..., Any]) -> None:
    """The sum of the log-probabilities of the tokens, whatever the temperature."""
    model, source = table_model(12), torch.tensor([[5, EOS]])
    settings = DecodingConfig(max_length_offset=8, length_normalization="none")
    draws = Draws(Sampling(temperature=3.0, seed=4), [(0, 0)])
    (found,) = greedy_search(model, source, settings, BOS, EOS, draws)
    cache, expected, latest = model.start(source, source), 0.0, BOS
    longest = 2 + 8
    for token in [*found.tokens, EOS][:longest]:
        logits = model.step(torch.tensor([[latest]]), cache)[0, 0]
        expected += logits.log_softmax(0)[token].item()
        latest = token
    assert found.score == pytest.approx(expected, abs=1e-4)


def test_a_source_is_encoded_once_for_all_its_draws(
    table_model: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    model, source = table_model(12), torch.tensor([[5, EOS], [6, EOS]])
    encode, encoded = model.encode, []
    monkeypatch.setattr(model, "encode", lambda ids: encoded.append(ids) or encode(ids))
    settings = DecodingConfig(max_length_offset=8)
    found = draw(model, source, settings, Sampling(), [1, 2], 3)
    assert len(encoded) == 1 and [len(samples) for samples in found] == [3, 3]


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(top_p=0.9), Sampling(top_k=3)])
def test_scores_that_are_not_numbers_are_refused(
    table_model: Callable[..., Any], sampling: Sampling
) -> None:
    model = table_model(12)
    model.table[:] = math.nan
    draws = Draws(sampling, [(0, 0)])
    with pytest.raises(CheckpointError, match="not numbers.*earlier checkpoint"):
        greedy_search(model, torch.tensor([[5, EOS]]), DecodingConfig(), BOS, EOS, draws)
