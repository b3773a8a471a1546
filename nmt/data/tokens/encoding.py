"""Cleans and encodes a corpus block by block: on all cores, in bounded memory and in order."""

import contextlib
import dataclasses
import functools
import multiprocessing
import multiprocessing.connection
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from nmt.data.text.cleaning import Cleaner, Counts, PairSettings
from nmt.data.text.duplicates import DuplicateFinder, Hashes, hash_pairs
from nmt.data.text.parallel_text import Block, SentencePair
from nmt.data.tokens.token_store import Indices, Sentences
from nmt.data.tokens.tokenizer import Tokenizer
from nmt.data.tokens.unknown import UnknownParts, unknown_parts
from nmt.data.tokens.word_encoder import bulk_encoder
from nmt.errors import DataError
from nmt.machine.processor import available_cores

# With fewer pairs for each process, starting it takes longer than it saves.
_PAIRS_PER_PROCESS = 50_000

Result = TypeVar("Result")


@dataclass(frozen=True)
class EncodedBlock:
    """The ids of the kept pairs of a block, and the counts of the pairs that are left out."""

    source: Sentences
    target: Sentences
    indices: Indices
    """the index of each kept pair in the block, from 0"""
    hashes: Hashes
    """the hashes (N, C) of the N kept pairs, by which a `DuplicateFinder` finds them again"""
    changes: list[str | None]
    """the kind of change that augmentation has made to each kept pair; None: unchanged"""
    counts: Counts
    unknown: tuple[UnknownParts, UnknownParts] = ({}, {})
    """what the vocabularies of source and target lack of the kept pairs"""

    def select(self, indices: list[int]) -> "EncodedBlock":
        """Return only the pairs with these indices in the block, a subset of `self.indices`."""
        if len(indices) == len(self.indices):
            return self
        rows = np.flatnonzero(np.isin(self.indices, indices))  # of the pairs in the arrays
        sides = self.source.gather(rows), self.target.gather(rows)
        changes = [self.changes[row] for row in rows]
        source, target = (
            {index: side[index] for index in indices if index in side} for side in self.unknown
        )
        return EncodedBlock(
            *sides, self.indices[rows], self.hashes[rows], changes, self.counts, (source, target)
        )

    def without_duplicates(self, block: Block, finder: DuplicateFinder) -> "EncodedBlock":
        """Return the pairs that `finder` has not seen before; count the others as left out.

        `block` is the block that was encoded; the examples of left-out pairs come from it.
        """
        reasons = finder.reasons(self.hashes)
        kept = self.counts.select_kept(block, self.indices.tolist(), reasons)
        return self.select(kept)


class BlockEncoder:
    """Cleans and encodes blocks, with one tokenizer and the settings of one text."""

    def __init__(self, tokenizer: Tokenizer, settings: PairSettings, threads: int) -> None:
        """Take the tokenizer, the settings, and the number of threads for SentencePiece."""
        self._encode_source = self._encode_target = bulk_encoder(tokenizer.source, threads)
        if not tokenizer.shared:
            self._encode_target = bulk_encoder(tokenizer.target, threads)
        self._tokenizer, self._cleaning = tokenizer, settings.cleaning
        self._cleaner, self._augmenter = Cleaner(settings), settings.augmenter
        self._tags, self._tag_count = "".join(settings.tags), len(settings.tags)

    def __call__(self, block: Block) -> EncodedBlock:
        """Decode the pairs, clean by text, augment, encode, clean by length; duplicates stay.

        Raises:
            DataError: a line is not UTF-8, and `cleaning.invalid_utf8` is false.
        """
        pairs = block.pairs(self._cleaner.decoding_errors)
        counts = Counts(len(pairs))
        indices = counts.select_kept(block, range(len(pairs)), map(self._cleaner.reason, pairs))
        encoded = self._encode(block, pairs, indices, counts)
        kept = encoded.select(counts.select_kept(block, indices, self._reasons_by_length(encoded)))
        source, target = self._tokenizer.source, self._tokenizer.target
        sources, targets = [pair.source for pair in pairs], [pair.target for pair in pairs]
        return dataclasses.replace(
            kept,
            unknown=(
                unknown_parts(source, kept.source, kept.indices, sources),
                unknown_parts(target, kept.target, kept.indices, targets),
            ),
        )

    def _encode(
        self, block: Block, pairs: Sequence[SentencePair], indices: list[int], counts: Counts
    ) -> EncodedBlock:
        """Augment and encode the pairs with these indices in a block; `pairs` are all its pairs."""
        kept = [pairs[index] for index in indices]
        # each kept pair as it is to be learnt, and the kind of its change or None
        augmented = [
            self._augmenter(pair, block.numbers[index])
            for pair, index in zip(kept, indices, strict=True)
        ]
        return EncodedBlock(
            source=self._encode_source([self._tags + pair.source for pair, _ in augmented]),
            target=self._encode_target([pair.target for pair, _ in augmented]),
            indices=np.array(indices, np.int64),
            hashes=hash_pairs(kept, self._cleaning),
            changes=[kind for _, kind in augmented],
            counts=counts,
        )

    def _reasons_by_length(self, encoded: EncodedBlock) -> Iterator[str | None]:
        """Return for each encoded pair why its lengths leave it out, or None if it stays."""
        # without EOS, and without the tags, which are no part of the text
        source_lengths = (encoded.source.lengths - 1 - self._tag_count).tolist()
        target_lengths = (encoded.target.lengths - 1).tolist()
        return map(self._cleaner.reason_by_length, source_lengths, target_lengths)


def encode_blocks(
    blocks: Iterable[Block], tokenizer_folder: Path, settings: PairSettings, processes: int
) -> Generator[tuple[Block, EncodedBlock]]:
    """Yield each block with its pairs as a `BlockEncoder` encodes them, in the order of `blocks`.

    With `processes` over 1, that many encode, and each loads the tokenizer in `tokenizer_folder`. A
    caller that stops early must close the generator before it removes `tokenizer_folder`.

    Raises:
        DataError: a line is not UTF-8 and `cleaning.invalid_utf8` is false; or a process died.
    """
    build_encoder = functools.partial(_load_encoder, tokenizer_folder, settings)
    return map_blocks(blocks, build_encoder, processes)


def _load_encoder(tokenizer_folder: Path, settings: PairSettings, threads: int) -> BlockEncoder:
    """Return an encoder with the tokenizer in a folder."""
    return BlockEncoder(Tokenizer.load(tokenizer_folder), settings, threads)


def processes_for(pairs: int, cost: int = 1) -> int:
    """Return how many processes are to share `pairs` pairs; 0 or 1: this process does it alone.

    `cost` is the time that a pair takes, in times of what encoding it would take.
    """
    return min(available_cores(), cost * pairs // _PAIRS_PER_PROCESS)


def map_blocks(
    blocks: Iterable[Block], build: Callable[[int], Callable[[Block], Result]], processes: int
) -> Generator[tuple[Block, Result]]:
    """Yield each block with the result of a function, in the order of `blocks`.

    `build` returns that function; its argument is the number of threads that the function may use.
    If `processes` is over 1, that many worker processes share the blocks, and each calls `build`
    once. At most two blocks for each process are in memory.

    Raises:
        DataError: a process died.
    """
    if processes <= 1:
        function = build(available_cores())
        for block in blocks:
            yield block, function(block)
        return
    # Processes are spawned: a fork would lose the threads of the libraries that are loaded here.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(processes, context, initializer=_start_worker, initargs=(build,))
    pending: deque[tuple[Block, Future[Result]]] = deque()
    try:
        for block in blocks:
            with _interrupts_delayed():  # this may start a process
                pending.append((block, pool.submit(_call_in_worker, block)))
            if len(pending) >= 2 * processes:
                oldest, future = pending.popleft()
                yield oldest, future.result()
        while pending:
            oldest, future = pending.popleft()
            yield oldest, future.result()
    except BrokenProcessPool as error:
        raise DataError(
            "a process that encodes text died, most likely because memory ran out; close other "
            "programs, or encode with fewer cores (taskset, cgroups)"
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


@contextlib.contextmanager
def _interrupts_delayed() -> Iterator[None]:
    """Delay Ctrl-C until the end of the `with` block; processes started in it ignore Ctrl-C.

    A terminal sends Ctrl-C to all processes. Only the main process acts on it, and ends the others.
    A worker that is still importing its modules, or whose start was cut short, would end with a
    traceback of its own. The signal mask is inherited by the workers; the handler is for threads of
    libraries in this process, which have no such mask.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # Python acts on signals in the main thread only
        return
    interrupts: list[int] = []
    handler = signal.signal(signal.SIGINT, lambda number, _: interrupts.append(number))
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        signal.signal(signal.SIGINT, handler)
        if interrupts:
            signal.raise_signal(signal.SIGINT)


_worker_function: Callable[[Block], Any]  # what a worker process applies to blocks


def _start_worker(build: Callable[[int], Callable[[Block], Any]]) -> None:
    """Prepare a new worker process: build its function, and end it when the main process ends."""
    global _worker_function
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _worker_function = build(1)  # one thread, as there is a process for each core


def _end_with_parent() -> None:
    """Wait for the end of the main process, which may have been killed; then end this process."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    multiprocessing.connection.wait([parent.sentinel])
    os._exit(1)


def _call_in_worker(block: Block) -> Any:
    return _worker_function(block)
