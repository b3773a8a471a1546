"""Where translations are good and where not: by length of sentences and rarity of words.

A word is a token of BLEU (`words_of`). Its frequency is how often it occurs in the training text of
a run, or in another text.
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

LENGTH_GROUPS = 6
FREQUENCIES = (0, 1, 2, 5, 10, 100, 1000, 10_000)
"""lowest frequency of each class of words"""
LABELS = ("0", "1", "2-4", "5-9", "10-99", "100-999", "1,000-9,999", "10,000+")
"""names of these classes, rarest first"""
Systems = Mapping[str, Sequence[str]]
"""the translations of a whole test set, by the name of the system that made them"""
MOST_PAIRS = 1_000_000
"""words are counted in the first so many pairs of the training text at most"""


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table: a group of sentences or words, and the score of each system on it."""

    label: str
    size: int
    """number of sentences or words in the group"""
    scores: tuple[float, ...]
    """0 to 100, in the order of the systems"""


@dataclass(frozen=True)
class Breakdown:
    """A table of scores by groups of sentences or words."""

    title: str
    grouped_by: str
    """what the numbers in the labels count: words (a length) or times (a frequency)"""
    counted: str
    """what the groups consist of: sentences or words"""
    rows: list[Row]


def count_words(lines: Iterable[str], tokenize: str = PLAIN) -> Counter[str]:
    """Return how often each word occurs; `tokenize` names a tokenizer of sacreBLEU."""
    counts: Counter[str] = Counter()
    for line in lines:
        counts.update(words_of(line, tokenize))
    return counts


def bleu_by_length(systems: Systems, test_set: EvaluationSet) -> list[Row]:
    """Return the BLEU of each system on groups of sentences with references of similar length.

    Length counts words. There are at most `LENGTH_GROUPS` groups of about equal size, short first.
    """
    lengths = [len(words_of(line, test_set.tokenizer)) for line in test_set.references]
    ordered, count = sorted(lengths), LENGTH_GROUPS
    starts = {ordered[len(ordered) * k // count] for k in range(count)} if ordered else ()
    groups = {}  # indices of sentences by label
    for low, end in pairwise([*sorted(starts), max(lengths, default=0) + 1]):
        label = str(low) if end == low + 1 else f"{low}-{end - 1}"
        groups[label] = [i for i, length in enumerate(lengths) if low <= length < end]
    return _bleu_of_groups(groups, systems, test_set)


def bleu_by_rarity(
    systems: Systems, test_set: EvaluationSet, frequencies: Mapping[str, int]
) -> list[Row]:
    """Return the BLEU of each system on groups of sentences whose rarest words are equally rare.

    The words are those of the reference; `frequencies` says how often each occurs in some text.
    A sentence with an empty reference is in no group; a group without sentences has no row.
    """
    groups: dict[str, list[int]] = {label: [] for label in LABELS}
    for i, line in enumerate(test_set.references):
        if words := words_of(line, test_set.tokenizer):
            groups[_class_label(min(frequencies.get(word, 0) for word in words))].append(i)
    return _bleu_of_groups(groups, systems, test_set)


def word_f1_by_rarity(
    systems: Systems, test_set: EvaluationSet, frequencies: Mapping[str, int]
) -> list[Row]:
    """Return each system's F1 score for the words of each frequency class, wherever they occur.

    A word of a translation is correct at most as often as the sentence's reference has it.
    `frequencies` decide a word's class. A row counts its words in the references; if 0, no row.
    """
    label_of = {f: _class_label(f) for f in {*frequencies.values(), 0}}
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
        # F1 = 2 * correct / (expected + translated), in percent
        rows.append(Row(label, expected[label], tuple(200 * c / total for c, total in counts)))
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
    """a phrase that says which part of the text was counted"""


def training_words(config: DataConfig) -> TrainingWords:
    """Count the words in the target side of the first `MOST_PAIRS` training pairs.

    A known corpus is downloaded if it is not on this machine.

    Raises:
        NmtError: The text cannot be read.
    """
    texts = (ParallelText(text, config.languages) for text in resolve(config).train)
    pairs = (pair for text in texts for block in text.blocks() for pair in block.pairs("replace"))
    tokenize = bleu_tokenizer(config.target_language, config.tokenized)
    counts: Counter[str] = Counter()
    pair_count = 0
    for pair in islice(pairs, MOST_PAIRS):
        pair_count += 1
        counts.update(words_of(pair.target, tokenize))
    first = f"the first {pair_count:,} training pairs"
    return TrainingWords(counts, first if pair_count == MOST_PAIRS else "the training text")


def local_training_words(config: DataConfig) -> TrainingWords | None:
    """Count the words of the training text; None if it is unreadable or not on this machine."""
    try:
        return training_words(config) if find_splits(config) else None
    except NmtError:
        return None


def breakdowns(
    systems: Systems, test_set: EvaluationSet, training_words: TrainingWords | None
) -> list[Breakdown]:
    """Return three tables: BLEU by length, BLEU by rarest word, F-score of words by their rarity.

    The frequency of a word is that in `training_words`; if they are None, in the references.
    """
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
