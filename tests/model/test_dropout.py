"""Dropout keeps each element with probability 1 - p and divides by it."""

import functools
import math

import pytest
import torch

from nmt.model.dropout import Dropout
from tests.stand_in_models import small_transformer

N = 1_000_000


def dropped(x: torch.Tensor, p: float, seed: int = 1) -> torch.Tensor:
    torch.manual_seed(seed)
    return Dropout(p)(x)


@pytest.mark.parametrize("p", [0.1, 0.3, 0.5])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_elements_are_dropped_as_often_as_asked_and_the_others_scaled(
    p: float, dtype: torch.dtype
) -> None:
    y = dropped(torch.ones(N, dtype=dtype), p)
    used = round(p * 65536) / 65536  # p is a multiple of 2^-16
    assert y.dtype == dtype
    assert set(y.unique().tolist()) == {0.0, torch.tensor(1 / (1 - used), dtype=dtype).item()}
    assert abs((y != 0).double().mean().item() - (1 - p)) < 5 * math.sqrt(p * (1 - p) / N)


def test_neighbours_are_dropped_independently() -> None:
    """Four elements share one draw of the generator and must not share their fate."""
    kept = (dropped(torch.ones(N), 0.5).view(-1, 4) != 0).double()
    correlation = torch.corrcoef(kept.T) - torch.eye(4)
    assert correlation.abs().max() < 5 / math.sqrt(N / 4)


def test_the_mask_depends_on_the_seed_and_on_the_shape_but_not_on_the_layout_in_memory() -> None:
    for shape in ((1,), (3,), (2, 3), (5, 1, 7)):
        assert dropped(torch.ones(shape), 0.2).shape == shape
    x = torch.randn(60, 4)
    assert torch.equal(dropped(x.T.contiguous(), 0.5), dropped(x.T, 0.5))
    assert not torch.equal(dropped(x, 0.5, seed=1), dropped(x, 0.5, seed=2))


@pytest.mark.parametrize("name", ["dropout", "attention_dropout", "activation_dropout"])
def test_each_dropout_of_the_model_acts_only_in_training(name: str) -> None:
    model = small_transformer(9, **{"dropout": 0.0, name: 0.5}).train()
    ids = torch.randint(1, 9, (2, 5))
    assert not torch.equal(model(ids, ids), model(ids, ids))
    model.eval()
    assert torch.equal(model(ids, ids), model(ids, ids))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_add_is_the_sum_of_a_residual_and_what_dropout_leaves(dtype: torch.dtype) -> None:
    residual, x = (torch.randn(50, 7, dtype=dtype, requires_grad=True) for _ in range(2))
    rtol, atol = (2**-7, 2**-6) if dtype == torch.bfloat16 else (None, None)
    assert_close = functools.partial(torch.testing.assert_close, rtol=rtol, atol=atol)
    torch.manual_seed(1)
    added, left = Dropout(0.3).add(residual, x), dropped(x, 0.3)
    mask = dropped(torch.ones_like(x), 0.3)
    assert_close(left, x * mask)
    assert_close(added, residual + x * mask)
    upstream = torch.randn(50, 7, dtype=dtype)
    (gradient,) = torch.autograd.grad(left, x, upstream)
    assert_close(gradient, upstream * mask)
    gradients = torch.autograd.grad(added, (residual, x), upstream)
    assert_close(gradients, (upstream, upstream * mask))
    assert torch.equal(Dropout(0.3).eval().add(residual, x), residual + x)
