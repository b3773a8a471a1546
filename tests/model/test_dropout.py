"""Dropout keeps each element with probability 1 - p and divides by it."""

import math
from typing import Any

import pytest
import torch

from nmt.config import ModelConfig
from nmt.model.dropout import Dropout
from nmt.model.transformer import Transformer

N = 1_000_000


def dropped(x: torch.Tensor, p: float, seed: int = 1) -> torch.Tensor:
    torch.manual_seed(seed)
    return Dropout(p)(x)


@pytest.mark.parametrize("p", [0.1, 0.3, 0.5])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_mean_and_kept_share_are_those_of_bernoulli_draws(p: float, dtype: torch.dtype) -> None:
    y = dropped(torch.ones(N, dtype=dtype), p).double()
    error = math.sqrt(p * (1 - p) / N)
    assert abs((y != 0).double().mean().item() - (1 - p)) < 5 * error
    assert abs(y.mean().item() - 1) < 5 * error / (1 - p)


@pytest.mark.parametrize("p", [0.1, 0.3, 0.5])
def test_scale_is_the_inverse_of_the_probability_that_is_used(p: float) -> None:
    y = dropped(torch.ones(10_000), p)
    probability = round(p * 65536) / 65536
    assert set(y.unique().tolist()) == {0.0, torch.tensor(1 / (1 - probability)).item()}


def test_neighbours_are_dropped_independently() -> None:
    """Four elements share one draw of the generator and must not share their fate."""
    kept = (dropped(torch.ones(N), 0.5).view(-1, 4) != 0).double()
    correlation = torch.corrcoef(kept.T) - torch.eye(4)
    assert correlation.abs().max() < 5 / math.sqrt(N / 4)


def test_shape_type_and_mask_do_not_depend_on_the_layout_in_memory() -> None:
    for shape in ((1,), (3,), (2, 3), (5, 1, 7)):
        assert dropped(torch.ones(shape), 0.2).shape == shape
    x = torch.randn(6, 4).bfloat16()
    assert dropped(x, 0.5).dtype == torch.bfloat16
    assert torch.equal(dropped(x.T.contiguous(), 0.5), dropped(x.T, 0.5))


def test_nothing_happens_outside_training_or_at_probability_zero() -> None:
    x = torch.randn(10)
    assert Dropout(0.5).eval()(x) is x
    assert Dropout(0.0)(x) is x


@pytest.mark.parametrize("name", ["dropout", "attention_dropout", "activation_dropout"])
def test_each_dropout_of_the_model_acts_in_training_alone(name: str) -> None:
    sizes: dict[str, Any] = {"d_model": 8, "heads": 2, "encoder_layers": 1, "decoder_layers": 1}
    model = Transformer(ModelConfig(**{**sizes, "dropout": 0.0, name: 0.5}), 9, 9)
    ids = torch.randint(1, 9, (2, 5))
    assert not torch.equal(model(ids, ids), model(ids, ids))
    model.eval()
    assert torch.equal(model(ids, ids), model(ids, ids))


def test_gradient_is_the_mask_times_the_scale() -> None:
    x = torch.randn(1000, requires_grad=True)
    upstream = torch.randn(1000)
    (dropped(x, 0.3) * upstream).sum().backward()
    assert x.grad is not None
    torch.testing.assert_close(x.grad, dropped(torch.ones(1000), 0.3) * upstream)


def test_same_seed_gives_the_same_mask_and_another_seed_another() -> None:
    ones = torch.ones(1000)
    assert torch.equal(dropped(ones, 0.3, seed=1), dropped(ones, 0.3, seed=1))
    assert not torch.equal(dropped(ones, 0.3, seed=1), dropped(ones, 0.3, seed=2))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_adding_what_is_dropped_is_the_sum_of_both(dtype: torch.dtype) -> None:
    residual, x = (torch.randn(50, 7, dtype=dtype, requires_grad=True) for _ in range(2))
    torch.manual_seed(1)
    added = Dropout(0.3).add(residual, x)
    expected = residual + dropped(x, 0.3)
    assert added.dtype == dtype
    rtol, atol = (2**-7, 2**-6) if dtype == torch.bfloat16 else (None, None)
    torch.testing.assert_close(added, expected, rtol=rtol, atol=atol)
    upstream = torch.randn(50, 7, dtype=dtype)
    found = torch.autograd.grad(added, (residual, x), upstream)
    wanted = torch.autograd.grad(expected, (residual, x), upstream)
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=rtol, atol=atol)
    assert torch.equal(Dropout(0.3).eval().add(residual, x), residual + x)
