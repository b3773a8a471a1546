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

import numpy as np
import numpy.typing as npt

from nmt.config import CleaningConfig
from nmt.data.text.cleaning import Cleaner, Counts, DroppedPair, Hashes, pair_hashes
from nmt.data.text.parallel_text import Block, SentencePair
from nmt.data.tokens.bulk_encoding import bulk_encoders
from nmt.data.tokens.token_store import Indices, Sentences
from nmt.data.tokens.tokenizer import Tokenizer
from nmt.errors import DataError
from nmt.processor import available_cores


@dataclass(frozen=True)
class EncodedBlock:
    """What is kept of a block, and what became of the rest."""

    source: Sentences
    target: Sentences
    lines: Indices
    """the place of each kept pair in the block, counted from 0"""
    hashes: Hashes
    """of each kept pair, if duplicates are to be found; else empty"""
    counts: Counts

    def select(self, keep: npt.NDArray[np.bool_]) -> "EncodedBlock":
        """Only the pairs that `keep` marks."""
        return EncodedBlock(
            self.source.select(keep),
            self.target.select(keep),
            self.lines[keep],
            self.hashes[keep] if len(self.hashes) else self.hashes,
            self.counts,
        )


class BlockEncoder:
    """Cleans and encodes blocks by the rules of one configuration."""

    def __init__(self, tokenizer: Tokenizer, cleaning: CleaningConfig, threads: int) -> None:
        self._encode_source, self._encode_target = bulk_encoders(tokenizer, threads)
        self._duplicates = cleaning.duplicates
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
        kept = [pairs[line] for line in lines]
        encoded = EncodedBlock(
            source=self._encode_source([pair.source for pair in kept]),
            target=self._encode_target([pair.target for pair in kept]),
            lines=np.array(lines, np.int64),
            hashes=pair_hashes(kept if self._duplicates else []),
            counts=counts,
        )
        lengths = ((side.lengths - 1).tolist() for side in (encoded.source, encoded.target))
        reasons = list(map(self._cleaner.reason_by_length, *lengths))
        if not any(reasons):
            return encoded
        for line, pair, reason in zip(lines, kept, reasons, strict=True):
            if reason:
                counts.drop(reason, example(block, line, pair))
        return encoded.select(np.array([reason is None for reason in reasons]))


def example(block: Block, line: int, pair: SentencePair) -> DroppedPair:
    """A pair of a block that is left out, shortened to be shown."""
    source, target = (
        side[:200].encode("utf-8", "backslashreplace").decode()
        for side in (pair.source, pair.target)
    )
    return DroppedPair(str(block.source_file), block.first_line + line, source, target)


def encode_blocks(
    blocks: Iterable[Block], tokenizer_folder: Path, cleaning: CleaningConfig, processes: int
) -> Iterator[tuple[Block, EncodedBlock]]:
    """Encode blocks with the tokenizer saved in a folder; the results come in order.

    At most two blocks a process are in memory, however large the corpus.

    Raises:
        DataError: what `BlockEncoder` raises, or a process that died.
    """
    if processes <= 1:
        encoder = BlockEncoder(Tokenizer.load(tokenizer_folder), cleaning, available_cores())
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
