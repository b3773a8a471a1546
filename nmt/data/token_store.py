"""Ids on disk: one flat array for each language and the offsets where each sentence begins.

Both are `.npy` files; the ids are uint16 where the vocabulary allows, else uint32, and are
memory-mapped, so that a corpus larger than memory trains as well as a small one.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
import numpy.typing as npt

from nmt.errors import DataError

Ids = npt.NDArray[np.uint16] | npt.NDArray[np.uint32]
Lengths = npt.NDArray[np.signedinteger]
Indices = npt.NDArray[np.integer]


@dataclass(frozen=True)
class Sentences:
    """The ids of several sentences, end to end; each sentence ends with EOS."""

    ids: Ids
    lengths: Lengths

    @classmethod
    def of(cls, rows: Sequence[Sequence[int]]) -> "Sentences":
        """Lay the rows end to end."""
        lengths = np.fromiter(map(len, rows), np.int64, len(rows))
        flat = itertools.chain.from_iterable(rows)
        return cls(np.fromiter(flat, np.uint32, int(lengths.sum())), lengths)

    def select(self, keep: npt.NDArray[np.bool_]) -> "Sentences":
        """Only the sentences that `keep` marks."""
        return Sentences(self.ids[np.repeat(keep, self.lengths)], self.lengths[keep])


class Side:
    """One language of a store: any sentence, or many at once, by number."""

    def __init__(self, ids: Ids, offsets: Lengths) -> None:
        self._ids, self._offsets = ids, offsets
        self.lengths: Lengths = np.diff(offsets).astype(np.int32)
        """tokens of each sentence, EOS included"""

    @classmethod
    def of(cls, sentences: Sentences) -> "Side":
        """Sentences in memory."""
        return cls(sentences.ids, np.concatenate(([0], np.cumsum(sentences.lengths))))

    def sentence(self, index: int) -> Ids:
        """The ids of one sentence, the last one EOS."""
        return self._ids[self._offsets[index] : self._offsets[index + 1]]

    def gather(self, indices: Indices) -> Sentences:
        """The sentences of those numbers, in that order."""
        lengths = self.lengths[indices]
        starts = np.cumsum(lengths) - lengths  # in what is returned
        places = np.repeat(self._offsets[indices] - starts, lengths) + np.arange(lengths.sum())
        return Sentences(self._ids[places], lengths)


class TokenStore:
    """The ids of sentence pairs: memory-mapped from a directory, or a few in memory."""

    def __init__(self, source: Side, target: Side) -> None:
        self.source, self.target = source, target

    @classmethod
    def open(cls, directory: Path) -> "TokenStore":
        """Open what `SideWriter` wrote.

        Raises:
            DataError: files are missing or damaged.
        """
        return cls(_open_side(directory, "source"), _open_side(directory, "target"))

    @classmethod
    def of(cls, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> "TokenStore":
        """Hold rows of ids, each ending with EOS, in memory."""
        return cls(Side.of(Sentences.of(sources)), Side.of(Sentences.of(targets)))

    def __len__(self) -> int:
        return len(self.source.lengths)


class SideWriter:
    """Streams the ids of one language to disk; only lengths stay in memory, 8 bytes a sentence."""

    def __init__(self, directory: Path, side: str, vocabulary_size: int) -> None:
        self._directory, self._side = directory, side
        self._type = np.dtype(np.uint16 if vocabulary_size <= 1 << 16 else np.uint32)
        self._lengths: list[Lengths] = [np.zeros(1, np.int64)]
        self.tokens = 0
        """ids added so far"""

    def __enter__(self) -> None:
        self._file: IO[bytes] = open(self._directory / f"{self._side}.ids.npy", "wb")
        self._write_header()

    def __exit__(self, *_: object) -> None:
        with self._file:
            self._file.seek(0)
            self._write_header()
        offsets = np.cumsum(np.concatenate(self._lengths))
        np.save(self._directory / f"{self._side}.offsets.npy", offsets)

    def add(self, ids: npt.NDArray[np.integer], lengths: Lengths) -> None:
        """Append consecutive sentences, end to end, of so many ids each."""
        self._file.write(ids.astype(self._type).tobytes())
        self._lengths.append(lengths)
        self.tokens += len(ids)

    def _write_header(self) -> None:
        """Write it again with the final length: numpy pads it so that the first axis may grow."""
        header = {"descr": self._type.str, "fortran_order": False, "shape": (self.tokens,)}
        np.lib.format.write_array_header_1_0(self._file, header)


def _open_side(directory: Path, side: str) -> Side:
    try:
        ids = np.load(directory / f"{side}.ids.npy", mmap_mode="r")
        offsets = np.load(directory / f"{side}.offsets.npy", mmap_mode="r")
        if offsets[-1] != len(ids):
            raise ValueError(f"{len(ids)} ids, but the last offset is {offsets[-1]}")
    except (OSError, ValueError, EOFError) as error:
        raise DataError(
            f"{directory}: damaged token store ({error}); delete it and prepare again"
        ) from error
    # a plain view: slicing np.memmap itself costs several times as much
    return Side(np.asarray(ids), np.asarray(offsets))
