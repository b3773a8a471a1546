"""Weights are moved into models, averaged and compared by name, shape and value."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from nmt.checkpoint import (
    WEIGHTS,
    average_weights,
    intact_checkpoints,
    load_into,
    load_weights,
    save_checkpoint,
    weights_digest,
    weights_of,
)
from nmt.errors import CheckpointError
from tests.checkpoints import saved, weights


def test_only_intact_ones_are_averaged(tmp_path: Path) -> None:
    paths = [saved(tmp_path / f"step-{n}") for n in range(3)]
    (paths[1] / WEIGHTS).write_bytes(b"")
    log: list[str] = []
    assert intact_checkpoints(paths, log.append) == [paths[0], paths[2]]
    assert len(log) == 1 and "step-1" in log[0] and log[0].endswith("it is left out")


# -- the average ----------------------------------------------------------------------------------


def test_average_is_the_mean(tmp_path: Path) -> None:
    paths = [saved(tmp_path / str(seed), seed) for seed in range(3)]
    average = average_weights(paths)
    for name, weight in average.items():
        expected = torch.stack([weights(seed)[name].double() for seed in range(3)]).mean(0)
        assert weight.dtype == torch.float32
        assert torch.equal(weight, expected.float())


def test_average_of_one_is_itself(tmp_path: Path) -> None:
    average = average_weights([saved(tmp_path / "a")])
    assert all(torch.equal(average[name], weight) for name, weight in weights().items())


@pytest.mark.parametrize(
    "other",
    [
        {"layer.weight": torch.zeros(3, 5), "layer.bias": torch.zeros(3)},
        {"layer.weight": torch.zeros(3, 4)},
        {"layer.weight": torch.zeros(3, 4), "layer.bias": torch.zeros(3), "x": torch.zeros(1)},
    ],
    ids=["shape", "missing", "additional"],
)
def test_different_models_are_not_averaged(tmp_path: Path, other: dict[str, Tensor]) -> None:
    first, second = saved(tmp_path / "first"), tmp_path / "second"
    save_checkpoint(second, other)
    with pytest.raises(CheckpointError, match=r"second: its model is not that of .*first"):
        average_weights([first, second])


def test_nothing_has_no_average() -> None:
    with pytest.raises(CheckpointError, match="no checkpoints to average"):
        average_weights([])


# -- into a model and out of it -------------------------------------------------------------------


def test_weights_move_from_model_to_model() -> None:
    first, second = nn.Linear(4, 3), nn.Linear(4, 3)
    load_into(second, weights_of(first), Path("origin"))
    assert torch.equal(first.weight, second.weight)
    assert torch.equal(first.bias, second.bias)
    assert first.weight.data_ptr() != second.weight.data_ptr()


def test_tied_weights_are_saved_once(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(4, 4, bias=False), nn.Linear(4, 4, bias=False))
    model[1].weight = model[0].weight
    save_checkpoint(tmp_path / "tied", weights_of(model))
    loaded = load_weights(tmp_path / "tied")
    assert list(loaded) == ["0.weight"]
    load_into(model, loaded, tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"bias": torch.zeros(2)}, r"bias is \(2,\), the configuration expects \(3,\)"),
        ({"gain": torch.zeros(1)}, r"gain is \(1,\), .* expects no such tensor"),
        ({"bias": None}, r"bias is missing, the configuration expects \(3,\)"),
    ],
    ids=["shape", "additional", "missing"],
)
def test_weights_of_another_model_are_refused(change: dict[str, Any], message: str) -> None:
    changed = {**weights_of(nn.Linear(4, 3)), **change}
    found = {name: weight for name, weight in changed.items() if weight is not None}
    with pytest.raises(CheckpointError, match=f"origin: weights of another model: {message}"):
        load_into(nn.Linear(4, 3), found, Path("origin"))


# -- failures to save -----------------------------------------------------------------------------


def test_a_digest_tells_weights_apart_by_name_shape_and_value() -> None:
    model, other = nn.Linear(2, 2), nn.Linear(2, 2)
    other.load_state_dict(model.state_dict())
    assert weights_digest(model) == weights_digest(other)
    with torch.no_grad():
        other.weight[0, 0] += 1
    assert weights_digest(model) != weights_digest(other)
    assert weights_digest(nn.Sequential(model)) != weights_digest(model)
    assert weights_digest(model.bfloat16()) != weights_digest(other.bfloat16())
