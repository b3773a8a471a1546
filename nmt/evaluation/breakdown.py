"""Where translations are good and where not: by length of the sentence, by rarity of its words.

These are functions on lists of lines, for `nmt compare` and for reports. Words are those that BLEU
counts (`words_of`).
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from nmt.evaluation.metrics import PLAIN, bleu, words_of

GROUPS = 6
FREQUENCIES = (0, 1, 2, 5, 10, 100, 1000, 10_000)
"""lowest frequency of each class of words"""


@dataclass(frozen=True, slots=True)
class Row:
    """A group of sentences or words, and the score of each system on it."""

    label: str
    size: int
    """number of sentences or words in the group"""
    scores: tuple[float, ...]
    """0 to 100, in the order of the systems"""


def count_words(lines: Iterable[str], tokenize: str = PLAIN) -> Counter[str]:
    """Return how often each word occurs in the lines."""
    counts: Counter[str] = Counter()
    for line in lines:
        counts.update(words_of(line, tokenize))
    return counts


def bleu_by_length(
    systems: Mapping[str, Sequence[str]], references: Sequence[str], tokenize: str = PLAIN
) -> list[Row]:
    """Return BLEU on groups of sentences by the number of words in the reference.

    There are at most `GROUPS` groups of about as many sentences each.
    """
    lengths = [len(words_of(line, tokenize)) for line in references]
    groups = {
        str(low) if low == high else f"{low}-{high}": [
            i for i, length in enumerate(lengths) if low <= length <= high
        ]
        for low, high in _length_ranges(lengths)
    }
    return _bleu_of_groups(groups, systems, references, tokenize)


def bleu_by_rarity(
    systems: Mapping[str, Sequence[str]],
    references: Sequence[str],
    frequencies: Mapping[str, int],
    tokenize: str = PLAIN,
) -> list[Row]:
    """Return BLEU on groups of sentences by the frequency of the rarest word of the reference.

    `frequencies` count the words of the training text or of another text. A sentence with an empty
    reference is in no group.
    """
    groups: dict[str, list[int]] = {label: [] for label in _class_labels()}
    for i, line in enumerate(references):
        if words := words_of(line, tokenize):
            groups[_class_label(min(frequencies.get(word, 0) for word in words))].append(i)
    return _bleu_of_groups(groups, systems, references, tokenize)


def word_f1_by_rarity(
    systems: Mapping[str, Sequence[str]],
    references: Sequence[str],
    frequencies: Mapping[str, int],
    tokenize: str = PLAIN,
) -> list[Row]:
    """Return the F1 score of the words of each class of frequency, in any order in the sentence.

    A word of a translation is correct at most as often as it occurs in the reference of the
    sentence. The size of a group is the number of its words in the references.
    """
    label_of = {n: _class_label(n) for n in {*frequencies.values(), 0}}
    correct = {name: Counter[str]() for name in systems}
    translated = {name: Counter[str]() for name in systems}
    expected: Counter[str] = Counter()
    for i, line in enumerate(references):
        reference = Counter(words_of(line, tokenize))
        for word, count in reference.items():
            expected[label_of[frequencies.get(word, 0)]] += count
        for name, lines in systems.items():
            for word, count in Counter(words_of(lines[i], tokenize)).items():
                label = label_of[frequencies.get(word, 0)]
                translated[name][label] += count
                correct[name][label] += min(count, reference[word])
    rows = []
    for label in filter(expected.__getitem__, _class_labels()):
        counts = ((correct[n][label], expected[label] + translated[n][label]) for n in systems)
        rows.append(Row(label, expected[label], tuple(200 * c / both for c, both in counts)))
    return rows


def _bleu_of_groups(
    groups: Mapping[str, list[int]],
    systems: Mapping[str, Sequence[str]],
    references: Sequence[str],
    tokenize: str,
) -> list[Row]:
    rows = []
    for label, group in groups.items():
        if not group:
            continue
        part = [references[i] for i in group]
        scores = (
            bleu([lines[i] for i in group], part, tokenize, confidence=False).value
            for lines in systems.values()
        )
        rows.append(Row(label, len(group), tuple(scores)))
    return rows


def _length_ranges(lengths: Sequence[int]) -> list[tuple[int, int]]:
    """Return the smallest and the largest length of groups of about equal size."""
    if not lengths:
        return []
    ordered = sorted(lengths)
    starts = sorted({ordered[len(ordered) * k // GROUPS] for k in range(GROUPS)})
    return [(low, high - 1) for low, high in pairwise([*starts, ordered[-1] + 1])]


def _class_labels() -> list[str]:
    """Return the labels of the classes of frequency, rarest first."""
    labels = [
        f"{low:,}" if low == high - 1 else f"{low:,}-{high - 1:,}"
        for low, high in pairwise(FREQUENCIES)
    ]
    return [*labels, f"{FREQUENCIES[-1]:,}+"]


def _class_label(frequency: int) -> str:
    return _class_labels()[bisect_right(FREQUENCIES, frequency) - 1]
