"""Ids on disk: one flat array for each language and the offsets where each sentence begins.

Both are `.npy` files; the ids are uint16 where the vocabulary allows, else uint32, and are
memory-mapped, so that a corpus larger than memory trains as well as a small one.
"""

import contextlib
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

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


class StoredSentences:
    """One language of a store: any sentence, or many at once, by number."""

    def __init__(self, ids: Ids, offsets: Lengths) -> None:
        self._ids, self._offsets = ids, offsets
        self.lengths: Lengths = np.diff(offsets).astype(np.int32)
        """tokens of each sentence, EOS included"""

    @classmethod
    def of(cls, sentences: Sentences) -> "StoredSentences":
        """Sentences in memory."""
        return cls(sentences.ids, np.concatenate(([0], np.cumsum(sentences.lengths))))

    def sentence(self, index: int) -> Ids:
        """The ids of one sentence, the last one EOS."""
        return self._ids[self._offsets[index] : self._offsets[index + 1]]

    def largest_id(self) -> int:
        """Of all its tokens."""
        return int(self._ids.max(initial=0))

    def gather(self, indices: Indices) -> Sentences:
        """The sentences of those numbers, in that order."""
        lengths = self.lengths[indices]
        starts = np.cumsum(lengths) - lengths  # in what is returned
        places = np.repeat(self._offsets[indices] - starts, lengths) + np.arange(lengths.sum())
        return Sentences(self._ids[places], lengths)


class TokenStore:
    """The ids of sentence pairs: memory-mapped from a directory, or a few in memory."""

    def __init__(self, source: StoredSentences, target: StoredSentences) -> None:
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
        return cls(
            StoredSentences.of(Sentences.of(sources)), StoredSentences.of(Sentences.of(targets))
        )

    def __len__(self) -> int:
        return len(self.source.lengths)


class SideWriter:
    """Streams the ids and offsets of one language to disk."""

    def __init__(self, directory: Path, side: str, vocabulary_size: int) -> None:
        width = np.uint16 if vocabulary_size <= 1 << 16 else np.uint32
        self._ids = _ArrayWriter(directory / f"{side}.ids.npy", np.dtype(width))
        self._offsets = _ArrayWriter(directory / f"{side}.offsets.npy", np.dtype(np.int64))

    def __enter__(self) -> None:
        with contextlib.ExitStack() as files:
            for file in (self._ids, self._offsets):
                files.enter_context(file)
            self._offsets.add(np.zeros(1, np.int64))
            self._files = files.pop_all()

    def __exit__(self, *_: object) -> None:
        self._files.close()

    @property
    def tokens(self) -> int:
        """Ids added so far."""
        return self._ids.length

    def add(self, sentences: Sentences) -> None:
        """Append consecutive sentences."""
        self._offsets.add(self.tokens + np.cumsum(sentences.lengths))
        self._ids.add(sentences.ids)


class _ArrayWriter:
    """A one-dimensional `.npy` file that grows."""

    def __init__(self, path: Path, kind: np.dtype[Any]) -> None:
        self._path, self._kind = path, kind
        self.length = 0

    def __enter__(self) -> None:
        with contextlib.ExitStack() as opened:
            self._file: IO[bytes] = opened.enter_context(open(self._path, "wb"))
            self._write_header()
            opened.pop_all()

    def __exit__(self, *_: object) -> None:
        with self._file:
            self._file.seek(0)
            self._write_header()

    def add(self, values: npt.NDArray[Any]) -> None:
        self._file.write(values.astype(self._kind, copy=False).data)
        self.length += len(values)

    def _write_header(self) -> None:
        """Write it again with the final length: numpy pads it so that the first axis may grow."""
        header = {"descr": self._kind.str, "fortran_order": False, "shape": (self.length,)}
        np.lib.format.write_array_header_1_0(self._file, header)


def _open_side(directory: Path, side: str) -> StoredSentences:
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
    return StoredSentences(np.asarray(ids), np.asarray(offsets))
