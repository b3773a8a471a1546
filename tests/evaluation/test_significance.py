import itertools
import random

import numpy as np
import pytest

from nmt.evaluation import compare
from nmt.evaluation.compare import Difference, differences
from nmt.evaluation.metrics import bleu, bleu_metric
from nmt.evaluation.test_sets import EvaluationSet

TEXT = "the cat dog sat on a mat , it's late and old trees sing ."
WORDS = TEXT.split()


def noisy(lines: list[str], chance: float, seed: int) -> list[str]:
    numbers = random.Random(seed)
    return [
        " ".join(word if numbers.random() >= chance else "x" for word in line.split())
        for line in lines
    ]


@pytest.fixture(scope="module")
def references() -> list[str]:
    numbers = random.Random(1)
    return [" ".join(numbers.choices(WORDS, k=numbers.randint(5, 20))) for _ in range(200)]


def compared(
    systems: dict[str, list[str]], references: list[str], tokenized: bool = False
) -> list[Difference]:
    return differences(systems, EvaluationSet("mine", references, tokenized=tokenized))


def test_a_clear_difference_is_significant(references: list[str]) -> None:
    systems = {"A": noisy(references, 0.4, 2), "B": noisy(references, 0.2, 3)}
    (found,) = compared(systems, references)
    scores = [bleu(lines, references, confidence=False).value for lines in systems.values()]
    assert found.bleu == pytest.approx(scores[1] - scores[0])
    assert max(found.bootstrap, found.randomisation) < 0.01
    assert found.significant is True
    assert str(found).startswith(f"B is better than A by {found.bleu:.1f} BLEU: unlikely to be")
    (turned,) = compared(dict(reversed(systems.items())), references)
    assert turned.bleu == pytest.approx(-found.bleu)
    assert str(turned).startswith("B is better than A by")


def test_two_systems_with_as_much_noise_do_not_differ_significantly(references: list[str]) -> None:
    systems = {"A": noisy(references, 0.3, 2), "B": noisy(references, 0.3, 3)}
    (found,) = compared(systems, references)
    assert found.significant is False
    assert "which may well be chance" in str(found)


def test_the_bootstrap_counts_differences_of_both_signs(references: list[str]) -> None:
    """The oracle shifts the differences of all resamples to a mean of zero, and counts both."""
    systems = {"A": noisy(references, 0.3, 4), "B": noisy(references, 0.27, 5)}
    (found,) = compared(systems, references)
    metric = bleu_metric().corpus
    first, second = (
        np.array(metric._extract_corpus_statistics(lines, [references]))
        for lines in systems.values()
    )
    resamples = np.random.default_rng(1).integers(len(references), size=(2000, len(references)))
    gaps = np.array(
        [
            metric._compute_score_from_stats(list(second[rows].sum(0))).score
            - metric._compute_score_from_stats(list(first[rows].sum(0))).score
            for rows in resamples
        ]
    )
    two_sided = np.mean(np.abs(gaps - gaps.mean()) >= abs(found.bleu))
    assert 0.02 < two_sided < 0.3
    assert found.bootstrap == pytest.approx(two_sided, rel=0.3)  # half of it fails


def test_equal_systems_do_not_differ(references: list[str]) -> None:
    same = noisy(references, 0.3, 2)
    (found,) = compared({"A": same, "B": list(same)}, references, tokenized=True)
    assert (found.bleu, found.bootstrap, found.randomisation) == (0.0, 1.0, 1.0)
    assert found.significant is False
    assert str(found) == "A and B score the same."


@pytest.mark.parametrize(("differing", "least"), [(1, 1.0), (3, 0.25), (5, 0.0625)])
def test_few_differing_sentences_are_never_significant(
    references: list[str], differing: int, least: float
) -> None:
    worse = ["x y z" for _ in range(differing)] + references[differing:]
    for size in (differing, len(references)):
        (found,) = compared({"A": references[:size], "B": worse[:size]}, references[:size])
        assert found.randomisation >= least
        assert found.bootstrap >= least
        assert not found.significant


def test_large_sets_take_fewer_draws_but_enough_for_each_pair(
    references: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The level of 0.05 is shared by the pairs; no p of 101 draws is below a tenth of it."""
    monkeypatch.setattr(compare, "MAX_DRAWS", {"bs": 1, "ar": 1})
    worse = {f"system {seed}": noisy(references, 0.9, seed) for seed in range(4)}
    systems = {"A": references, **worse}
    (found,) = compared({name: systems[name] for name in ("A", "system 0")}, references)
    assert (found.bootstrap, found.randomisation) == pytest.approx((2 / 101, 1 / 101))
    pairs = compared(systems, references)
    assert [(d.first, d.second) for d in pairs] == list(itertools.combinations(systems, 2))
    assert {d.level for d in pairs} == {0.005}
    assert all(d.significant for d in pairs if d.first == "A")


def test_the_verdict_is_in_words() -> None:
    better = Difference("A", "B", -0.62, 0.01, 0.004, 0.05)
    assert str(better) == (
        "A is better than B by 0.6 BLEU: unlikely to be chance (paired bootstrap p = 0.01, "
        "approximate randomisation p = 0.004)."
    )
    doubtful = Difference("A", "B", 0.62, 0.04, 0.06, 0.05)
    assert doubtful.significant is None
    assert str(doubtful).startswith("B is 0.6 BLEU above A: the tests disagree")
    assert str(Difference("A", "B", 0.02, 0.4, 0.6, 0.05)).startswith("B is 0.020 BLEU above A, wh")
    assert better.as_json()["verdict"] == str(better)
    assert better.as_json()["bleu_difference"] == -0.62
