"""The softmax of the loss (section 5.4) and its gradient, in one pass over the logits."""

import ctypes

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
