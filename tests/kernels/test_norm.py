"""The end of a sub-layer is LayerNorm(x + Dropout(f)), and its gradients are those of float64."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nmt.kernels.norm import add_and_normalize
from tests.kernels.closeness import ROUNDING, assert_rounded, random_activations


@pytest.mark.parametrize("p", [0.0, 0.5, 0.75])
@pytest.mark.parametrize("shape", [(1, 16), (50, 48), (3, 5, 256), (0, 32)], ids=str)
def test_it_is_the_norm_of_the_sum(p: float, shape: tuple[int, ...], dtype: torch.dtype) -> None:
    torch.manual_seed(1)
    width = shape[-1]
    norm = nn.LayerNorm(width, eps=1e-3)
    nn.init.normal_(norm.weight)
    nn.init.normal_(norm.bias)
    x, f = random_activations(dtype, *shape), random_activations(dtype, *shape)
    levels = torch.randint(-(2**15), 2**15, shape, dtype=torch.int16)
    upstream = torch.randn(shape).to(dtype)

    y = add_and_normalize(x, f, levels if p else None, p, norm)
    gradients = torch.autograd.grad(y, (x, f, norm.weight, norm.bias), upstream)

    mask = (levels >= round(p * 2**16) - 2**15) / (1 - p)
    exact = [each.detach().double().requires_grad_() for each in (x, f, norm.weight, norm.bias)]
    # the sum is rounded, as if it were a tensor of its own
    total = _Rounded.apply(exact[0] + exact[1] * mask, dtype)  # type: ignore[no-untyped-call]
    right = F.layer_norm(total, (width,), exact[2], exact[3], norm.eps)
    expected = torch.autograd.grad(right, exact, upstream.double())
    assert_rounded(y, right)
    for mine, other in zip(gradients[:2], expected[:2], strict=True):
        assert_rounded(mine, other)
    for mine, other in zip(gradients[2:], expected[2:], strict=True):
        torch.testing.assert_close(mine.double(), other, rtol=1e-4, atol=1e-4)


class _Rounded(torch.autograd.Function):
    @staticmethod
    def forward(ctx: object, x: Tensor, dtype: torch.dtype) -> Tensor:
        return x.float().to(dtype).double()

    @staticmethod
    def backward(ctx: object, gradient: Tensor) -> tuple[Tensor, None]:
        return gradient, None


def test_a_row_of_equal_numbers_has_no_infinite_norm(dtype: torch.dtype) -> None:
    x = torch.ones(2, 32, dtype=dtype)
    y = add_and_normalize(x, x, None, 0.0, nn.LayerNorm(32))
    assert y.abs().max() < ROUNDING[dtype]
