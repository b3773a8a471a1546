"""Source sentences of a batch, which the C library has encoded if it searches."""

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


@dataclass(frozen=True)
class BatchSources:
    """Sentences to search: their ids, and what the C library has encoded of them if it searches."""

    ids: list[list[int]]
    """source ids of each, the last one EOS"""
    memory: NativeMemory | None = None
    """the output of the encoder for a whole batch, which several searches share; None: PyTorch
    searches"""
    rows: Sequence[int] = ()
    """which of the sentences in `memory` these are"""
    begins: Sequence[int] | None = None
    """the target id that each translation begins with, the tag of its language; None: any id"""

    def select(self, indices: Sequence[int]) -> Self:
        """Return some of the sentences, by their indices among these."""
        rows = [self.rows[i] for i in indices] if self.memory else ()
        begins = [self.begins[i] for i in indices] if self.begins else None
        return type(self)([self.ids[i] for i in indices], self.memory, rows, begins)


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
