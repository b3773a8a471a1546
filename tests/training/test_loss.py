"""The loss is label-smoothed cross-entropy: value and gradient of its formula in float64."""

import math
import shutil
from typing import Any, get_args

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from nmt.data.tokens.batch import Batch
from nmt.data.tokens.tokenizer import PAD
from nmt.kernels.cross_entropy import compiled_softmax, softmax_and_gradient
from nmt.model.transformer import Transformer
from nmt.recipe.config import Embeddings, ModelConfig, Norm, TrainingConfig
from nmt.training import loss as loss_module
from nmt.training.loss import (
    SOFTMAX_ROWS,
    Loss,
    LossFunction,
    Objective,
    label_smoothed_cross_entropy,
    loss_and_gradient,
    projection_rows,
)
from nmt.training.prepare import prepare_for_training

V, D = 13, 24
B, T = 5, 33  # more rows than one chunk, and no multiple of it
IDENTITY = torch.eye(V)  # as embeddings: the outputs are the logits
assert 2 * SOFTMAX_ROWS["cpu"] < B * T


def batch(width: int = V) -> tuple[Tensor, Tensor]:
    """Outputs of the decoder (B, T, width) and target ids (B, T), padded."""
    torch.manual_seed(1)
    target = torch.randint(1, V, (B, T))
    target[1, 20:] = target[4, 1:] = PAD
    return 3 * torch.randn(B, T, width), target


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_loss_of_logits_is_that_of_training(smoothing: float) -> None:
    x, target = batch()
    expected, gradient, _ = computed(x, target, smoothing)
    logits = x.clone().requires_grad_()
    loss = Loss.of_logits(logits, target, smoothing)
    for each, other in ((loss.total, expected.total), (loss.cross_entropy, expected.cross_entropy)):
        torch.testing.assert_close(each, other)
    torch.testing.assert_close(torch.autograd.grad(loss.total, logits)[0], gradient)
    assert not loss.cross_entropy.requires_grad


def test_a_term_is_added_with_its_weight_and_kept_without() -> None:
    term = torch.tensor(3.0, requires_grad=True)
    loss = Loss(torch.tensor(1.0), torch.tensor(0.5)).plus("a", term, 2.0).plus("b", term)
    assert loss.total.item() == 1 + 2 * 3 + 3
    assert {name: (x.item(), x.requires_grad) for name, x in loss.terms.items()} == {
        "a": (3.0, False),
        "b": (3.0, False),
    }
    assert torch.autograd.grad(loss.total, term)[0] == 3


def computed(
    x: Tensor,
    target: Tensor,
    smoothing: float = 0.1,
    matrix: Tensor = IDENTITY,
    weight: float = 1.0,
    loss_function: LossFunction = loss_and_gradient,
) -> tuple[Loss, Tensor, Tensor]:
    """The loss, and the gradients of weight * loss of outputs and embeddings."""
    leaves = x.clone().requires_grad_(), matrix.clone().requires_grad_()
    loss = label_smoothed_cross_entropy(
        *leaves, target, PAD, smoothing, loss_function=loss_function
    )
    x_gradient, matrix_gradient = torch.autograd.grad(weight * loss.total, leaves)
    return loss, x_gradient, matrix_gradient


def by_formula(logits: Tensor, target: Tensor, smoothing: float = 0.1) -> Tensor:
    """-sum_v q_v log p_v over real tokens in float64, as PyTorch differentiates it."""
    vocabulary = logits.shape[-1]
    q = F.one_hot(target, vocabulary).double()
    q = q * (1 - smoothing) + (1 - q) * smoothing / (vocabulary - 1)
    assert torch.allclose(q.sum(-1), torch.ones(target.shape, dtype=torch.float64))
    losses = -(q * torch.log_softmax(logits.double(), -1)).sum(-1)
    return losses[target != PAD].sum()


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.5])
@pytest.mark.parametrize("weight", [1.0, 0.5])
@pytest.mark.parametrize("rows", [1, 7, 64, 1000])
def test_loss_and_gradients_are_those_of_the_formula(
    smoothing: float, weight: float, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(loss_module.PROJECTION_ROWS, "cpu", rows)
    x, target = batch(D)
    matrix = torch.randn(V, D) / D**0.5
    loss, *gradients = computed(x, target, smoothing, matrix, weight)
    leaves = x.clone().requires_grad_(), matrix.clone().requires_grad_()
    total = by_formula(leaves[0] @ leaves[1].t(), target, smoothing)
    assert loss.total.item() == pytest.approx(total.item(), rel=1e-5)
    expected = torch.autograd.grad(weight * total, leaves)
    torch.testing.assert_close(tuple(gradients), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("hardware", "entries", "rows"),
    [("cpu", 37_000, 1024), ("cpu", 256_206, 261), ("cuda", 256_206, 4096), ("cpu", 1 << 27, 1)],
)
def test_a_large_vocabulary_has_the_logits_of_fewer_positions(
    hardware: str, entries: int, rows: int
) -> None:
    assert projection_rows(hardware, entries) == rows


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of what PyTorch itself imports
def test_the_compiled_loss_is_the_same_for_any_number_of_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if not shutil.which("g++"):
        pytest.skip("no g++, with which PyTorch compiles for a CPU")
    x, target = batch(D)
    matrix = torch.randn(V, D) / D**0.5
    for rows in (64, 50, 1000):
        monkeypatch.setitem(loss_module.PROJECTION_ROWS, "cpu", rows)
        (found, *gradients), (plain, *expected) = (
            computed(x, target, 0.1, matrix, loss_function=function)
            for function in (compiled_softmax(), loss_and_gradient)
        )
        torch.testing.assert_close(found.total, plain.total)
        torch.testing.assert_close(found.cross_entropy, plain.cross_entropy)
        torch.testing.assert_close(gradients, expected)


def test_what_is_compiled_computes_the_loss_of_the_formula() -> None:
    x, target = batch()
    loss, gradient, _ = computed(x, target, loss_function=softmax_and_gradient)
    plain, expected, _ = computed(x, target)
    torch.testing.assert_close(loss.total, plain.total)
    torch.testing.assert_close(loss.cross_entropy, plain.cross_entropy)
    torch.testing.assert_close(gradient, expected)


def test_a_bias_of_the_output_is_in_the_logits_and_gets_its_gradient() -> None:
    x, target = batch(D)
    leaves = x.requires_grad_(), torch.randn(V, D, requires_grad=True), torch.randn(V)
    bias = leaves[2].requires_grad_()
    loss = label_smoothed_cross_entropy(x, leaves[1], target, PAD, 0.1, bias).total
    total = by_formula(x @ leaves[1].t() + bias, target)
    assert loss.item() == pytest.approx(total.item(), rel=1e-5)
    expected = torch.autograd.grad(total, leaves)
    torch.testing.assert_close(torch.autograd.grad(loss, leaves), expected, rtol=1e-5, atol=1e-4)


def test_cross_entropy_is_reported_without_smoothing() -> None:
    logits, target = batch()
    smoothed, plain = computed(logits, target, 0.3)[0], computed(logits, target, 0.0)[0]
    expected = F.cross_entropy(
        logits.flatten(0, 1), target.flatten(), ignore_index=PAD, reduction="sum"
    )
    for found in (plain.total.detach(), plain.cross_entropy, smoothed.cross_entropy):
        torch.testing.assert_close(found, expected)
        assert not found.requires_grad


def test_padding_counts_nothing() -> None:
    logits, target = batch()
    changed = logits.clone()
    changed[target == PAD] = 1e4
    (loss, gradient, _), (other, other_gradient, _) = (
        computed(x, target) for x in (logits, changed)
    )
    assert torch.equal(loss.total, other.total)
    assert torch.equal(gradient, other_gradient)
    assert (gradient[target == PAD] == 0).all()
    nothing, gradient, _ = computed(logits, torch.full_like(target, PAD))
    assert nothing.total.item() == nothing.cross_entropy.item() == gradient.abs().max() == 0


def test_bfloat16_logits_are_computed_in_float32() -> None:
    logits, target = batch()
    rounded = logits.bfloat16()
    loss, gradient, _ = computed(rounded, target)
    exact = rounded.float().requires_grad_()
    total = by_formula(exact, target)
    assert loss.total.dtype == torch.float32 and gradient.dtype == torch.bfloat16
    assert loss.total.item() == pytest.approx(total.item(), rel=1e-6)
    # one rounding of values up to 1, to eight significant bits
    assert (gradient - torch.autograd.grad(total, exact)[0]).abs().max() < 2**-8


def test_products_are_in_the_precision_of_the_outputs_and_weights_have_theirs() -> None:
    x, target = batch(D)
    matrix = torch.randn(V, D)
    loss, x_gradient, matrix_gradient = computed(x.bfloat16(), target, matrix=matrix)
    exact, _, expected = computed(x.bfloat16().float(), target, matrix=matrix.bfloat16().float())
    assert x_gradient.dtype == torch.bfloat16 and matrix_gradient.dtype == torch.float32
    assert loss.total.item() == pytest.approx(exact.total.item(), rel=2e-3)
    assert (matrix_gradient - expected).norm() < 0.01 * expected.norm()


@pytest.mark.parametrize("size", [80.0, 200.0, 1e4, 1e30])
def test_extreme_logits_stay_finite_and_cost_what_the_formula_says(size: float) -> None:
    logits = torch.zeros(B, T, V)
    logits[..., 5], logits[..., 6] = size, -size
    loss, gradient, _ = computed(logits, batch()[1])
    assert math.isfinite(loss.total.item()) and math.isfinite(loss.cross_entropy.item())
    assert gradient.isfinite().all() and gradient.abs().max() <= 1
    hopeless = computed(logits, torch.full((B, T), 7), 0.0)[0]
    assert hopeless.total.item() == pytest.approx(size * B * T)


# -- the loss of a model on a batch ---------------------------------------------------------------


def ids() -> Batch:
    torch.manual_seed(1)
    source, target = (torch.randint(4, V, (6, length)) for length in (9, 7))
    source[2, 5:] = target[2, 3:] = PAD
    shifted = target.roll(1, dims=1)
    shifted[:, 0] = 1
    shifted[target == PAD] = PAD
    return Batch(source, shifted, target, int((target != PAD).sum()))


def objective(precision: str, **settings: Any) -> Objective:
    torch.manual_seed(2)
    sizes = {"d_model": 32, "heads": 4, "d_ff": 64, "encoder_layers": 2, "decoder_layers": 2}
    config = ModelConfig(**{**sizes, "dropout": 0.0, **settings})
    return prepare_for_training(Transformer(config, V, V, PAD), TrainingConfig(), precision)


@pytest.mark.parametrize("embeddings", get_args(Embeddings))
def test_training_minimises_the_smoothed_loss_of_the_logits(embeddings: str) -> None:
    trained, some = objective("fp32", embeddings=embeddings), ids()
    parameters = list(trained.parameters())
    total = trained(some).total
    expected = by_formula(trained.model(some.source, some.target_input), some.target_output)
    torch.testing.assert_close(total, expected.float())
    found, wanted = (torch.autograd.grad(loss, parameters) for loss in (total, expected))
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("norm", get_args(Norm))
def test_in_bfloat16_loss_and_gradients_are_near_those_of_float32(norm: str) -> None:
    """On a CPU, everything between the layers is in bfloat16."""
    exact, rounded = objective("fp32", norm=norm), objective("bf16", norm=norm)
    seen = set()
    for layer in (*rounded.model.encoder.layers, *rounded.model.decoder.layers):
        layer.register_forward_hook(lambda module, x, y: seen.add(y.dtype))
    losses, gradients = [], []
    for trained in (exact, rounded):
        loss = trained(ids()).total
        losses.append(loss.item())
        gradients.append(torch.autograd.grad(loss, list(trained.parameters())))
    assert seen == {torch.bfloat16}
    assert losses[1] == pytest.approx(losses[0], rel=2e-3)
    assert all(gradient.dtype == torch.float32 for gradient in gradients[1])
    exact_gradient, gradient = (torch.nn.utils.parameters_to_vector(g) for g in gradients)
    assert (gradient - exact_gradient).norm() < 0.08 * exact_gradient.norm()
