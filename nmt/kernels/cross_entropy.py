"""The softmax of the loss (section 5.4) and its gradient, in one pass over the logits.

A CPU computes it in C, a GPU by PyTorch's compiler.
"""

import ctypes
import functools
from collections.abc import Callable

import torch
from torch import Tensor

from nmt.kernels.library import WIDTH_MULTIPLE, address, kernels


class _CTargets(ctypes.Structure):
    """`Targets` of cross_entropy.h."""

    _fields_ = (
        ("rows", ctypes.c_int32),
        ("entries", ctypes.c_int32),
        ("q_target", ctypes.c_float),
        ("q_other", ctypes.c_float),
        ("targets", ctypes.c_void_p),
        ("is_real", ctypes.c_void_p),
    )


def replace_logits_by_gradient(
    logits: Tensor, target: Tensor, real: Tensor, q_target: float, q_other: float
) -> tuple[Tensor, Tensor]:
    """Overwrite logits (U, V), contiguous; return the loss, smoothed and plain.

    `target` (U,) holds ids, `real` (U,) is the mask of positions that count. The smoothed
    distribution is `q_target` for the target and `q_other` for every other entry.
    """
    row = torch.empty(logits.shape[1] + WIDTH_MULTIPLE)  # memory for a row of logits in float32
    losses = torch.zeros(2, dtype=torch.float64)
    target, real = target.contiguous(), real.contiguous()
    targets = _CTargets(*logits.shape, q_target, q_other, target.data_ptr(), real.data_ptr())
    kernels(logits).nmt_cross_entropy(ctypes.byref(targets), *map(address, (logits, row, losses)))
    total, cross_entropy = losses.float()
    return total, cross_entropy


def softmax_and_gradient(
    logits: Tensor, target: Tensor, real: Tensor, smoothing: float
) -> tuple[Tensor, Tensor]:
    """Do the same as `loss_and_gradient` of `nmt.training.loss`, written for a compiler.

    Compiled, its operations become two kernels, which write no float32 tensor of (U, V) to memory.
    """
    entries = logits.shape[1]
    q_target, q_other = 1.0 - smoothing, smoothing / (entries - 1)
    scores = logits.float()
    log_z = torch.logsumexp(scores, 1)
    target_logit = scores.gather(1, target[:, None])[:, 0]
    smoothed = log_z - q_target * target_logit - q_other * (scores.sum(1) - target_logit)
    is_target = torch.arange(entries, device=logits.device) == target[:, None]
    q = torch.where(is_target, q_target, q_other)
    logits.copy_((torch.exp(scores - log_z[:, None]) - q) * real[:, None])
    return (smoothed * real).sum(), ((log_z - target_logit) * real).sum()


@functools.cache
def compiled_softmax() -> Callable[..., tuple[Tensor, Tensor]]:
    """Return `softmax_and_gradient`, to be compiled at its first call.

    PyTorch's compiler takes a second to import, so this is not done before it is needed.
    """
    return torch.compile(softmax_and_gradient)
