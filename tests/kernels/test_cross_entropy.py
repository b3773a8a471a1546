"""Logits are overwritten by the gradient of the formula in float64."""

import math

import pytest
import torch
from torch import Tensor

from nmt.kernels.cross_entropy import replace_logits_by_gradient
from tests.kernels.closeness import assert_rounded


def by_formula(logits: Tensor, target: Tensor, q: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Smoothed and plain loss, and the gradient p - q, of each row, in float64."""
    log_p = logits.double().log_softmax(1)
    return -(q * log_p).sum(1), -log_p.gather(1, target[:, None])[:, 0], log_p.exp() - q


@pytest.mark.parametrize("entries", [2, 5, 16, 37, 8000])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_it_is_the_formula(entries: int, smoothing: float, dtype: torch.dtype) -> None:
    torch.manual_seed(1)
    logits = (4 * torch.randn(30, entries)).to(dtype)
    target = torch.randint(0, entries, (30,))
    real = torch.rand(30) > 0.3
    others = smoothing / (entries - 1)
    q = torch.full((30, entries), others, dtype=torch.float64)
    q.scatter_(1, target[:, None], 1 - smoothing)
    expected = by_formula(logits, target, q)
    total, cross_entropy = replace_logits_by_gradient(logits, target, real, 1 - smoothing, others)
    assert total.item() == pytest.approx(expected[0][real].sum().item(), rel=1e-6)
    assert cross_entropy.item() == pytest.approx(expected[1][real].sum().item(), rel=1e-6)
    assert_rounded(logits, expected[2] * real[:, None])


@pytest.mark.parametrize("wrong", [math.nan, math.inf])
@pytest.mark.parametrize("place", [0, 20])
def test_an_infinite_loss_is_seen(wrong: float, place: int, dtype: torch.dtype) -> None:
    logits = torch.zeros(1, 21, dtype=dtype)
    logits[0, place] = wrong
    total, _ = replace_logits_by_gradient(logits, torch.tensor([3]), torch.tensor([True]), 0.9, 0.1)
    assert not total.isfinite()


def test_no_rows_have_no_loss(dtype: torch.dtype) -> None:
    nothing = torch.empty(0, 21, dtype=dtype), torch.empty(0).long(), torch.empty(0).bool()
    assert [each.item() for each in replace_logits_by_gradient(*nothing, 0.9, 0.1)] == [0.0, 0.0]
