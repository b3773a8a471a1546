"""x W^T + b and its gradients are those of float64, in the tiles of AMX and without them."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from nmt.kernels import linear as module_under_test
from nmt.kernels.library import kernels
from nmt.kernels.linear import linear, weight_gradient
from nmt.machine.processor import processor_features
from tests.kernels.closeness import ROUNDING, random_activations, whole_numbers


def has_tiles() -> bool:
    return bool(kernels(torch.empty(1, dtype=torch.bfloat16)).nmt_can_use_tiles())


@pytest.mark.parametrize("shape", [(1, 16), (70, 48), (2, 3, 32), (0, 16)], ids=str)
def test_it_is_the_equation(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    torch.manual_seed(1)
    module, x = nn.Linear(shape[-1], 80), whole_numbers(*shape).to(dtype).requires_grad_()
    module.weight.data = whole_numbers(80, shape[-1])
    module.bias.data = whole_numbers(80)
    leaves = x, module.weight, module.bias
    with torch.autocast("cpu", torch.bfloat16, enabled=dtype == torch.bfloat16):
        y = linear(module, x)
    upstream = whole_numbers(*y.shape).to(dtype)
    gradients = torch.autograd.grad(y, leaves, upstream)
    exact = [each.detach().double().requires_grad_() for each in leaves]
    right = F.linear(*exact)
    expected = torch.autograd.grad(right, exact, upstream.double())
    for mine, other in zip((y, *gradients), (right, *expected), strict=True):
        torch.testing.assert_close(mine.double(), other, rtol=ROUNDING[dtype], atol=0)
    assert [g.dtype for g in gradients] == [each.dtype for each in leaves]


@pytest.mark.parametrize("tokens", [0, 1, 31, 32, 33, 2047])
@pytest.mark.parametrize("widths", [(16, 48), (48, 16), (1072, 32), (32, 1072), (1040, 1040)])
@pytest.mark.parametrize("is_total", [False, True])
def test_gradients_of_weights_are_exact(
    tokens: int, widths: tuple[int, int], is_total: bool, dtype: torch.dtype
) -> None:
    """In tiles they are those of whole numbers to the last bit; PyTorch rounds to the type of x."""
    torch.manual_seed(1)
    gradient, x = (whole_numbers(tokens, width).to(dtype) for width in widths)
    total, bias = whole_numbers(*widths) if is_total else None, whole_numbers(widths[0])
    expected = gradient.double().t() @ x.double() + (0 if total is None else total.double())
    expected_bias = bias.double() + gradient.double().sum(0)
    result = weight_gradient(gradient, x, total, bias)
    assert result.dtype == torch.float32 and result.is_contiguous()
    assert total is None or result is total
    tolerance = 0.0 if dtype == torch.bfloat16 and has_tiles() else 2 * ROUNDING[dtype]
    torch.testing.assert_close(result.double(), expected, rtol=tolerance, atol=tolerance * tokens)
    torch.testing.assert_close(
        bias.double(), expected_bias, rtol=tolerance, atol=tolerance * tokens
    )


def test_gradients_of_weights_are_as_exact_as_their_factors(dtype: torch.dtype) -> None:
    """A transposed factor, and one that is part of wider rows."""
    torch.manual_seed(1)
    gradient, x = torch.randn(48, 300).to(dtype).t(), torch.randn(300, 128).to(dtype)[:, 16:80]
    expected = gradient.double().t() @ x.double()
    difference = (weight_gradient(gradient, x) - expected).norm() / expected.norm()
    exact = dtype == torch.float32 or has_tiles()
    assert difference < (1e-6 if exact else ROUNDING[dtype])


def test_widths_of_no_whole_tiles_are_left_to_pytorch() -> None:
    gradient, x = (whole_numbers(5, width).bfloat16() for width in (20, 16))
    assert torch.equal(weight_gradient(gradient, x), (gradient.t() @ x).float())


def test_tiles_are_used_where_there_are_some(processor: str) -> None:
    assert not has_tiles() or (processor == "compile" and "amx_bf16" in processor_features())
    with torch.autocast("cpu", torch.bfloat16):
        y = linear(nn.Linear(32, 16), random_activations(torch.bfloat16, 3, 32))
    assert type(y.grad_fn).__name__.startswith("_Linear") == has_tiles()


def test_other_modules_compute_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    """A module outside of training, and rows of another precision or width."""
    monkeypatch.setattr(module_under_test, "_Linear", None)
    x = torch.randn(3, 32)
    for module, rows in (
        (nn.Linear(32, 16).eval(), x.bfloat16()),
        (nn.Linear(32, 16), x),
        (nn.Linear(32, 20), x.bfloat16()),
    ):
        with torch.autocast("cpu", torch.bfloat16, enabled=rows.dtype == torch.bfloat16):
            assert torch.equal(linear(module, rows), module(rows))


def test_frozen_weights_get_no_gradient(dtype: torch.dtype) -> None:
    module, x = nn.Linear(16, 16).requires_grad_(False), random_activations(dtype, 4, 16)
    with torch.autocast("cpu", torch.bfloat16, enabled=dtype == torch.bfloat16):
        linear(module, x).sum().backward()
    assert x.grad is not None and module.weight.grad is None and module.bias.grad is None
