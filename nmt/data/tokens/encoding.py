"""Cleans and encodes a corpus block by block: on all cores, in bounded memory and in order."""

import contextlib
import multiprocessing
import multiprocessing.connection
import os
import signal
import threading
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nmt.config import CleaningConfig
from nmt.data.text.cleaning import Cleaner, Counts, Hashes, SeenHashes, pair_hashes
from nmt.data.text.parallel_text import Block
from nmt.data.tokens.bulk_encoding import bulk_encoder
from nmt.data.tokens.token_store import Indices, Sentences
from nmt.data.tokens.tokenizer import Tokenizer
from nmt.errors import DataError
from nmt.processor import available_cores


@dataclass(frozen=True)
class EncodedBlock:
    """The ids of the pairs that are kept of a block, and the counts of the others."""

    source: Sentences
    target: Sentences
    lines: Indices
    """the place of each kept pair in the block, counted from 0"""
    hashes: Hashes
    """the hash of each kept pair if duplicates are to be left out, else empty"""
    counts: Counts

    def select(self, lines: list[int]) -> "EncodedBlock":
        """Return only the pairs at these places in the block."""
        if len(lines) == len(self.lines):
            return self
        kept = np.flatnonzero(np.isin(self.lines, lines))
        sides = self.source.gather(kept), self.target.gather(kept)
        hashes = self.hashes[kept] if len(self.hashes) else self.hashes
        return EncodedBlock(*sides, self.lines[kept], hashes, self.counts)

    def without_duplicates(self, block: Block, seen: SeenHashes) -> "EncodedBlock":
        """Leave out the pairs of `block` that are in `seen` or occur earlier in the block."""
        reasons = ("duplicate" if repeated else None for repeated in seen.add(self.hashes))
        return self.select(self.counts.sort_out(block, self.lines.tolist(), reasons))


class BlockEncoder:
    """Cleans and encodes blocks by the rules of one configuration."""

    def __init__(self, tokenizer: Tokenizer, cleaning: CleaningConfig, threads: int) -> None:
        self._encode_source = self._encode_target = bulk_encoder(tokenizer.source, threads)
        if not tokenizer.shared:
            self._encode_target = bulk_encoder(tokenizer.target, threads)
        self._duplicates = cleaning.duplicates
        self._cleaner = Cleaner(cleaning)

    def __call__(self, block: Block) -> EncodedBlock:
        """Decode, clean and encode the pairs of a block.

        Raises:
            DataError: a line is not UTF-8 and no rule of the configuration leaves it out.
        """
        pairs = block.pairs(self._cleaner.decoding_errors)
        counts = Counts(len(pairs))
        lines = counts.sort_out(block, range(len(pairs)), map(self._cleaner.reason, pairs))
        kept = [pairs[line] for line in lines]
        encoded = EncodedBlock(
            source=self._encode_source([pair.source for pair in kept]),
            target=self._encode_target([pair.target for pair in kept]),
            lines=np.array(lines, np.int64),
            hashes=pair_hashes(kept if self._duplicates else []),
            counts=counts,
        )
        lengths = ((side.lengths - 1).tolist() for side in (encoded.source, encoded.target))
        reasons = map(self._cleaner.reason_by_length, *lengths)
        return encoded.select(counts.sort_out(block, lines, reasons))


def encode_blocks(
    blocks: Iterable[Block], tokenizer_folder: Path, cleaning: CleaningConfig, processes: int
) -> Generator[tuple[Block, EncodedBlock]]:
    """Encode blocks with the tokenizer saved in a folder; the results come in order.

    At most two blocks a process are in memory, whatever the size of the corpus. A caller that
    stops early closes the generator, which waits for the processes: they read the folder.

    Raises:
        DataError: what `BlockEncoder` raises, or a process died.
    """
    if processes <= 1:
        encoder = BlockEncoder(Tokenizer.load(tokenizer_folder), cleaning, available_cores())
        yield from ((block, encoder(block)) for block in blocks)
        return
    # Processes are spawned: a fork would lose the threads of the libraries that are loaded here.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(processes, context, _start_worker, (tokenizer_folder, cleaning))
    pending: deque[tuple[Block, Future[EncodedBlock]]] = deque()
    try:
        for block in blocks:
            with _interrupts_delayed():  # this may start a process
                pending.append((block, pool.submit(_encode_in_worker, block)))
            if len(pending) >= 2 * processes:
                first, result = pending.popleft()
                yield first, result.result()
        while pending:
            first, result = pending.popleft()
            yield first, result.result()
    except BrokenProcessPool as error:
        raise DataError(
            "a process that encodes text died, most likely because memory ran out; close other "
            "programs, or encode with fewer cores (taskset, cgroups)"
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


@contextlib.contextmanager
def _interrupts_delayed() -> Iterator[None]:
    """Act on Ctrl-C only after the block, and never in processes that are started in it.

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


_encoder: BlockEncoder


def _start_worker(tokenizer_folder: Path, cleaning: CleaningConfig) -> None:
    """Load the tokenizer in a new process."""
    global _encoder
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _encoder = BlockEncoder(Tokenizer.load(tokenizer_folder), cleaning, threads=1)


def _end_with_parent() -> None:
    """End this process with the main one, which cannot do it itself if it is killed."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    multiprocessing.connection.wait([parent.sentinel])
    os._exit(1)


def _encode_in_worker(block: Block) -> EncodedBlock:
    return _encoder(block)
