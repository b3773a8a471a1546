"""Prepares a sample of the training text in memory: what preparing all of it takes and gives.

Sources with the matches of data.memory (`_with_matches`) are as long as in the whole text, as their
matches are looked for among more pairs than the sample has.
"""

import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from nmt.data.corpora.registry import find_splits
from nmt.data.fuzzy_repair import COST
from nmt.data.links import AUTO, LINKING_SECONDS
from nmt.data.mixture import stages_of
from nmt.data.prepared import (
    VOCABULARY_PAIRS,
    Prepared,
    training_texts,
    vocabulary_of,
    write_ids,
)
from nmt.data.terms import origin_of_links
from nmt.data.text.cleaning import TrainingText
from nmt.data.text.nearest import NearestPairs
from nmt.data.text.parallel_text import Block, LinePair
from nmt.data.tokens.annotation import term_symbols
from nmt.data.tokens.context import separators_of, without_context
from nmt.data.tokens.encoding import processes_for
from nmt.data.tokens.matches import match_symbols, most_source_tokens, with_matches
from nmt.data.tokens.token_store import Sentences, TokenStore
from nmt.data.tokens.tokenizer import Tokenizer
from nmt.errors import DataError
from nmt.recipe.config import MIN_VOCABULARY_SIZE, Config

_SAMPLED_PAIRS = 30_000
_INDEXED_PAIRS = 500_000  # among which matches are looked for; of a larger text too few are found
_SEARCHED_PAIRS = 3000  # whose matches are looked for
_LEARNING_EXPONENT = 0.7  # n times as many pairs take n ** 0.7 as long to learn a vocabulary from
_PROCESS_SECONDS = 3.0  # until a process that encodes has imported its modules


@dataclass(frozen=True)
class Rehearsal:
    """What preparing a sample of the training text tells about preparing all of it."""

    prepared: Prepared
    """the prepared sample, in memory; its directory is gone"""
    scale: float
    """the pairs of the training text for each one of the sample"""
    seconds: float
    """how long this machine is likely to take for preparing the training text"""


def rehearse(config: Config) -> Rehearsal | None:
    """Prepare a sample of the training text; return None if the corpus is not downloaded.

    All of the text is read once, and nothing stays on disk. The vocabulary is smaller than the
    recipe's if the sample has too few different words for it.

    Raises:
        ConfigError: the configuration names no training text, or a setting is impossible.
        DataError: the text cannot be used as it is.
    """
    splits = find_splits(config.data)
    if splits is None:
        return None
    texts, start = training_texts(config, splits), time.perf_counter()
    samples, total = _sample(texts, _SAMPLED_PAIRS)
    sampled = sum(text.text.count_pairs() for text in samples)
    read = time.perf_counter()
    tokenizer = _vocabulary(config, samples, sampled, whole=sampled == total)
    learnt = time.perf_counter()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        counts = write_ids(samples, tokenizer, folder, processes=1)
        stored = TokenStore.open(folder)
        sides = [
            Sentences(side.ids.copy(), side.offsets) for side in (stored.source, stored.target)
        ]
    scale, processes = total / sampled, max(1, processes_for(total))
    learning = (learnt - read) * (min(total, VOCABULARY_PAIRS) / sampled) ** _LEARNING_EXPONENT
    encoding = (time.perf_counter() - learnt) * scale / processes
    starting = _PROCESS_SECONDS if processes > 1 else 0.0
    # it is read for the fingerprint, to count the pairs, to learn the vocabulary, and to encode
    seconds = 4 * (read - start) + learning + starting + encoding
    marks = config.data.memory and config.data.memory.marks
    if marks or origin_of_links(config) == AUTO:  # one aligner for both
        seconds += LINKING_SECONDS * total
    store = TokenStore(*sides)
    if config.data.memory:
        store, of_matches = _with_matches(config, texts, store, tokenizer)
        seconds += of_matches
    stages = stages_of(config, splits.train, counts["kept_of_each_text"])
    prepared = Prepared(Path(name), "", tokenizer, store, stages, counts)
    return Rehearsal(prepared, scale, seconds)


def _with_matches(
    config: Config, texts: Sequence[TrainingText], store: TokenStore, tokenizer: Tokenizer
) -> tuple[TokenStore, float]:
    """Return a sample with matches in a share of its sources, and the seconds for the whole text.

    The matches of some sources are looked for among up to `_INDEXED_PAIRS` of the text, whatever
    their languages; the sources beside them get the same. Marks are not among them.
    """
    memory, model = config.data.memory, tokenizer.source
    assert memory is not None
    samples, total = _sample(texts, _INDEXED_PAIRS)
    pairs = [pair for text in samples for pair in text.text.pairs("surrogateescape")]
    start = time.perf_counter()
    nearest = NearestPairs([pair.source for pair in pairs])
    indexed = time.perf_counter()
    drawn = np.flatnonzero(np.random.default_rng(1).random(len(store)) < memory.share)
    stride, separator = 1 + len(drawn) // _SEARCHED_PAIRS, next(iter(separators_of(tokenizer)), -1)
    rows = [store.source.sentence(row).tolist() for row in range(len(store))]
    searched = [without_context(rows[row], separator) for row in drawn[::stride]]
    found = nearest.find(model.decode(searched), memory.count, memory.minimum, skip_equal=True)
    searching = time.perf_counter() - indexed
    limit = most_source_tokens(config.data)
    targets = iter(model.encode([pairs[place].target for near in found for place, _ in near]))
    matches = [[(next(targets), score) for _, score in near] for near in found]
    for number, row in enumerate(drawn.tolist()):
        rows[row] = with_matches(model, rows[row], matches[number // stride], limit)
    searches = memory.share * total / max(1, len(searched))  # for each that was measured
    processes = max(1, processes_for(total, cost=COST))
    seconds = (indexed - start) * total / len(pairs) + searching * searches / processes
    return TokenStore(Sentences.of(rows), store.target), seconds


def _vocabulary(
    config: Config, samples: Sequence[TrainingText], pairs: int, whole: bool
) -> Tokenizer:
    """Return the vocabulary, as small as the samples need unless they are the `whole` text."""
    settings, symbols = config.tokenizer, [*term_symbols(config.data), *match_symbols(config.data)]
    while True:
        try:
            return vocabulary_of(samples, pairs, settings, symbols)
        except DataError:
            smaller = settings.vocabulary_size // 2
            if whole or settings.models or smaller < MIN_VOCABULARY_SIZE:
                raise
            settings = settings.model_copy(update={"vocabulary_size": smaller})


def _sample(texts: Sequence[TrainingText], most: int) -> tuple[list[TrainingText], int]:
    """Read texts once, and return random pairs of each, with the number of pairs of all texts.

    All pairs have the same chance, and about `most` are drawn at most; but of each text there is
    the first one. Every n-th pair would not do: in Multi30k every second sentence is a short one.

    Raises:
        DataError: a text cannot be read.
    """
    random, share, total = np.random.default_rng(1), 1.0, 0
    drawn: list[list[tuple[float, LinePair]]] = [[] for _ in texts]
    for text, pairs in zip(texts, drawn, strict=True):
        for block in text.text.blocks():
            numbers = random.random(len(block)).tolist()
            if not pairs:
                numbers[0] = 0.0
            total += len(block)
            pairs += (each for each in zip(numbers, block.lines, strict=True) if each[0] < share)
            while share > most / total and sum(map(len, drawn)) > most:
                share /= 2
                for each in drawn:
                    each[:] = [pair for pair in each if pair[0] < share]
    samples = []
    for text, pairs in zip(texts, drawn, strict=True):
        paths = text.text.files.paths
        lines = [line for _, line in pairs]
        block = Block(lines, Path(paths[0]), Path(paths[-1]), range(1, len(lines) + 1))
        samples.append(replace(text, text=replace(text.text, sample=block)))
    return samples, total
