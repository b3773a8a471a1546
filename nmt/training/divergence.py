"""Detects divergence: a loss that is NaN or infinite, that jumped, or that no guess would have.

The device that computes a step also checks it, and the update of the weights reads the result on
the device. So Python need not wait for a GPU: it reads the result after it has launched the next
step.
"""

import math

import torch
from torch import Tensor

from nmt.machine.device import widest_float

_SMOOTHING = 0.02
"""weight of a step in the running mean of the loss"""
_FIRST_STEPS = 50


def is_synchronous(device: torch.device) -> bool:
    """Return whether Python reads each check of a loss and gradient before it updates the weights.

    This costs nothing on a CPU. An accelerator would be idle until Python has read the result.
    """
    return device.type == "cpu"


def describe_useless_model(
    loss: float, vocabulary: int, step: int, warmup_steps: int
) -> str | None:
    """Return a sentence if a uniform guess would have a lower loss than the model, else None.

    `loss` is that of a validation after `step`, in nats per token. A guess that gives each of
    `vocabulary` tokens the same probability has the loss ln(vocabulary). Any model may be worse
    until its warm-up has ended, and in its first 50 steps.
    """
    uniform = math.log(vocabulary)
    if loss <= uniform or step <= max(warmup_steps, _FIRST_STEPS):
        return None
    return (
        f"the validation loss of {loss:,.2f} nats/token is above {uniform:.2f}, that of a uniform "
        f"guess among {vocabulary:,} tokens: the model has diverged, or it has not learnt"
    )


class PendingCheck:
    """The check of one step, which the device may still be computing."""

    def __init__(self, rejected: Tensor, figures: Tensor) -> None:
        """`figures` (5,): rejected, summed loss, loss per token, running mean, gradient norm."""
        self.rejected = rejected
        """scalar float32 on the device: 1 if the weights must not change, else 0"""
        on_accelerator = not figures.is_cpu
        # the accelerator copies them when the step is computed, and Python does not wait for it
        self._figures = figures.to("cpu", non_blocking=on_accelerator)
        self._copied = torch.Event(figures.device, blocking=True) if on_accelerator else None
        """happens when the copy is complete; None on a CPU, where it is complete at once"""
        if self._copied:
            self._copied.record()

    def read(self) -> tuple[float, str | None]:
        """Wait until the step is computed; return its summed loss in nats, and an error message.

        The message says what is wrong; it is None unless this step or an earlier one has diverged.
        """
        if self._copied:
            self._copied.synchronize()
        rejected, loss, per_token, running_mean, norm = self._figures.tolist()
        if not rejected:
            return loss, None
        if not math.isfinite(loss):
            return loss, f"the loss is {loss}"
        if not math.isfinite(norm):
            return loss, f"the norm of the gradient is {norm}"
        return loss, f"the loss is {per_token:.2f} nats/token (running mean: {running_mean:.2f})"


class DivergenceDetector:
    """Checks every step, and updates a running mean of the loss to compare the next step with.

    After a divergent step, all further steps are rejected until `reset` is called: a GPU may
    compute them before Python knows of the divergence.
    """

    def __init__(self, device: torch.device, largest_spike: float | None) -> None:
        """`largest_spike`: how far the loss may exceed its mean, in nats per token; None: any."""
        self._largest_spike = math.inf if largest_spike is None else largest_spike
        self._device = device
        self.reset(None)

    @property
    def running_loss(self) -> float | None:
        """The running mean of the loss per token in nats; None before the first step."""
        loss = self._running_loss.item()
        return None if math.isnan(loss) else loss

    def reset(self, running_loss: float | None) -> None:
        """Accept steps again, compared with this mean (nats per token); None: begin a new mean."""
        mean = math.nan if running_loss is None else running_loss
        dtype = widest_float(self._device)
        self._running_loss = torch.full((), mean, dtype=dtype, device=self._device)
        self._rejected = torch.zeros((), device=self._device)

    @torch.no_grad()
    def check(self, loss: Tensor, tokens: int, norm: Tensor) -> PendingCheck:
        """Check a step; update the running mean unless it diverged. The result stays on the device.

        `loss` (scalar float64) is summed over `tokens`, in nats; `norm` (scalar) is that of the
        gradient. A step is divergent if one of them is not finite, or the loss per token exceeds
        its running mean by more than `largest_spike`.
        """
        per_token, mean = loss / tokens, self._running_loss
        is_finite = loss.isfinite() & norm.isfinite()
        # before the first step the mean is NaN, and no loss exceeds it
        is_divergent = ~is_finite | (per_token > mean + self._largest_spike)
        self._rejected = torch.maximum(self._rejected, is_divergent.float())  # stays 1 until reset
        smoothed = mean + _SMOOTHING * (per_token - mean)
        new_mean = torch.where(mean.isnan(), per_token, smoothed)  # the first step begins the mean
        self._running_loss = torch.where(is_divergent, mean, new_mean)
        figures = [self._rejected.to(loss.dtype), loss, per_token, mean, norm.to(loss.dtype)]
        return PendingCheck(self._rejected, torch.stack(figures))
