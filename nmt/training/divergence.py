"""Detects divergence: a loss or gradient that is NaN or infinite, or a loss that jumped.

The device that computes a step also checks it, and the update of the weights reads the result on
the device. So Python need not wait for a GPU: it reads the result after it has launched the next
step.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from nmt.device import widest_float

_SMOOTHING = 0.02
"""weight of a step in the running mean of the loss"""


def is_synchronous(device: torch.device) -> bool:
    """Return whether Python reads the result of a step before it takes the next one.

    This costs nothing on a CPU. On a CUDA GPU it would cost the time that the GPU waits.
    """
    return device.type != "cuda"


@dataclass(frozen=True)
class CheckResult:
    """The figures of a step and whether its update was rejected."""

    rejected: bool
    """whether this step or an earlier one has diverged"""
    loss: float
    """summed over the tokens of the step, in nats"""
    loss_per_token: float
    running_loss: float
    """running mean of the loss per token before the step; NaN for the first one"""
    norm: float
    """L2 norm of the gradient"""

    def problem(self) -> str:
        """Return why the step was rejected, as text."""
        if not math.isfinite(self.loss):
            return f"the loss is {self.loss}"
        if not math.isfinite(self.norm):
            return f"the norm of the gradient is {self.norm}"
        return (
            f"the loss is {self.loss_per_token:.2f} nats/token "
            f"(running mean: {self.running_loss:.2f})"
        )


class PendingCheck:
    """The check of a step that the device may still be computing."""

    def __init__(self, rejected: Tensor, figures: Tensor) -> None:
        self.rejected = rejected
        """scalar float32 on the device: 1 if the weights must not change, else 0"""
        # copied into pinned memory by the GPU itself, when the step is computed
        self._figures = figures.to("cpu", non_blocking=figures.is_cuda)
        self._copied = torch.cuda.Event(blocking=True) if figures.is_cuda else None
        if self._copied:
            self._copied.record()

    def read(self) -> CheckResult:
        """Wait until the step is computed and return its figures."""
        if self._copied:
            self._copied.synchronize()
        rejected, *figures = self._figures.tolist()
        return CheckResult(bool(rejected), *figures)


class DivergenceDetector:
    """Checks every step, and keeps a running mean of the loss to compare the next one with.

    After a divergent step all further steps are rejected until `reset` is called, because their
    gradients were computed before Python knew of the divergence.
    """

    def __init__(self, device: torch.device, largest_spike: float | None) -> None:
        """`largest_spike` is how far the loss may exceed its running mean, in nats per token.

        Only NaN or infinity counts as divergence if it is None.
        """
        self._largest_spike = math.inf if largest_spike is None else largest_spike
        self._device = device
        self.reset(None)

    @property
    def running_loss(self) -> float | None:
        """The running mean of the loss per token in nats; None before the first step."""
        loss = self._running_loss.item()
        return None if math.isnan(loss) else loss

    def reset(self, running_loss: float | None) -> None:
        """Accept steps again, and compare them with this running mean (nats per token)."""
        number = math.nan if running_loss is None else running_loss
        kind = widest_float(self._device)
        self._running_loss = torch.tensor(number, dtype=kind, device=self._device)
        self._rejected = torch.zeros((), device=self._device)

    @torch.no_grad()
    def check(self, loss: Tensor, tokens: int, norm: Tensor) -> PendingCheck:
        """Check the next step by its summed loss (nats, scalar float64) and its gradient norm."""
        per_token, mean = loss / tokens, self._running_loss
        is_finite = loss.isfinite() & norm.isfinite()
        is_divergent = ~is_finite | (per_token > mean + self._largest_spike)
        self._rejected = torch.maximum(self._rejected, is_divergent.float())
        updated = torch.where(mean.isnan(), per_token, mean + _SMOOTHING * (per_token - mean))
        self._running_loss = updated.where(~is_divergent, mean)
        rejected, gradient_norm = self._rejected.to(loss.dtype), norm.to(loss.dtype)
        figures = [rejected, loss, per_token, mean, gradient_norm]
        return PendingCheck(self._rejected, torch.stack(figures))
