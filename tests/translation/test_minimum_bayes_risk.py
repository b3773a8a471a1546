"""The chosen text has the highest mean utility, written out over every single candidate."""

from collections.abc import Sequence
from functools import partial
from statistics import mean

import pytest

from nmt.errors import ConfigError
from nmt.evaluation.metrics import sentence_utilities
from nmt.recipe.config import Sampling
from nmt.run.model import LoadedModel
from nmt.translation.line import Translation, numbered_lines
from nmt.translation.minimum_bayes_risk import most_useful
from nmt.translation.request import TranslationRequest
from nmt.translation.translator import Translator

TABLE = {
    "a": {"a": 100.0, "b": 10.0, "c": 30.0},
    "b": {"a": 20.0, "b": 100.0, "c": 70.0},
    "c": {"a": 40.0, "b": 50.0, "c": 100.0},
}
CHRF = partial(sentence_utilities, "chrf")


def table(texts: Sequence[str]) -> list[list[float]]:
    return [[TABLE[text][other] for other in texts] for text in texts]


def drawn(texts: str, *scores: float) -> list[Translation]:
    scores = scores or (-1.0,) * len(texts)
    return [Translation(text, score) for text, score in zip(texts, scores, strict=True)]


@pytest.mark.parametrize("texts", ["abc", "aab", "aaab", "aaaabc", "abbcc", "bcbcbca", "cc", "ab"])
def test_the_utility_is_the_mean_over_all_other_candidates(texts: str) -> None:
    """A text that was drawn more often weighs more."""
    expected = {
        text: mean(TABLE[text][other] for j, other in enumerate(texts) if j != i)
        for i, text in enumerate(texts)
    }
    found = most_useful(drawn(texts), table, 9)
    assert {t.text: t.utility for t in found} == pytest.approx(expected)
    assert [t.text for t in found] == sorted(expected, key=lambda text: -expected[text])


def test_of_equals_the_more_probable_comes_first() -> None:
    found = most_useful(drawn("xyz", -3.0, -1.0, -2.0), CHRF, 9)
    assert [(t.text, t.utility) for t in found] == [("y", 0.0), ("z", 0.0), ("x", 0.0)]
    (found_twice,) = most_useful(drawn("aa", -5.0, -4.0), table, 9)
    assert (found_twice.score, found_twice.utility) == (-4.0, 100.0)


def test_a_candidate_alone_is_chosen_without_comparison() -> None:
    assert most_useful([Translation("", 0.0)], table, 9) == [Translation("", 0.0, utility=0.0)]


@pytest.mark.parametrize("sampling", [None, Sampling(seed=4)])
def test_the_candidates_are_those_of_the_search_or_the_draws(
    random_run: LoadedModel, sampling: Sampling | None
) -> None:
    translator = Translator(random_run, sampling=sampling)
    texts = ["a small dog", "", "ein Hund", "dog 123"]
    request = TranslationRequest(n_best=2, utilities=CHRF, candidates=3)
    found = list(translator.pipeline(request).translate(numbered_lines(texts)))
    candidates = translator.pipeline(TranslationRequest(n_best=3)).translate(numbered_lines(texts))
    assert found == [most_useful(row, CHRF, 2) for row in candidates]
    assert [len(row) for row in found] == [2, 1, 2, 2]


@pytest.mark.parametrize(
    ("n_best", "candidates", "message"),
    [
        (1, 1, "there is 1; raise `beam_size`, or draw samples"),
        (3, 2, "3 translations .* of 2 candidates; raise `candidates`"),
        (1, 4, "the beam holds 3; raise `beam_size`"),
    ],
)
def test_too_few_candidates_are_an_error(
    random_run: LoadedModel, n_best: int, candidates: int, message: str
) -> None:
    request = TranslationRequest(n_best, utilities=table, candidates=candidates)
    with pytest.raises(ConfigError, match=message):
        Translator(random_run).pipeline(request)
