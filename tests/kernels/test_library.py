"""Training uses the library where it can, learns the same, and does without where it cannot."""

import copy
from pathlib import Path
from typing import get_args

import pytest
import torch
from torch import Tensor

from nmt.data.tokens.batch import Batch
from nmt.kernels import dropout, library
from nmt.kernels.library import can_use_kernels
from nmt.machine import compilation
from nmt.model.transformer import Transformer
from nmt.recipe.config import Activation, Norm, TrainingConfig
from nmt.training.prepare import prepare_for_training
from tests.emulated_arm import needs_emulator
from tests.kernels.conftest import ARM_LEVELS
from tests.stand_in_models import small_transformer

PAD, BOS, V = 0, 2, 50
PRECISIONS = {torch.bfloat16: "bf16", torch.float32: "fp32"}
KERNEL_LIBRARY = library.kernel_library  # before conftest.py replaces it


def batch() -> Batch:
    torch.manual_seed(3)
    source, target = torch.randint(4, V, (9, 20)), torch.randint(4, V, (9, 17))
    for n in range(1, 9):
        source[n, 2 * n + 2 :] = target[n, 17 - n :] = PAD
    inputs = torch.cat((torch.full((9, 1), BOS), target[:, :-1]), 1)
    return Batch(source, inputs.masked_fill(target == PAD, PAD), target, int((target != PAD).sum()))


def loss_and_gradients(
    model: Transformer, precision: str, training: TrainingConfig | None = None
) -> tuple[Tensor, list[Tensor]]:
    objective = prepare_for_training(model, training or TrainingConfig(), precision)
    torch.manual_seed(4)
    loss = objective(batch()).total
    return loss.detach(), list(torch.autograd.grad(loss, list(model.parameters())))


@pytest.mark.parametrize(
    "settings",
    [
        *({"norm": norm} for norm in get_args(Norm)),
        *({"activation": activation} for activation in get_args(Activation)),
        {"activation_dropout": 0.2},
        {"heads": 1},
    ],
    ids=str,
)
def test_a_model_learns_what_it_learns_without_the_library(
    settings: dict[str, object], dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The gradients are as close to those of float64, in which the same elements are dropped."""
    monkeypatch.setattr(dropout, "kernel_library", lambda dtype: None)
    sizes = {"d_model": 64, "d_ff": 96, "heads": 4, "dropout": 0.3}
    model = small_transformer(V, **sizes | settings).train()
    exact_loss, exact = loss_and_gradients(copy.deepcopy(model).double(), "fp32")
    loss, gradients = loss_and_gradients(model, PRECISIONS[dtype])
    monkeypatch.setattr(library, "kernel_library", lambda dtype: None)
    loss_without, without = loss_and_gradients(model, PRECISIONS[dtype])
    assert not all(map(torch.equal, gradients, without))  # the library was used
    tolerance, largest, slack = {
        torch.bfloat16: (2e-3, 0.1, 1.05),
        torch.float32: (1e-6, 2e-6, 2.0),  # differences are those of the order of sums
    }[dtype]
    assert loss.item() == pytest.approx(exact_loss.item(), rel=tolerance)
    assert loss_without.item() == pytest.approx(exact_loss.item(), rel=tolerance)
    assert distance(without, exact) < largest
    assert distance(gradients, exact) < slack * distance(without, exact)


@needs_emulator
@pytest.mark.parametrize("processor", ARM_LEVELS, indirect=True)
def test_a_model_learns_the_same_on_arm(
    dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All kernels at once; with --slow, each test of this folder runs for ARM, too."""
    test_a_model_learns_what_it_learns_without_the_library({}, dtype, monkeypatch)


def distance(gradients: list[Tensor], exact: list[Tensor]) -> float:
    """The norm of the difference beside that of the exact gradient."""
    difference = torch.stack([(a - b).norm() for a, b in zip(gradients, exact, strict=True)])
    return float(difference.norm() / torch.stack([g.norm() for g in exact]).norm())


def test_the_same_seed_gives_the_same_gradients(dtype: torch.dtype) -> None:
    model = small_transformer(V, d_model=64, dropout=0.3).train()
    first, second = (loss_and_gradients(model, PRECISIONS[dtype])[1] for _ in range(2))
    assert all(map(torch.equal, first, second))


def test_layers_that_are_computed_again_give_the_same_gradients(dtype: torch.dtype) -> None:
    """Activation checkpointing frees what a kernel saves, and computes it at another address."""
    gradients = []
    for again in (False, True):
        model = small_transformer(V, d_model=64, dropout=0.3).train()
        training = TrainingConfig(activation_checkpointing=again)
        gradients.append(loss_and_gradients(model, PRECISIONS[dtype], training)[1])
    assert all(map(torch.equal, *gradients))


def test_it_computes_with_what_it_knows(dtype: torch.dtype) -> None:
    x, weight = torch.empty(2, 16, dtype=dtype), torch.empty(16)
    assert can_use_kernels(x) and can_use_kernels(x, weight)
    assert not can_use_kernels(x.double())
    assert not can_use_kernels(x, weight.bfloat16())
    assert not can_use_kernels(x, torch.empty(20))


def test_it_leaves_operations_on_several_cores_to_pytorch(dtype: torch.dtype) -> None:
    x = torch.empty(2, 16, dtype=dtype)
    torch.set_num_threads(2)
    assert not can_use_kernels(x)
    torch.set_num_threads(1)
    assert can_use_kernels(x)


@pytest.mark.parametrize("obstacle", ["no compiler", "compiler fails", "switched off"])
def test_without_the_library_pytorch_computes(
    obstacle: str, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    if obstacle == "switched off":
        monkeypatch.setenv(compilation.SWITCH, "0")
    elif obstacle == "no compiler":
        monkeypatch.setenv("PATH", "")
    else:
        monkeypatch.setenv("CC", "false")
    for module in (library, dropout):
        monkeypatch.setattr(module, "kernel_library", KERNEL_LIBRARY.__wrapped__)
    assert not can_use_kernels(torch.empty(2, 16, dtype=dtype))
    model = small_transformer(V, d_model=64, dropout=0.3).train()
    assert loss_and_gradients(model, PRECISIONS[dtype])[0].isfinite()
