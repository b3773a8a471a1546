"""Where translations are good and where not: by length of the sentence, by rarity of its words.

Words are those that BLEU counts (`words_of`); they are rare or frequent in the training text of a
run, or in another text.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise

from nmt.config import DataConfig
from nmt.data.corpora.registry import find_splits, resolve
from nmt.data.text.parallel_text import ParallelText
from nmt.errors import NmtError
from nmt.evaluation.metrics import PLAIN, bleu, bleu_tokenizer, words_of
from nmt.evaluation.test_sets import EvaluationSet

GROUPS = 6
FREQUENCIES = (0, 1, 2, 5, 10, 100, 1000, 10_000)
"""lowest frequency of each class of words"""
LABELS = ("0", "1", "2-4", "5-9", "10-99", "100-999", "1,000-9,999", "10,000+")
"""names of these classes, rarest first"""
Systems = Mapping[str, Sequence[str]]
"""the translations of each system, by its name"""
MOST_PAIRS = 1_000_000
"""number of pairs at the start of a training text whose words are counted"""


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


def bleu_by_length(systems: Systems, test_set: EvaluationSet) -> list[Row]:
    """Return BLEU on groups of sentences by the number of words in the reference.

    There are at most `GROUPS` groups of about as many sentences each.
    """
    lengths = [len(words_of(line, test_set.tokenizer)) for line in test_set.references]
    ordered = sorted(lengths)
    shortest = {ordered[len(ordered) * k // GROUPS] for k in range(GROUPS)} if ordered else ()
    groups = {}
    for low, end in pairwise([*sorted(shortest), max(lengths, default=0) + 1]):
        label = str(low) if end == low + 1 else f"{low}-{end - 1}"
        groups[label] = [i for i, length in enumerate(lengths) if low <= length < end]
    return _bleu_of_groups(groups, systems, test_set)


def bleu_by_rarity(
    systems: Systems, test_set: EvaluationSet, frequencies: Mapping[str, int]
) -> list[Row]:
    """Return BLEU on groups of sentences by the frequency of the rarest word of the reference.

    `frequencies` count the words of the training text or of another text. A sentence with an empty
    reference is in no group.
    """
    groups: dict[str, list[int]] = {label: [] for label in LABELS}
    for i, line in enumerate(test_set.references):
        if words := words_of(line, test_set.tokenizer):
            groups[_class_label(min(frequencies.get(word, 0) for word in words))].append(i)
    return _bleu_of_groups(groups, systems, test_set)


def word_f1_by_rarity(
    systems: Systems, test_set: EvaluationSet, frequencies: Mapping[str, int]
) -> list[Row]:
    """Return the F1 score of the words of each class of frequency, in any order in the sentence.

    A word of a translation is correct at most as often as it occurs in the reference of the
    sentence. The size of a group is the number of its words in the references.
    """
    label_of = {n: _class_label(n) for n in {*frequencies.values(), 0}}
    expected: Counter[str] = Counter()
    correct: Counter[tuple[str, str]] = Counter()
    translated: Counter[tuple[str, str]] = Counter()
    for i, line in enumerate(test_set.references):
        reference = Counter(words_of(line, test_set.tokenizer))
        for word, count in reference.items():
            expected[label_of[frequencies.get(word, 0)]] += count
        for name, lines in systems.items():
            for word, count in Counter(words_of(lines[i], test_set.tokenizer)).items():
                group = name, label_of[frequencies.get(word, 0)]
                translated[group] += count
                correct[group] += min(count, reference[word])
    rows = []
    for label in filter(expected.__getitem__, LABELS):
        counts = ((correct[n, label], expected[label] + translated[n, label]) for n in systems)
        rows.append(Row(label, expected[label], tuple(200 * c / both for c, both in counts)))
    return rows


def _bleu_of_groups(
    groups: Mapping[str, list[int]], systems: Systems, test_set: EvaluationSet
) -> list[Row]:
    rows = []
    for label, group in groups.items():
        if not group:
            continue
        references = [test_set.references[i] for i in group]
        scores = (
            bleu([lines[i] for i in group], references, test_set.tokenizer, confidence=False).value
            for lines in systems.values()
        )
        rows.append(Row(label, len(group), tuple(scores)))
    return rows


def _class_label(frequency: int) -> str:
    return LABELS[bisect_right(FREQUENCIES, frequency) - 1]


@dataclass(frozen=True)
class TrainingWords:
    """The words of the target side of the training text, or of its first pairs."""

    counts: Counter[str]
    origin: str
    """which part of the text this is, in words"""


def training_words(config: DataConfig) -> TrainingWords:
    """Count the words of the target side of the training text.

    A known corpus is downloaded if it is not here.

    Raises:
        NmtError: The text cannot be read.
    """
    texts = (ParallelText(text, config.languages) for text in resolve(config).train)
    pairs = (pair for text in texts for block in text.blocks() for pair in block.pairs("replace"))
    tokenize = bleu_tokenizer(config.target_language, config.tokenized)
    counts: Counter[str] = Counter()
    read = 0
    for pair in islice(pairs, MOST_PAIRS):
        read += 1
        counts.update(words_of(pair.target, tokenize))
    whole = read < MOST_PAIRS
    return TrainingWords(
        counts, "the training text" if whole else f"the first {read:,} training pairs"
    )


def local_training_words(config: DataConfig) -> TrainingWords | None:
    """Count the words of the training text, or return None if it is not here or not readable."""
    try:
        return training_words(config) if find_splits(config) else None
    except NmtError:
        return None
