"""Where translations are good and where not: by length of the sentence, by rarity of its words.

Plain functions on lists of lines, for `nmt compare` and for reports. Words are those that BLEU
counts (`words_of`).
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from nmt.evaluation.metrics import PLAIN, bleu, words_of

GROUPS = 6
FREQUENCIES = (0, 1, 2, 5, 10, 100, 1000, 10_000)
"""the least frequency of each class of words"""


@dataclass(frozen=True, slots=True)
class Row:
    """A group of sentences or words, and what each system scores on it."""

    label: str
    size: int
    """sentences in the group, or words"""
    scores: tuple[float, ...]
    """0 to 100, in the order of the systems"""


def count_words(lines: Iterable[str], tokenize: str = PLAIN) -> Counter[str]:
    """How often each word occurs."""
    counts: Counter[str] = Counter()
    for line in lines:
        counts.update(words_of(line, tokenize))
    return counts


def bleu_by_length(
    systems: Mapping[str, Sequence[str]], references: Sequence[str], tokenize: str = PLAIN
) -> list[Row]:
    """BLEU on groups of sentences whose references have about the same number of words.

    There are up to `GROUPS`, of about as many sentences each.
    """
    lengths = [len(words_of(line, tokenize)) for line in references]
    groups = {
        _span(low, high): [i for i, length in enumerate(lengths) if low <= length <= high]
        for low, high in _spans(lengths)
    }
    return _bleu_of_groups(groups, systems, references, tokenize)


def bleu_by_rarity(
    systems: Mapping[str, Sequence[str]],
    references: Sequence[str],
    frequencies: Mapping[str, int],
    tokenize: str = PLAIN,
) -> list[Row]:
    """BLEU on groups of sentences by how often the rarest word of the reference occurs.

    `frequencies` are those of the training text, or of any other; an empty line is in no group.
    """
    groups: dict[str, list[int]] = {label: [] for label in _classes()}
    for i, line in enumerate(references):
        if words := words_of(line, tokenize):
            groups[_class_of(min(frequencies.get(word, 0) for word in words))].append(i)
    return _bleu_of_groups(groups, systems, references, tokenize)


def word_f1_by_rarity(
    systems: Mapping[str, Sequence[str]],
    references: Sequence[str],
    frequencies: Mapping[str, int],
    tokenize: str = PLAIN,
) -> list[Row]:
    """The F-score of the words of each class of frequency, whatever their order in the sentence.

    A word is right as often as it stands in the reference of its sentence. The size is the number
    of words in the references.
    """
    label_of = {n: _class_of(n) for n in {*frequencies.values(), 0}}
    right = {name: Counter[str]() for name in systems}
    given = {name: Counter[str]() for name in systems}
    wanted: Counter[str] = Counter()
    for i, line in enumerate(references):
        reference = Counter(words_of(line, tokenize))
        for word, count in reference.items():
            wanted[label_of[frequencies.get(word, 0)]] += count
        for name, lines in systems.items():
            for word, count in Counter(words_of(lines[i], tokenize)).items():
                label = label_of[frequencies.get(word, 0)]
                given[name][label] += count
                right[name][label] += min(count, reference[word])
    return [
        Row(
            label,
            wanted[label],
            tuple(
                200 * right[name][label] / (wanted[label] + given[name][label]) for name in systems
            ),
        )
        for label in _classes()
        if wanted[label]
    ]


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


def _spans(lengths: Sequence[int]) -> list[tuple[int, int]]:
    """First and last length of each group, so that the groups are about equal in size."""
    ordered = sorted(lengths)
    starts = sorted({ordered[len(ordered) * k // GROUPS] for k in range(GROUPS)} if ordered else ())
    return [(low, high - 1) for low, high in pairwise([*starts, ordered[-1] + 1 if ordered else 0])]


def _span(low: int, high: int) -> str:
    return str(low) if low == high else f"{low}-{high}"


def _classes() -> list[str]:
    """The labels of the classes of frequency, rarest first."""
    uppers = [f"{high - 1:,}" for high in FREQUENCIES[1:]]
    labels = [
        f"{low:,}" if f"{low:,}" == high else f"{low:,}-{high}"
        for low, high in zip(FREQUENCIES, uppers, strict=False)
    ]
    return [*labels, f"{FREQUENCIES[-1]:,}+"]


def _class_of(frequency: int) -> str:
    place = sum(frequency >= least for least in FREQUENCIES) - 1
    return _classes()[place]
