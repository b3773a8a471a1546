"""An exported folder is a model like a run directory, and other programs can read it."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

import nmt
from nmt.errors import CheckpointError, ExchangeError
from nmt.exchange.safetensors_folder import export_safetensors, usage, verify_safetensors
from nmt.run.checkpoint import load_weights, save_checkpoint, weights_digest
from nmt.run.model import LoadedModel, load_model
from tests.exchange.small_runs import TEXTS, small_run


@pytest.fixture(scope="module", params=["shared", "separate"])
def loaded(request: pytest.FixtureRequest) -> LoadedModel:
    return small_run(embeddings=request.param)


@pytest.fixture
def folder(loaded: LoadedModel, tmp_path: Path) -> Path:
    (tmp_path / "model").mkdir()
    export_safetensors(loaded, tmp_path / "model")
    return tmp_path / "model"


def test_the_folder_loads_like_a_run_with_the_same_bits(loaded: LoadedModel, folder: Path) -> None:
    reloaded = load_model(folder, torch.device("cpu"))
    assert weights_digest(reloaded.model) == weights_digest(loaded.model)
    assert reloaded.config == loaded.config
    assert "bit for bit" in verify_safetensors(loaded, folder)
    assert all(isinstance(text, str) for text in nmt.load(folder, device="cpu").translate(TEXTS))


def test_another_program_reads_it_with_the_lines_of_the_model_card(
    loaded: LoadedModel, folder: Path
) -> None:
    command = [sys.executable, "-c", usage(loaded)]
    printed = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    shape = f"torch.Size([{loaded.tokenizer.target.size}, {loaded.config.model.d_model}])"
    assert printed.stdout.startswith(shape)


def test_a_weight_that_changed_on_disk_is_noticed(loaded: LoadedModel, folder: Path) -> None:
    weights = load_weights(folder)
    next(iter(weights.values())).flatten()[0] += 1e-6
    manifest, contents = folder / "manifest.json", {p: p.read_bytes() for p in folder.glob("*.*")}
    save_checkpoint(folder, weights)
    (folder / "config.yaml").write_bytes(contents[folder / "config.yaml"])
    loaded.tokenizer.save(folder / "tokenizer")
    with pytest.raises(ExchangeError, match="holds another model than was written"):
        verify_safetensors(loaded, folder)
    manifest.write_bytes(contents[manifest])
    with pytest.raises(CheckpointError, match="damaged"):
        verify_safetensors(loaded, folder)
