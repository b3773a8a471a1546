"""What a corpus is like before anything is learnt from it: counts, lengths, unknowns, leaks."""

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import regex

from nmt.config import Config
from nmt.data.corpora.download import Log
from nmt.data.corpora.registry import resolve
from nmt.data.prepared import Prepared, prepare
from nmt.data.text.parallel_text import ParallelText, SentencePair
from nmt.data.tokens.token_store import Lengths
from nmt.data.tokens.tokenizer import UNK

PERCENTILES = (1, 5, 25, 50, 75, 95, 99, 100)
BINS = (1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 512, 1024)
"""lower ends of the bins of a length histogram, in tokens"""
EXAMPLES = 3

_NO_WORD = regex.compile(r"[\W_]+")


@dataclass(frozen=True)
class LanguageStatistics:
    """One language of the training text, after cleaning."""

    language: str
    tokens: int
    """subword tokens, ends of sentences not counted"""
    percentiles: dict[int, int]
    """of the sentence length in tokens"""
    histogram: list[int]
    """sentences whose length falls into each of `BINS`"""
    tokens_per_word: float
    """words are what spaces separate; of the held-out sets"""
    unknown_rate: float
    """share of unknown symbols among the tokens of the held-out sets"""


@dataclass(frozen=True)
class Leak:
    """Sentences of a held-out set that stand in the training text as well."""

    split: str
    sentences: int
    pairs: int
    """both sides the same"""
    sources: int
    """the source the same, whatever the target"""
    pairs_normalized: int
    """the same but for case, accents' encoding, punctuation and spaces"""
    sources_normalized: int
    examples: list[str]


@dataclass(frozen=True)
class Quality:
    """The whole report; `as_json` writes it for programs."""

    counts: dict[str, Any]
    source: LanguageStatistics
    target: LanguageStatistics
    leaks: list[Leak]

    def as_json(self) -> dict[str, Any]:
        """Plain values only."""
        return {**asdict(self), "histogram_bins": list(BINS)}


def inspect(config: Config, log: Log) -> Quality:
    """Prepare the data of a configuration where that is not done, and report on them.

    Raises:
        NmtError: what stands in the way of preparing them.
    """
    prepared = prepare(config, log)
    splits = resolve(config.data, log)
    languages = config.data.languages
    held_out = {"validation": list(ParallelText(splits.validation, languages))}
    if splits.test is not None:
        held_out["test"] = list(ParallelText(splits.test, languages))
    log("looking for held-out sentences in the training text")
    training = (pair for text in splits.train for pair in _readable(ParallelText(text, languages)))
    return Quality(
        prepared.counts,
        *_sides(prepared, languages, [pair for pairs in held_out.values() for pair in pairs]),
        find_leaks(training, held_out),
    )


def _readable(text: ParallelText) -> Iterable[SentencePair]:
    for block in text.blocks():
        yield from block.pairs("surrogateescape")


def _sides(
    prepared: Prepared, languages: tuple[str, str], held_out: Sequence[SentencePair]
) -> tuple[LanguageStatistics, LanguageStatistics]:
    store, tokenizer = prepared.train, prepared.tokenizer
    sources, targets = [pair.source for pair in held_out], [pair.target for pair in held_out]
    return (
        _side(languages[0], store.source.lengths, sources, tokenizer.encode_source(sources)),
        _side(languages[1], store.target.lengths, targets, tokenizer.encode_target(targets)),
    )


def _side(
    language: str, lengths: Lengths, texts: list[str], encoded: list[list[int]]
) -> LanguageStatistics:
    lengths = lengths - 1  # without the end of the sentence
    words = sum(len(text.split()) for text in texts)
    tokens = sum(len(ids) - 1 for ids in encoded)
    unknown = sum(ids.count(UNK) for ids in encoded)
    values = np.percentile(lengths, PERCENTILES, method="nearest")
    return LanguageStatistics(
        language=language,
        tokens=int(lengths.sum()),
        percentiles=dict(zip(PERCENTILES, map(int, values), strict=True)),
        histogram=np.histogram(lengths, [*BINS, np.inf])[0].tolist(),
        tokens_per_word=tokens / max(words, 1),
        unknown_rate=unknown / max(tokens, 1),
    )


def find_leaks(
    training: Iterable[SentencePair], held_out: dict[str, list[SentencePair]]
) -> list[Leak]:
    """Look up every training pair among the held-out ones; only the latter are in memory."""
    wanted = [_HeldOutSet(split, pairs) for split, pairs in held_out.items()]
    for pair in training:
        plain = normalized(pair.source)
        for one in wanted:
            one.see(pair, plain)
    return [one.leak() for one in wanted]


class _HeldOutSet:
    """The sentences of one held-out set, and which of them were seen in the training text."""

    def __init__(self, split: str, pairs: list[SentencePair]) -> None:
        self._split, self._pairs = split, pairs
        self._plain = [SentencePair(normalized(p.source), normalized(p.target)) for p in pairs]
        # each of them, and whether it was seen
        self._seen_pairs = dict.fromkeys(pairs, False)
        self._seen_sources = dict.fromkeys((pair.source for pair in pairs), False)
        self._seen_plain_pairs = dict.fromkeys(self._plain, False)
        self._seen_plain_sources = dict.fromkeys((pair.source for pair in self._plain), False)

    def see(self, pair: SentencePair, plain_source: str) -> None:
        """Note what a training pair has in common with the set."""
        if not plain_source or plain_source not in self._seen_plain_sources:
            return  # sentences that are the same are also the same once normalised
        self._seen_plain_sources[plain_source] = True
        plain_pair = SentencePair(plain_source, normalized(pair.target))
        if plain_pair in self._seen_plain_pairs:
            self._seen_plain_pairs[plain_pair] = True
        if pair.source in self._seen_sources:
            self._seen_sources[pair.source] = True
        if pair in self._seen_pairs:
            self._seen_pairs[pair] = True

    def leak(self) -> Leak:
        """Count the sentences of the set that were seen."""
        leaked = [pair for pair in self._pairs if self._seen_sources[pair.source]]
        return Leak(
            split=self._split,
            sentences=len(self._pairs),
            pairs=sum(self._seen_pairs[pair] for pair in self._pairs),
            sources=len(leaked),
            pairs_normalized=sum(self._seen_plain_pairs[pair] for pair in self._plain),
            sources_normalized=sum(self._seen_plain_sources[p.source] for p in self._plain),
            examples=list(dict.fromkeys(pair.source for pair in leaked))[:EXAMPLES],
        )


def normalized(text: str) -> str:
    """Letters and digits alone, case folded, in one Unicode form; other things are one space."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    plain: str = _NO_WORD.sub(" ", folded)
    return plain.strip()
