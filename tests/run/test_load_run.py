"""Adapters are loaded with their parents, and a chain of parents must end in a whole model."""

from pathlib import Path

import pytest
import torch

from nmt.errors import CheckpointError
from nmt.recipe.config import LoraConfig
from nmt.run.checkpoint import save_checkpoint, weights_of
from nmt.run.directory import LoadedModel, RunDirectory
from nmt.run.load_run import load_run


def write_adapter(loaded: LoadedModel, run: Path, parent: Path) -> None:
    """Write a run that claims to hold an adapter of `parent`."""
    directory = RunDirectory(run)
    directory.checkpoints.mkdir(parents=True)
    update = {"lora": LoraConfig(), "initialize_from": str(parent)}
    training = loaded.config.training.model_copy(update=update)
    directory.write_config(loaded.config.model_copy(update={"training": training}))
    loaded.tokenizer.save(directory.tokenizer)
    save_checkpoint(directory.checkpoint(1), weights_of(loaded.model))


@pytest.mark.parametrize("chain", ["a", "ab", "abc", "abcb", "abcc"])
def test_an_adapter_that_is_its_own_parent_is_refused(
    chain: str, random_run: LoadedModel, tmp_path: Path
) -> None:
    """Each run is the child of the next one, and the last one that of the first, or of itself."""
    parents = dict(zip(chain, chain[1:] + chain[0], strict=True))
    for name, parent in parents.items():
        write_adapter(random_run, tmp_path / name, tmp_path / parent)
    (tmp_path / "link").symlink_to(tmp_path / "a")
    for path in (tmp_path / "a", tmp_path / "link", tmp_path / "a/checkpoints/step-00000001"):
        with pytest.raises(CheckpointError, match="holds an adapter that is its own parent") as got:
            load_run(path, torch.device("cpu"))
        assert "\n" not in str(got.value)


def test_a_parent_that_is_no_run_is_named(random_run: LoadedModel, tmp_path: Path) -> None:
    write_adapter(random_run, tmp_path / "a", tmp_path / "b")
    write_adapter(random_run, tmp_path / "b", tmp_path / "gone")
    with pytest.raises(CheckpointError, match="gone: not a run directory: no such directory"):
        load_run(tmp_path / "a", torch.device("cpu"))
