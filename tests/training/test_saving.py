"""Checkpoints are written in the background, and say what training was when they were begun."""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from nmt.checkpoint import load_state, load_weights
from nmt.config import TrainingConfig
from nmt.errors import CheckpointError
from nmt.run_directory import RunDirectory
from nmt.training import saving
from nmt.training.ranking import Ranking
from nmt.training.saving import Saver, snapshot


@pytest.fixture
def directory(tmp_path: Path) -> RunDirectory:
    directory = RunDirectory(tmp_path / "run")
    directory.create()
    return directory


@pytest.fixture
def saver(directory: RunDirectory) -> Saver:
    return Saver(directory, TrainingConfig(checkpoint_every=1))


@pytest.fixture
def hold(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Checkpoints are written once this is set."""
    event = threading.Event()
    original = saving.save_checkpoint

    def save(path: Path, *contents: dict[str, Tensor]) -> None:
        event.wait()
        original(path, *contents)

    monkeypatch.setattr(saving, "save_checkpoint", save)
    return event


def test_a_snapshot_is_a_copy_of_every_tensor() -> None:
    value = {"a": torch.ones(2), "b": [torch.zeros(1), (torch.ones(1), "text")], "c": None}
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


def test_room_is_made_for_a_snapshot_before_there_is_one(
    saver: Saver, directory: RunDirectory
) -> None:
    weights, moments = {"w": torch.ones(3)}, [{"m": torch.ones(2, 2).t(), "step": 1}]
    assert not saver.has_room
    saver.make_room(weights, {"optimizers": moments})
    assert saver.has_room
    saver._have_made_room()
    room = saver._copied
    saver.start(1, weights, {"optimizers": moments, "step": 1}, Ranking(0))
    assert saver.outcome() == (True, None)
    assert saver._copied[0]["w"] is room[0]["w"]
    assert saver._copied[1]["optimizers"][0]["m"] is room[1]["optimizers"][0]["m"]
    assert load_weights(directory.checkpoint(1))["w"].tolist() == [1, 1, 1]
    saver.release_memory()
    assert not saver.has_room


def test_where_there_is_no_room_the_checkpoint_says_so(
    saver: Saver, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(*arguments: object, **options: object) -> None:
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried 8 GB")

    monkeypatch.setattr(torch, "zeros_like", none)
    monkeypatch.setattr(saving, "snapshot", none)
    saver.make_room({"w": torch.ones(3)}, {})
    saver.start(1, {"w": torch.ones(3)}, {}, Ranking(0))
    saved, problem = saver.outcome()
    assert not saved and problem and "no memory for a copy of the state" in problem


def test_training_may_go_on_while_a_checkpoint_is_written(
    directory: RunDirectory, saver: Saver, hold: threading.Event
) -> None:
    weights, state = {"w": torch.ones(3)}, {"moment": torch.ones(2), "step": 7}
    saver.start(7, weights, state, Ranking(1))
    assert saver.writing() and not directory.checkpoint(7).exists()
    weights["w"].zero_()
    state["moment"].zero_()
    hold.set()
    assert saver.outcome() == (True, None) and not saver.writing()
    assert load_weights(directory.checkpoint(7))["w"].tolist() == [1, 1, 1]
    assert load_state(directory.checkpoint(7))["moment"].tolist() == [1, 1]
    assert directory.last.is_file() and not directory.best.exists()


def test_what_is_saved_is_saved_again_only_if_asked_for(
    directory: RunDirectory, saver: Saver
) -> None:
    for value, anew, found in ((1.0, False, 1.0), (2.0, False, 1.0), (3.0, True, 3.0)):
        saver.start(1, {"w": torch.full((1,), value)}, {}, Ranking(1), anew=anew)
        assert saver.outcome() == (True, None)
        assert load_weights(directory.checkpoint(1))["w"].item() == found


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (CheckpointError("x: not saved"), "x: not saved"),
        (OSError(28, "No space left", "some/file"), "some/file: not written: No space left"),
    ],
)
def test_what_went_wrong_is_told_once(
    saver: Saver, monkeypatch: pytest.MonkeyPatch, error: Exception, message: str
) -> None:
    def fail(*arguments: object) -> None:
        raise error

    monkeypatch.setattr(saving, "save_checkpoint", fail)
    saver.start(1, {}, {}, Ranking(1))
    assert saver.outcome() == (False, message)
    assert saver.outcome() == (True, None)


def test_what_is_a_mistake_of_the_program_is_no_mere_message(
    saver: Saver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saving, "save_checkpoint", Callable)
    saver.start(1, {}, {}, Ranking(1))
    with pytest.raises(TypeError):
        saver.outcome()


def test_what_is_saved_counts_as_saved_where_only_the_rest_fails(
    directory: RunDirectory, saver: Saver, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: object) -> None:
        raise OSError(28, "No space left", "last.json")

    monkeypatch.setattr(saving, "point_to", fail)
    saver.start(1, {"w": torch.ones(1)}, {}, Ranking(1))
    assert saver.outcome() == (True, "last.json: not written: No space left")
    assert directory.checkpoint(1).is_dir()


def test_no_memory_for_a_copy_is_a_problem_and_no_end(
    saver: Saver, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: object) -> None:
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried 8 GB")

    monkeypatch.setattr(saving, "snapshot", fail)
    saver.start(1, {}, {}, Ranking(1))
    saved, problem = saver.outcome()
    assert not saved and "no memory for a copy" in str(problem)
