"""The library in C of this folder, and when it may be used instead of PyTorch."""

import ctypes
import functools
from pathlib import Path

import torch
from torch import Tensor

from nmt.kernels.compilation import load_library

WIDTH_MULTIPLE = 16
"""rows of activations and weights are as wide as a multiple of this: floats of a register"""


@functools.cache
def kernel_library() -> ctypes.CDLL | None:
    """Return the library, or None where it cannot be compiled: PyTorch computes there."""
    return load_library(Path(__file__).parent / "kernels.c")


def can_use_kernels(x: Tensor, *weights: Tensor) -> bool:
    """Return whether the library computes with activations like x and with these weights.

    x is in bfloat16 on a CPU, weights are in float32. The library uses the calling thread alone, so
    it is not used where PyTorch divides an operation among several cores.
    """
    if not x.is_cpu or x.dtype != torch.bfloat16 or torch.get_num_threads() > 1:
        return False
    suits = [w.dtype == torch.float32 and w.shape[-1] % WIDTH_MULTIPLE == 0 for w in weights]
    return all(suits) and kernel_library() is not None


def kernels() -> ctypes.CDLL:
    """Return the library where `can_use_kernels` was true."""
    library = kernel_library()
    assert library is not None
    return library


def address(x: Tensor | None) -> ctypes.c_void_p:
    """Return the address of the first element of x, which is contiguous; NULL for None."""
    return ctypes.c_void_p(None if x is None else x.data_ptr())
