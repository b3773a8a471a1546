"""An ensemble is the mean of probabilities, and searched like a model."""

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from nmt.data.tokens.tokenizer import BOS, EOS, PAD
from nmt.errors import ConfigError
from nmt.model.attention import AttentionRecord
from nmt.recipe.config import DecodingConfig, Sampling
from nmt.run.model import LoadedModel, build_model
from nmt.search.beam_search import beam_search
from nmt.search.ensemble import Ensemble, load_ensemble, log_mean_probability
from nmt.search.hypothesis import Hypothesis
from nmt.search.sampling import draw, greedy_search
from nmt.search.source_attention import attention_of_step, batch_of_pairs, teacher_forced_attention
from nmt.translation.scoring import Scorer
from tests.search.plain_search import assert_same, padded_source, random_transformer

SETTINGS = DecodingConfig(beam_size=4, max_length_offset=8, length_penalty=0.6)


SOURCE = padded_source()


def found_by(search: str, model: Any, source: Tensor = SOURCE) -> list[Hypothesis]:
    if search == "greedy":
        return greedy_search(model, source, SETTINGS)
    if search == "beam":
        n_best = beam_search(model, source, SETTINGS, n_best=3)
    else:
        n_best = draw(model, source, SETTINGS, Sampling(seed=2), range(len(source)), 1)
    return [hypothesis for row in n_best for hypothesis in row]


@pytest.mark.parametrize("copies", [1, 2, 3])
@pytest.mark.parametrize("search", ["greedy", "beam", "sample"])
def test_an_ensemble_of_one_model_is_the_model(search: str, copies: int) -> None:
    model = random_transformer()
    found = found_by(search, Ensemble([model] * copies))
    assert_same(found, found_by(search, model), 1e-5)
    assert len({len(h.tokens) for h in found}) > 2  # they leave the batch at different steps


def test_the_mean_is_that_of_the_probabilities() -> None:
    logits = torch.tensor([[[2.0, 0.0, -1.0]], [[0.0, 0.0, 5.0]], [[-3.0, 1.0, 1.0]]])
    expected = []
    for token in range(3):
        shares = [math.exp(x[token]) / sum(map(math.exp, x)) for x in logits[:, 0].tolist()]
        expected.append(math.log(sum(shares) / 3))
    assert log_mean_probability(list(logits))[0].tolist() == pytest.approx(expected, abs=1e-6)
    # what no model holds possible stays impossible
    logits = torch.tensor([[0.0, -math.inf], [0.0, -math.inf]])
    assert log_mean_probability(list(logits)).tolist() == [0.0, -math.inf]


@pytest.mark.parametrize("search", ["greedy", "beam", "sample"])
def test_the_score_is_the_log_of_the_mean_probability_of_each_token(search: str) -> None:
    """Written out for models of different sizes, in one pass each."""
    models = [random_transformer(3), random_transformer(4, d_model=32)]
    for row in SOURCE:
        row = row[row != PAD][None]
        found = found_by(search, Ensemble(models), row)[0]
        is_cut = len(found.tokens) == row.shape[1] + SETTINGS.max_length_offset
        target = [*found.tokens] if is_cut else [*found.tokens, EOS]
        shares = torch.zeros(len(target))
        for model in models:
            logits = model(row, torch.tensor([[BOS, *target[:-1]]]))[0]
            shares += logits.softmax(1)[range(len(target)), target] / len(models)
        log_p = shares.log().sum().item()
        assert found.score == pytest.approx(log_p / ((5 + len(target)) / 6) ** 0.6, abs=1e-4)


def test_where_an_ensemble_looks_in_its_steps_is_where_it_looks_in_one_pass() -> None:
    ensemble: Any = Ensemble([random_transformer(3), random_transformer(4, d_model=24)])
    batch = batch_of_pairs([[5, 6, 7, EOS]], [[8, 9, 10, 11]])
    _, expected = teacher_forced_attention(ensemble, batch)
    cache = ensemble.start(ensemble.encode(batch.source), batch.source)
    for t in range(batch.target_input.shape[1]):
        record = AttentionRecord()
        ensemble.step(batch.target_input[:, t : t + 1], cache, record)
        looked = attention_of_step(ensemble, record.cross)[:, 0]
        torch.testing.assert_close(looked, expected[:, t])


def test_an_ensemble_is_scored_like_a_model(random_run: LoadedModel) -> None:
    torch.manual_seed(2)
    other = build_model(random_run.config, random_run.tokenizer).eval()
    pairs = [("a small dog", "ein Hund"), ("", "a")]
    alone = [
        list(Scorer(replace(random_run, weights=m)).score(pairs)) for m in (random_run.model, other)
    ]
    ensemble: Any = Ensemble([random_run.model, other])
    for joint, one, two in zip(
        Scorer(replace(random_run, weights=ensemble)).score(pairs), *alone, strict=True
    ):
        both = zip(one.token_log_probabilities, two.token_log_probabilities, strict=True)
        expected = [math.log((math.exp(a) + math.exp(b)) / 2) for a, b in both]
        assert joint.token_log_probabilities == pytest.approx(expected, abs=1e-5)


def test_no_model_is_refused() -> None:
    with pytest.raises(ConfigError, match="no model is named; give at least one"):
        load_ensemble([], torch.device("cpu"))
