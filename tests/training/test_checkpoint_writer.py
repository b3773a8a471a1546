"""Checkpoints are written in the background, and say what training was when they were begun."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from nmt.checkpoint import load_state, load_weights, save_checkpoint
from nmt.config import TrainingConfig
from nmt.errors import CheckpointError
from nmt.run_directory import RunDirectory
from nmt.training import checkpoint_writer
from nmt.training.checkpoint_writer import CheckpointWriter, snapshot
from nmt.training.ranking import Ranking


@pytest.fixture
def directory(tmp_path: Path) -> RunDirectory:
    directory = RunDirectory(tmp_path / "run")
    directory.create()
    return directory


@pytest.fixture
def writer(directory: RunDirectory) -> CheckpointWriter:
    return CheckpointWriter(directory, TrainingConfig(checkpoint_every=1))


@pytest.fixture
def hold(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Checkpoints are written once this is set."""
    event = threading.Event()
    original = save_checkpoint

    def save(path: Path, *contents: dict[str, Tensor]) -> None:
        event.wait()
        original(path, *contents)

    monkeypatch.setattr(checkpoint_writer, "save_checkpoint", save)
    return event


def test_a_snapshot_is_a_copy_of_every_tensor() -> None:
    value: dict[str, Any] = {
        "a": torch.ones(2),
        "b": [torch.zeros(1), (torch.ones(1), "text")],
        "c": None,
    }
    copy = snapshot(value)
    value["a"].zero_()
    value["b"][1][0].zero_()
    assert copy["a"].tolist() == [1, 1] and copy["c"] is None
    assert copy["b"][1][0].tolist() == [1] and copy["b"][1][1] == "text"


def test_a_later_snapshot_uses_the_memory_of_the_former() -> None:
    former = snapshot({"same": torch.ones(2), "shape": torch.ones(2), "gone": torch.ones(1)})
    now = {"same": torch.full((2,), 3.0), "shape": torch.ones(3), "new": torch.ones(1)}
    copy = snapshot(now, former)
    assert copy["same"] is former["same"] and copy["same"].tolist() == [3, 3]
    assert copy["shape"].shape == (3,) and copy.keys() == now.keys()


def test_memory_is_preallocated_for_the_first_snapshot(
    writer: CheckpointWriter, directory: RunDirectory
) -> None:
    weights, moments = {"w": torch.ones(3)}, [{"m": torch.ones(2, 2).t(), "step": 1}]
    assert not writer.is_preallocated
    writer.preallocate(weights, {"optimizers": moments})
    assert writer.is_preallocated
    writer._wait_for_allocation()
    room = writer._copied
    writer.start(1, weights, {"optimizers": moments, "step": 1}, Ranking(0))
    assert writer.result() == (True, None)
    assert writer._copied[0]["w"] is room[0]["w"]
    assert writer._copied[1]["optimizers"][0]["m"] is room[1]["optimizers"][0]["m"]
    assert load_weights(directory.checkpoint(1))["w"].tolist() == [1, 1, 1]
    writer.release_memory()
    assert not writer.is_preallocated


def test_a_failed_preallocation_is_reported_by_the_checkpoint(
    writer: CheckpointWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(*arguments: object, **options: object) -> None:
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried 8 GB")

    monkeypatch.setattr(torch, "zeros_like", none)
    monkeypatch.setattr(checkpoint_writer, "snapshot", none)
    writer.preallocate({"w": torch.ones(3)}, {})
    writer.start(1, {"w": torch.ones(3)}, {}, Ranking(0))
    saved, problem = writer.result()
    assert not saved and problem and "no memory for a copy of the state" in problem


def test_training_may_continue_while_a_checkpoint_is_written(
    directory: RunDirectory, writer: CheckpointWriter, hold: threading.Event
) -> None:
    weights = {"w": torch.ones(3)}
    state: dict[str, Any] = {"moment": torch.ones(2), "step": 7}
    writer.start(7, weights, state, Ranking(1))
    assert writer.is_writing() and not directory.checkpoint(7).exists()
    weights["w"].zero_()
    state["moment"].zero_()
    hold.set()
    assert writer.result() == (True, None) and not writer.is_writing()
    assert load_weights(directory.checkpoint(7))["w"].tolist() == [1, 1, 1]
    assert load_state(directory.checkpoint(7))["moment"].tolist() == [1, 1]
    assert directory.last.is_file() and not directory.best.exists()


def test_what_is_saved_is_saved_again_only_if_asked_for(
    directory: RunDirectory, writer: CheckpointWriter
) -> None:
    for value, overwrite, found in ((1.0, False, 1.0), (2.0, False, 1.0), (3.0, True, 3.0)):
        writer.start(1, {"w": torch.full((1,), value)}, {}, Ranking(1), overwrite=overwrite)
        assert writer.result() == (True, None)
        assert load_weights(directory.checkpoint(1))["w"].item() == found


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (CheckpointError("x: not saved"), "x: not saved"),
        (OSError(28, "No space left", "some/file"), "some/file: not written: No space left"),
    ],
)
def test_a_problem_is_reported_once(
    writer: CheckpointWriter, monkeypatch: pytest.MonkeyPatch, error: Exception, message: str
) -> None:
    def fail(*arguments: object) -> None:
        raise error

    monkeypatch.setattr(checkpoint_writer, "save_checkpoint", fail)
    writer.start(1, {}, {}, Ranking(1))
    assert writer.result() == (False, message)
    assert writer.result() == (True, None)


def test_a_bug_of_the_program_is_raised(
    writer: CheckpointWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint_writer, "save_checkpoint", Callable)
    writer.start(1, {}, {}, Ranking(1))
    with pytest.raises(TypeError):
        writer.result()


def test_what_is_saved_counts_as_saved_where_only_the_rest_fails(
    directory: RunDirectory, writer: CheckpointWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: object) -> None:
        raise OSError(28, "No space left", "last.json")

    monkeypatch.setattr(checkpoint_writer, "write_pointers", fail)
    writer.start(1, {"w": torch.ones(1)}, {}, Ranking(1))
    assert writer.result() == (True, "last.json: not written: No space left")
    assert directory.checkpoint(1).is_dir()


def test_a_lack_of_memory_for_a_copy_is_reported(
    writer: CheckpointWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: object) -> None:
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried 8 GB")

    monkeypatch.setattr(checkpoint_writer, "snapshot", fail)
    writer.start(1, {}, {}, Ranking(1))
    saved, problem = writer.result()
    assert not saved and "no memory for a copy" in str(problem)
