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


def is_known_at_once(device: torch.device) -> bool:
    """Whether what is computed there is known as soon as it has been asked for."""
    return device.type == "cpu"


@dataclass(frozen=True)
class Finding:
    """What a step was judged by."""

    refused: bool
    """the step, or one before it"""
    loss: float
    """summed over the tokens of the step, in nats"""
    loss_per_token: float
    usual: float
    """what the loss per token was before the step; not a number for the first one"""
    norm: float
    """of the gradient"""

    def problem(self) -> str:
        """Why the step was refused, for people."""
        if not math.isfinite(self.loss):
            return f"the loss is {self.loss}"
        if not math.isfinite(self.norm):
            return f"the norm of the gradient is {self.norm}"
        return f"the loss is {self.loss_per_token:.2f} nats/token where {self.usual:.2f} was usual,"


class Verdict:
    """Whether a step may change the weights."""

    def __init__(self, refused: Tensor, figures: Tensor) -> None:
        self.refused = refused
        """scalar float32, on the device: 1 if it may not, else 0"""
        # PyTorch copies into pinned memory here, so that a GPU does it when it comes to it
        self._figures = figures.to("cpu", non_blocking=True)
        self._written = torch.cuda.Event(blocking=True) if figures.is_cuda else None
        if self._written:
            self._written.record()

    def read(self) -> Finding:
        """Wait until the step is computed, where it is not yet."""
        if self._written:
            self._written.synchronize()
        refused, *figures = self._figures.tolist()
        return Finding(bool(refused), *figures)


class Guard:
    """Judges each step by itself and by the steps before.

    What follows a refused step is refused as well, until the guard is told to `go_on` from an
    earlier state: nothing may be learnt from a gradient that was computed meanwhile.
    """

    def __init__(self, device: torch.device, largest_spike: float | None) -> None:
        """`largest_spike`: how far above the usual the loss per token may be, in nats."""
        self._most = math.inf if largest_spike is None else largest_spike
        self._device = device
        self.go_on(None)

    @property
    def usual(self) -> float | None:
        """The usual loss per token (nats): a running mean; None before the first step."""
        usual = self._usual.item()
        return None if math.isnan(usual) else usual

    def go_on(self, usual: float | None) -> None:
        """Forget what was refused, `usual` being what the loss is."""
        number = math.nan if usual is None else usual
        self._usual = torch.tensor(number, dtype=torch.float64, device=self._device)
        self._refused = torch.zeros((), device=self._device)

    @torch.no_grad()
    def judge(self, loss: Tensor, tokens: int, norm: Tensor) -> Verdict:
        """The next step, by its summed `loss` (nats, scalar float64) and its gradient's `norm`."""
        per_token, usual = loss / tokens, self._usual
        odd = ~(loss.isfinite() & norm.isfinite()) | (per_token > usual + self._most)
        self._refused = torch.maximum(self._refused, odd.float())
        followed = usual + _FOLLOW * (per_token - usual)
        self._usual = torch.where(usual.isnan(), per_token, followed).where(~odd, usual)
        figures = [self._refused.double(), loss, per_token, usual, norm.double()]
        return Verdict(self._refused, torch.stack(figures))
