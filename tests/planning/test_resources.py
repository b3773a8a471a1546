"""Weights and operations are those that PyTorch counts; times on GPUs are plausible."""

from pathlib import Path
from typing import get_args

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from nmt.kernels import library
from nmt.machine.device import autocast
from nmt.model.transformer import Transformer
from nmt.planning.resources import (
    count_parameters,
    disk_usage,
    find_paper_model,
    known_figures,
    step_seconds,
    training_operations,
    utilization,
)
from nmt.recipe.config import Activation, Config, Embeddings, ModelConfig
from nmt.recipe.config_file import load_config
from nmt.training.train import train
from tests.training.runs import Recipe

SMALL = ModelConfig(d_model=32, heads=2, d_ff=48, encoder_layers=2, decoder_layers=3, dropout=0.1)
BASE, BIG = (load_config(f"{name}.yaml").model for name in ("base", "big"))


@pytest.mark.parametrize("embeddings", get_args(Embeddings))
def test_as_many_weights_are_counted_as_a_model_has(embeddings: str) -> None:
    config = SMALL.model_copy(update={"embeddings": embeddings})
    real, found = Transformer(config, 50, 50), count_parameters(Config(model=config), (50, 50))
    assert found["total"] == sum(parameter.numel() for parameter in real.parameters())
    assert found["embeddings"] == {"shared": 1, "target": 2, "separate": 3}[embeddings] * 50 * 32


@pytest.mark.parametrize(
    ("config", "parameters", "operations"), [(BASE, 65e6, 381e6), (BIG, 213e6, 1290e6)]
)
def test_the_papers_models_have_the_published_parameters_and_operations_per_token(
    config: ModelConfig, parameters: float, operations: float
) -> None:
    sizes = (37_000, 37_000)
    found = count_parameters(Config(model=config), sizes)["total"]
    assert found == pytest.approx(parameters, rel=0.03)
    counted = training_operations(config, sizes, 1, 1, 28, 28)
    assert counted == pytest.approx(operations, rel=0.01)


@pytest.mark.parametrize("activation", get_args(Activation))
def test_operations_match_the_count_of_pytorch(
    activation: Activation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In bf16 on a CPU attention is computed as in Eq. 1, unfused, so that PyTorch can count it.

    It does not count what the libraries in C compute, so they are not used.
    """
    monkeypatch.setattr(library, "kernel_library", lambda dtype: None)
    config = SMALL.model_copy(update={"activation": activation})
    model, (rows, source, target) = Transformer(config, 50, 50).train(), (3, 7, 9)
    ids = [torch.randint(4, 50, (rows, length)) for length in (source, target)]
    with FlopCounterMode(display=False) as counter:
        with autocast(torch.device("cpu"), "bf16"):
            logits = model(*ids)
        logits.sum().backward()
    counted = training_operations(config, (50, 50), rows * source, rows * target, source, target)
    assert counted == pytest.approx(counter.get_total_flops(), rel=0.01)


@pytest.mark.parametrize(
    "settings",
    [
        ("training.average=best", "training.keep_best=3"),
        ("training.moving_average=0.9", "training.checkpoint_every=8"),
    ],
)
def test_a_run_takes_the_planned_disk_space(
    recipe: Recipe, tmp_path: Path, settings: tuple[str, ...]
) -> None:
    every = ("training.max_steps=8", "training.validate_every=2", "training.checkpoint_every=2")
    sizes = ("model.d_model=64", "model.d_ff=256", "training.validation_metric=loss")
    config = recipe(*every, *sizes, *settings)
    run = train(config, tmp_path / "run", lambda message: None)
    disk = disk_usage(config, (60, 60))
    held = [sum(f.stat().st_size for f in p.rglob("*")) for p in run.saved_checkpoints()]
    assert all(size == pytest.approx(disk["checkpoint"], rel=0.1) for size in held)
    assert len(held) < disk["checkpoints"] <= len(held) + 3


def test_the_papers_models_are_recognised_by_their_sizes_alone() -> None:
    assert [find_paper_model(config) for config in (BASE, BIG)] == known_figures("paper")
    changed = BASE.model_copy(update={"norm": "pre", "dropout": 0.3})
    assert find_paper_model(changed) == known_figures("paper")[0]
    for change in ({"d_ff": 1024}, {"decoder_layers": 3}):
        assert find_paper_model(BASE.model_copy(update=change)) is None
    for paper in known_figures("paper"):  # table 2 counts 8 P100 at 9.5 TFLOP/s
        assert 8 * paper["hours"] * 3600 * 9.5e12 == pytest.approx(paper["operations"], rel=0.02)


def test_gpus_take_less_time_if_they_are_faster_but_never_less_than_kernel_launches() -> None:
    speeds = [gpu["teraflops"] for gpu in known_figures("gpus")]
    slow, fast, h200 = min(speeds), max(speeds), speeds[-1]
    assert step_seconds(fast, BIG, 3e13, 1) < step_seconds(slow, BIG, 3e13, 1)
    assert step_seconds(fast, BIG, 1.0, 1) == step_seconds(slow, BIG, 1.0, 1) > 0.001
    assert step_seconds(fast, BIG, 1.0, 4) == 4 * step_seconds(fast, BIG, 1.0, 1)
    # target tokens a step on an H200, as scripts/benchmarks/README.md has them
    assert step_seconds(h200, BASE, 46_869 * 381e6, 1) == pytest.approx(0.0631, rel=0.1)
    assert step_seconds(h200, BIG, 23_839 * 1290e6, 1) == pytest.approx(0.0717, rel=0.1)
    assert utilization(SMALL) < utilization(BASE) < utilization(BIG) < 0.45
