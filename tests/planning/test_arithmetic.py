"""Weights and operations are those of the built model, as PyTorch counts them."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from nmt.config import ModelConfig
from nmt.config_file import load_config
from nmt.device import autocast
from nmt.model.transformer import Transformer
from nmt.planning.arithmetic import (
    blank_model,
    count_parameters,
    matrix_weights,
    training_operations,
)

SMALL = ModelConfig(d_model=32, heads=2, d_ff=48, encoder_layers=2, decoder_layers=3, dropout=0.1)


@pytest.mark.parametrize("embeddings", ["shared", "target", "separate"])
def test_a_blank_model_has_the_weights_of_a_real_one(embeddings: str) -> None:
    config = SMALL.model_copy(update={"embeddings": embeddings})
    real, found = Transformer(config, 50, 50), count_parameters(blank_model(config, 50, 50))
    assert found.total == sum(parameter.numel() for parameter in real.parameters())
    assert found.embeddings == {"shared": 1, "target": 2, "separate": 3}[embeddings] * 50 * 32


@pytest.mark.parametrize(("name", "millions"), [("base", 65), ("big", 213)])
def test_the_papers_models_have_about_the_weights_of_table_3(name: str, millions: int) -> None:
    config = load_config(f"{name}.yaml")
    size = config.tokenizer.vocabulary_size
    total = count_parameters(blank_model(config.model, size, size)).total
    assert abs(total / 1e6 - millions) < 0.03 * millions


@pytest.mark.parametrize(("name", "millions"), [("base", 381), ("big", 1290)])
def test_operations_a_token_are_the_published_ones(name: str, millions: int) -> None:
    config = load_config(f"{name}.yaml").model
    operations = training_operations(blank_model(config, 37_000, 37_000), config, 1, 1, 28, 28)
    assert abs(operations / 1e6 - millions) < 0.01 * millions


def test_operations_are_those_that_pytorch_counts() -> None:
    """In bf16 on a CPU, where attention is computed as Eq. 1 is read and so can be counted."""
    model, (rows, source, target) = Transformer(SMALL, 50, 50).train(), (3, 7, 9)
    ids = [torch.randint(4, 50, (rows, length)) for length in (source, target)]
    with FlopCounterMode(display=False) as counter:
        with autocast(torch.device("cpu"), "bf16"):
            logits = model(*ids)
        logits.sum().backward()
    counted = training_operations(model, SMALL, rows * source, rows * target, source, target)
    assert counted == pytest.approx(counter.get_total_flops(), rel=0.01)


def test_every_matrix_meets_the_source_or_the_target() -> None:
    model = blank_model(SMALL, 50, 60)
    linear = sum(m.weight.numel() for m in model.modules() if isinstance(m, torch.nn.Linear))
    of_source, of_target = matrix_weights(model)
    assert of_source + of_target == linear + 60 * 32
    layer = 4 * 32 * 32 + 2 * 32 * 48
    assert of_source == 2 * layer + 3 * 2 * 32 * 32
