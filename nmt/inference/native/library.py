"""The library in C that translates: library.c of this folder, compiled for this processor."""

import ctypes
import functools
from pathlib import Path

from nmt.machine.compilation import load_library

SOURCE = Path(__file__).parent / "library.c"
KERNELS = Path(__file__).parents[2] / "kernels"
"""the folder of `vectors.h` and `tiles.h`, which it includes"""
WITHOUT = "PyTorch translates, about 3 times slower"
"""what a missing library means for the user: measured for one sentence and for a file"""


@functools.cache
def native_library() -> ctypes.CDLL | None:
    """Return the C library that translates; None: it cannot be compiled, so PyTorch translates."""
    library = load_library(SOURCE, KERNELS, without=WITHOUT)
    if library:
        # pointers: as the default, int, they would be cut to 32 bits
        library.nmt_encode.restype = library.nmt_start.restype = ctypes.c_void_p
    return library
