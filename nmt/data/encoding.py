"""Clean and encode a corpus block by block, on all cores, in bounded memory and in order."""

import multiprocessing
import multiprocessing.connection
import os
import signal
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path

from nmt.config import CleaningConfig
from nmt.data.cleaning import Cleaner, Counts, Example, pair_hash
from nmt.data.parallel_text import Block, SentencePair
from nmt.data.token_store import Sentences
from nmt.data.tokenizer import Tokenizer
from nmt.errors import DataError


@dataclass(frozen=True)
class EncodedBlock:
    """What is kept of a block, and what became of the rest."""

    source: Sentences
    target: Sentences
    lines: list[int]
    """the place of each kept pair in the block, counted from 0"""
    hashes: list[int]
    """of each kept pair, if duplicates are to be found; else empty"""
    counts: Counts


class BlockEncoder:
    """Cleans and encodes blocks by the rules of one configuration."""

    def __init__(
        self, tokenizer: Tokenizer, cleaning: CleaningConfig, threads: int | None = None
    ) -> None:
        self._tokenizer, self._cleaning, self._threads = tokenizer, cleaning, threads
        self._cleaner = Cleaner(cleaning)

    def __call__(self, block: Block) -> EncodedBlock:
        """Raises DataError for bytes that are not UTF-8, unless there is a rule for them."""
        pairs = block.pairs(self._cleaner.decoding_errors)
        counts = Counts(len(pairs))
        lines = []
        for line, pair in enumerate(pairs):
            if reason := self._cleaner.reason(pair):
                counts.drop(reason, example(block, line, pair))
            else:
                lines.append(line)
        sources = self._tokenizer.encode_source(
            [pairs[line].source for line in lines], self._threads
        )
        targets = self._tokenizer.encode_target(
            [pairs[line].target for line in lines], self._threads
        )
        kept = []
        for place, (source, target) in enumerate(zip(sources, targets, strict=True)):
            reason = self._cleaner.reason_by_length(len(source) - 1, len(target) - 1)
            if reason:
                counts.drop(reason, example(block, lines[place], pairs[lines[place]]))
            else:
                kept.append(place)
        if len(kept) < len(lines):
            sources, targets = [sources[i] for i in kept], [targets[i] for i in kept]
            lines = [lines[i] for i in kept]
        hashes = [pair_hash(pairs[line]) for line in lines] if self._cleaning.duplicates else []
        return EncodedBlock(Sentences.of(sources), Sentences.of(targets), lines, hashes, counts)


def example(block: Block, line: int, pair: SentencePair) -> Example:
    """A pair of a block that is left out, shortened to be shown."""
    source, target = (
        side[:200].encode("utf-8", "backslashreplace").decode()
        for side in (pair.source, pair.target)
    )
    return Example(str(block.source_file), block.first_line + line, source, target)


def encode_blocks(
    blocks: Iterable[Block], tokenizer_folder: Path, cleaning: CleaningConfig, processes: int
) -> Iterator[tuple[Block, EncodedBlock]]:
    """Encode blocks with the tokenizer saved in a folder; the results come in order.

    At most two blocks a process are in memory, however large the corpus.

    Raises:
        DataError: what `BlockEncoder` raises, or a process that died.
    """
    if processes <= 1:
        encoder = BlockEncoder(Tokenizer.load(tokenizer_folder), cleaning)
        yield from ((block, encoder(block)) for block in blocks)
        return
    # spawned, not forked: the libraries loaded here run threads, which a fork would cut off
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(processes, context, _start_worker, (tokenizer_folder, cleaning))
    waiting: deque[tuple[Block, Future[EncodedBlock]]] = deque()
    try:
        for block in blocks:
            waiting.append((block, pool.submit(_encode_in_worker, block)))
            if len(waiting) >= 2 * processes:
                first, result = waiting.popleft()
                yield first, result.result()
        while waiting:
            first, result = waiting.popleft()
            yield first, result.result()
    except BrokenProcessPool as error:
        raise DataError(
            "a process that encodes text died, most likely for want of memory; close other "
            "programs, or encode with fewer cores (taskset, cgroups)"
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


_encoder: BlockEncoder


def _start_worker(tokenizer_folder: Path, cleaning: CleaningConfig) -> None:
    """Ready a new process; Ctrl-C reaches the main one, which ends this one."""
    global _encoder
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _encoder = BlockEncoder(Tokenizer.load(tokenizer_folder), cleaning, threads=1)


def _end_with_parent() -> None:
    """A main process that is killed cannot end its own."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    multiprocessing.connection.wait([parent.sentinel])
    os._exit(1)


def _encode_in_worker(block: Block) -> EncodedBlock:
    return _encoder(block)
