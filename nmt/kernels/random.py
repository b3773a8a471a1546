"""The random numbers of dropout (section 5.4)."""

import ctypes
from dataclasses import dataclass

import torch
from torch import Tensor

from nmt.kernels.library import address, kernel_library


@dataclass(frozen=True)
class DropoutDraws:
    """Which elements of a tensor dropout drops."""

    levels: Tensor
    """a random number for each element, int16"""
    lowest_kept: int
    """an element whose level is less than this is dropped"""
    scale: float
    """by which the others are multiplied"""


def draw_levels(x: Tensor, generator: torch.Generator | None) -> Tensor:
    """Return a random int16 number for each element of x, which is on a CPU.

    The library in C for the type of x, if there is one, draws them from a seed that `generator`
    draws: PyTorch takes ten times as long. None is the global generator.
    """
    draws = torch.empty((x.numel() + 3) // 4, dtype=torch.int64)  # four levels in each
    library = kernel_library(x.dtype)
    if library is None:
        draws.random_(-(2**63), None, generator=generator)  # all 64 bits are random
    else:
        seed = torch.empty(1, dtype=torch.int64).random_(-(2**63), None, generator=generator)
        library.nmt_draw(address(seed), ctypes.c_size_t(x.numel()), address(draws))
    return draws.view(torch.int16)[: x.numel()].view(x.shape)
