"""Translate a test set of a run and take its scores apart."""

from collections.abc import Callable

from nmt.data.corpora.registry import is_at_hand, resolve
from nmt.errors import DataError, NmtError
from nmt.evaluation.breakdown import bleu_by_length, word_f1_by_rarity
from nmt.evaluation.evaluate import find_split, translate_test_set
from nmt.evaluation.metrics import chrf_metric
from nmt.evaluation.score_sheet import score_sheet
from nmt.evaluation.test_sets import set_of_pairs
from nmt.evaluation.training_text import training_words
from nmt.report.page.quality import Judged
from nmt.translation.translator import Translator


def judge(
    translator: Translator,
    name: str | None,
    most: int | None,
    log: Callable[[str], None],
    progress: Callable[[int, int], object],
) -> Judged:
    """Translate the first `most` pairs (None: all) of the run's set `name` and score them.

    `name` None is test, or validation where there is no other. `progress` hears how many more
    sentences are done, of how many.

    Raises:
        DataError: the corpus is not here; for a report nothing is downloaded.
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
        translator, test_set, progress=lambda done: progress(done, len(sources))
    )
    system, tokenize = {"model": translations}, test_set.tokenizer
    try:
        learnt = training_words(config, log)
        words = f"by how often the word stands in {learnt}"
    except NmtError as error:
        learnt = None
        words = f"Rarity is unknown, for the training text cannot be read: {error}"
    return Judged(
        name=name,
        sources=sources,
        references=references,
        translations=translations,
        sentences_in_all=len(pairs),
        scores=score_sheet(translations, test_set).scores,
        sentence_scores=chrf_metric().score_sentences(translations, references),
        by_length=bleu_by_length(system, references, tokenize),
        by_rarity=word_f1_by_rarity(system, references, learnt.counts, tokenize) if learnt else [],
        rarity_words=words,
    )
