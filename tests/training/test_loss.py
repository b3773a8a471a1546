"""Label-smoothed cross-entropy: the value and the gradient of its formula in float64."""

import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from nmt.training import loss as loss_module
from nmt.training.loss import SOFTMAX_ROWS, label_smoothed_cross_entropy

PAD, V = 0, 13
B, T = 5, 33  # more rows than one chunk, and no multiple of it
assert 2 * SOFTMAX_ROWS["cpu"] < B * T


def batch(scale: float = 3.0) -> tuple[Tensor, Tensor]:
    """Logits (B, T, V) and target ids (B, T), padded."""
    torch.manual_seed(1)
    target = torch.randint(1, V, (B, T))
    target[1, 20:] = PAD
    target[4, 1:] = PAD
    return scale * torch.randn(B, T, V), target


def computed(
    logits: Tensor, target: Tensor, smoothing: float, weight: float = 1.0
) -> tuple[Any, ...]:
    """The loss of logits, with the identity for embeddings, and the gradient of weight * loss."""
    leaf = logits.clone().requires_grad_()
    loss = label_smoothed_cross_entropy(leaf, torch.eye(V), target, PAD, smoothing)
    (weight * loss.total).backward()
    assert leaf.grad is not None
    return loss, leaf.grad


def by_formula(logits: Tensor, target: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
    """-sum_v q_v log p_v over real tokens in float64, and its gradient by autograd."""
    logits = logits.double().clone().requires_grad_()
    total = by_formula_of(logits, target, smoothing)
    total.backward()
    assert logits.grad is not None
    return total.detach(), logits.grad


def by_formula_of(logits: Tensor, target: Tensor, smoothing: float) -> Tensor:
    """-sum_v q_v log p_v over real tokens, as PyTorch differentiates it."""
    logits = logits.double()
    q = torch.full(logits.shape, smoothing / (V - 1), dtype=torch.float64)
    q.scatter_(2, target[..., None], 1 - smoothing)
    assert torch.allclose(q.sum(-1), torch.ones(B, T, dtype=torch.float64))
    losses = -(q * torch.log_softmax(logits, -1)).sum(-1)
    return losses[target != PAD].sum()


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.5])
def test_loss_and_gradient_are_those_of_the_formula(smoothing: float) -> None:
    logits, target = batch()
    loss, gradient = computed(logits, target, smoothing)
    total, expected = by_formula(logits, target, smoothing)
    assert loss.total.item() == pytest.approx(total.item(), rel=1e-6)
    assert (gradient - expected).abs().max() < 1e-6


def test_without_smoothing_it_is_cross_entropy() -> None:
    logits, target = batch()
    loss, _ = computed(logits, target, 0.0)
    expected = F.cross_entropy(
        logits.flatten(0, 1), target.flatten(), ignore_index=PAD, reduction="sum"
    )
    torch.testing.assert_close(loss.total.detach(), expected)
    torch.testing.assert_close(loss.cross_entropy, expected)


def test_cross_entropy_is_reported_unsmoothed() -> None:
    logits, target = batch()
    loss, _ = computed(logits, target, 0.3)
    plain, _ = computed(logits, target, 0.0)
    torch.testing.assert_close(loss.cross_entropy, plain.total.detach())
    assert not loss.cross_entropy.requires_grad


@pytest.mark.parametrize("weight", [0.25, 2.0])
def test_gradient_scales_with_what_the_loss_is_multiplied_by(weight: float) -> None:
    logits, target = batch()
    _, gradient = computed(logits, target, 0.1)
    _, weighted = computed(logits, target, 0.1, weight)
    torch.testing.assert_close(weighted, weight * gradient)


def test_padding_counts_nothing() -> None:
    logits, target = batch()
    changed = logits.clone()
    changed[target == PAD] = 1e4
    (loss, gradient), (other, other_gradient) = (
        computed(x, target, 0.1) for x in (logits, changed)
    )
    assert torch.equal(loss.total, other.total)
    assert torch.equal(gradient, other_gradient)
    assert (gradient[target == PAD] == 0).all()


def test_padding_alone_costs_nothing() -> None:
    logits, target = batch()
    loss, gradient = computed(logits, torch.zeros_like(target), 0.1)
    assert loss.total.item() == loss.cross_entropy.item() == 0
    assert (gradient == 0).all()


def test_bfloat16_logits_are_computed_in_float32() -> None:
    logits, target = batch()
    rounded = logits.bfloat16()
    loss, gradient = computed(rounded, target, 0.1)
    total, expected = by_formula(rounded.float(), target, 0.1)
    assert loss.total.dtype == torch.float32
    assert loss.total.item() == pytest.approx(total.item(), rel=1e-6)
    assert gradient.dtype == torch.bfloat16
    # one rounding of values up to 1, to eight significant bits
    assert (gradient.double() - expected).abs().max() < 2**-8


@pytest.mark.parametrize("size", [80.0, 1e4, 1e30])
def test_extreme_logits_stay_finite(size: float) -> None:
    _, target = batch()
    logits = torch.zeros(B, T, V)
    logits[..., 5] = size
    logits[..., 6] = -size
    loss, gradient = computed(logits, target, 0.1)
    assert math.isfinite(loss.total.item())
    assert math.isfinite(loss.cross_entropy.item())
    assert gradient.isfinite().all()
    assert gradient.abs().max() <= 1


def test_a_hopeless_token_costs_what_the_formula_says() -> None:
    logits = torch.zeros(B, T, V)
    logits[..., 5] = 200.0
    target = torch.full((B, T), 7)
    loss, _ = computed(logits, target, 0.0)
    assert loss.total.item() == pytest.approx(200.0 * B * T)


D = 24


def projection(dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor, Tensor]:
    """Outputs (B, T, D), embeddings in float32 (V, D), and target ids (B, T), padded."""
    target = batch()[1]
    return torch.randn(B, T, D).to(dtype), torch.randn(V, D), target


def of_outputs(x: Tensor, matrix: Tensor, target: Tensor, weight: float = 1.0) -> tuple[Any, ...]:
    """The loss, and the gradients of weight * loss."""
    leaves = x.clone().requires_grad_(), matrix.clone().requires_grad_()
    loss = label_smoothed_cross_entropy(*leaves, target, PAD, 0.1)
    return loss, *torch.autograd.grad(weight * loss.total, leaves)


@pytest.mark.parametrize("rows", [1, 7, 64, 1000])
@pytest.mark.parametrize("weight", [1.0, 0.5])
def test_gradients_of_outputs_and_embeddings_are_those_of_the_formula(
    rows: int, weight: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(loss_module.PROJECTION_ROWS, "cpu", rows)
    x, matrix, target = projection()
    loss, x_gradient, matrix_gradient = of_outputs(x, matrix, target, weight)
    leaves = x.clone().requires_grad_(), matrix.clone().requires_grad_()
    total = by_formula_of(leaves[0] @ leaves[1].t(), target, 0.1)
    gradients = torch.autograd.grad(weight * total, leaves)
    assert loss.total.item() == pytest.approx(total.item(), rel=1e-5)
    assert not loss.cross_entropy.requires_grad
    torch.testing.assert_close(x_gradient, gradients[0], rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(matrix_gradient, gradients[1], rtol=1e-5, atol=1e-5)


def test_products_are_in_the_precision_of_the_outputs_and_weights_have_theirs() -> None:
    x, matrix, target = projection(torch.bfloat16)
    loss, x_gradient, matrix_gradient = of_outputs(x, matrix, target)
    exact, _, expected = of_outputs(x.float(), matrix.bfloat16().float(), target)
    assert x_gradient.dtype == torch.bfloat16
    assert matrix_gradient.dtype == torch.float32
    assert loss.total.item() == pytest.approx(exact.total.item(), rel=2e-3)
    assert (matrix_gradient - expected).norm() < 0.01 * expected.norm()


def test_without_a_gradient_there_is_the_loss_alone() -> None:
    x, matrix, target = projection()
    with torch.inference_mode():
        loss = label_smoothed_cross_entropy(x, matrix, target, PAD, 0.1)
    torch.testing.assert_close(loss.total, of_outputs(x, matrix, target)[0].total.detach())
