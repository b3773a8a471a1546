"""The end of a sub-layer is Norm(x + Dropout(f)), and its gradients are those of float64."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nmt.kernels.dropout import FastDropout
from nmt.kernels.norm import FusedSublayer, add_and_normalize
from nmt.model.norm import RMSNorm
from nmt.recipe.config import ModelConfig
from tests.kernels.closeness import ROUNDING, assert_rounded, random_activations


@pytest.mark.parametrize("kind", [nn.LayerNorm, RMSNorm])
@pytest.mark.parametrize("p", [0.0, 0.5, 0.75])
@pytest.mark.parametrize("shape", [(1, 16), (50, 48), (3, 5, 256), (0, 32)], ids=str)
def test_it_is_the_norm_of_the_sum(
    p: float, shape: tuple[int, ...], kind: type, dtype: torch.dtype
) -> None:
    torch.manual_seed(1)
    width = shape[-1]
    norm = kind(width, 1e-3)
    learned = [*norm.parameters()]
    for weight in learned:
        nn.init.normal_(weight)
    x, f = random_activations(dtype, *shape), random_activations(dtype, *shape)
    levels = torch.randint(-(2**15), 2**15, shape, dtype=torch.int16)
    upstream = torch.randn(shape).to(dtype)

    y = add_and_normalize(x, f, levels if p else None, p, norm)
    gradients = torch.autograd.grad(y, (x, f, *learned), upstream)

    mask = (levels >= round(p * 2**16) - 2**15) / (1 - p)
    exact = [each.detach().double().requires_grad_() for each in (x, f, *learned)]
    # the sum is rounded, as if it were a tensor of its own
    total = _Rounded.apply(exact[0] + exact[1] * mask, dtype)  # type: ignore[no-untyped-call]
    function: Any = F.layer_norm if kind is nn.LayerNorm else F.rms_norm
    right = function(total, (width,), *exact[2:], eps=norm.eps)
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


class ScaleNorm(nn.Module):
    """Nguyen and Salazar, 2019: a single number is learnt."""

    def __init__(self) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.tensor(3.0))

    def forward(self, x: Tensor) -> Tensor:
        return self.gain * x / x.norm(dim=-1, keepdim=True)


class Doubled(nn.LayerNorm):
    def forward(self, input: Tensor) -> Tensor:
        return 2 * super().forward(input)


@pytest.mark.parametrize("dropout", [FastDropout(0.0), nn.AlphaDropout(0.0)], ids=str)
@pytest.mark.parametrize(
    "norm",
    [
        ScaleNorm(),
        Doubled(32),
        nn.LayerNorm(32, bias=False),
        nn.LayerNorm(32, elementwise_affine=False),
        nn.Identity(),
    ],
    ids=str,
)
def test_other_norms_are_computed_as_they_are_written(norm: nn.Module, dropout: Any) -> None:
    sublayer = FusedSublayer(ModelConfig(d_model=32, heads=2, dropout=0.0)).train()
    sublayer.norm, sublayer.dropout = norm, dropout  # type: ignore[assignment]
    x = torch.randn(5, 32)
    torch.testing.assert_close(sublayer(x, torch.sin), norm(x + x.sin()))
