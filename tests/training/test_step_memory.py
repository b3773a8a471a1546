"""What is estimated is what PyTorch keeps."""

from typing import Any, get_args

import pytest
import torch

from nmt.machine.device import autocast
from nmt.model.transformer import Transformer
from nmt.recipe.config import Activation, Config, ModelConfig, TrainingConfig
from nmt.training.optimizer import build_optimizers, update_weights
from nmt.training.prepare import prepare_for_training
from nmt.training.step_memory import (
    Hardware,
    activation_bytes,
    micro_batch_tokens,
    optimizer_bytes,
    training_memory,
)
from tests.training.runs import Recipe

VOCABULARY, LENGTH = 100, 16


def kept_for_backward(config: ModelConfig, precision: str, rows: int) -> int:
    """Bytes of all tensors that a forward pass keeps, but for the weights."""
    model = Transformer(config, VOCABULARY, VOCABULARY).train()
    ready = prepare_for_training(model, TrainingConfig(), precision).model
    own = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}
    kept: list[torch.Tensor] = []

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        kept.append(tensor)
        return tensor

    source, target = (torch.randint(4, VOCABULARY, (rows, LENGTH)) for _ in range(2))
    keeping = torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor)
    with keeping, autocast(torch.device("cpu"), precision, once=True):
        ready.decoder_output(source, target)
    storages = {tensor.untyped_storage().data_ptr(): tensor.untyped_storage() for tensor in kept}
    return sum(storage.nbytes() for place, storage in storages.items() if place not in own)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize(
    "settings",
    [
        {"dropout": 0.0},
        {"dropout": 0.3},
        {"d_model": 64, "d_ff": 192},
        *({"activation": each} for each in get_args(Activation)),
        *({"activation": each, "activation_dropout": 0.3} for each in get_args(Activation)),
    ],
    ids=str,
)
def test_activations_are_those_that_autograd_keeps(
    precision: str, settings: dict[str, Any]
) -> None:
    sizes = {"d_model": 128, "heads": 4, "d_ff": 512, "encoder_layers": 3, "decoder_layers": 2}
    config = ModelConfig(**{**sizes, **settings})
    few, many = (kept_for_backward(config, precision, rows) for rows in (4, 8))
    a_token = (many - few) / (4 * LENGTH)
    assert activation_bytes(config, "cpu", precision, LENGTH) == pytest.approx(a_token, rel=0.1)


@pytest.mark.parametrize("optimizer", ["adam", "muon"])
def test_the_optimizer_takes_what_its_state_holds(recipe: Recipe, optimizer: str) -> None:
    config = recipe(f"training.optimizer={optimizer}")
    model = Transformer(config.model, 60, 60)
    optimizers = build_optimizers(model, config.training, "fp32")
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    update_weights(optimizers, 1, 0.1, None)
    states = [state for each in optimizers for state in each.state.values()]
    held = sum(t.nbytes for state in states for t in state.values() if t.numel() > 1)
    assert optimizer_bytes(config, (60, 60)) == held


def test_recomputed_activations_take_a_fraction_and_several_shards_a_gradient_each(
    recipe: Recipe,
) -> None:
    layers = ("model.encoder_layers=6", "model.decoder_layers=6")
    plain, frugal = recipe(*layers), recipe(*layers, "training.activation_checkpointing=true")
    sizes, gpu = (60, 60), Hardware("cuda", "bf16")
    kept, again = (training_memory(c, sizes, gpu, 20, 400) for c in (plain, frugal))
    assert again.activations < 0.4 * kept.activations
    alone, shared = (
        training_memory(plain, sizes, Hardware("cpu", "fp32", cpu_shards=n), 20, 10_000)
        for n in (1, 4)
    )
    assert shared.gradients == 5 * alone.gradients
    parts = (kept.weights, kept.gradients, kept.optimizer, kept.activations, kept.logits)
    assert kept.total == sum(parts)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_micro_batch_is_as_large_as_is_of_use_and_as_fits(recipe: Recipe, device: str) -> None:
    config = recipe("training.batch_tokens=100_000", "model.d_model=128", "model.d_ff=512")
    sizes = (1000, 1000)

    def found(memory: float | None, recipe: Config = config) -> int:
        return micro_batch_tokens(recipe, sizes, Hardware(device, "bf16", memory), 20)

    largest = found(None)
    assert largest == found(1e12) == {"cpu": 8192, "cuda": 131_072}[device]
    tokens_in = [found(memory) for memory in (1e9, 3e8, 1e8, 5e7, 2e7, 1.0)]
    assert tokens_in == sorted(tokens_in, reverse=True) and len(set(tokens_in)) > 3
    assert tokens_in[-1] == 512
    for memory, tokens in zip((3e8, 1e8, 5e7), tokens_in[1:], strict=False):
        taken = training_memory(config, sizes, Hardware(device, "bf16", memory), 20, tokens)
        assert taken.total < 0.8 * memory
    assert found(1e7, recipe("training.micro_batch_tokens=5000")) == 5000
