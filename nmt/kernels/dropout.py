"""Dropout (section 5.4) on a CPU, whose masks take a fraction of the time that PyTorch needs."""

import contextlib
import ctypes
import threading
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from nmt.kernels.library import address, kernel_library

LEVELS = 1 << 16  # values of a 16-bit random number

_thread_local = threading.local()


@contextlib.contextmanager
def masks_from(generator: torch.Generator) -> Iterator[None]:
    """Inside the block, draw this thread's masks on a CPU from `generator`, not the global one."""
    _thread_local.generator = generator
    try:
        yield
    finally:
        del _thread_local.generator


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


class FastDropout(nn.Dropout):
    """x * mask / (1 - p), each element dropped with probability p while training.

    On a CPU, random numbers cost more than the arithmetic, so four 16-bit numbers are cut out of
    each 64-bit draw. So p is rounded to a multiple of 2^-16, and the scale fits the rounded p.
    """

    def forward(self, input: Tensor) -> Tensor:
        """Apply dropout to a tensor of any shape; outside training, return it unchanged."""
        if not self.training or self.p == 0:
            return input
        mask, scale = self._mask(input)
        return input * mask * scale

    def add(self, residual: Tensor, x: Tensor) -> Tensor:
        """Return residual + Dropout(x), same shapes; one operation scales and adds."""
        if not self.training or self.p == 0:
            return residual + x
        mask, scale = self._mask(x)
        return torch.add(residual, x * mask, alpha=scale)

    def _mask(self, x: Tensor) -> tuple[Tensor, float]:
        """Return a mask like x (1: keep the element, 0: drop it) and the scale 1 / (1 - p)."""
        draws = self.draw(x)
        # in place: the mask takes the memory of the levels
        return draws.levels.ge_(draws.lowest_kept).to(x.dtype), draws.scale

    def draw(self, x: Tensor) -> DropoutDraws:
        """Draw which elements of x are dropped."""
        dropped_levels = min(round(self.p * LEVELS), LEVELS - 1)
        levels = draw_levels(x, getattr(_thread_local, "generator", None))
        # int16 levels begin at -LEVELS / 2
        return DropoutDraws(
            levels, dropped_levels - LEVELS // 2, LEVELS / (LEVELS - dropped_levels)
        )
