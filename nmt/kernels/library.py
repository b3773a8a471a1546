"""The libraries in C of this folder, one for each type of activations, and when they are used."""

import ctypes
import functools
from pathlib import Path

import torch
from torch import Tensor

from nmt.machine.compilation import load_library

WIDTH_MULTIPLE = 16
"""rows of activations and weights are as wide as a multiple of this: floats of a register"""
FOLDER = Path(__file__).parent
WITHOUT = "PyTorch computes all of a training step, up to 1.5 times slower"
"""what a missing library means for the user; see scripts/benchmarks/README.md"""
_SOURCES = {torch.bfloat16: "bf16.c", torch.float32: "float32.c"}
"""the C file of each type of activations"""


@functools.cache
def kernel_library(dtype: torch.dtype) -> ctypes.CDLL | None:
    """Return the library for activations of this type, or None where PyTorch computes.

    There is one for bfloat16 and one for float32, unless they cannot be compiled.
    """
    source = _SOURCES.get(dtype)
    return load_library(FOLDER / source, without=WITHOUT) if source else None


def can_use_kernels(x: Tensor, *weights: Tensor) -> bool:
    """Return whether a library computes with activations like x and with these weights.

    x is in bfloat16 or float32 on a CPU, weights are in float32. A library uses the calling thread
    alone, so it is not used where PyTorch divides an operation among several cores. In training
    `ThreadTeam` gives each of its threads one core.
    """
    if not x.is_cpu or torch.get_num_threads() > 1:
        return False
    suits = [w.dtype == torch.float32 and w.shape[-1] % WIDTH_MULTIPLE == 0 for w in weights]
    return all(suits) and kernel_library(x.dtype) is not None


def kernels(x: Tensor) -> ctypes.CDLL:
    """Return the library for activations like x, for which `can_use_kernels` was true."""
    library = kernel_library(x.dtype)
    assert library is not None
    return library


def address(x: Tensor | None) -> ctypes.c_void_p:
    """Return the address of the first element of x, which is contiguous; NULL for None."""
    return ctypes.c_void_p(None if x is None else x.data_ptr())
