"""Where translations are good and where not: by length of sentences and rarity of words.

A word is a token of BLEU (`words_of`). Its frequency is how often it occurs in the training text of
a run, or in another text.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice, pairwise

from nmt.data.corpora.registry import find_splits, obtain_splits
from nmt.data.text.parallel_text import ParallelText
from nmt.errors import NmtError
from nmt.evaluation.metrics import PLAIN, bleu, words_of
from nmt.evaluation.test_sets import EvaluationSet
from nmt.recipe.config import DataConfig

MAX_LENGTH_GROUPS = 6
LOWEST_FREQUENCIES = (0, 1, 2, 5, 10, 100, 1000, 10_000)
"""lowest frequency of each class of words, rarest class first"""
FREQUENCY_LABELS = ("0", "1", "2-4", "5-9", "10-99", "100-999", "1,000-9,999", "10,000+")
"""labels of the same classes, in the same order"""
Systems = Mapping[str, Sequence[str]]
"""the translations of a whole test set, by the name of the system that made them"""
MAX_TRAINING_PAIRS = 1_000_000
"""in a longer training text, words are counted in its first so many pairs only"""


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

    Length counts words. The groups, at most `MAX_LENGTH_GROUPS`, are of about equal size, short
    first.
    """
    lengths = [len(words_of(line, test_set.tokenizer)) for line in test_set.references]
    if not lengths:
        return []
    ascending = sorted(lengths)
    group_starts = (len(lengths) * k // MAX_LENGTH_GROUPS for k in range(MAX_LENGTH_GROUPS))
    # a set: groups that begin with the same length become one
    shortest_lengths = {ascending[start] for start in group_starts}
    borders = [*sorted(shortest_lengths), ascending[-1] + 1]  # starts of groups, and the last end
    groups = {}  # indices of sentences by label
    for shortest, next_shortest in pairwise(borders):
        longest = next_shortest - 1
        label = str(shortest) if shortest == longest else f"{shortest}-{longest}"
        groups[label] = [i for i, length in enumerate(lengths) if shortest <= length <= longest]
    return _bleu_of_groups(groups, systems, test_set)


def bleu_by_rarity(
    systems: Systems, test_set: EvaluationSet, frequencies: Mapping[str, int]
) -> list[Row]:
    """Return the BLEU of each system on groups of sentences, by the rarest word of the reference.

    There is a group for each frequency class; `frequencies` says how often a word occurs in some
    text. A sentence with an empty reference is in no group; a group without sentences has no row.
    """
    groups: dict[str, list[int]] = {label: [] for label in FREQUENCY_LABELS}
    for i, line in enumerate(test_set.references):
        words = words_of(line, test_set.tokenizer)
        if words:
            lowest_frequency = min(frequencies.get(word, 0) for word in words)
            groups[_frequency_label(lowest_frequency)].append(i)
    return _bleu_of_groups(groups, systems, test_set)


def word_f1_by_rarity(
    systems: Systems, test_set: EvaluationSet, frequencies: Mapping[str, int]
) -> list[Row]:
    """Return each system's F1 score for the words of each frequency class, over all sentences.

    A word of a translation is correct at most as often as the sentence's reference has it.
    `frequencies` says how often a word occurs in some text. The size of a row is the number of its
    words in the references; a class without any has no row.
    """

    def label_of(word: str) -> str:
        return _frequency_label(frequencies.get(word, 0))

    expected: Counter[str] = Counter()  # words of the references, by label
    translated: Counter[tuple[str, str]] = Counter()  # words of translations, by system and label
    correct: Counter[tuple[str, str]] = Counter()  # those of them that the reference has too
    for i, reference in enumerate(test_set.references):
        reference_words = Counter(words_of(reference, test_set.tokenizer))
        for word, count in reference_words.items():
            expected[label_of(word)] += count
        for name, translations in systems.items():
            for word, count in Counter(words_of(translations[i], test_set.tokenizer)).items():
                key = name, label_of(word)
                translated[key] += count
                correct[key] += min(count, reference_words[word])
    rows = []
    for label in FREQUENCY_LABELS:
        if expected[label]:
            scores = (  # F1 = 2 * correct / (expected + translated), in percent
                200 * correct[name, label] / (expected[label] + translated[name, label])
                for name in systems
            )
            rows.append(Row(label, expected[label], tuple(scores)))
    return rows


def _bleu_of_groups(
    groups: Mapping[str, list[int]], systems: Systems, test_set: EvaluationSet
) -> list[Row]:
    """Return a row for each group that is not empty; a group has the indices of its sentences."""
    rows = []
    for label, indices in groups.items():
        if not indices:
            continue
        references = [test_set.references[i] for i in indices]
        scores = []
        for translations in systems.values():
            hypotheses = [translations[i] for i in indices]
            score = bleu(hypotheses, references, test_set.tokenizer, confidence=False)
            scores.append(score.value)
        rows.append(Row(label, len(indices), tuple(scores)))
    return rows


def _frequency_label(frequency: int) -> str:
    return FREQUENCY_LABELS[bisect_right(LOWEST_FREQUENCIES, frequency) - 1]


TrainingWords = tuple[Counter[str], str]
"""how often each word is in the target side of the training text, and a phrase that says which part
of the text was counted"""


def training_words(config: DataConfig, tokenize: str = PLAIN) -> TrainingWords:
    """Count the words in the target side of the first `MAX_TRAINING_PAIRS` training pairs.

    `tokenize` names the tokenizer of sacreBLEU that divides the test set into words. A known corpus
    is downloaded if it is not on this machine.

    Raises:
        NmtError: The text cannot be read.
    """
    texts = [ParallelText(text, config.languages) for text in obtain_splits(config).train]
    # "replace": bytes that are no UTF-8 become a symbol, so a damaged line does not end the count
    pairs = chain.from_iterable(text.pairs("replace") for text in texts)
    counts: Counter[str] = Counter()
    pair_count = 0
    for pair in islice(pairs, MAX_TRAINING_PAIRS):
        pair_count += 1
        counts.update(words_of(pair.target, tokenize))
    origin = "the training text"
    if pair_count == MAX_TRAINING_PAIRS:
        origin = f"the first {pair_count:,} training pairs"
    return counts, origin


def local_training_words(config: DataConfig, tokenize: str = PLAIN) -> TrainingWords | None:
    """Count the words of the training text; None if it is unreadable or not on this machine."""
    try:
        if find_splits(config) is None:  # the corpus would have to be downloaded
            return None
        return training_words(config, tokenize)
    except NmtError:
        return None


def breakdowns(
    systems: Systems, test_set: EvaluationSet, training_words: TrainingWords | None
) -> list[Breakdown]:
    """Return three tables: BLEU by length, BLEU by rarest word, F1 score of words by their rarity.

    The frequency of a word is that in `training_words`; if they are None, in the references.
    """
    if training_words:
        frequencies, where = training_words
    else:
        frequencies = count_words(test_set.references, test_set.tokenizer)
        where = "the references"
    length_title = "BLEU by the length of the reference"
    rarity_title = f"BLEU by how often the rarest word of the reference occurs in {where}"
    f1_title = f"F-score of words by how often they occur in {where}"
    by_length = bleu_by_length(systems, test_set)
    by_rarity = bleu_by_rarity(systems, test_set, frequencies)
    f1_scores = word_f1_by_rarity(systems, test_set, frequencies)
    return [
        Breakdown(length_title, grouped_by="words", counted="sentences", rows=by_length),
        Breakdown(rarity_title, grouped_by="times", counted="sentences", rows=by_rarity),
        Breakdown(f1_title, grouped_by="times", counted="words", rows=f1_scores),
    ]
