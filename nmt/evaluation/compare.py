"""Several systems on one test set: scores, whether they differ by chance, and where they differ.

Koehn, 2004: Statistical Significance Tests for Machine Translation Evaluation (paired bootstrap);
Riezler and Maxwell, 2005: On Some Pitfalls in Automatic Evaluation and Significance Testing for MT
(approximate randomisation).
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from string import ascii_uppercase
from typing import Any

from sacrebleu.significance import PairedTest

from nmt.errors import ConfigError
from nmt.evaluation.breakdown import Breakdown, Systems, TrainingWords, breakdowns
from nmt.evaluation.metrics import Score, bleu_metric, chrf_metric
from nmt.evaluation.score_sheet import score_text
from nmt.evaluation.test_sets import EvaluationSet

RESAMPLES = {"bs": 1000, "ar": 10_000}
"""number of resamples, by sacreBLEU's name of a test: paired bootstrap (bs) and approximate
randomisation (ar)"""
MAX_DRAWS = {"bs": 20_000_000, "ar": 40_000_000}
"""limit on resamples times sentences, because sacreBLEU holds several copies in memory"""
MIN_RESAMPLES = 100  # fewer give p-values in too large steps
SIGNIFICANCE_LEVEL = 0.05
"""a difference is significant if its p-value is below this level"""


@dataclass(frozen=True)
class System:
    """A translation system, given by its translations of a whole test set, and its scores."""

    label: str
    """a letter from A on, short enough for the head of a table"""
    name: str
    """the run or the file that the translations come from"""
    translations: list[str]
    scores: list[Score]
    """BLEU and chrF++"""


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference in BLEU of two systems on the same sentences; `str()` says it in words."""

    first: str
    second: str
    """names of the systems"""
    bleu: float
    """BLEU of the second system minus BLEU of the first"""
    bootstrap: float
    """p-value of the paired bootstrap: the probability that chance alone gives a difference as
    large, whichever system is the better one"""
    randomisation: float
    """p-value of approximate randomisation, in the same sense"""
    level: float
    """the p-value below which the difference is significant"""

    @property
    def significant(self) -> bool | None:
        """Whether both tests find the difference significant; None if they disagree."""
        by_bootstrap = self.bootstrap < self.level
        by_randomisation = self.randomisation < self.level
        return by_bootstrap if by_bootstrap == by_randomisation else None

    def __str__(self) -> str:
        if self.bleu == 0:
            return f"{self.first} and {self.second} score the same."
        better, worse = (self.second, self.first) if self.bleu > 0 else (self.first, self.second)
        decimals = 1 if abs(self.bleu) >= 0.1 else 3
        gap = f"{abs(self.bleu):.{decimals}f} BLEU"
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
        """Return the difference, and the sentence of `str()`, as values that JSON can hold."""
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


@dataclass(frozen=True)
class Comparison:
    """Scores of several systems on one test set, where they differ and whether by chance."""

    systems: list[System]
    test_set: EvaluationSet
    differences: list[Difference]
    """one for each pair of systems"""
    breakdowns: list[Breakdown]
    examples: dict[str, list[dict[str, Any]]]
    """the sentences on which a system is most above the mean of the others; the keys are labels

    Each has its line number from 1, its source (None: unknown) and reference, and by label the
    translation of each system and the chrF++ of that."""

    def as_json(self) -> dict[str, object]:
        """Return the comparison as values that JSON can hold."""
        return {
            **self.test_set.as_json(),
            "systems": [
                {
                    "label": system.label,
                    "name": system.name,
                    "scores": [score.as_json() for score in system.scores],
                }
                for system in self.systems
            ],
            "differences": [difference.as_json() for difference in self.differences],
            "breakdowns": [asdict(breakdown) for breakdown in self.breakdowns],
            "examples": self.examples,
        }


def compare(
    translations: Sequence[tuple[str, list[str]]],
    test_set: EvaluationSet,
    training_words: TrainingWords | None = None,
    examples: int = 3,
) -> Comparison:
    """Compare systems; `translations` has the name of each and its lines for the whole test set.

    The frequency of a word is that in `training_words`; if they are None, in the references.
    `examples` is the largest number of example sentences of each system.

    Raises:
        ConfigError: There are fewer than two systems, or more than 26, one for each letter.
        DataError: The numbers of translations and references differ.
    """
    check_system_count(len(translations))
    labels = ascii_uppercase[: len(translations)]
    systems = [
        System(label, name, lines, score_text(lines, test_set))
        for label, (name, lines) in zip(labels, translations, strict=True)
    ]
    by_label = {system.label: system.translations for system in systems}
    return Comparison(
        systems,
        test_set,
        differences=differences(by_label, test_set),
        breakdowns=breakdowns(by_label, test_set, training_words),
        examples=_examples(by_label, test_set, examples),
    )


def check_system_count(count: int) -> None:
    """Raise a ConfigError unless there are 2 to 26 systems to compare, one for each letter."""
    if not 2 <= count <= len(ascii_uppercase):
        raise ConfigError(
            f"{count} to compare, expected 2 to {len(ascii_uppercase)}: run directories, "
            "checkpoints or files of translations"
        )


def differences(systems: Systems, test_set: EvaluationSet) -> list[Difference]:
    """Return the difference in BLEU of every pair of systems, tested for significance.

    `SIGNIFICANCE_LEVEL` is divided by the number of pairs (Bonferroni): the more pairs are
    compared, the more likely it is that at least one of them differs by chance.
    """
    pairs = list(itertools.combinations(systems, 2))
    level = SIGNIFICANCE_LEVEL / max(1, len(pairs))
    return [_difference(systems, pair, test_set, level) for pair in pairs]


def _difference(
    systems: Systems, pair: tuple[str, str], test_set: EvaluationSet, level: float
) -> Difference:
    """Return the difference in BLEU of two systems, given by name, with two-sided p-values.

    sacreBLEU counts the differences of both signs for approximate randomisation, but those of one
    sign for the paired bootstrap, whose p-value is therefore doubled. Identical translations get
    p = 1: sacreBLEU would call their difference of 0 significant.
    """
    translations = [list(systems[name]) for name in pair]
    if translations[0] == translations[1]:
        return Difference(*pair, bleu=0.0, bootstrap=1.0, randomisation=1.0, level=level)
    # There are 2^n ways to exchange n different translations. Two of them, none and all, always
    # leave a difference as large, and sacreBLEU does not count them: its p can be too small.
    differing = sum(first != second for first, second in zip(*translations, strict=True))
    lowest_p = min(1.0, 2.0 ** (1 - differing))
    p_values = {}
    for test, sides in (("bs", 2), ("ar", 1)):
        # fewer resamples for a long text, but enough for a p-value below the level
        affordable = min(RESAMPLES[test], MAX_DRAWS[test] // len(test_set.references))
        _signatures, results = PairedTest(
            list(zip(pair, translations, strict=True)),
            {"BLEU": bleu_metric(test_set.tokenizer).corpus},
            [test_set.references],
            test_type=test,
            n_samples=max(MIN_RESAMPLES, affordable, math.ceil(2 / level)),
        )()
        # by their type some may be text, but the results of a metric never are
        first, second = (result for result in results["BLEU"] if not isinstance(result, str))
        p_values[test] = max(lowest_p, min(1.0, sides * float(second.p_value or 0.0)))
    bleu = float(second.score - first.score)
    return Difference(*pair, bleu, p_values["bs"], p_values["ar"], level)


def _examples(
    systems: Mapping[str, list[str]], test_set: EvaluationSet, count: int
) -> dict[str, list[dict[str, Any]]]:
    """Return up to `count` sentences of each system, where its chrF++ is most above the others'.

    The others' chrF++ is their mean. The keys of `systems` and of the result are labels.
    """
    metric = chrf_metric(word_order=2)
    scores = {
        label: metric.score_sentences(lines, test_set.references)
        for label, lines in systems.items()
    }

    def compared_sentence(i: int) -> dict[str, Any]:
        return {
            "line": i + 1,
            "source": test_set.sources[i] if test_set.sources else None,
            "reference": test_set.references[i],
            "translations": {label: lines[i] for label, lines in systems.items()},
            "scores": {label: round(values[i], 1) for label, values in scores.items()},
        }

    examples = {}
    for label, own_scores in scores.items():
        leads = []  # for each sentence: the system's score minus the mean score of the others
        for i, own_score in enumerate(own_scores):
            other_scores = [scores[other][i] for other in systems if other != label]
            leads.append(own_score - sum(other_scores) / len(other_scores))
        largest_first = sorted(range(len(leads)), key=lambda i: -leads[i])
        examples[label] = [compared_sentence(i) for i in largest_first[:count] if leads[i] > 0]
    return examples
