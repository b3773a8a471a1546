"""Dropout (section 5.4) on a CPU, whose masks take a fraction of the time that PyTorch needs."""

import contextlib
import ctypes
import threading
from collections.abc import Iterator

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


def kept_levels(p: float) -> tuple[int, float]:
    """Return which elements are kept with dropout p: those of this level of `draw_levels` or more.

    Also returns their scale, 1 / (1 - p).
    """
    dropped = min(round(p * LEVELS), LEVELS - 1)
    return dropped - LEVELS // 2, LEVELS / (LEVELS - dropped)


def draw_levels(x: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """Return a random int16 number for each element of x, which is on a CPU.

    The library in C for the type of x, if there is one, draws them from a seed that `generator`
    draws: PyTorch takes ten times as long. By default that of `masks_from`, or the global one.
    """
    generator = generator or getattr(_thread_local, "generator", None)
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
        lowest_kept, scale = kept_levels(self.p)
        # in place: the mask takes the memory of the levels
        return draw_levels(x).ge_(lowest_kept).to(x.dtype), scale
