"""Cleans the training text of a recipe into a `PairFolder`: what the rules keep, as text again.

After an interruption the text is read and cleaned again from its start, so that the counts and the
pairs that occurred before are known; pairs in complete parts are neither scored nor written again.
"""

import contextlib
import functools
import hashlib
import heapq
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

from nmt.data.corpora.registry import Splits
from nmt.data.fingerprint import hash_file
from nmt.data.prepared import CleaningJob
from nmt.data.text.augmentation import Augmenter
from nmt.data.text.cleaning import (
    EXAMPLES,
    Cleaner,
    Counts,
    PairSettings,
    describe_dropped,
    dropped_pair,
)
from nmt.data.text.duplicates import DuplicateFinder, Hashes, hash_pairs
from nmt.data.text.pair_folder import MadePair, PairFolder, worst_score
from nmt.data.text.parallel_text import Block, ParallelText, SentencePair
from nmt.data.tokens.encoding import BlockEncoder, map_blocks, processes_for
from nmt.data.tokens.tokenizer import SubwordModel, Tokenizer
from nmt.errors import ConfigError, DataError
from nmt.recipe.config import Config, MixedText, TextPair

Progress = Callable[[int], object]
"""is called with the number of pairs that were read since the last call"""
ScorePairs = Callable[[Sequence[tuple[str, str]]], Sequence[float]]
"""returns the score of each (source, target): the lower, the better"""

_COST = 10
"""the time that all rules take for a pair, in times of what encoding it takes"""
WINDOW = 1000
"""The pairs that are scored at once; after an interruption the windows are the same."""


class CleanedBlock(NamedTuple):
    """What the rules keep of a block; duplicates stay."""

    indices: list[int]
    """the index of each kept pair in the block, from 0"""
    hashes: Hashes
    """the hashes (N, C) of the N kept pairs, by which a `DuplicateFinder` finds them again"""
    counts: Counts


class BlockCleaner:
    """Cleans blocks, and counts their tokens if there is a tokenizer."""

    def __init__(self, settings: PairSettings, models: Sequence[bytes], threads: int) -> None:
        """Take the SentencePiece models of the tokenizer; empty: tokens are not counted."""
        self._cleaning, self._cleaner = settings.cleaning, Cleaner(settings)
        self._encoder = None
        if models:
            tokenizer = Tokenizer(*(SubwordModel(model) for model in models))
            # pairs are cleaned as they are: neither tagged nor augmented
            without_changes = replace(settings, tags=(), augmenter=Augmenter())
            self._encoder = BlockEncoder(tokenizer, without_changes, threads)

    def __call__(self, block: Block) -> CleanedBlock:
        """Return what the rules keep of a block.

        Raises:
            DataError: a line is not UTF-8, and `cleaning.invalid_utf8` is false.
        """
        if self._encoder:
            encoded = self._encoder(block)
            return CleanedBlock(encoded.indices.tolist(), encoded.hashes, encoded.counts)
        pairs = block.pairs(self._cleaner.decoding_errors)
        counts = Counts(len(pairs))
        reasons = map(self._cleaner.reason, pairs)
        indices = counts.select_kept(block, range(len(pairs)), reasons)
        hashes = hash_pairs([pairs[index] for index in indices], self._cleaning)
        return CleanedBlock(indices, hashes, counts)


@dataclass(frozen=True)
class CleanedCorpus:
    """The pairs of a recipe's data.train that the rules keep; `pairs` reads the files each time."""

    texts: list[TextPair]
    settings: list[PairSettings]
    """the settings of each of `texts`"""
    languages: tuple[str, str]
    models: list[bytes]
    """the SentencePiece models by which tokens are counted; none: no rule counts tokens"""

    @classmethod
    def of(cls, config: Config, splits: Splits, tokenizer: Tokenizer | None) -> "CleanedCorpus":
        """Take the texts of a recipe's data.train, without those of data.synthetic.

        `tokenizer` counts tokens for the rules on length; None: these rules are left out.

        Raises:
            ConfigError: the texts differ in weight, languages, tags or steps, which one cleaned
                text cannot.
        """
        job = CleaningJob.load(config, splits)
        parallel_count = len(splits.train) - len(config.data.synthetic)
        texts, settings = job.texts[:parallel_count], job.settings[:parallel_count]
        if any(_mixing(text) != _mixing(texts[0]) for text in texts):
            raise ConfigError(
                "the texts of data.train differ in weight, languages, tags or steps, and the "
                "cleaned text is one text; clean each of them alone (--set data.train=...)"
            )
        Cleaner(settings[0])  # an error of the settings is raised here, not in a worker process
        sides = (tokenizer.source, tokenizer.target) if tokenizer else ()
        models = [subwords.model for subwords in dict.fromkeys(sides)]  # one if it is shared
        return cls(texts, settings, texts[0].languages_or(config.data.languages), models)

    def mixing(self) -> dict[str, Any]:
        """Return the weight, languages, tags and steps that the cleaned text needs in a recipe."""
        return _mixing(self.texts[0])

    def facts(self) -> dict[str, Any]:
        """Return what the kept pairs depend on: rules, input files with their SHA-256; reads them.

        Raises:
            DataError: a file cannot be read.
        """
        settings = self.settings[0]
        return {
            "languages": list(self.languages),
            "cleaning": settings.cleaning.model_dump(),
            "held_out": settings.held_out.digest if settings.held_out else None,
            "tokenizer": [hashlib.sha256(model).hexdigest()[:16] for model in self.models],
            "inputs": [
                {
                    "file": text.paths[0],
                    "sha256": [hash_file(Path(path), cache={}) for path in text.paths],
                    "fields": [text.source_field, text.target_field],
                }
                for text in self.texts
            ],
        }

    def pairs(self, counts: Counts, progress: Progress) -> Iterator[MadePair]:
        """Yield the kept pairs in order; add the numbers of read and left-out pairs to `counts`.

        Raises:
            DataError: the text cannot be read.
        """
        texts = [ParallelText(text, self.languages) for text in self.texts]
        total = sum(len(block) for text in texts for block in text.blocks())
        processes = processes_for(total, _COST)
        finder = DuplicateFinder(self.settings[0].cleaning)
        for file, (text, settings) in enumerate(zip(texts, self.settings, strict=True)):
            build = functools.partial(BlockCleaner, settings, self.models)  # called in each process
            with contextlib.closing(map_blocks(text.blocks(), build, processes)) as blocks:
                for block, cleaned in blocks:
                    reasons = finder.reasons(cleaned.hashes)
                    kept = cleaned.counts.select_kept(block, cleaned.indices, reasons)
                    counts.add(cleaned.counts)
                    # pairs that are left out may hold bytes that are not UTF-8
                    pairs = block.pairs("surrogateescape")
                    for index in kept:
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
    files = [text.paths[0] for text in corpus.texts]
    _count_by_score(scored_pairs, counts, keep, files)
    report = {**asdict(counts), "kept": counts.kept}
    if counts.kept == 0:
        raise DataError(
            f"{', '.join(files)}: all {counts.read:,} pairs are left out "
            f"({describe_dropped(report)}); check the text and data.cleaning"
        )
    if folder:
        folder.finish(keep, {"counts": report})
    return report


def _windows(pairs: Iterator[MadePair], score_pairs: ScorePairs | None) -> Iterator[list[MadePair]]:
    """Yield the pairs in lists of `WINDOW`, with their scores if there is `score_pairs`."""
    while window := list(islice(pairs, WINDOW)):
        if score_pairs:
            scores = score_pairs([(pair.source, pair.target) for pair in window])
            scored = zip(window, scores, strict=True)
            window = [pair._replace(score=score) for pair, score in scored]
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
