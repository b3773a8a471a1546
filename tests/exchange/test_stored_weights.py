"""Weights are read one by one, and what is no weight of a model is one sentence."""

from pathlib import Path

import pytest
import safetensors.torch
import torch

from nmt.errors import ExchangeError
from nmt.exchange.stored_weights import StoredWeights

WEIGHTS = {"a": torch.arange(6.0).view(2, 3), "b": torch.ones(4, dtype=torch.bfloat16)}


@pytest.fixture(params=["model.safetensors", "pytorch_model.bin"])
def paths(request: pytest.FixtureRequest, tmp_path: Path) -> list[Path]:
    """Two files, each with a weight."""
    paths = []
    for name, weight in WEIGHTS.items():
        paths.append(tmp_path / f"{name}-{request.param}")
        if request.param.endswith("bin"):
            torch.save({name: weight}, paths[-1])
        else:
            safetensors.torch.save_file({name: weight}, paths[-1])
    return paths


def test_weights_of_several_files_are_read_in_their_type(paths: list[Path]) -> None:
    stored = StoredWeights(paths)
    assert stored.shapes == {"a": (2, 3), "b": (4,)}
    assert all(torch.equal(stored[name], weight) for name, weight in WEIGHTS.items())
    renamed = stored.renamed({"first": "a"})
    assert [*renamed] == ["first"]
    assert torch.equal(renamed["first"], WEIGHTS["a"])


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (torch.tensor([1.0, torch.nan]), "holds NaN or infinity"),
        (torch.tensor([1, 2]), "holds no floating-point numbers"),
    ],
)
def test_other_numbers_are_an_error(weight: torch.Tensor, message: str, tmp_path: Path) -> None:
    safetensors.torch.save_file({"a": weight}, tmp_path / "model.safetensors")
    with pytest.raises(ExchangeError, match=message):
        _ = StoredWeights([tmp_path / "model.safetensors"])["a"]


@pytest.mark.parametrize("name", ["model.safetensors", "pytorch_model.bin"])
@pytest.mark.parametrize("content", [b"", b"12345678", b"\xff" * 40, b"PK\3\4" + bytes(40)])
def test_damage_is_one_sentence(name: str, content: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ExchangeError, match="damaged|tensors|no weights"):
        StoredWeights([tmp_path / name])
