"""Adaptation at once: the model learns from a few pairs, for one translation only."""

import functools
import pickle
from pathlib import Path

import pytest
import torch

from nmt.data.tokens.tokenizer import BOS, PAD
from nmt.errors import ConfigError
from nmt.memory.match import Match
from nmt.recipe.config import DecodingConfig
from nmt.run.model import LoadedModel
from nmt.search.ensemble import load_ensemble
from nmt.search.hypothesis import Hypothesis
from nmt.search.searcher import Searcher
from nmt.training.adaptation import Adaptation
from nmt.training.loss import label_smoothed_cross_entropy
from nmt.translation.scoring import Scorer
from tests.exchange.small_runs import small_run
from tests.serving.served_runs import write_run

SETTINGS = DecodingConfig(beam_size=2, max_length_offset=4)
SOURCE, TARGET = "abcde", "hgfed"
MATCH = Match(SOURCE, TARGET, 1.0, 1)
EMBEDDINGS = ["shared", "target", "separate"]


@functools.cache
def run(embeddings: str = "target") -> LoadedModel:
    """Return a run that the C library can translate with."""
    return small_run(d_model=64, heads=4, d_ff=64, embeddings=embeddings)


def found(searcher: Searcher) -> Hypothesis:
    ids = searcher.loaded.tokenizer.source.encode([SOURCE])
    [[best]] = searcher.search(ids, [1], [None], 1)
    return best


@pytest.mark.parametrize("embeddings", EMBEDDINGS)
@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_the_target_becomes_more_probable_and_the_weights_stay(
    embeddings: str, precision: str
) -> None:
    loaded = run(embeddings)
    before, searcher = loaded.digest, Searcher(loaded, SETTINGS, precision)
    plain, probability = found(searcher), log_probability(searcher)
    adapted = Adaptation(loaded).adapted(searcher, [MATCH])
    assert log_probability(adapted) > probability + 1
    assert found(adapted) != plain
    assert loaded.digest == before
    assert found(searcher) == plain


@pytest.mark.parametrize("embeddings", EMBEDDINGS)
def test_pytorch_and_the_c_library_have_the_same_adapted_weights(
    embeddings: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = run(embeddings)
    searcher = Searcher(loaded, SETTINGS)
    if searcher.native is None:
        pytest.skip("the C library cannot be compiled here")
    adapted = Adaptation(loaded).adapted(searcher, [MATCH])
    in_c = found(adapted)
    monkeypatch.setitem(vars(adapted), "native", None)
    in_pytorch = found(adapted)
    assert in_c.tokens == in_pytorch.tokens
    assert in_c.score == pytest.approx(in_pytorch.score, abs=1e-4)
    assert in_c.score != pytest.approx(found(searcher).score, abs=1e-4)


def test_a_translation_does_not_depend_on_those_before_it() -> None:
    """Also after the adaptation has been pickled, as for another process."""
    loaded = run()
    searcher, adaptation = Searcher(loaded, SETTINGS), Adaptation(loaded)
    scores = []
    for matches in ([MATCH], [Match("fgh", "abab", 0.8, 2)], [MATCH]):
        adapted = adaptation.adapted(searcher, matches)
        scores.append(found(adapted).score)
    assert scores[0] == scores[2] != scores[1]
    copied: Adaptation = pickle.loads(pickle.dumps(adaptation))
    adapted = copied.adapted(searcher, [MATCH])
    assert found(adapted).score == scores[0]


def test_it_is_gradient_descent_on_the_loss_of_training() -> None:
    """The oracle differentiates the loss by the projection itself, step by step."""
    loaded, steps, rate = run(), 3, 1.5
    model = loaded.model
    source, target = (
        torch.tensor(side.encode([text]))
        for side, text in (
            (loaded.tokenizer.source, SOURCE),
            (loaded.tokenizer.target, TARGET),
        )
    )
    start = torch.full((1, 1), BOS)
    with torch.no_grad():
        x = model.decoder_output(source, torch.cat([start, target[:, :-1]], 1))[0]  # (U, D)
    of_step = rate / (x @ x.t()).abs().sum(1).max()
    weight = model.output_embedding.weight.detach().clone().requires_grad_()
    for _ in range(steps):
        smoothing = loaded.config.training.label_smoothing
        loss = label_smoothed_cross_entropy(x, weight, target[0], PAD, smoothing).total
        [gradient] = torch.autograd.grad(loss, [weight])
        weight = (weight - of_step * gradient).detach().requires_grad_()
    learnt = Adaptation(loaded, steps, rate).learn([MATCH])
    torch.testing.assert_close(learnt, weight.detach(), rtol=1e-4, atol=1e-5)


def test_more_similar_pairs_change_the_model_more() -> None:
    loaded = run()
    searcher, adaptation = Searcher(loaded, SETTINGS), Adaptation(loaded)
    scores = [log_probability(searcher)]
    for similarity in (0.3, 0.6, 1.0):
        match = Match(SOURCE, TARGET, similarity, 1)
        adapted = adaptation.adapted(searcher, [match])
        scores.append(log_probability(adapted))
    assert scores == sorted(set(scores))


def log_probability(searcher: Searcher) -> float:
    """Return log P of the target of `MATCH`."""
    [score] = Scorer(searcher.loaded).score([(SOURCE, TARGET)])
    return score.log_probability


def test_several_models_cannot_learn_together(tmp_path: Path) -> None:
    runs = [write_run(tmp_path / str(seed), "en", "de", seed) for seed in (1, 2)]
    loaded = load_ensemble(runs, torch.device("cpu"))
    with pytest.raises(ConfigError, match="a single model can learn from a memory"):
        Adaptation(loaded)
