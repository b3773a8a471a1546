import math

import numpy as np
import pytest
from numpy.typing import NDArray

from nmt.evaluation import seed_test as seed_test_module
from nmt.evaluation.metrics import bleu_metric, chrf_metric
from nmt.evaluation.seed_test import compare_groups, seed_test
from nmt.evaluation.test_sets import EvaluationSet

Floats = NDArray[np.float64]
SENTENCES = 100


@pytest.fixture(autouse=True)
def few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seed_test_module, "_DRAWS", 20_000)


def resamples(count: int = 200) -> NDArray[np.int64]:
    generator = np.random.default_rng(1)
    return generator.multinomial(SENTENCES, [1 / SENTENCES] * SENTENCES, count)


def p_values(gap: float, seed: float, sentence: float, runs: int = 3, trials: int = 200) -> Floats:
    """p of trials in which the score is a mean of sentences: its parts are known exactly.

    `seed` is the deviation of runs, `sentence` that of each sentence between the groups; the true
    difference is `gap` of its standard errors.
    """
    numbers, drawn = np.random.default_rng(3), resamples().T / SENTENCES
    single = 0.5  # deviation of a sentence between runs
    variance = 2 * (seed**2 + single**2 / SENTENCES) / runs + 2 * sentence**2 / SENTENCES
    found = []
    for _ in range(trials):
        scores, resampled = [], []
        shared = numbers.normal(0, 1, SENTENCES)
        for shift in (0.0, gap * math.sqrt(variance)):
            group = shared + numbers.normal(0, sentence, SENTENCES) + shift
            of_runs = group + numbers.normal(0, seed, (runs, 1))
            of_runs = of_runs + numbers.normal(0, single, (runs, SENTENCES))
            scores.append(of_runs.mean(axis=1))
            resampled.append(of_runs @ drawn)
        test = seed_test(scores, resampled)
        assert test is not None
        found.append(test.p)
    return np.array(found)


@pytest.mark.parametrize(
    ("seed", "sentence"), [(0.1, 0.0), (0.0, 0.0), (0.05, 0.5), (0.0, 1.0)], ids=str
)
def test_chance_is_called_a_difference_in_about_one_of_twenty_trials(
    seed: float, sentence: float
) -> None:
    """Whether seeds or sentences are what varies; 200 trials allow 0.05 ± 0.03."""
    assert 0.01 <= (p_values(0, seed, sentence) < 0.05).mean() <= 0.085


def test_a_large_difference_is_mostly_found_and_more_seeds_find_more() -> None:
    three, five = ((p_values(4, 0.1, 0.2, n, 100) < 0.05).mean() for n in (3, 5))
    assert 0.6 < three < five
    assert five > 0.85


def noisy(lines: list[str], chance: float, numbers: np.random.Generator) -> list[str]:
    return [
        " ".join(word if numbers.random() >= chance else "x" for word in line.split())
        for line in lines
    ]


@pytest.mark.slow
@pytest.mark.parametrize(("gap", "least", "most"), [(0.0, 0.01, 0.085), (0.08, 0.6, 1.0)])
def test_the_rates_hold_for_bleu(gap: float, least: float, most: float) -> None:
    """200 trials of three runs each, which replace words of 100 references; seeds differ, too."""
    numbers, metric, counts, found = np.random.default_rng(5), bleu_metric(), resamples(100), []
    words = [f"w{n}" for n in range(300)]
    for _ in range(200):
        references = [
            " ".join(numbers.choice(words, numbers.integers(5, 15))) for _ in range(SENTENCES)
        ]
        scores, resampled = [], []
        for shift in (0.0, gap):
            runs = [
                noisy(references, 0.2 + shift + numbers.normal(0, 0.01), numbers) for _ in "abc"
            ]
            sheet = [metric.score(run, references, confidence=False).value for run in runs]
            scores.append(np.array(sheet))
            drawn = [metric.resampled_scores(run, references, counts) for run in runs]
            resampled.append(np.array(drawn))
        test = seed_test(scores, resampled)
        assert test is not None
        found.append(test.p < 0.05)
    assert least <= np.mean(found) <= most


@pytest.fixture(scope="module")
def references() -> list[str]:
    numbers = np.random.default_rng(2)
    words = [f"w{n}" for n in range(300)]
    return [" ".join(numbers.choice(words, numbers.integers(5, 15))) for _ in range(SENTENCES)]


@pytest.mark.parametrize("metric", [bleu_metric(), chrf_metric(2)], ids=lambda metric: metric.name)
def test_the_score_of_a_resample_is_that_of_its_sentences(references: list[str], metric) -> None:  # type: ignore[no-untyped-def]
    lines = noisy(references, 0.3, np.random.default_rng(1))
    counts = resamples(3)
    found = metric.resampled_scores(lines, references, counts)
    for score, of_sentences in zip(found, counts, strict=True):
        repeated = [
            [line for line, count in zip(text, of_sentences, strict=True) for _ in range(count)]
            for text in (lines, references)
        ]
        assert score == pytest.approx(metric.score(*repeated, confidence=False).value)


def test_groups_are_compared_by_mean_and_the_sentences_say_what_follows(
    references: list[str],
) -> None:
    numbers = np.random.default_rng(4)
    groups = {
        name: {f"{name}-{n}": noisy(references, chance, numbers) for n in range(3)}
        for name, chance in {"base": 0.3, "good": 0.1, "same": 0.3}.items()
    }
    compared = compare_groups(groups, EvaluationSet("mine", references))
    by_pair = {(d.first, d.second): d for d in compared.differences if d.metric == "BLEU"}
    clear, chance = by_pair["base", "good"], by_pair["base", "same"]
    means = {
        name: np.mean([scores[0].value for scores in runs.values()])
        for name, runs in compared.scores.items()
    }
    assert clear.difference == pytest.approx(means["good"] - means["base"])
    assert str(clear).startswith(f"good is better than base by {clear.difference:.2f} BLEU: unli")
    assert "which may well be chance" in str(chance)
    turned = by_pair["good", "same"]
    assert turned.difference < 0 and turned.test
    interval = f"(98.3 % interval {-turned.test.high:.2f} to {-turned.test.low:.2f}"
    assert str(turned).startswith("good is better than same") and interval in str(turned)
    assert clear.level == pytest.approx(0.05 / 3)
    with_one = compare_groups(groups, EvaluationSet("mine", references), baseline="good")
    pairs = [(d.first, d.second) for d in with_one.differences if d.metric == "BLEU"]
    assert pairs == [("good", "base"), ("good", "same")]
    assert {each.level for each in with_one.differences} == {0.05 / 2}
    verdicts = [each["verdict"] for each in compared.as_json()["differences"]]  # type: ignore[attr-defined]
    assert verdicts == list(map(str, compared.differences))


def test_one_run_cannot_be_generalised_over_seeds(references: list[str]) -> None:
    numbers = np.random.default_rng(4)
    groups = {
        "base": {"base-1": noisy(references, 0.3, numbers)},
        "good": {f"good-{n}": noisy(references, 0.1, numbers) for n in range(3)},
    }
    for difference in compare_groups(groups, EvaluationSet("mine", references)).differences:
        assert difference.test is None
        assert "cannot be generalised over seeds" in str(difference)


def test_equal_translations_do_not_differ(references: list[str]) -> None:
    groups = {name: {f"{name}-{n}": references for n in range(2)} for name in "ab"}
    for difference in compare_groups(groups, EvaluationSet("mine", references)).differences:
        assert difference.test and difference.test.p == 1
