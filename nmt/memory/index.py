"""The inverted index of a memory, in tables of its file: complete after each transaction.

A segment is the `BigramIndex` of consecutive pairs, cut into rows of about 4 KB, of which a search
reads those with its bigrams. Pairs after the last segment are compared one by one; once they are
`MOST_UNINDEXED`, they become a segment, which takes in the segments before it that are not twice as
large. So there are few segments, and a pair is indexed again only as often as their size doubles.
"""

import sqlite3
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from nmt.data.text.bigram_index import (
    MOST_SENTENCES,
    BigramIndex,
    Numbers,
    bigrams_of,
    likely_sentences,
)

SCHEMA = """
CREATE TABLE segments (first INTEGER PRIMARY KEY, last INTEGER, bits INTEGER);
CREATE TABLE postings (id INTEGER PRIMARY KEY, bigrams BLOB);
"""
MOST_UNINDEXED = 4096
_ENTRIES_PER_ROW = 1024
_ROWS_BITS = 20  # of the number of a row in its segment
_MOST_ENTRIES = 30_000
"""read for a search, in proportion to the pairs of a segment"""
_LEAST_ENTRIES = 6_000
"""read of each segment, if it has so many"""


@dataclass(frozen=True)
class IndexSegment:
    """The pairs whose numbers are from `first` to `last`, in rows by the high bits of bigrams."""

    first: int
    last: int
    bits: int

    def row(self, bigram: int) -> int:
        """Return the number of the row with the entries of a bigram."""
        return self.first << _ROWS_BITS | bigram >> (32 - self.bits)


def segments(connection: sqlite3.Connection) -> list[IndexSegment]:
    """Return all segments, oldest first."""
    return [
        IndexSegment(*row) for row in connection.execute("SELECT * FROM segments ORDER BY first")
    ]


def likely_pairs(
    connection: sqlite3.Connection, signature: str, minimum: float, most: int
) -> list[int]:
    """Return up to `most` numbers of indexed pairs that are likely to be similar to a text."""
    bigrams = sorted({*bigrams_of([signature]).tolist()})
    all_segments = segments(connection)
    count = sum(segment.last - segment.first + 1 for segment in all_segments)
    numbers: list[npt.NDArray[np.int64]] = [np.empty(0, np.int64)]
    estimates: list[npt.NDArray[np.floating[Any]]] = [np.empty(0, np.float32)]
    for segment in all_segments:
        share = (segment.last - segment.first + 1) / count
        found, likelihood = likely_sentences(
            _lists(connection, segment, bigrams),
            len(signature),
            minimum,
            max(_LEAST_ENTRIES, int(share * _MOST_ENTRIES)),
            most,
        )
        numbers.append(found.astype(np.int64) + segment.first)
        estimates.append(likelihood)
    every, likelihoods = np.concatenate(numbers), np.concatenate(estimates)
    return every[np.argsort(-likelihoods, kind="stable")[:most]].tolist()


def _lists(
    connection: sqlite3.Connection, segment: IndexSegment, bigrams: Sequence[int]
) -> Iterator[Numbers]:
    """Yield the entries of each bigram that a segment has."""
    by_row = defaultdict(list)
    for bigram in bigrams:
        by_row[segment.row(bigram)].append(bigram)
    places = ",".join("?" * len(by_row))
    query = f"SELECT id, bigrams FROM postings WHERE id IN ({places})"
    for row, data in connection.execute(query, list(by_row)):
        numbers = memoryview(data).cast("I")  # in Python, as NumPy takes longer for so few
        count = numbers[0]
        for bigram in by_row[row]:
            place = bisect_left(numbers, bigram, 1, count + 1)
            if place <= count and numbers[place] == bigram:
                start, end = numbers[place + count], numbers[place + count + 1]
                yield np.frombuffer(data, np.uint32, end - start, 4 * (2 * count + 2 + start))


def index_new_pairs(connection: sqlite3.Connection, added: int = 0) -> None:
    """Make a segment of the pairs that are in none, if there are many; inside a transaction.

    `added` is the number of pairs that were added just now: of so many, a single segment is made.
    """
    before = segments(connection)
    first = before[-1].last + 1 if before else 1
    last = connection.execute("SELECT coalesce(max(id), 0) FROM pairs").fetchone()[0]
    if max(last - first + 1, added) < MOST_UNINDEXED:
        return
    while before:
        size = before[-1].last - before[-1].first + 1
        is_larger = size >= 2 * max(last - first + 1, added)
        if is_larger or last - before[-1].first >= MOST_SENTENCES:
            break
        merged = before.pop()
        first = merged.first
        connection.execute("DELETE FROM segments WHERE first = ?", (first,))
        rows = (merged.row(0), merged.row((1 << 32) - 1))
        connection.execute("DELETE FROM postings WHERE id BETWEEN ? AND ?", rows)
    if first <= last:
        _write_segment(connection, first, last)


def _write_segment(connection: sqlite3.Connection, first: int, last: int) -> None:
    """Write the segment of some pairs."""
    signatures = [""] * (last - first + 1)
    query = "SELECT id, signature FROM pairs WHERE id BETWEEN ? AND ?"
    for number, signature in connection.execute(query, (first, last)):
        signatures[number - first] = signature
    index = BigramIndex.of(signatures)
    bits = min(_ROWS_BITS, max(0, len(index.entries) // _ENTRIES_PER_ROW).bit_length())
    segment = IndexSegment(first, last, bits)
    connection.execute("INSERT INTO segments VALUES (?, ?, ?)", (first, last, bits))
    connection.executemany("INSERT INTO postings VALUES (?, ?)", _rows(segment, index))


def _rows(segment: IndexSegment, index: BigramIndex) -> Iterator[tuple[int, bytes]]:
    """Yield the rows of a segment: the number of bigrams, these, their ends, and the entries."""
    rows = index.bigrams >> np.uint32(32 - segment.bits) if segment.bits else index.bigrams * 0
    starts = np.flatnonzero(np.append(True, rows[1:] != rows[:-1])) if len(rows) else rows
    bounds = [*starts.tolist(), len(rows)]
    for start, end in zip(bounds, bounds[1:], strict=False):
        ends = index.ends[start : end + 1]
        head = np.concatenate(([end - start], index.bigrams[start:end], ends - ends[0]))
        entries = index.entries[ends[0] : ends[-1]]
        row = segment.row(int(index.bigrams[start]))
        yield row, head.astype(np.uint32).tobytes() + entries.tobytes()
