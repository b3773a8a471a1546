"""A linear map x W^T + b; with AMX, a library in C computes the gradients of W and b."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from nmt.kernels.library import WIDTH_MULTIPLE, address, can_use_kernels, kernels


def linear(module: nn.Linear, x: Tensor) -> Tensor:
    """Return module(x): (..., D) -> (..., F), in training by the library in C if that is faster."""
    if can_train(module, x) and _has_tiles(x):
        y: Tensor = _Linear.apply(x, module.weight, module.bias)  # type: ignore[no-untyped-call]
        return y
    result: Tensor = module(x)
    return result


def can_train(module: nn.Linear, x: Tensor) -> bool:
    """Return whether a library in C computes with this map, which is in training, and with x."""
    return (
        type(module) is nn.Linear  # and no subclass, such as an adapter
        and module.training
        and can_use_kernels(x, module.weight, module.bias)
    )


def weight_gradient(
    gradient: Tensor, x: Tensor, total: Tensor | None = None, bias: Tensor | None = None
) -> Tensor:
    """Return gradient^T x in float32: (U, F) and (U, D) -> (F, D), added to `total` if given.

    The sum of the rows of `gradient` is added to `bias` (F,) if given. PyTorch, which computes this
    where there is no AMX, rounds both to the type of x.
    """
    widths = gradient.shape[1], x.shape[1]
    if any(width % WIDTH_MULTIPLE for width in widths) or not _has_tiles(x):
        if bias is not None:
            bias.add_(gradient.sum(0))
        product = gradient.t() @ x
        return product.float() if total is None else total.add_(product)
    result = torch.empty(widths) if total is None else total
    gradient, x = gradient.contiguous(), x.contiguous()
    addresses = map(address, (gradient, x, result, bias))
    if kernels(x).nmt_weight_gradient(len(x), *widths, total is not None, *addresses):
        raise MemoryError
    return result


def _has_tiles(x: Tensor) -> bool:
    """Return whether the library multiplies matrices like x: bfloat16, in the tiles of AMX."""
    is_usable = x.dtype == torch.bfloat16 and can_use_kernels(x)
    return is_usable and bool(kernels(x).nmt_can_use_tiles())


class _Linear(torch.autograd.Function):
    """x W^T + b: x (..., D), W (F, D) and b (F,) in float32 -> (..., F)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        matrix = weight.to(x.dtype)
        ctx.save_for_backward(x, matrix)
        # F.linear takes longer: it writes the bias into every row of y first
        y: Tensor = torch.ops.mkldnn._linear_pointwise(x, matrix, bias.to(x.dtype), "none", [], "")
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, matrix = ctx.saved_tensors
        x_needs, *others_need = ctx.needs_input_grad
        x_gradient = gradient @ matrix if x_needs else None
        if not any(others_need):
            return x_gradient, None, None
        bias_gradient = torch.zeros(len(matrix))
        rows = gradient.flatten(0, -2), x.flatten(0, -2)
        return x_gradient, weight_gradient(*rows, bias=bias_gradient), bias_gradient
