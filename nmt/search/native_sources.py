"""Source sentences that the C library has encoded."""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from nmt.run.checkpoint_files import Array


class NativeMemory:
    """What the decoder attends to, in the memory of the C library."""

    def __init__(self, library: ctypes.CDLL, address: int) -> None:
        self._library, self.address = library, ctypes.c_void_p(address)

    def __del__(self) -> None:
        self._library.nmt_free_sources(self.address)


class NativeSources:
    """Sources of one batch, or some of them: several searches share the encoder's output."""

    def __init__(
        self, memory: NativeMemory, indices: Sequence[int], lengths: Sequence[int]
    ) -> None:
        self._memory, self._indices, self.lengths = memory, indices, lengths

    def select(self, indices: Sequence[int]) -> Self:
        """Return some of the sources, by their indices among these."""
        own = [self._indices[i] for i in indices]
        return type(self)(self._memory, own, [self.lengths[i] for i in indices])

    @property
    def address(self) -> ctypes.c_void_p:
        """The address of `Sources` of work.h."""
        return self._memory.address

    @property
    def chosen(self) -> Array:
        """Which of the encoded sources these are, for C."""
        return np.array(self._indices, np.int32)


@dataclass(frozen=True)
class BatchSources:
    """Sentences to search: their ids, and what the C library has encoded of them if it searches."""

    ids: list[list[int]]
    encoded: NativeSources | None

    def select(self, indices: Sequence[int]) -> Self:
        """Return some of the sentences."""
        encoded = self.encoded.select(indices) if self.encoded else None
        return type(self)([self.ids[i] for i in indices], encoded)


def check_ids(ids: Array, size: int) -> None:
    """Check that ids (N,) are indices below `size`, because C reads whatever stands at them.

    Raises:
        IndexError: an id is negative or too large.
    """
    # seen as unsigned numbers, negative ones are larger than all sizes
    if len(ids) and ids.view(np.uint32).max() >= size:
        raise IndexError(f"ids from {ids.min()} to {ids.max()}, expected 0 to {size - 1}")


def pointer_to(array: np.ndarray) -> ctypes.c_void_p:
    """Return the address of the first number of an array, which the caller keeps alive, for C."""
    return ctypes.c_void_p(array.ctypes.data)
