"""Several systems on one test set: scores, whether they differ by chance, and where they differ."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from string import ascii_uppercase

from nmt.errors import ConfigError
from nmt.evaluation.breakdown import (
    Row,
    TrainingWords,
    bleu_by_length,
    bleu_by_rarity,
    count_words,
    word_f1_by_rarity,
)
from nmt.evaluation.metrics import Score, chrf_metric
from nmt.evaluation.score_sheet import score_text
from nmt.evaluation.significance import Difference, differences
from nmt.evaluation.test_sets import EvaluationSet


@dataclass(frozen=True)
class System:
    """Translations of a whole test set, and their scores."""

    label: str
    """a letter from A on, short enough for the head of a table"""
    name: str
    """the run or the file that the translations come from"""
    translations: list[str]
    scores: list[Score]
    """BLEU and chrF++"""


@dataclass(frozen=True)
class ComparedSentence:
    """A sentence of the test set, with its translation by each system."""

    line: int
    """line number in the test set, counted from 1"""
    source: str | None
    reference: str
    translations: dict[str, str]
    """the translation by each system; the keys are labels"""
    scores: dict[str, float]
    """chrF++ of these translations; the keys are labels"""


@dataclass(frozen=True)
class Breakdown:
    """A table of scores by groups of sentences or words."""

    title: str
    grouped_by: str
    """the unit of the rows' labels: words or times"""
    counted: str
    """what the groups consist of: sentences or words"""
    rows: list[Row]


@dataclass(frozen=True)
class Comparison:
    """Scores of several systems on one test set, where they differ and whether by chance."""

    systems: list[System]
    test_set: EvaluationSet
    differences: list[Difference]
    """of every two systems"""
    breakdowns: list[Breakdown]
    examples: dict[str, list[ComparedSentence]]
    """by label of a system: the sentences on which its lead over the others is largest"""

    def as_json(self) -> dict[str, object]:
        """Return the comparison as values that JSON can hold."""
        return {
            **self.test_set.as_json(),
            "systems": [
                {"label": s.label, "name": s.name, "scores": [each.as_json() for each in s.scores]}
                for s in self.systems
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
    test_set: EvaluationSet,
    training_words: TrainingWords | None = None,
    examples: int = 3,
) -> Comparison:
    """Compare systems, each given as its name and its translations of the whole test set.

    Words are rare or frequent in the training text, or in the references if `training_words` is
    None. `examples` is the largest number of example sentences of each system.

    Raises:
        ConfigError: There are fewer than two systems, or more than 26, one for each letter.
        DataError: The numbers of translations and references differ.
    """
    if not 2 <= len(translations) <= len(ascii_uppercase):
        raise ConfigError(
            f"{len(translations)} to compare, expected 2 to {len(ascii_uppercase)}: run "
            "directories, checkpoints or files of translations"
        )
    systems = [
        System(label, name, lines, score_text(lines, test_set))
        for label, (name, lines) in zip(ascii_uppercase, translations, strict=False)
    ]
    by_label = {system.label: system.translations for system in systems}
    return Comparison(
        systems,
        test_set,
        differences=differences(by_label, test_set),
        breakdowns=_breakdowns(by_label, test_set, training_words),
        examples=_examples(by_label, test_set, examples),
    )


def _breakdowns(
    systems: Mapping[str, list[str]], test_set: EvaluationSet, training_words: TrainingWords | None
) -> list[Breakdown]:
    if training_words:
        where, frequencies = training_words.origin, training_words.counts
    else:
        where = "the references"
        frequencies = count_words(test_set.references, test_set.tokenizer)
    by_length = bleu_by_length(systems, test_set)
    by_rarity = bleu_by_rarity(systems, test_set, frequencies)
    words = word_f1_by_rarity(systems, test_set, frequencies)
    rarest_word = f"BLEU by how often the rarest word of the reference occurs in {where}"
    each_word = f"F-score of words by how often they occur in {where}"
    return [
        Breakdown("BLEU by the length of the reference", "words", "sentences", by_length),
        Breakdown(rarest_word, "times", "sentences", by_rarity),
        Breakdown(each_word, "times", "words", words),
    ]


def _examples(
    systems: Mapping[str, list[str]], test_set: EvaluationSet, count: int
) -> dict[str, list[ComparedSentence]]:
    """Return for each system the sentences where its chrF++ is most above the others' mean."""
    metric = chrf_metric(word_order=2)
    scores = {
        label: metric.score_sentences(lines, test_set.references)
        for label, lines in systems.items()
    }

    def compared_sentence(i: int) -> ComparedSentence:
        return ComparedSentence(
            line=i + 1,
            source=test_set.sources[i] if test_set.sources else None,
            reference=test_set.references[i],
            translations={label: lines[i] for label, lines in systems.items()},
            scores={label: round(values[i], 1) for label, values in scores.items()},
        )

    examples = {}
    for label in systems:
        others = [scores[other] for other in systems if other != label]
        leads = [
            own - sum(rest) / len(rest) for own, *rest in zip(scores[label], *others, strict=True)
        ]
        best = sorted(range(len(leads)), key=lambda i: -leads[i])[:count]
        examples[label] = [compared_sentence(i) for i in best if leads[i] > 0]
    return examples
