"""A test set of a run, translated by the run and scored."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from nmt.data.corpora.registry import is_at_hand, resolve
from nmt.errors import DataError, NmtError
from nmt.evaluation.breakdown import Row, bleu_by_length, training_words, word_f1_by_rarity
from nmt.evaluation.metrics import Score, chrf_metric
from nmt.evaluation.score_sheet import score_sheet
from nmt.evaluation.test_sets import (
    find_split,
    set_of_pairs,
    translate_test_set,
)
from nmt.translation.line import print_warning
from nmt.translation.translator import Translator

Log = Callable[[str], None]
Progress = Callable[[int, int], object]
"""called with the number of sentences translated since the last call, and their total"""


@dataclass(frozen=True)
class ScoredTestSet:
    """The translations of a test set, their scores, and what the scores depend on."""

    name: str
    sources: Sequence[str]
    references: Sequence[str]
    translations: Sequence[str]
    sentences_in_all: int
    """sentences of the whole set, of which the first ones may have been translated"""
    scores: Sequence[Score]
    sentence_scores: Sequence[float]
    """chrF of each sentence, 0 to 100"""
    by_length: Sequence[Row]
    by_rarity: Sequence[Row]
    rarity_words: str
    """what rarity means here, or why it is unknown"""

    @property
    def title(self) -> str:
        """The name of the translated sentences."""
        count, whole = len(self.sources), self.sentences_in_all
        return f"{self.name} set" if count == whole else f"first {count:,} of the {self.name} set"


def score_test_set(
    translator: Translator, name: str | None, most: int | None, log: Log, progress: Progress
) -> ScoredTestSet:
    """Translate the first `most` pairs (None: all) of the run's set `name` and score them.

    The default of `name` is test, or validation if the run has no test set.

    Raises:
        DataError: the corpus is not on this machine; a report downloads nothing.
        NmtError: the text cannot be read.
    """
    config = translator.run.config.data
    if not is_at_hand(config):
        raise DataError(
            f"{config.corpus} is not in {config.directory}; go where the run was trained, or fetch "
            f"it: nmt data download {config.corpus} --directory {config.directory}"
        )
    name = name or ("test" if resolve(config, log).test else "validation")
    pairs = list(find_split(config, name, log))
    test_set = set_of_pairs(name, pairs[:most], config.languages, config.tokenized)
    sources, references = test_set.sources or [], test_set.references
    log(f"translating {len(sources):,} sentences of the {name} set")
    translations = translate_test_set(
        translator, test_set, print_warning, lambda done: progress(done, len(sources))
    )
    systems = {"model": translations}
    by_rarity: Sequence[Row] = []
    try:
        training = training_words(config)
        by_rarity = word_f1_by_rarity(systems, test_set, training.counts)
        rarity_words = f"by how often the word stands in {training.origin}"
    except NmtError as error:
        rarity_words = f"Rarity is unknown, for the training text cannot be read: {error}"
    return ScoredTestSet(
        name=name,
        sources=sources,
        references=references,
        translations=translations,
        sentences_in_all=len(pairs),
        scores=score_sheet(translations, test_set).scores,
        sentence_scores=chrf_metric().score_sentences(translations, references),
        by_length=bleu_by_length(systems, test_set),
        by_rarity=by_rarity,
        rarity_words=rarity_words,
    )
