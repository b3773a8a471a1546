"""Ids on disk: one flat array for each language and the offsets where each sentence begins.

Both are `.npy` files; the ids are uint16 where the vocabulary allows, else uint32, and are
memory-mapped, so that a corpus larger than memory trains as well as a small one.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import IO

import numpy as np
import numpy.typing as npt

from nmt.errors import DataError

Ids = npt.NDArray[np.uint16] | npt.NDArray[np.uint32]
Lengths = npt.NDArray[np.int64]


class TokenStore:
    """The ids of all pairs of a directory; each sentence ends with EOS."""

    def __init__(self, directory: Path) -> None:
        """Open what `SideWriter` wrote.

        Raises:
            DataError: files are missing or damaged.
        """
        self._source_ids, self._source_offsets = _open_side(directory, "source")
        self._target_ids, self._target_offsets = _open_side(directory, "target")
        self.source_lengths: Lengths = np.diff(self._source_offsets)
        """tokens of each source sentence, EOS included"""
        self.target_lengths: Lengths = np.diff(self._target_offsets)
        """tokens of each target sentence, EOS included"""

    def __len__(self) -> int:
        return len(self.source_lengths)

    def source(self, index: int) -> Ids:
        """The ids of source sentence `index`, the last one EOS."""
        return self._source_ids[self._source_offsets[index] : self._source_offsets[index + 1]]

    def target(self, index: int) -> Ids:
        """The ids of target sentence `index`, the last one EOS."""
        return self._target_ids[self._target_offsets[index] : self._target_offsets[index + 1]]


class EncodedPairs:
    """The ids of a few pairs in memory; each sentence ends with EOS. Reads as a `TokenStore`."""

    def __init__(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> None:
        self._sources = [np.asarray(ids) for ids in sources]
        self._targets = [np.asarray(ids) for ids in targets]
        self.source_lengths: Lengths = np.array([len(ids) for ids in sources])
        self.target_lengths: Lengths = np.array([len(ids) for ids in targets])

    def source(self, index: int) -> npt.NDArray[np.int64]:
        """The ids of source sentence `index`, the last one EOS."""
        return self._sources[index]

    def target(self, index: int) -> npt.NDArray[np.int64]:
        """The ids of target sentence `index`, the last one EOS."""
        return self._targets[index]


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


def _open_side(directory: Path, side: str) -> tuple[Ids, Lengths]:
    """The memory-mapped ids and the offsets of one language."""
    try:
        ids = np.load(directory / f"{side}.ids.npy", mmap_mode="r")
        offsets = np.load(directory / f"{side}.offsets.npy")
        if offsets[-1] != len(ids):
            raise ValueError(f"{len(ids)} ids, but the last offset is {offsets[-1]}")
    except (OSError, ValueError, EOFError) as error:
        raise DataError(
            f"{directory}: damaged token store ({error}); delete it and prepare again"
        ) from error
    # a plain view: slicing np.memmap itself costs several times as much
    return np.asarray(ids), offsets
