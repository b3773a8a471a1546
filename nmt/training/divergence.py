"""Which steps may change the weights: those whose loss and gradient are numbers, and usual ones.

It is decided on the device that computed them. A GPU is not waited for: the update that follows
reads the decision there, and this program reads it when the next step is under way.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

_FOLLOW = 0.02
"""the weight of a step in what loss is usual"""


def is_synchronous(device: torch.device) -> bool:
    """Whether what is computed there is known as soon as it has been asked for."""
    return device.type == "cpu"


@dataclass(frozen=True)
class CheckResult:
    """What a step was judged by."""

    rejected: bool
    """the step, or one before it"""
    loss: float
    """summed over the tokens of the step, in nats"""
    loss_per_token: float
    running_loss: float
    """what the loss per token was before the step; not a number for the first one"""
    norm: float
    """of the gradient"""

    def problem(self) -> str:
        """Why the step was refused, for people."""
        if not math.isfinite(self.loss):
            return f"the loss is {self.loss}"
        if not math.isfinite(self.norm):
            return f"the norm of the gradient is {self.norm}"
        return (
            f"the loss is {self.loss_per_token:.2f} nats/token "
            f"(running mean: {self.running_loss:.2f})"
        )


class PendingCheck:
    """Whether a step may change the weights."""

    def __init__(self, rejected: Tensor, figures: Tensor) -> None:
        self.rejected = rejected
        """scalar float32, on the device: 1 if it may not, else 0"""
        # PyTorch copies into pinned memory here, so that a GPU does it when it comes to it
        self._figures = figures.to("cpu", non_blocking=True)
        self._written = torch.cuda.Event(blocking=True) if figures.is_cuda else None
        if self._written:
            self._written.record()

    def read(self) -> CheckResult:
        """Wait until the step is computed, where it is not yet."""
        if self._written:
            self._written.synchronize()
        rejected, *figures = self._figures.tolist()
        return CheckResult(bool(rejected), *figures)


class DivergenceDetector:
    """Judges each step by itself and by the steps before.

    What follows a refused step is refused as well, until the guard is told to `reset` from an
    earlier state: nothing may be learnt from a gradient that was computed meanwhile.
    """

    def __init__(self, device: torch.device, largest_spike: float | None) -> None:
        """`largest_spike`: how far above the usual the loss per token may be, in nats."""
        self._most = math.inf if largest_spike is None else largest_spike
        self._device = device
        self.reset(None)

    @property
    def running_loss(self) -> float | None:
        """The usual loss per token (nats): a running mean; None before the first step."""
        running_loss = self._running_loss.item()
        return None if math.isnan(running_loss) else running_loss

    def reset(self, running_loss: float | None) -> None:
        """Forget what was refused, `usual` being what the loss is."""
        number = math.nan if running_loss is None else running_loss
        self._running_loss = torch.tensor(number, dtype=torch.float64, device=self._device)
        self._rejected = torch.zeros((), device=self._device)

    @torch.no_grad()
    def check(self, loss: Tensor, tokens: int, norm: Tensor) -> PendingCheck:
        """The next step, by its summed `loss` (nats, scalar float64) and its gradient's `norm`."""
        per_token, running_loss = loss / tokens, self._running_loss
        is_divergent = ~(loss.isfinite() & norm.isfinite()) | (
            per_token > running_loss + self._most
        )
        self._rejected = torch.maximum(self._rejected, is_divergent.float())
        followed = running_loss + _FOLLOW * (per_token - running_loss)
        self._running_loss = torch.where(running_loss.isnan(), per_token, followed).where(
            ~is_divergent, running_loss
        )
        figures = [self._rejected.double(), loss, per_token, running_loss, norm.double()]
        return PendingCheck(self._rejected, torch.stack(figures))
