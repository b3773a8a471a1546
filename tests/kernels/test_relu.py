"""max(0, x W + b) and its gradients are those of float64."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nmt.kernels import relu as module_under_test
from nmt.kernels.relu import linear_relu
from tests.kernels.closeness import ROUNDING, random_activations, whole_numbers


class Doubled(nn.Linear):
    def forward(self, input: Tensor) -> Tensor:
        return 2 * super().forward(input)


@pytest.mark.parametrize("shape", [(1, 16), (70, 48), (2, 3, 32), (0, 16)], ids=str)
def test_it_is_the_equation(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    torch.manual_seed(1)
    module, x = nn.Linear(shape[-1], 80), whole_numbers(*shape).to(dtype).requires_grad_()
    module.weight.data = whole_numbers(80, shape[-1])
    module.bias.data = whole_numbers(80) + 0.5  # so that no result is 0
    leaves = x, module.weight, module.bias
    y = linear_relu(module, x)
    upstream = whole_numbers(*y.shape).to(dtype)
    gradients = torch.autograd.grad(y, leaves, upstream)
    exact = [each.detach().double().requires_grad_() for each in leaves]
    right = F.linear(*exact).relu()
    expected = torch.autograd.grad(right, exact, upstream.double())
    for mine, other in zip((y, *gradients), (right, *expected), strict=True):
        # sums of whole numbers are exact, until the result is rounded
        torch.testing.assert_close(mine.double(), other, rtol=ROUNDING[dtype], atol=0)
    assert [g.dtype for g in gradients] == [each.dtype for each in leaves]


def test_other_modules_compute_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    """An adapter, a module outside of training, and rows of another precision or width."""
    monkeypatch.setattr(module_under_test, "_LinearRelu", None)
    x = torch.randn(3, 32)
    for module, rows in (
        (Doubled(32, 16), x.bfloat16()),
        (nn.Linear(32, 16).eval(), x.bfloat16()),
        (nn.Linear(32, 16).double(), x.double()),
        (nn.Linear(32, 20), x.bfloat16()),
        (nn.Linear(32, 16).bfloat16(), x.bfloat16()),
    ):
        with torch.autocast("cpu", torch.bfloat16, enabled=rows.dtype == torch.bfloat16):
            assert torch.equal(linear_relu(module, rows), module(rows).relu())


def test_frozen_weights_get_no_gradient(dtype: torch.dtype) -> None:
    module, x = nn.Linear(16, 16).requires_grad_(False), random_activations(dtype, 4, 16)
    linear_relu(module, x).sum().backward()
    assert x.grad is not None and module.weight.grad is None and module.bias.grad is None


def test_what_is_no_number_stays_none(dtype: torch.dtype) -> None:
    x = torch.full((1, 16), torch.nan, dtype=dtype)
    assert linear_relu(nn.Linear(16, 16), x).isnan().all()
