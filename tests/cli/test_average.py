"""`nmt average`: the mean of the last checkpoints, and refusals that say what there is."""

from pathlib import Path

import pytest
import torch

from nmt.errors import CheckpointError, ConfigError
from nmt.run.checkpoint import load_weights, save_checkpoint
from nmt.run.directory import RunDirectory, find_run
from tests.cli.commands import fail, invoke, succeed


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    """Checkpoints of steps 1, 2, 4 and 8, each filled with its number."""
    run = RunDirectory(tmp_path / "run")
    for step in (1, 2, 4, 8):
        weights = {"w": torch.full((2,), float(step))}
        save_checkpoint(run.checkpoint(step), weights, {"step": step})
    run.config.touch()
    run.tokenizer.mkdir()
    return run


def test_the_last_checkpoints_are_averaged(run: RunDirectory) -> None:
    result = invoke("average", "--model", run.path, "--last", 3)
    assert result.exit_code == 0
    mean = run.path / "averaged-last-3"
    assert result.stdout == f"{mean}\n"
    assert result.stderr == "averaged step-00000002, step-00000004, step-00000008\n"
    torch.testing.assert_close(load_weights(mean)["w"], torch.full((2,), 14 / 3))


def test_the_average_may_lie_elsewhere_and_replace_an_older_one(
    run: RunDirectory, tmp_path: Path
) -> None:
    mean = tmp_path / "mean"
    for last, value in ((2, 6.0), (1, 8.0)):
        assert succeed("average", "--model", run.path, "--last", last, "-o", mean) == f"{mean}\n"
        assert load_weights(mean)["w"].tolist() == [value, value]
    assert not run.averaged.exists()
    assert find_run(mean).path == mean  # which --model then takes
    assert (mean / "tokenizer").is_dir()


def test_a_damaged_checkpoint_is_named(run: RunDirectory) -> None:
    weights = run.checkpoint(4) / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])
    message = fail(CheckpointError, "average", "--model", run.path, "--last", 2)
    assert "step-00000004" in message


@pytest.mark.parametrize("folder", ["run/checkpoints/step-00000008", "documents"])
def test_a_folder_that_holds_no_average_is_never_replaced(
    run: RunDirectory, tmp_path: Path, folder: str
) -> None:
    """Such as a checkpoint that a training may resume from."""
    output = tmp_path / folder
    output.mkdir(exist_ok=True)
    (output / "thesis.txt").write_text("irreplaceable")
    message = fail(ConfigError, "average", "--model", run.path, "--last", 2, "-o", output)
    assert f"{output.name}: exists and holds no average; choose a new folder" in message
    assert (output / "thesis.txt").read_text() == "irreplaceable"


def test_an_average_never_takes_the_name_of_a_checkpoint(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A later training would try to resume from it."""
    for folder in (run.checkpoint(9), RunDirectory(run.path.with_name("other")).checkpoint(1)):
        message = fail(ConfigError, "average", "--model", run.path, "--last", 2, "-o", folder)
        assert f"{folder}: has the name of a checkpoint that training writes" in message
        assert not folder.exists()
    monkeypatch.chdir(run.checkpoints)
    fail(ConfigError, "average", "--model", "..", "--last", 2, "-o", "step-00000009")
    succeed("average", "--model", "..", "--last", 2, "-o", "mine")
