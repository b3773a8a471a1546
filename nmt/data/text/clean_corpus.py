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

from nmt.config import Config, MixedText, TextPair
from nmt.data.corpora.registry import Splits
from nmt.data.fingerprint import hash_file
from nmt.data.prepared import CleaningJob, describe_dropped
from nmt.data.text.augmentation import Augmenter
from nmt.data.text.cleaning import EXAMPLES, Cleaner, Counts, TextRules, dropped_pair
from nmt.data.text.duplicates import DuplicateFinder, Hashes, hash_pairs
from nmt.data.text.pair_folder import MadePair, PairFolder, worst_score
from nmt.data.text.parallel_text import Block, ParallelText, SentencePair
from nmt.data.tokens.encoding import BlockEncoder, map_blocks, processes_for
from nmt.data.tokens.tokenizer import SubwordModel, Tokenizer
from nmt.errors import ConfigError, DataError

Progress = Callable[[int], object]
"""takes a number of pairs that were read"""
Compare = Callable[[Sequence[tuple[str, str]]], Sequence[float]]
"""returns the score of each (source, target): the lower, the better"""

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

    def __init__(self, rules: TextRules, models: Sequence[bytes], threads: int) -> None:
        """Take the SentencePiece models of the tokenizer, none if tokens are not counted."""
        self._cleaning, self._cleaner = rules.cleaning, Cleaner(rules)
        self._encoder = None
        if models:
            tokenizer = Tokenizer(*map(SubwordModel, models))
            plain = replace(rules, tags=(), augmenter=Augmenter())
            self._encoder = BlockEncoder(tokenizer, plain, threads)

    def __call__(self, block: Block) -> CleanedBlock:
        """Return what the rules keep.

        Raises:
            DataError: a line is not UTF-8, and `cleaning.invalid_utf8` is false.
        """
        if self._encoder:
            encoded = self._encoder(block)
            return CleanedBlock(encoded.indices.tolist(), encoded.hashes, encoded.counts)
        pairs = block.pairs(self._cleaner.decoding_errors)
        counts = Counts(len(pairs))
        indices = counts.count_and_drop(block, range(len(pairs)), map(self._cleaner.reason, pairs))
        hashes = hash_pairs([pairs[index] for index in indices], self._cleaning)
        return CleanedBlock(indices, hashes, counts)


@dataclass(frozen=True)
class CleanedCorpus:
    """The pairs of a recipe's data.train that the rules keep; each iteration reads them again."""

    texts: list[TextPair]
    rules: list[TextRules]
    languages: tuple[str, str]
    models: list[bytes]
    """the SentencePiece models by which tokens are counted; none: no rule counts tokens"""

    @classmethod
    def of(cls, config: Config, splits: Splits, tokenizer: Tokenizer | None) -> "CleanedCorpus":
        """Take the text of a recipe without data.synthetic.

        Raises:
            ConfigError: the texts have different weights, tags or steps; one text has one of each.
        """
        job, given = CleaningJob.of(config, splits), len(splits.train) - len(config.data.synthetic)
        texts, rules = job.texts[:given], job.rules[:given]
        if any(_mixing(text) != _mixing(texts[0]) for text in texts):
            raise ConfigError(
                "the texts of data.train differ in weight, tags or steps, and the cleaned text is "
                "one text; clean each of them alone (--set data.train=...)"
            )
        Cleaner(rules[0])  # raises here, and not in a process that cleans
        subwords = dict.fromkeys((tokenizer.source, tokenizer.target) if tokenizer else ())
        return cls(texts, rules, config.data.languages, [each.model for each in subwords])

    def mixing(self) -> dict[str, Any]:
        """Return the weight, tags and steps that the cleaned text needs in a recipe as well."""
        return _mixing(self.texts[0])

    def facts(self) -> dict[str, Any]:
        """Return what the kept pairs depend on: rules, input files with their SHA-256; reads them.

        Raises:
            DataError: a file cannot be read.
        """
        rules = self.rules[0]
        return {
            "languages": list(self.languages),
            "cleaning": rules.cleaning.model_dump(),
            "held_out": rules.held_out.digest if rules.held_out else None,
            "tokenizer": [hashlib.sha256(model).hexdigest()[:16] for model in self.models],
            "inputs": [
                {
                    "file": text.paths[0],
                    "sha256": [hash_file(Path(path), {}) for path in text.paths],
                    "fields": [text.source_field, text.target_field],
                }
                for text in self.texts
            ],
        }

    def pairs(self, counts: Counts, progress: Progress) -> Iterator[MadePair]:
        """Yield the kept pairs in order; add what was read and left out to `counts`.

        Raises:
            DataError: the text cannot be read.
        """
        texts = [ParallelText(text, self.languages) for text in self.texts]
        processes = processes_for(sum(len(block) for text in texts for block in text.blocks()))
        finder = DuplicateFinder(self.rules[0].cleaning)
        for number, (text, rules) in enumerate(zip(texts, self.rules, strict=True)):
            start = functools.partial(BlockCleaner, rules, self.models)
            with contextlib.closing(map_blocks(text.blocks(), start, processes)) as blocks:
                for block, cleaned in blocks:
                    reasons = finder.reasons(cleaned.hashes)
                    kept = cleaned.counts.count_and_drop(block, cleaned.indices, reasons)
                    counts.add(cleaned.counts)
                    pairs = block.pairs("surrogateescape")
                    yield from (MadePair(*pairs[i], number, block.numbers[i]) for i in kept)
                    progress(len(block))


def _mixing(text: TextPair) -> dict[str, Any]:
    return text.model_dump(include={"weight", *MixedText.model_fields}, exclude_defaults=True)


def clean(
    corpus: CleanedCorpus,
    folder: PairFolder | None,
    compare: Compare | None = None,
    keep: float = 1.0,
    progress: Progress = lambda pairs: None,
) -> dict[str, Any]:
    """Write the kept pairs into `folder` (None: nowhere), and return the counts of a report.

    With `compare`, only the share `keep` with the lowest scores stays; the worst are its examples.

    Raises:
        DataError: the text cannot be read, or all pairs are left out.
    """
    counts = Counts()
    done = folder.inputs if folder else 0
    windows = _windows(islice(corpus.pairs(counts, progress), done, None), compare)
    if folder:
        for window in windows:
            folder.add(window, inputs=len(window))
    files = [text.paths[0] for text in corpus.texts]
    added = folder.pairs() if folder and compare else chain.from_iterable(windows)
    _count_by_score(added, counts, keep, files)
    report = {**asdict(counts), "kept": counts.kept}
    if counts.kept == 0:
        raise DataError(
            f"{', '.join(files)}: all {counts.read:,} pairs are left out "
            f"({describe_dropped(report)}); check the text and data.cleaning"
        )
    if folder:
        folder.finish(keep, {"counts": report})
    return report


def _windows(pairs: Iterator[MadePair], compare: Compare | None) -> Iterator[list[MadePair]]:
    while window := list(islice(pairs, WINDOW)):
        if compare:
            scores = compare([(pair.source, pair.target) for pair in window])
            window = [pair._replace(score=s) for pair, s in zip(window, scores, strict=True)]
        yield window


def _count_by_score(
    pairs: Iterable[MadePair], counts: Counts, keep: float, files: Sequence[str]
) -> None:
    """Count the pairs whose scores are not among the share `keep` of lowest ones."""
    scores = array("d")

    def noted() -> Iterator[MadePair]:
        for pair in pairs:
            scores.append(pair.score or 0.0)
            yield pair

    worst = heapq.nlargest(EXAMPLES, noted(), key=lambda pair: pair.score or 0.0)
    limit = worst_score(scores, keep)
    counts.dropped["score"] = sum(score > limit for score in scores)
    counts.examples["score"] = [
        dropped_pair(SentencePair(pair.source, pair.target), files[pair.file], pair.line)
        for pair in worst
        if (pair.score or 0.0) > limit
    ]
