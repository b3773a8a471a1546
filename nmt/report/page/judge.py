"""Translate a test set of a run and take its scores apart."""

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice

from nmt.config import DataConfig
from nmt.data.corpora import is_at_hand, resolve
from nmt.data.parallel_text import ParallelText
from nmt.decoding.translator import Translator
from nmt.errors import DataError, NmtError
from nmt.evaluation.breakdown import bleu_by_length, count_words, word_f1_by_rarity
from nmt.evaluation.evaluate import evaluate, find_split
from nmt.evaluation.metrics import chrf, sentence_utilities
from nmt.report.page.quality import Judged

MOST_PAIRS = 2_000_000
"""of the training text, in which words are counted"""


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
    chosen = pairs[:most]
    sources, references = [p.source for p in chosen], [p.target for p in chosen]
    log(f"translating {len(sources):,} sentences of the {name} set")
    result = evaluate(
        translator, sources, references, progress=lambda done: progress(done, len(sources))
    )
    translations = result.translations
    system = {"model": translations}
    frequencies, words = _frequencies(config, log)
    return Judged(
        name=name,
        sources=sources,
        references=references,
        translations=translations,
        sentences_in_all=len(pairs),
        scores=[result.score, chrf(translations, references)],
        sentence_scores=[
            sentence_utilities("chrf", texts)[0][1]
            for texts in zip(translations, references, strict=True)
        ],
        by_length=bleu_by_length(system, references, config.tokenized),
        by_rarity=word_f1_by_rarity(system, references, frequencies, config.tokenized)
        if frequencies
        else [],
        rarity_words=words,
    )


def _frequencies(config: DataConfig, log: Callable[[str], None]) -> tuple[Counter[str], str]:
    """How often each target word stands in the training text, and what that is in words."""
    read = 0

    def targets() -> Iterator[str]:
        nonlocal read
        for text in resolve(config, log).train:
            for block in ParallelText(text, config.languages).blocks():
                for pair in block.pairs("replace"):
                    read += 1
                    yield pair.target

    try:
        counts = count_words(islice(targets(), MOST_PAIRS), config.tokenized)
    except NmtError as error:
        return Counter(), f"Rarity is unknown, for the training text cannot be read: {error}"
    where = "the training text" if read < MOST_PAIRS else f"{read:,} training pairs"
    return counts, f"by how often the word stands in {where}"
