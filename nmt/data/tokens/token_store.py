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
Lengths = npt.NDArray[np.signedinteger]  # (sentences,), in tokens
Indices = npt.NDArray[np.integer]  # of pairs in a store, from 0


class Sentences:
    """The ids of sentences in one flat array; each sentence ends with EOS."""

    def __init__(self, ids: Ids, offsets: Lengths) -> None:
        """Take the ids of N sentences, and N + 1 offsets, of which the last is the number of ids.

        Sentence i has ids[offsets[i] : offsets[i + 1]].
        """
        self.ids, self.offsets = ids, offsets
        self.lengths: Lengths = np.diff(offsets).astype(np.int32)
        """tokens of each sentence, EOS included"""

    @classmethod
    def of(cls, rows: Sequence[Sequence[int]]) -> "Sentences":
        """Build the flat array from the ids of each sentence, each ending with EOS."""
        offsets = np.cumsum([0, *map(len, rows)])
        flat = itertools.chain.from_iterable(rows)
        return cls(np.fromiter(flat, np.uint32, int(offsets[-1])), offsets)

    def sentence(self, index: int) -> Ids:
        """Return the ids of one sentence, the last one EOS."""
        return self.ids[self.offsets[index] : self.offsets[index + 1]]

    def gather(self, indices: Indices) -> "Sentences":
        """Return a copy of the sentences at `indices`, in this order; repeats are allowed."""
        lengths = self.lengths[indices]
        offsets = np.concatenate(([0], np.cumsum(lengths)))
        shifts = self.offsets[indices] - offsets[:-1]  # from new to old positions
        old_positions = np.repeat(shifts, lengths) + np.arange(offsets[-1])
        return Sentences(self.ids[old_positions], offsets)


@dataclass(frozen=True)
class TokenStore:
    """The ids of sentence pairs: memory-mapped from a directory, or a few in memory."""

    source: Sentences
    target: Sentences
    links: Sentences | None = None
    """which tokens translate each other, if that is known: for each pair the positions, from 0, of
    a source token and of a target token in turn"""

    @classmethod
    def open(cls, directory: Path) -> "TokenStore":
        """Map the files that `SideWriter` wrote in `directory` into memory.

        Raises:
            DataError: files are missing or damaged.
        """
        return cls(open_side(directory, "source"), open_side(directory, "target"))

    @classmethod
    def of(cls, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> "TokenStore":
        """Return a store in memory of the ids of each pair; each sentence ends with EOS."""
        return cls(Sentences.of(sources), Sentences.of(targets))

    def __len__(self) -> int:
        """Return the number of sentence pairs."""
        return len(self.source.lengths)


def open_side(directory: Path, side: str) -> Sentences:
    """Map the ids of one side, "source" or "target", or the "links", into memory.

    Raises:
        DataError: files are missing or damaged.
    """
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
    return Sentences(np.asarray(ids), np.asarray(offsets))


class SideWriter:
    """Appends ids and offsets of one language to `.npy` files; `side_writer` creates one."""

    def __init__(self, ids: IO[bytes], offsets: IO[bytes], id_type: np.dtype[Any]) -> None:
        self._ids, self._offsets, self._id_type = ids, offsets, id_type
        self.tokens = 0
        """the number of ids that have been written so far, EOS included"""
        self._sentences = 0
        self.write_headers()
        self._offsets.write(np.zeros(1, np.int64).data)  # where the first sentence begins

    def add(self, sentences: Sentences) -> None:
        """Append sentences, in their order, to the files; the headers follow later."""
        # where each sentence ends and the next one begins
        offsets = self.tokens + np.cumsum(sentences.lengths)
        self._offsets.write(offsets.astype(np.int64, copy=False).data)
        self._ids.write(sentences.ids.astype(self._id_type, copy=False).data)
        self._sentences += len(offsets)
        self.tokens += len(sentences.ids)

    def write_headers(self) -> None:
        """Write the headers for the present lengths; their size is fixed, because numpy pads it."""
        for file, dtype, length in (
            (self._ids, self._id_type, self.tokens),
            (self._offsets, np.dtype(np.int64), self._sentences + 1),
        ):
            file.seek(0)
            header = {"descr": dtype.str, "fortran_order": False, "shape": (length,)}
            np.lib.format.write_array_header_1_0(file, header)


@contextlib.contextmanager
def side_writer(directory: Path, side: str, vocabulary_size: int) -> Iterator[SideWriter]:
    """Yield a writer for a side, "source" or "target", or "links"; its files are complete at last.

    Ids are below `vocabulary_size`.
    """
    id_type = np.dtype(np.uint16 if vocabulary_size <= 1 << 16 else np.uint32)
    with (
        open(directory / f"{side}.ids.npy", "wb") as ids_file,
        open(directory / f"{side}.offsets.npy", "wb") as offsets_file,
    ):
        writer = SideWriter(ids_file, offsets_file, id_type)
        yield writer
        writer.write_headers()
