"""Do two recipes differ, for other seeds and other sentences than those that were tried?

The runs of a group differ in the seed, and all translate the same sentences. The difference of the
mean scores of two groups of n1 and n2 runs varies with both:

    variance = s1^2 / n1 + s2^2 / n2 + variance over resampled sentences - its part of single runs

s^2 is the variance of the scores of the runs of a group, which includes that last part. Difference
over standard error is Student's t, with the degrees of freedom of Welch (1947) and Satterthwaite
(1946): few for few seeds. Clark et al., 2011: Better Hypothesis Testing for Statistical Machine
Translation: Controlling for Optimizer Instability; Riezler and Hagmann, 2022: Validity,
Reliability, and Significance (seeds and sentences as random effects). How often it errs:
tests/evaluation/test_seed_test.py, and the table in configs/README.md.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from nmt.evaluation.compare import MAX_DRAWS, MIN_RESAMPLES, RESAMPLES, SIGNIFICANCE_LEVEL
from nmt.evaluation.metrics import Score
from nmt.evaluation.score_sheet import sheet_metrics
from nmt.evaluation.test_sets import EvaluationSet

FloatArray = NDArray[np.float64]
_DRAWS = 1_000_000  # of Student's t


@dataclass(frozen=True)
class SeedTest:
    """The figures of the test of two groups that have several runs each."""

    standard_error: float
    """of the difference; its square is the sum of those of the next two"""
    of_seeds: float
    of_sentences: float
    p: float
    """two-sided p-value"""
    low: float
    """lower end of the interval of the difference, of 95 % if one pair is compared (1 - level)"""
    high: float


@dataclass(frozen=True)
class GroupDifference:
    """The mean score of the second group minus that of the first; `str()` says it in words."""

    first: str
    second: str
    metric: str
    difference: float
    test: SeedTest | None
    """None: a group has one run only"""
    level: float
    """the p-value below which the difference is significant"""

    def __str__(self) -> str:
        better, worse = self.second, self.first
        if self.difference < 0:
            better, worse = worse, better
        gap, test = f"{abs(self.difference):.2f} {self.metric}", self.test
        if test is None:
            return (
                f"{better} is {gap} above {worse}. As one of them has a single run, this cannot be "
                "generalised over seeds: train each with three seeds or more."
            )
        low, high = sorted([test.low, test.high], reverse=self.difference < 0)
        sign = -1 if self.difference < 0 else 1
        p = f"p = {test.p:.2g}" if test.p >= 1e-4 else "p < 0.0001"
        figures = (
            f"({100 * (1 - self.level):.3g} % interval {sign * low:.2f} to {sign * high:.2f}, {p}; "
            f"standard error {test.of_seeds:.2f} by seeds, {test.of_sentences:.2f} by sentences)"
        )
        if test.p < self.level:
            return f"{better} is better than {worse} by {gap}: unlikely to be chance {figures}."
        return f"{better} is {gap} above {worse}, which may well be chance {figures}."


@dataclass(frozen=True)
class GroupComparison:
    """Groups of runs on one test set."""

    test_set: EvaluationSet
    scores: dict[str, dict[str, list[Score]]]
    """BLEU and chrF++ by group and run"""
    differences: list[GroupDifference]
    """by metric, one for each pair of groups"""

    def as_json(self) -> dict[str, object]:
        """Return the comparison, with the sentences of `str()`, as values that JSON can hold."""
        return {
            **self.test_set.as_json(),
            "groups": {
                group: {run: [score.as_json() for score in scores] for run, scores in runs.items()}
                for group, runs in self.scores.items()
            },
            "differences": [asdict(each) | {"verdict": str(each)} for each in self.differences],
        }


def compare_groups(
    groups: Mapping[str, Mapping[str, Sequence[str]]],
    test_set: EvaluationSet,
    baseline: str | None = None,
) -> GroupComparison:
    """Compare groups, {group: {run: its translations of the whole test set}}.

    Each pair is compared; with a `baseline`, the name of a group, only the pairs of it with each
    other one. As `nmt.evaluation.compare.differences`, it divides the level by the number of pairs.

    Raises:
        DataError: The numbers of translations and references differ.
    """
    pairs = list(itertools.combinations(groups, 2))
    if baseline is not None:
        pairs = [(baseline, group) for group in groups if group != baseline]
    level = SIGNIFICANCE_LEVEL / max(1, len(pairs))
    references = test_set.references
    size = len(references)
    resamples = max(MIN_RESAMPLES, min(RESAMPLES["bs"], MAX_DRAWS["bs"] // size))
    counts = np.random.default_rng(1).multinomial(size, [1 / size] * size, resamples)
    scores: dict[str, dict[str, list[Score]]] = {
        group: {run: [] for run in runs} for group, runs in groups.items()
    }
    differences = []
    for metric in sheet_metrics(test_set):
        drawn: dict[str, FloatArray] = {}
        for group, runs in groups.items():
            for run, lines in runs.items():
                scores[group][run].append(metric.score(lines, references, confidence=False))
            of_runs = [metric.resampled_scores(each, references, counts) for each in runs.values()]
            drawn[group] = np.array(of_runs)
        for pair in pairs:
            own = [np.array([each[-1].value for each in scores[name].values()]) for name in pair]
            test = seed_test(own, [drawn[name] for name in pair], level)
            gap = float(own[1].mean() - own[0].mean())
            differences.append(GroupDifference(*pair, metric.name, gap, test, level))
    return GroupComparison(test_set, scores, differences)


def seed_test(
    scores: Sequence[FloatArray],
    resampled: Sequence[FloatArray],
    level: float = SIGNIFICANCE_LEVEL,
) -> SeedTest | None:
    """Test the difference of two groups of runs; None if one has a single run.

    `scores` are those of the runs of each group (n,), `resampled` those on resamples of the
    sentences (n, B), which are the same for all runs.
    """
    counts = [len(each) for each in scores]
    if min(counts) < 2:
        return None
    of_seeds = [float(each.var(ddof=1)) / len(each) for each in scores]
    of_single_runs = 0.0
    for drawn, n in zip(resampled, counts, strict=True):
        deviations = drawn - drawn.mean(axis=0)
        of_single_runs += float(deviations.var(axis=1).mean()) / (n - 1)
    means = [each.mean(axis=0) for each in resampled]
    of_sentences = max(0.0, float((means[1] - means[0]).var()) - of_single_runs)
    variance = sum(of_seeds) + of_sentences
    lost = sum(v**2 / (n - 1) for v, n in zip(of_seeds, counts, strict=True))
    freedom = variance**2 / lost if lost else sum(counts) - 2
    t_values = np.abs(np.random.default_rng(1).standard_t(freedom, _DRAWS))
    error = math.sqrt(variance)
    gap = float(scores[1].mean() - scores[0].mean())
    p = float((t_values * error >= abs(gap)).mean())
    half_width = error * float(np.quantile(t_values, 1 - level))
    return SeedTest(
        standard_error=error,
        of_seeds=math.sqrt(sum(of_seeds)),
        of_sentences=math.sqrt(of_sentences),
        p=max(p, 1 / _DRAWS),
        low=gap - half_width,
        high=gap + half_width,
    )
