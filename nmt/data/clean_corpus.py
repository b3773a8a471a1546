"""Cleans the training text of a recipe into a `PairFolder`: what the rules keep, as text again.

After an interruption the text is read and cleaned again from its start, so that the counts and the
pairs that occurred before are known; pairs in complete parts are neither scored nor written again.
"""

import contextlib
import hashlib
import heapq
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

from nmt.data.corpora.registry import Splits
from nmt.data.fingerprint import hash_file
from nmt.data.prepared import training_texts
from nmt.data.text.augmentation import Augmenter
from nmt.data.text.cleaning import (
    EXAMPLES,
    Counts,
    TrainingText,
    check_some_are_left,
    dropped_pair,
)
from nmt.data.text.duplicates import DuplicateFinder
from nmt.data.text.pair_folder import MadePair, PairFolder, worst_score
from nmt.data.text.parallel_text import SentencePair
from nmt.data.tokens.encoding import clean_blocks, processes_for
from nmt.data.tokens.tokenizer import Tokenizer
from nmt.errors import ConfigError, Progress
from nmt.recipe.config import Config, MixedText, TextPair

ScorePairs = Callable[[Sequence[tuple[str, str]]], Sequence[float]]
"""returns the score of each (source, target): the lower, the better"""

_COST = 10
"""the time that all rules take for a pair, in times of what encoding it takes"""
WINDOW = 1000
"""The pairs that are scored at once; after an interruption the windows are the same."""


@dataclass(frozen=True)
class CleanedCorpus:
    """The pairs of a recipe's data.train that the rules keep; `pairs` reads the files each time."""

    texts: list[TrainingText]
    tokenizer: Tokenizer | None
    """counts tokens for the rules on length; None: these rules are left out"""

    @classmethod
    def of(cls, config: Config, splits: Splits, tokenizer: Tokenizer | None) -> "CleanedCorpus":
        """Take the texts of a recipe's data.train, without those of data.synthetic.

        Raises:
            ConfigError: the texts differ in weight, languages, tags or steps, which one cleaned
                text cannot.
        """
        parallel_count = len(splits.train) - len(config.data.synthetic)
        texts = training_texts(config, splits)[:parallel_count]
        if any(_mixing(text.text.files) != _mixing(texts[0].text.files) for text in texts):
            raise ConfigError(
                "the texts of data.train differ in weight, languages, tags or steps, and the "
                "cleaned text is one text; clean each of them alone, as the only text of data.train"
            )
        texts[0].cleaner()  # an error of the settings is raised here, not in a worker process
        # pairs are cleaned as they are: neither tagged nor augmented
        return cls([replace(text, tags=(), augmenter=Augmenter()) for text in texts], tokenizer)

    @property
    def languages(self) -> tuple[str, str]:
        """The codes of source and target."""
        text = self.texts[0].text
        return text.files.languages_or(text.languages)

    @property
    def files(self) -> list[str]:
        """The path of the source of each text."""
        return [text.text.files.paths[0] for text in self.texts]

    def mixing(self) -> dict[str, Any]:
        """Return the weight, languages, tags and steps that the cleaned text needs in a recipe."""
        return _mixing(self.texts[0].text.files)

    def facts(self) -> dict[str, Any]:
        """Return what the kept pairs depend on: rules, input files with their SHA-256; reads them.

        Raises:
            DataError: a file cannot be read.
        """
        first, tokenizer = self.texts[0], self.tokenizer
        sides = (tokenizer.source, tokenizer.target) if tokenizer else ()
        models = [side.model for side in dict.fromkeys(sides)]  # one if it is shared
        return {
            "languages": list(self.languages),
            "cleaning": first.cleaning.model_dump(),
            "held_out": first.held_out.digest if first.held_out else None,
            # only if it is set: older folders without it are continued
            **({"documents": True} if first.context else {}),
            "tokenizer": [hashlib.sha256(model).hexdigest()[:16] for model in models],
            "inputs": [
                {
                    "file": files.paths[0],
                    "sha256": [hash_file(Path(path), cache={}) for path in files.paths],
                    "fields": [files.source_field, files.target_field],
                }
                for files in (text.text.files for text in self.texts)
            ],
        }

    def pairs(self, counts: Counts, progress: Progress) -> Iterator[MadePair]:
        """Yield the kept pairs in order; add the numbers of read and left-out pairs to `counts`.

        With data.context, a blank pair stands where a document ends or a pair was left out.
        `progress` is called with the number of pairs that were read since the last call.

        Raises:
            DataError: the text cannot be read.
        """
        total = sum(text.text.count_pairs() for text in self.texts)
        processes = processes_for(total, _COST)
        finder = DuplicateFinder(self.texts[0].cleaning)
        for file, text in enumerate(self.texts):
            last = 0  # the number of the last kept pair
            cleaned_blocks = clean_blocks(text, self.tokenizer, finder, processes)
            with contextlib.closing(cleaned_blocks) as blocks:
                for block, cleaned in blocks:
                    counts.add(cleaned.counts)
                    # pairs that are left out may hold bytes that are not UTF-8
                    pairs = block.pairs("surrogateescape")
                    for index in map(int, cleaned.indices):
                        is_next = block.numbers[index] == last + 1 and index not in block.breaks
                        if text.context and last and not is_next:
                            yield MadePair("", "", file, block.numbers[index])
                        last = block.numbers[index]
                        yield MadePair(*pairs[index], file, block.numbers[index])
                    progress(len(block))


def _mixing(text: TextPair) -> dict[str, Any]:
    """Return weight, languages, tags and steps of a text, those that are not at their defaults."""
    fields = {"weight", "languages", *MixedText.model_fields}
    return text.model_dump(include=fields, exclude_defaults=True)


def clean(
    corpus: CleanedCorpus,
    folder: PairFolder | None,
    score_pairs: ScorePairs | None = None,
    keep: float = 1.0,
    progress: Progress = lambda pairs: None,
) -> dict[str, Any]:
    """Write the kept pairs into `folder` (None: nowhere), and return the counts of a report.

    `score_pairs` scores the pairs that the rules keep; of these, only the share `keep` with the
    lowest scores stays. The pairs with the highest scores are the examples of the reason "score".

    Raises:
        DataError: the text cannot be read, or all pairs are left out.
    """
    counts = Counts()
    done = folder.inputs if folder else 0  # pairs that are in the folder since before
    # the first `done` pairs are read and counted, but neither scored nor written again
    new_pairs = islice(corpus.pairs(counts, progress), done, None)
    windows = _windows(new_pairs, score_pairs)
    scored_pairs: Iterable[MadePair]
    if folder:
        for window in windows:
            folder.add(window, inputs=len(window))
        # without scores, no pair is left out for its score
        scored_pairs = folder.pairs() if score_pairs else []
    else:
        scored_pairs = chain.from_iterable(windows)  # `_count_by_score` reads the corpus by it
    _count_by_score(scored_pairs, counts, keep, corpus.files)
    check_some_are_left(counts, corpus.texts)
    report = {**asdict(counts), "kept": counts.kept}
    if folder:
        folder.finish(keep, {"counts": report})
    return report


def _windows(pairs: Iterator[MadePair], score_pairs: ScorePairs | None) -> Iterator[list[MadePair]]:
    """Yield the pairs in lists of `WINDOW`, with their scores if there is `score_pairs`."""
    while window := list(islice(pairs, WINDOW)):
        if score_pairs:
            scores = score_pairs([(pair.source, pair.target) for pair in window])
            scored = zip(window, scores, strict=True)
            # what divides documents stays
            window = [p._replace(score=score if p.source else 0.0) for p, score in scored]
        yield window


def _count_by_score(
    pairs: Iterable[MadePair], counts: Counts, keep: float, files: Sequence[str]
) -> None:
    """Count the pairs that are left out because only the share `keep` of lowest scores stays.

    The pairs are read once, and only their scores are kept in memory. `files` are the names of the
    input files, for the examples.
    """
    scores = array("d")

    def collecting_scores() -> Iterator[MadePair]:
        for pair in pairs:
            scores.append(pair.score or 0.0)
            yield pair

    worst = heapq.nlargest(EXAMPLES, collecting_scores(), key=lambda pair: pair.score or 0.0)
    limit = worst_score(scores, keep)
    counts.dropped["score"] = sum(score > limit for score in scores)
    counts.examples["score"] = [
        dropped_pair(SentencePair(pair.source, pair.target), files[pair.file], pair.line)
        for pair in worst
        if (pair.score or 0.0) > limit
    ]
