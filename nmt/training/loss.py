"""Section 5.4: cross-entropy with label smoothing, summed over the tokens of a batch."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

ROWS_AT_ONCE = {"cpu": 64, "cuda": 2048}
"""what stays in a processor's second-level cache; what fills a GPU"""
ROWS_PROJECTED = {"cpu": 1024, "cuda": 4096}
"""rows of logits that are in memory at once: enough for a product to be fast"""


@dataclass(frozen=True)
class Loss:
    """Summed over real target tokens, in nats; divided once, by the tokens of the whole step."""

    total: Tensor
    """the smoothed cross-entropy that training minimises: scalar, carries the gradient"""
    cross_entropy: Tensor
    """-log p of the right tokens, without smoothing: scalar"""


def _into_gradient(
    logits: Tensor, target: Tensor, real: Tensor, smoothing: float
) -> tuple[Tensor, Tensor]:
    """Read each logit (N, V) once, write its gradient in its place; smoothed and plain loss.

    With q_y = 1 - e for the right symbol and e / (V - 1) for every other one (sum 1),

        loss = -sum_v q_v log p_v    and    d loss / d logit_v = p_v - q_v

    A softmax over V symbols costs more than a small model's layers, so there is one pass over
    it, in float32, a few rows at a time, and no second copy of the logits.
    """
    right, wrong = 1.0 - smoothing, smoothing / (logits.shape[1] - 1)
    rows = ROWS_AT_ONCE.get(logits.device.type, len(logits))
    p_buffer = logits.new_empty((min(rows, len(logits)), logits.shape[1]), dtype=torch.float32)
    total = p_buffer.new_zeros(())
    cross_entropy = p_buffer.new_zeros(())
    for x, y, is_real in zip(
        logits.split(rows), target[:, None].split(rows), real.split(rows), strict=True
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
    return total, cross_entropy


class _OfLogits(torch.autograd.Function):
    """The loss of logits (N, V), whose memory takes their gradient."""

    @staticmethod
    def forward(
        ctx: Any, logits: Tensor, target: Tensor, real: Tensor, smoothing: float
    ) -> tuple[Tensor, Tensor]:
        gradient = logits.detach()  # the same memory
        total, cross_entropy = _into_gradient(gradient, target, real, smoothing)
        ctx.save_for_backward(gradient)
        ctx.mark_non_differentiable(cross_entropy)
        return total, cross_entropy

    @staticmethod
    def backward(ctx: Any, grad_total: Tensor, _: Tensor) -> tuple[Tensor, None, None, None]:
        (gradient,) = ctx.saved_tensors
        return _scaled(gradient, grad_total), None, None, None


class _OfOutputs(torch.autograd.Function):
    """The loss of the logits x E^T, x (N, D) and E (V, D), and at once what it says about both.

    The logits of a few rows become their gradient G, and that G E and G^T x, before there are the
    next: the largest tensor of a step, written and read four times, never exists.
    """

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, embedding: Tensor, target: Tensor, real: Tensor, smoothing: float
    ) -> tuple[Tensor, Tensor]:
        matrix = embedding.to(x.dtype)
        rows = ROWS_PROJECTED.get(x.device.type, len(x))
        buffer = x.new_empty(min(rows, len(x)), len(matrix))
        x_gradient, matrix_gradient = torch.empty_like(x), torch.zeros_like(embedding)
        parts = zip(*(t.split(rows) for t in (x, x_gradient, target, real)), strict=True)
        totals, cross_entropies = [], []
        for some, its_gradient, right, is_real in parts:
            logits = torch.mm(some, matrix.t(), out=buffer[: len(some)])
            total, cross_entropy = _into_gradient(logits, right, is_real, smoothing)
            totals.append(total)
            cross_entropies.append(cross_entropy)
            torch.mm(logits, matrix, out=its_gradient)
            matrix_gradient += logits.t() @ some
        total, cross_entropy = torch.stack(totals).sum(), torch.stack(cross_entropies).sum()
        ctx.save_for_backward(x_gradient, matrix_gradient)
        ctx.mark_non_differentiable(cross_entropy)
        return total, cross_entropy

    @staticmethod
    def backward(
        ctx: Any, grad_total: Tensor, _: Tensor
    ) -> tuple[Tensor, Tensor, None, None, None]:
        x_gradient, matrix_gradient = (_scaled(t, grad_total) for t in ctx.saved_tensors)
        return x_gradient, matrix_gradient, None, None, None


def _scaled(gradient: Tensor, factor: Tensor) -> Tensor:
    """In place; a GPU is not asked whether there is anything to do."""
    if factor.is_cuda or factor.item() != 1.0:
        gradient = gradient.mul_(factor)
    return gradient


def label_smoothed_cross_entropy(
    logits: Tensor, target: Tensor, padding: int, smoothing: float
) -> Loss:
    """Loss of logits (..., V) for target ids (...); positions of `padding` count nothing.

    The logits are consumed: their memory holds the gradient afterwards.
    """
    total, cross_entropy = _OfLogits.apply(  # type: ignore[no-untyped-call]
        logits.flatten(0, -2), target.flatten(), (target != padding).flatten(), smoothing
    )
    return Loss(total, cross_entropy)


def projected_cross_entropy(
    x: Tensor, embedding: Tensor, target: Tensor, padding: int, smoothing: float
) -> Loss:
    """`label_smoothed_cross_entropy` of the logits x E^T: x (..., D), E (V, D), ids (...).

    The products are in the precision of x. There is a gradient to be had once.
    """
    total, cross_entropy = _OfOutputs.apply(  # type: ignore[no-untyped-call]
        x.flatten(0, -2), embedding, target.flatten(), (target != padding).flatten(), smoothing
    )
    return Loss(total, cross_entropy)
