"""What is estimated is what PyTorch keeps."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from nmt.config import Config, ModelConfig
from nmt.device import autocast
from nmt.model.transformer import Transformer
from nmt.planning.arithmetic import blank_model
from nmt.planning.memory import activation_bytes, disk_space, optimizer_bytes, training_memory
from nmt.training.optimizer import make_optimizers, update
from nmt.training.train import train

Recipe = Callable[..., Config]
VOCABULARY = 100


def kept_for_backward(config: ModelConfig, precision: str, rows: int, length: int) -> int:
    """Bytes of all tensors that a forward pass keeps, but for the weights."""
    model = Transformer(config, VOCABULARY, VOCABULARY).train()
    own = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}
    kept: list[torch.Tensor] = []

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        kept.append(tensor)
        return tensor

    source, target = (torch.randint(4, VOCABULARY, (rows, length)) for _ in range(2))
    keeping = torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor)
    with keeping, autocast(torch.device("cpu"), precision, once=True):
        model.outputs(source, target)
    storages = {tensor.untyped_storage().data_ptr(): tensor.untyped_storage() for tensor in kept}
    return sum(storage.nbytes() for place, storage in storages.items() if place not in own)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("dropout", [0.0, 0.3])
@pytest.mark.parametrize("width", [64, 128])
def test_activations_are_those_that_autograd_keeps(
    precision: str, dropout: float, width: int
) -> None:
    config = ModelConfig(
        d_model=width, heads=4, d_ff=3 * width, encoder_layers=3, decoder_layers=2, dropout=dropout
    )
    length = 16
    few, many = (kept_for_backward(config, precision, rows, length) for rows in (4, 8))
    a_token = (many - few) / (4 * length)
    assert activation_bytes(config, "cpu", precision, length) == pytest.approx(a_token, rel=0.15)


@pytest.mark.parametrize("optimizer", ["adam", "muon"])
def test_the_optimizer_takes_what_its_state_holds(recipe: Recipe, optimizer: str) -> None:
    config = recipe(f"training.optimizer={optimizer}")
    model = Transformer(config.model, 60, 60)
    optimizers = make_optimizers(model, config.training)
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    update(optimizers, 1, 0.1, None)
    states = [state for each in optimizers for state in each.state.values()]
    held = sum(t.nbytes for state in states for t in state.values() if t.numel() > 1)
    assert optimizer_bytes(config, blank_model(config.model, 60, 60)) == held


@pytest.mark.parametrize(
    "settings",
    [
        (),
        ("training.average=best", "training.keep_best=3"),
        ("training.moving_average=0.9", "training.checkpoint_every=40"),
    ],
)
def test_a_run_takes_no_more_disk_than_was_said(
    recipe: Recipe, tmp_path: Path, settings: tuple[str, ...]
) -> None:
    sizes = ("model.d_model=64", "model.d_ff=256")
    config = recipe(*settings, *sizes, "training.validation_metric=loss")
    run = train(config, tmp_path / "run", lambda message: None)
    disk = disk_space(config, blank_model(config.model, 60, 60))
    held = [sum(f.stat().st_size for f in p.rglob("*")) for p in run.saved_checkpoints()]
    assert all(size == pytest.approx(disk.checkpoint, rel=0.1) for size in held)
    assert len(held) < disk.checkpoints <= len(held) + 3


def test_recomputed_activations_take_a_fraction(recipe: Recipe) -> None:
    """And several shares of a step take a gradient each."""
    layers = ("model.encoder_layers=6", "model.decoder_layers=6")
    plain, frugal = recipe(*layers), recipe(*layers, "training.activation_checkpointing=true")
    model = blank_model(plain.model, 60, 60)
    usual, again = (training_memory(c, model, "cuda", "bf16", 20) for c in (plain, frugal))
    assert again.activations < 0.4 * usual.activations
    shared = training_memory(plain, model, "cpu", "fp32", 20, shares=4)
    assert shared.gradients == 5 * training_memory(plain, model, "cpu", "fp32", 20).gradients
    parts = (usual.weights, usual.gradients, usual.optimizer, usual.activations, usual.logits)
    assert usual.total == sum(parts)
