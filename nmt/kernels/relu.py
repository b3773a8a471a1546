"""max(0, x W + b), the inner half of Eq. 2: all but the matrix products in one pass."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from nmt.kernels.library import address, kernels
from nmt.kernels.linear import can_train, linear, weight_gradient
from nmt.model.feed_forward import FeedForward


class FusedFeedForward(FeedForward):
    """The feed-forward network in training on a CPU."""

    def forward(self, x: Tensor) -> Tensor:
        """Transform each position on its own: (U, D) -> (U, D)."""
        if self.activation is F.relu:
            hidden = linear_relu(self.inner, x)  # (U, F)
        else:
            hidden = self.activation(self.inner(x))
        if self.gate is not None:
            hidden = hidden * linear(self.gate, x)
        return linear(self.outer, self.dropout(hidden))


def linear_relu(module: nn.Linear, x: Tensor) -> Tensor:
    """Return max(0, module(x)): (..., D) -> (..., F), in training by the library in C if it can."""
    if can_train(module, x):
        y: Tensor = _LinearRelu.apply(x, module.weight, module.bias)  # type: ignore[no-untyped-call]
        return y
    return torch.relu(module(x))


class _LinearRelu(torch.autograd.Function):
    """max(0, x W^T + b): x (..., D), W (F, D) and b (F,) in float32 -> (..., F)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        matrix = weight.to(x.dtype)
        y = x.flatten(0, -2) @ matrix.t()  # (U, F)
        kernels(y).nmt_add_bias_relu(*y.shape, address(bias), address(y))
        ctx.save_for_backward(x, matrix, y)
        return y.view(*x.shape[:-1], y.shape[1])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, matrix, y = ctx.saved_tensors
        gradient = gradient.contiguous()
        sum_gradient, bias_gradient = torch.empty_like(y), torch.zeros(y.shape[1])
        addresses = map(address, (y, gradient, sum_gradient, bias_gradient))
        kernels(y).nmt_bias_relu_gradients(*y.shape, *addresses)
        x_needs, weight_needs, bias_needs = ctx.needs_input_grad
        return (
            (sum_gradient @ matrix).view_as(x) if x_needs else None,
            weight_gradient(sum_gradient, x.flatten(0, -2)) if weight_needs else None,
            bias_gradient if bias_needs else None,
        )
