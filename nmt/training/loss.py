"""Section 5.4: cross-entropy with label smoothing, summed over the tokens of a batch."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

# What stays in a processor's second-level cache; what fills a GPU.
ROWS_AT_ONCE = {"cpu": 64, "cuda": 2048}


@dataclass(frozen=True)
class Loss:
    """Summed over real target tokens, in nats; divided once, by the tokens of the whole step."""

    total: Tensor
    """the smoothed cross-entropy that training minimises: scalar, carries the gradient"""
    cross_entropy: Tensor
    """-log p of the right tokens, without smoothing: scalar"""


class _SmoothedCrossEntropy(torch.autograd.Function):
    """Reads each logit once and writes its gradient in its place.

    With q_y = 1 - e for the right symbol and e / (V - 1) for every other one (sum 1),

        loss = -sum_v q_v log p_v    and    d loss / d logit_v = p_v - q_v

    A softmax over V symbols costs more than a small model's layers, so there is one pass over
    it, in float32, a few rows at a time, and no second copy of the logits.
    """

    @staticmethod
    def forward(
        ctx: Any, logits: Tensor, target: Tensor, real: Tensor, smoothing: float
    ) -> tuple[Tensor, Tensor]:
        right, wrong = 1.0 - smoothing, smoothing / (logits.shape[1] - 1)
        gradient = logits.detach()  # the same memory
        rows = ROWS_AT_ONCE.get(logits.device.type, len(logits))
        p_buffer = logits.new_empty((min(rows, len(logits)), logits.shape[1]), dtype=torch.float32)
        total = p_buffer.new_zeros(())
        cross_entropy = p_buffer.new_zeros(())
        for x, y, is_real in zip(
            gradient.split(rows), target[:, None].split(rows), real.split(rows), strict=True
        ):
            p = p_buffer[: len(x)].copy_(x)
            right_logit, largest_logit, logit_sum = p.gather(1, y)[:, 0], p.amax(1), p.sum(1)
            torch.softmax(p, 1, out=p)
            log_z = largest_logit - p.amax(1).log()  # the largest p is at least 1 / V
            smoothed = log_z - right * right_logit - wrong * (logit_sum - right_logit)
            total += (smoothed * is_real).sum()
            cross_entropy += ((log_z - right_logit) * is_real).sum()
            p.sub_(wrong).scatter_add_(1, y, p.new_full(y.shape, wrong - right))
            x.copy_(p.mul_(is_real[:, None]))
        ctx.save_for_backward(gradient)
        ctx.mark_non_differentiable(cross_entropy)
        return total, cross_entropy

    @staticmethod
    def backward(ctx: Any, grad_total: Tensor, _: Tensor) -> tuple[Tensor, None, None, None]:
        (gradient,) = ctx.saved_tensors
        if grad_total.is_cuda or grad_total.item() != 1.0:
            gradient = gradient.mul_(grad_total)
        return gradient, None, None, None


def label_smoothed_cross_entropy(
    logits: Tensor, target: Tensor, padding: int, smoothing: float
) -> Loss:
    """Loss of logits (..., V) for target ids (...); positions of `padding` count nothing.

    The logits are consumed: their memory holds the gradient afterwards.
    """
    total, cross_entropy = _SmoothedCrossEntropy.apply(  # type: ignore[no-untyped-call]
        logits.flatten(0, -2), target.flatten(), (target != padding).flatten(), smoothing
    )
    return Loss(total, cross_entropy)
