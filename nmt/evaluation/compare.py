"""Several systems on one test set: scores, whether they differ by chance, and where they differ."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from string import ascii_uppercase

from nmt.errors import ConfigError
from nmt.evaluation.breakdown import (
    Row,
    bleu_by_length,
    bleu_by_rarity,
    count_words,
    word_f1_by_rarity,
)
from nmt.evaluation.metrics import (
    PLAIN,
    Score,
    bleu,
    chrf_plus_plus,
    named_for,
    sentence_scores,
)
from nmt.evaluation.significance import Difference, differences
from nmt.evaluation.test_sets import EvaluationSet
from nmt.evaluation.training_text import TrainingWords


@dataclass(frozen=True)
class System:
    """Translations of the whole set, and what they score."""

    label: str
    """a letter"""
    name: str
    """where they come from"""
    translations: list[str]
    scores: tuple[Score, Score]
    """BLEU and chrF++"""


@dataclass(frozen=True)
class Example:
    """A sentence on which the systems differ."""

    line: int
    """counted from 1"""
    source: str | None
    reference: str
    translations: dict[str, str]
    """by the systems' labels"""
    scores: dict[str, float]
    """chrF++ of the sentence"""


@dataclass(frozen=True)
class Breakdown:
    """A table of scores by groups of sentences or words."""

    title: str
    grouped_by: str
    counted: str
    """what the groups hold: sentences or words"""
    rows: list[Row]


@dataclass(frozen=True)
class Comparison:
    """All that is known of the systems on the set."""

    systems: list[System]
    against: EvaluationSet
    differences: list[Difference]
    breakdowns: list[Breakdown]
    examples: dict[str, list[Example]]
    """by label: sentences on which this system stands out from the others most"""

    def as_json(self) -> dict[str, object]:
        """Plain values."""
        return {
            **self.against.as_json(),
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
            "examples": {
                label: [asdict(example) for example in examples]
                for label, examples in self.examples.items()
            },
        }


def compare(
    translations: Sequence[tuple[str, list[str]]],
    against: EvaluationSet,
    tokenize: str = PLAIN,
    learnt: TrainingWords | None = None,
    examples: int = 3,
) -> Comparison:
    """Compare `translations`, each with the name of where it comes from.

    `learnt`: the words of the training text; None takes those of the references instead.

    Raises:
        ConfigError: fewer than two systems, or more than there are letters.
        DataError: not as many translations as references.
    """
    if not 2 <= len(translations) <= len(ascii_uppercase):
        raise ConfigError(
            f"{len(translations)} to compare, expected 2 to {len(ascii_uppercase)}: run "
            "directories, checkpoints or files of translations"
        )
    references = against.references
    systems = [
        System(label, name, lines, _scores(lines, references, tokenize))
        for label, (name, lines) in zip(ascii_uppercase, translations, strict=False)
    ]
    by_label = {system.label: system.translations for system in systems}
    return Comparison(
        systems,
        against,
        differences(by_label, references, tokenize),
        _breakdowns(by_label, references, tokenize, learnt),
        _examples(by_label, against, tokenize, examples),
    )


def _scores(lines: list[str], references: list[str], tokenize: str) -> tuple[Score, Score]:
    chrf = chrf_plus_plus(lines, references)
    return bleu(lines, references, tokenize), named_for(chrf, tokenize)


def _breakdowns(
    systems: Mapping[str, list[str]],
    references: list[str],
    tokenize: str,
    learnt: TrainingWords | None,
) -> list[Breakdown]:
    where = str(learnt) if learnt else "the references"
    frequencies = learnt.counts if learnt else count_words(references, tokenize)
    by_length = bleu_by_length(systems, references, tokenize)
    by_rarity = bleu_by_rarity(systems, references, frequencies, tokenize)
    words = word_f1_by_rarity(systems, references, frequencies, tokenize)
    rarest = f"BLEU by how often the rarest word of the reference occurs in {where}"
    found = f"F-score of words by how often they occur in {where}"
    return [
        Breakdown("BLEU by the length of the reference", "words", "sentences", by_length),
        Breakdown(rarest, "times", "sentences", by_rarity),
        Breakdown(found, "times", "words", words),
    ]


def _examples(
    systems: Mapping[str, list[str]], against: EvaluationSet, tokenize: str, count: int
) -> dict[str, list[Example]]:
    """For each system the sentences where its score is furthest above the mean of the others'."""
    scores = {
        label: sentence_scores("chrF++", lines, against.references, tokenize)
        for label, lines in systems.items()
    }
    found: dict[str, list[Example]] = {}
    for label in systems:
        others = [scores[other] for other in systems if other != label]
        leads = [
            own - sum(rest) / len(rest) for own, *rest in zip(scores[label], *others, strict=True)
        ]
        best = sorted(range(len(leads)), key=lambda i: -leads[i])[:count]
        found[label] = [
            Example(
                i + 1,
                against.sources[i] if against.sources else None,
                against.references[i],
                {other: lines[i] for other, lines in systems.items()},
                {other: round(values[i], 1) for other, values in scores.items()},
            )
            for i in best
            if leads[i] > 0
        ]
    return found
