"""Dropout (section 5.4); a CPU draws these masks in a fraction of the time that PyTorch needs."""

import contextlib
import threading
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from nmt.kernels.random import DropoutDraws, draw_levels

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


class Dropout(nn.Module):
    """x * mask / (1 - p), each element dropped with probability p while training.

    On a CPU, random numbers cost more than the arithmetic, so four 16-bit numbers are cut out of
    each 64-bit draw. There p is rounded to a multiple of 2^-16, and the scale fits the rounded p.
    """

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        """Apply dropout to a tensor of any shape; outside training, return it unchanged."""
        if not self.training or self.p == 0:
            return x
        if not x.is_cpu:
            return torch.dropout(x, self.p, train=True)
        mask, scale = self._mask(x)
        return x * mask * scale

    def add(self, residual: Tensor, x: Tensor) -> Tensor:
        """Return residual + Dropout(x), same shapes; on a CPU one operation scales and adds."""
        if not self.training or self.p == 0 or not x.is_cpu:
            return residual + self(x)
        mask, scale = self._mask(x)
        return torch.add(residual, x * mask, alpha=scale)

    def _mask(self, x: Tensor) -> tuple[Tensor, float]:
        """Return a mask like x (1: keep the element, 0: drop it) and the scale 1 / (1 - p)."""
        draws = self.draw(x)
        # in place: the mask takes the memory of the levels
        return draws.levels.ge_(draws.lowest_kept).to(x.dtype), draws.scale

    def draw(self, x: Tensor) -> DropoutDraws:
        """Draw which elements of x, on a CPU, are dropped."""
        dropped_levels = min(round(self.p * LEVELS), LEVELS - 1)
        levels = draw_levels(x, getattr(_thread_local, "generator", None))
        # int16 levels begin at -LEVELS / 2
        return DropoutDraws(
            levels, dropped_levels - LEVELS // 2, LEVELS / (LEVELS - dropped_levels)
        )
