"""Ids on disk: for each language one flat array, and the offset at which each sentence begins.

Both are `.npy` files. The ids are uint16 if the vocabulary is small enough, else uint32. They are
memory-mapped, so that a corpus may be larger than the memory.
"""

import contextlib
import itertools
from collections.abc import Iterator, Sequence
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
    """The ids of several sentences in one flat array; each sentence ends with EOS."""

    ids: Ids
    lengths: Lengths

    @classmethod
    def of(cls, rows: Sequence[Sequence[int]]) -> "Sentences":
        """Build the flat array from the ids of each sentence."""
        lengths = np.fromiter(map(len, rows), np.int64, len(rows))
        flat = itertools.chain.from_iterable(rows)
        return cls(np.fromiter(flat, np.uint32, int(lengths.sum())), lengths)

    def select(self, keep: npt.NDArray[np.bool_]) -> "Sentences":
        """Return only the sentences that `keep` marks."""
        return Sentences(self.ids[np.repeat(keep, self.lengths)], self.lengths[keep])


class StoredSentences:
    """All sentences of one language, which are read by their numbers."""

    def __init__(self, ids: Ids, offsets: Lengths) -> None:
        self._ids, self._offsets = ids, offsets
        self.lengths: Lengths = np.diff(offsets).astype(np.int32)
        """tokens of each sentence, EOS included"""

    @classmethod
    def of(cls, sentences: Sentences) -> "StoredSentences":
        """Hold sentences in memory."""
        return cls(sentences.ids, np.concatenate(([0], np.cumsum(sentences.lengths))))

    def sentence(self, index: int) -> Ids:
        """Return the ids of one sentence, the last one EOS."""
        return self._ids[self._offsets[index] : self._offsets[index + 1]]

    def largest_id(self) -> int:
        """Return the largest id of all sentences."""
        return int(self._ids.max(initial=0))

    def gather(self, indices: Indices) -> Sentences:
        """Return the sentences with these numbers, in this order."""
        lengths = self.lengths[indices]
        starts = np.cumsum(lengths) - lengths  # in the array that is returned
        places = np.repeat(self._offsets[indices] - starts, lengths) + np.arange(lengths.sum())
        return Sentences(self._ids[places], lengths)


class TokenStore:
    """The ids of sentence pairs: memory-mapped from a directory, or a few in memory."""

    def __init__(self, source: StoredSentences, target: StoredSentences) -> None:
        self.source, self.target = source, target

    @classmethod
    def open(cls, directory: Path) -> "TokenStore":
        """Open the files that `SideWriter` wrote.

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
    """Streams the ids and offsets of one language to disk; `side_writer` opens one."""

    def __init__(self, ids: "_ArrayWriter", offsets: "_ArrayWriter") -> None:
        self._ids, self._offsets = ids, offsets

    @property
    def tokens(self) -> int:
        """Return the number of ids that were added so far."""
        return self._ids.length

    def add(self, sentences: Sentences) -> None:
        """Append consecutive sentences."""
        self._offsets.add(self.tokens + np.cumsum(sentences.lengths))
        self._ids.add(sentences.ids)


@contextlib.contextmanager
def side_writer(directory: Path, side: str, vocabulary_size: int) -> Iterator[SideWriter]:
    """Write the files of "source" or "target"; they are complete after the `with` block."""
    width = np.dtype(np.uint16 if vocabulary_size <= 1 << 16 else np.uint32)
    with (
        open(directory / f"{side}.ids.npy", "wb") as ids_file,
        open(directory / f"{side}.offsets.npy", "wb") as offsets_file,
    ):
        ids = _ArrayWriter(ids_file, width)
        offsets = _ArrayWriter(offsets_file, np.dtype(np.int64))
        offsets.add(np.zeros(1, np.int64))
        yield SideWriter(ids, offsets)
        ids.write_header()
        offsets.write_header()


class _ArrayWriter:
    """A one-dimensional `.npy` file that grows."""

    def __init__(self, file: IO[bytes], kind: np.dtype[Any]) -> None:
        self._file, self._kind = file, kind
        self.length = 0
        self.write_header()

    def add(self, values: npt.NDArray[Any]) -> None:
        self._file.write(values.astype(self._kind, copy=False).data)
        self.length += len(values)

    def write_header(self) -> None:
        """Write the header for the present length; numpy pads it, so its size stays the same."""
        self._file.seek(0)
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
    # as plain arrays: slicing an np.memmap takes several times as long
    return StoredSentences(np.asarray(ids), np.asarray(offsets))
