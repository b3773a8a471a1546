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
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from nmt.data.text.cleaning import Counts, TrainingText
from nmt.data.text.duplicates import DuplicateFinder, Hashes, hash_pairs
from nmt.data.text.parallel_text import Block
from nmt.data.tokens.token_store import Indices, Sentences
from nmt.data.tokens.tokenizer import Tokenizer
from nmt.data.tokens.unknown_parts import unknown_of_texts
from nmt.data.tokens.word_encoder import bulk_encoder
from nmt.errors import DataError
from nmt.machine.processor import available_cores

# With fewer pairs for each process, starting it takes longer than it saves.
_PAIRS_PER_PROCESS = 50_000

Result = TypeVar("Result")


@dataclass(frozen=True)
class CleanedBlock:
    """The pairs of a block that the rules keep, and the counts of those that are left out."""

    source: Sentences
    """the ids of each kept pair; none if there is no tokenizer"""
    target: Sentences
    indices: Indices
    """the index of each kept pair in the block, from 0"""
    hashes: Hashes
    """the hashes (N, C) of the N kept pairs, by which a `DuplicateFinder` finds them again"""
    changes: list[str | None]
    """the kind of change that augmentation has made to each kept pair; None: unchanged"""
    counts: Counts
    unknown: tuple[dict[int, list[str]], dict[int, list[str]]] = ({}, {})
    """what the vocabularies of source and target lack of the kept pairs, by the number of the pair
    in the arrays, from 0"""

    def leave_out(self, block: Block, reasons: Iterable[str | None]) -> "CleanedBlock":
        """Return the pairs that stay, and count the others in `counts`.

        `reasons` says for each kept pair why it is left out now, a key of `REASONS`, or None.
        `block` is the block that was cleaned; the examples of left-out pairs come from it.
        """
        reasons = list(reasons)
        self.counts.add_dropped(block, self.indices.tolist(), reasons)
        rows = np.array([row for row, reason in enumerate(reasons) if reason is None], np.int64)
        if len(rows) == len(reasons):
            return self
        source, target = (
            {new: side[row] for new, row in enumerate(rows.tolist()) if row in side}
            for side in self.unknown
        )
        return CleanedBlock(
            self.source.gather(rows),
            self.target.gather(rows),
            self.indices[rows],
            self.hashes[rows],
            [self.changes[row] for row in rows],
            self.counts,
            (source, target),
        )


class BlockCleaner:
    """Cleans the blocks of one text, and encodes the pairs that stay if there is a tokenizer."""

    def __init__(self, text: TrainingText, tokenizer: Tokenizer | None, threads: int) -> None:
        """Take the text, the tokenizer, and the number of threads for SentencePiece.

        Without a tokenizer, the rules on the number of tokens are left out.
        """
        self._text, self._tokenizer, self._cleaner = text, tokenizer, text.cleaner()
        encode: Callable[[list[str]], Sentences] = _encode_nothing
        if tokenizer:
            encode = bulk_encoder(tokenizer.source, threads)
        self._encode_source = self._encode_target = encode
        if tokenizer and not tokenizer.shared:
            self._encode_target = bulk_encoder(tokenizer.target, threads)

    def __call__(self, block: Block) -> CleanedBlock:
        """Decode the pairs, clean by text, augment, encode, clean by length; duplicates stay.

        Raises:
            DataError: a line is not UTF-8, and `cleaning.invalid_utf8` is false.
        """
        counts = Counts()
        kept = self._cleaner.clean(block, counts)
        # each kept pair as it is to be learnt, and the kind of its change or None
        augmented = [self._text.augmenter(pair, block.numbers[index]) for index, pair in kept]
        tags, target_tag = "".join(self._text.tags), self._text.target_tag
        cleaned = CleanedBlock(
            source=self._encode_source([tags + pair.source for pair, _ in augmented]),
            target=self._encode_target([target_tag + pair.target for pair, _ in augmented]),
            indices=np.array([index for index, _ in kept], np.int64),
            hashes=hash_pairs([pair for _, pair in kept], self._text.cleaning),
            changes=[kind for _, kind in augmented],
            counts=counts,
        )
        if self._tokenizer is None:
            return cleaned
        # without EOS, and without the tags, which are no part of the text
        source_lengths = (cleaned.source.lengths - 1 - len(self._text.tags)).tolist()
        target_lengths = (cleaned.target.lengths - 1 - bool(target_tag)).tolist()
        reasons = map(self._cleaner.reason_by_length, source_lengths, target_lengths)
        cleaned = cleaned.leave_out(block, reasons)
        pair_of = dict(kept)
        pairs = [pair_of[index] for index in cleaned.indices.tolist()]
        source, target = self._tokenizer.source, self._tokenizer.target
        return dataclasses.replace(
            cleaned,
            unknown=(
                unknown_of_texts(source, cleaned.source, [pair.source for pair in pairs]),
                unknown_of_texts(target, cleaned.target, [pair.target for pair in pairs]),
            ),
        )


def _encode_nothing(texts: list[str]) -> Sentences:
    """Return no ids for each text."""
    return Sentences.of([()] * len(texts))


def clean_blocks(
    text: TrainingText, tokenizer: Tokenizer | None, finder: DuplicateFinder, processes: int
) -> Generator[tuple[Block, CleanedBlock]]:
    """Yield each block of a text with the pairs that the rules keep of it, in order.

    Pairs that `finder` has seen before are left out, too. With `processes` over 1, that many clean
    and encode; they end when the generator is closed.

    Raises:
        DataError: a line is not UTF-8 and `cleaning.invalid_utf8` is false; or a process died.
    """
    build = functools.partial(BlockCleaner, text, tokenizer)  # only `threads` is missing
    with contextlib.closing(_map_blocks(text.text.blocks(), build, processes)) as blocks:
        for block, cleaned in blocks:
            yield block, cleaned.leave_out(block, finder.reasons(cleaned.hashes))


def processes_for(pairs: int, cost: int = 1) -> int:
    """Return how many processes are to share `pairs` pairs; 0 or 1: this process does it alone.

    `cost` is the time that a pair takes, in times of what encoding it would take.
    """
    return min(available_cores(), cost * pairs // _PAIRS_PER_PROCESS)


def _map_blocks(
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
    """Set up a new worker process: build its function, and end it when the main process ends."""
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
