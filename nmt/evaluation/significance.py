"""Whether a difference of scores may be chance: two tests on the same sentences, by sacreBLEU.

Koehn, 2004: Statistical Significance Tests for Machine Translation Evaluation (paired bootstrap);
Riezler and Maxwell, 2005: On Some Pitfalls in Automatic Evaluation and Significance Testing for MT
(approximate randomisation).
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sacrebleu.significance import PairedTest

from nmt.evaluation.metrics import PLAIN, bleu_metric

RESAMPLES = {"bs": 1000, "ar": 10_000}
# sacreBLEU holds every draw of every sentence in memory, several times over
MAX_DRAWS = {"bs": 20_000_000, "ar": 40_000_000}
LEVEL = 0.05
"""what is less probable than this is not put down to chance"""


@dataclass(frozen=True, slots=True)
class Difference:
    """Two systems on the same sentences."""

    first: str
    second: str
    bleu: float
    """of the second less that of the first"""
    bootstrap: float
    """p of the paired bootstrap: how often chance alone makes so great a difference"""
    randomisation: float
    """p of approximate randomisation"""
    level: float
    """the p below which the difference is not put down to chance"""

    @property
    def significant(self) -> bool | None:
        """Whether both tests say that it is no chance; None if they disagree."""
        agreed = self.bootstrap < self.level, self.randomisation < self.level
        return agreed[0] if agreed[0] == agreed[1] else None

    def __str__(self) -> str:
        """The verdict in words."""
        if self.bleu == 0:
            return f"{self.first} and {self.second} score the same."
        better, worse = (self.second, self.first) if self.bleu > 0 else (self.first, self.second)
        gap = f"{abs(self.bleu):.{1 if abs(self.bleu) >= 0.1 else 3}f} BLEU"
        tests = (
            f"(paired bootstrap p = {self.bootstrap:.2g}, approximate randomisation "
            f"p = {self.randomisation:.2g})"
        )
        if self.significant:
            return f"{better} is better than {worse} by {gap}: unlikely to be chance {tests}."
        if self.significant is None:
            return (
                f"{better} is {gap} above {worse}: the tests disagree whether that may be chance "
                f"{tests}; take a larger test set."
            )
        return f"{better} is {gap} above {worse}, which may well be chance {tests}."

    def as_json(self) -> dict[str, object]:
        """Plain values."""
        return {
            "first": self.first,
            "second": self.second,
            "bleu_difference": round(self.bleu, 2),
            "paired_bootstrap_p": self.bootstrap,
            "approximate_randomisation_p": self.randomisation,
            "level": self.level,
            "significant": self.significant,
            "verdict": str(self),
        }


def differences(
    systems: Mapping[str, Sequence[str]], references: Sequence[str], tokenize: str = PLAIN
) -> list[Difference]:
    """Every two of `systems` (translations by name) against each other.

    With several pairs the level is divided by their number (Bonferroni): the more pairs are tried,
    the more often one of them differs by chance.
    """
    pairs = list(itertools.combinations(systems, 2))
    level = LEVEL / max(1, len(pairs))
    return [_difference(systems, pair, references, tokenize, level) for pair in pairs]


def _difference(
    systems: Mapping[str, Sequence[str]],
    pair: tuple[str, str],
    references: Sequence[str],
    tokenize: str,
    level: float,
) -> Difference:
    if list(systems[pair[0]]) == list(systems[pair[1]]):  # sacreBLEU would find them different
        return Difference(*pair, 0.0, 1.0, 1.0, level)
    p_values: dict[str, float] = {}
    for test in RESAMPLES:
        _, found = PairedTest(
            [(name, list(systems[name])) for name in pair],
            {"BLEU": bleu_metric(tokenize)},
            [list(references)],
            test_type=test,
            n_samples=_resamples(test, len(references), level),
        )()
        first, second = (result for result in found["BLEU"] if not isinstance(result, str))
        p_values[test] = float(second.p_value or 0.0)
        gap = float(second.score - first.score)
    least = least_p(systems[pair[0]], systems[pair[1]])
    return Difference(*pair, gap, max(least, p_values["bs"]), max(least, p_values["ar"]), level)


def least_p(first: Sequence[str], second: Sequence[str]) -> float:
    """What p cannot be below, for two systems whose translations differ.

    In how many ways can the systems exchange the n translations that differ? Two of the 2^n, none
    and all, leave the gap as wide as it is. Randomisation draws among them, and sacreBLEU does not
    count those draws that are no wider.
    """
    differing = sum(one != other for one, other in zip(first, second, strict=True))
    return min(1.0, 2.0 ** (1 - differing))


def _resamples(test: str, sentences: int, level: float) -> int:
    """How often to draw: less where the text is long, but so that a p can come below the level."""
    wanted = min(RESAMPLES[test], MAX_DRAWS[test] // sentences)
    return max(100, wanted, math.ceil(2 / level))
