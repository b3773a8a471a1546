"""The end of a sub-layer, Norm(x + Dropout(f)) (sections 3.1 and 5.4), in one pass."""

import ctypes
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from nmt.kernels.dropout import FastDropout, draw_levels, kept_levels
from nmt.kernels.fused_attention import AutocastNorm
from nmt.kernels.library import address, can_use_kernels, kernels
from nmt.model.norm import RMSNorm
from nmt.model.sublayer import Sublayer


class FusedSublayer(Sublayer):
    """A sub-layer on a CPU: dropout, residual sum and norm are one pass in C if they can."""

    def forward(self, x: Tensor, f: Callable[[Tensor], Tensor]) -> Tensor:
        """Apply the sub-layer f, dropout, the residual sum and the norm: (U, D) -> (U, D)."""
        dropout: nn.Module = self.dropout
        if not isinstance(dropout, FastDropout):
            return super().forward(x, f)
        if self.pre:
            return dropout.add(x, f(self.norm(x)))
        result = f(x)
        if self.training and is_known(self.norm) and can_use_kernels(x, *self.norm.parameters()):
            # a random number for each element decides whether it is dropped
            levels = draw_levels(result) if dropout.p > 0 else None
            return add_and_normalize(x, result, levels, dropout.p, self.norm)
        normalized: Tensor = self.norm(dropout.add(x, result))
        return normalized


def is_known(norm: nn.Module) -> bool:
    """Whether C computes this norm; it does not know what a subclass computes."""
    return type(norm) in (nn.LayerNorm, AutocastNorm, RMSNorm) and norm.weight is not None


class _CNorm(ctypes.Structure):
    """`Norm` of norm.h."""

    _fields_ = (
        ("rows", ctypes.c_int32),
        ("width", ctypes.c_int32),
        ("lowest_kept", ctypes.c_int32),
        ("is_rms", ctypes.c_int32),
        ("scale", ctypes.c_float),
        ("epsilon", ctypes.c_float),
    )


def add_and_normalize(
    x: Tensor, f: Tensor, levels: Tensor | None, p: float, norm: nn.LayerNorm | RMSNorm
) -> Tensor:
    """Return norm(x + Dropout(f)) for x and f (..., D) of one type.

    `levels` are those of `draw_levels` for the dropout p, None if nothing is dropped.
    """
    lowest_kept, scale = kept_levels(p)
    constants = _CNorm(
        rows=x.numel() // x.shape[-1],
        width=x.shape[-1],
        lowest_kept=lowest_kept,
        scale=scale,
        epsilon=norm.eps,
        is_rms=isinstance(norm, RMSNorm),
    )
    bias = getattr(norm, "bias", None)
    bias = torch.zeros_like(norm.weight) if bias is None else bias
    y: Tensor = _AddAndNormalize.apply(x, f, levels, norm.weight, bias, constants)  # type: ignore[no-untyped-call]
    return y


class _AddAndNormalize(torch.autograd.Function):
    """Norm(x + Dropout(f)) with gain (D,) and bias (D,) in float32, and its gradients."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        f: Tensor,
        levels: Tensor | None,
        gain: Tensor,
        bias: Tensor,
        constants: _CNorm,
    ) -> Tensor:
        x, f = x.contiguous(), f.contiguous()
        total, y = torch.empty_like(x), torch.empty_like(x)
        ctx.save_for_backward(total, levels, gain)
        ctx.constants = constants
        inputs = x, f, levels, gain, bias
        kernels(x).nmt_add_norm(ctypes.byref(constants), *map(address, (*inputs, total, y)))
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        total, levels, gain = ctx.saved_tensors
        x_gradient, f_gradient = torch.empty_like(total), torch.empty_like(total)
        gain_gradient, bias_gradient = torch.zeros_like(gain), torch.zeros_like(gain)
        inputs = total, levels, gain, gradient.contiguous()
        results = x_gradient, f_gradient, gain_gradient, bias_gradient
        addresses = map(address, (*inputs, *results))
        kernels(total).nmt_add_norm_gradients(ctypes.byref(ctx.constants), *addresses)
        return x_gradient, f_gradient, None, gain_gradient, bias_gradient, None
