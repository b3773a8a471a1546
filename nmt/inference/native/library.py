"""The library in C that translates: library.c of this folder, compiled for this processor."""

import ctypes
import functools
from pathlib import Path

from nmt.kernels.compilation import load_library


@functools.cache
def native_library() -> ctypes.CDLL | None:
    """Return the library, or None where it cannot be compiled: PyTorch translates there."""
    library = load_library(Path(__file__).parent / "library.c")
    if library:
        library.nmt_encode.restype = library.nmt_start.restype = ctypes.c_void_p
    return library
