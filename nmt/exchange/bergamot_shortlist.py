"""Binary shortlists of Marian, .s2t.bin: the target pieces that translations of a source may have.

A file is a header of six numbers of 64 bits (mark, checksum, F, B, offsets and entries), the
offsets, and the entries, target rows of 32 bits: those of source row i stand from offset i to
offset i + 1, at most B of them, ascending. The first F rows of the target are always allowed
(browsermt/marian-dev, src/data/shortlist.cpp). Which translation is the better one is not kept.
"""

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmt.data.tokens.foreign_vocabulary import AdoptedVocabulary
from nmt.data.tokens.tokenizer import BOS, EOS, PAD, UNK
from nmt.errors import ExchangeError
from nmt.exchange.imported import ForeignShortlist, read_small_file
from nmt.exchange.marian_binary import unzip

MARK = 0xF11A48D5013417F5
HEADER = struct.Struct("<6Q")
Array = NDArray[Any]


def read_shortlist(path: Path, rows: tuple[int, int]) -> ForeignShortlist:
    """Read a shortlist for vocabularies of so many rows of source and target.

    Raises:
        ExchangeError: the file is damaged, or belongs to other vocabularies.
    """
    data = unzip(read_small_file(path), path)
    if len(data) < HEADER.size or HEADER.unpack_from(data)[0] != MARK:
        raise ExchangeError(
            f"{path}: no binary shortlist of Marian (.s2t.bin); leave `shortlist` out of the "
            "settings"
        )
    _, checksum, frequent, best, offset_count, entry_count = HEADER.unpack_from(data)
    expected = HEADER.size + 8 * offset_count + 4 * entry_count
    if len(data) != expected or checksum != checksum_of(data):
        raise ExchangeError(f"{path}: damaged or cut short; fetch the file again")
    offsets = np.frombuffer(data, "<u8", offset_count, HEADER.size)
    entries = np.frombuffer(data, "<u4", entry_count, HEADER.size + 8 * offset_count)
    fits = offset_count == rows[0] + 1 and frequent <= rows[1] and best <= rows[1]
    is_ordered = fits and offsets[0] == 0 and offsets[-1] == entry_count
    if (
        not is_ordered
        or (np.diff(offsets.astype(np.int64)) < 0).any()
        or (entries >= rows[1]).any()
    ):
        raise ExchangeError(
            f"{path}: a shortlist of other vocabularies: it has {offset_count - 1:,} source rows, "
            f"the model {rows[0]:,} and {rows[1]:,} target rows"
        )
    return ForeignShortlist(frequent, best, offsets.astype(np.int64), entries.astype(np.int64))


def write_shortlist(shortlist: ForeignShortlist) -> bytes:
    """Return the bytes of the file; `read_shortlist` reads them."""
    counts = len(shortlist.offsets), len(shortlist.entries)
    body = shortlist.offsets.astype("<u8").tobytes() + shortlist.entries.astype("<u4").tobytes()
    header = [MARK, 0, shortlist.frequent, shortlist.best, *counts]
    header[1] = checksum_of(HEADER.pack(*header) + body)
    return HEADER.pack(*header) + body


def checksum_of(data: bytes) -> int:
    """Return the checksum of a file's bytes: of its whole words of 64 bits after the first two."""
    seed, mask = 0, (1 << 64) - 1
    for word in np.frombuffer(data, "<u8", len(data) // 8)[2:].tolist():
        seed ^= (word + 0x9E3779B9 + (seed << 6) + (seed >> 2)) & mask
    return seed


def in_our_ids(
    shortlist: ForeignShortlist, source: AdoptedVocabulary, target: AdoptedVocabulary
) -> tuple[Array, Array]:
    """Return the target ids of each source id (V, B), 0 behind them, and those always allowed."""
    ids = np.array(target.ids(max(target.rows) + 1))
    candidates = np.zeros((len(source.rows), shortlist.best), np.int64)
    for id_, row in enumerate(source.rows):
        if row >= 0:
            entries = shortlist.entries[shortlist.offsets[row] : shortlist.offsets[row + 1]]
            candidates[id_, : len(entries)] = ids[entries[: shortlist.best]]
    return candidates, np.union1d([PAD, UNK, BOS, EOS], ids[: shortlist.frequent])


def in_rows(
    candidates: Array, always: Array, order: tuple[Sequence[int], Sequence[int]]
) -> ForeignShortlist:
    """Return the reverse of `in_our_ids`; `order` has our id of each row of source and target.

    Ids that are always allowed, but not among the first rows, become entries of every source.
    """
    target_rows = {id_: row for row, id_ in enumerate(order[1]) if id_ >= 0}
    first = sorted(target_rows[id_] for id_ in always.tolist() if id_ in target_rows)
    frequent = next((i for i, row in enumerate(first) if i != row), len(first))
    lists = []
    for id_ in order[0]:
        own = candidates[id_].tolist() if id_ >= 0 else []
        rows = {target_rows[each] for each in own if each and each in target_rows}
        lists.append(sorted(rows.union(first[frequent:])))
    offsets = np.cumsum([0, *map(len, lists)])
    entries = np.array([row for rows in lists for row in rows], np.int64)
    return ForeignShortlist(frequent, max(map(len, lists)), offsets, entries)
