"""The end of a sub-layer, LayerNorm(x + Dropout(f)) (sections 3.1 and 5.4), in one pass."""

import ctypes
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from nmt.kernels.library import address, kernels
from nmt.kernels.random import DropoutDraws


class _CNorm(ctypes.Structure):
    """`Norm` of norm.h."""

    _fields_ = (
        ("rows", ctypes.c_int32),
        ("width", ctypes.c_int32),
        ("draws", ctypes.c_void_p),
        ("lowest_kept", ctypes.c_int32),
        ("scale", ctypes.c_float),
        ("epsilon", ctypes.c_float),
        ("gain", ctypes.c_void_p),
        ("bias", ctypes.c_void_p),
    )


def add_and_normalize(
    x: Tensor, f: Tensor, draws: DropoutDraws | None, norm: nn.LayerNorm
) -> Tensor:
    """Return norm(x + Dropout(f)) for x and f (..., D) in bfloat16; without draws nothing drops."""
    y: Tensor = _AddAndNormalize.apply(x, f, draws, norm.weight, norm.bias, norm.eps)  # type: ignore[no-untyped-call]
    return y


class _AddAndNormalize(torch.autograd.Function):
    """LayerNorm(x + Dropout(f)) with gain (D,) and bias (D,) in float32, and its gradients."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        f: Tensor,
        draws: DropoutDraws | None,
        gain: Tensor,
        bias: Tensor,
        epsilon: float,
    ) -> Tensor:
        x, f = x.contiguous(), f.contiguous()
        total, y = torch.empty_like(x), torch.empty_like(x)
        ctx.save_for_backward(total, gain, bias)
        ctx.draws = draws  # alive, because the structure holds their address only
        ctx.norm = _CNorm(
            rows=x.numel() // x.shape[-1],
            width=x.shape[-1],
            draws=draws.levels.data_ptr() if draws else None,
            lowest_kept=draws.lowest_kept if draws else 0,
            scale=draws.scale if draws else 1.0,
            epsilon=epsilon,
            gain=gain.data_ptr(),
            bias=bias.data_ptr(),
        )
        kernels().nmt_add_norm(ctypes.byref(ctx.norm), *map(address, (x, f, total, y)))
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        total, gain, bias = ctx.saved_tensors
        gradient = gradient.contiguous()
        x_gradient, f_gradient = torch.empty_like(total), torch.empty_like(total)
        gain_gradient, bias_gradient = torch.zeros_like(gain), torch.zeros_like(bias)
        results = x_gradient, f_gradient, gain_gradient, bias_gradient
        addresses = map(address, (total, gradient, *results))
        kernels().nmt_add_norm_gradients(ctypes.byref(ctx.norm), *addresses)
        return x_gradient, f_gradient, None, gain_gradient, bias_gradient, None
