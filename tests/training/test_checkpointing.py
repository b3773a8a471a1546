"""Checkpoints are written in the background, and hold what training was when they were begun."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from nmt.errors import CheckpointError
from nmt.run.checkpoint import load_state, load_weights, save_checkpoint, weights_of
from nmt.training import checkpointing
from nmt.training.checkpointing import snapshot
from nmt.training.trainer import Trainer
from tests.training.runs import MakeTrainer, comparable

OUT_OF_MEMORY = RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried 8 GB")
NO_MEMORY = "step-00000001: checkpoint not saved: no memory for a copy of the state"


@pytest.fixture
def trainer(small_trainer: MakeTrainer) -> Trainer:
    """A trainer that has taken one step."""
    trainer = small_trainer()
    trainer.directory.checkpoints.mkdir(parents=True)
    trainer.stepper.take()
    return trainer


def failing(error: Exception) -> Callable[..., None]:
    def fail(*arguments: object, **options: object) -> None:
        raise error

    return fail


def test_a_snapshot_is_a_copy_of_every_tensor() -> None:
    value: dict[str, Any] = {"a": torch.ones(2), "b": [(torch.ones(1), "text")], "c": None}
    copy = snapshot(value)
    value["a"].zero_()
    value["b"][0][0].zero_()
    assert copy == {"a": copy["a"], "b": [(torch.ones(1), "text")], "c": None}
    assert copy["a"].tolist() == [1, 1]


def test_a_later_snapshot_uses_the_memory_of_the_former() -> None:
    former = snapshot({"same": torch.ones(2), "shape": torch.ones(2), "gone": torch.ones(1)})
    now = {"same": torch.full((2,), 3.0), "shape": torch.ones(3), "new": torch.ones(1)}
    copy = snapshot(now, former)
    assert copy["same"] is former["same"] and copy["same"].tolist() == [3, 3]
    assert copy["shape"].shape == (3,) and copy.keys() == now.keys()


def test_preallocated_memory_is_used_by_the_first_checkpoint(trainer: Trainer) -> None:
    saver = trainer.checkpointer
    saver.preallocate()
    assert saver._allocation
    weights, large = saver._allocation.result()
    saver.save(wait=True)
    name = "encoder.layers.0.feed_forward.inner.weight"
    assert saver._snapshot[0][name] is weights[name]
    moments = [
        state["optimizers"][0]["state"][0]["exp_avg"] for state in (saver._snapshot[1], large)
    ]
    assert moments[0] is moments[1] and moments[0].any()
    saver.preallocate()
    assert saver._allocation is None
    saver.close(wait=True)
    assert saver._snapshot is None


def test_training_may_continue_while_a_checkpoint_is_written(
    trainer: Trainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    released = threading.Event()

    def save(path: Path, *contents: Any) -> None:
        released.wait()
        save_checkpoint(path, *contents)

    monkeypatch.setattr(checkpointing, "save_checkpoint", save)
    before = comparable(weights_of(trainer.model)), comparable(trainer.state.state())
    saver, path = trainer.checkpointer, trainer.directory.checkpoint(1)
    saver.save()
    saver.poll()
    trainer.stepper.take()
    assert not path.exists()
    released.set()
    saver.wait()
    assert (comparable(load_weights(path)), comparable(load_state(path))) == before
    assert trainer.directory.last.is_file() and not trainer.directory.best.exists()


def test_an_existing_checkpoint_is_overwritten_only_on_demand(trainer: Trainer) -> None:
    path, (name, weight) = trainer.directory.checkpoint(1), next(trainer.model.named_parameters())
    for value, overwrite, found in ((1.0, False, 1.0), (2.0, False, 1.0), (3.0, True, 3.0)):
        weight.data.fill_(value)
        trainer.checkpointer.save(overwrite=overwrite, wait=True)
        assert load_weights(path)[name].unique().item() == found


@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        ("save_checkpoint", CheckpointError("x: not saved"), "x: not saved"),
        ("save_checkpoint", OSError(28, "No space left", "a/b"), "a/b: not written: No space left"),
        ("snapshot", OUT_OF_MEMORY, NO_MEMORY),
        (
            "update_after_checkpoint",
            OSError(28, "No space left", "last.json"),
            "last.json: not written: No space left",
        ),
    ],
)
def test_a_problem_is_reported_once_and_only_a_saved_step_is_among_the_best(
    trainer: Trainer,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    function: str,
    error: Exception,
    message: str,
) -> None:
    monkeypatch.setattr(checkpointing, function, failing(error))
    trainer.state.ranking.add(1, 5.0, {})
    trainer.checkpointer.preallocate()
    trainer.checkpointer.save()
    for _ in range(2):
        trainer.checkpointer.wait()
    said = capsys.readouterr().err
    assert said.count(f"{message}; training goes on and tries again\n") == 1
    assert trainer.checkpointer.must_retry
    saved = function == "update_after_checkpoint"
    assert trainer.directory.checkpoint(1).is_dir() is saved
    assert trainer.state.ranking.steps == [1] * saved


def test_a_bug_of_the_program_is_raised(trainer: Trainer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpointing, "save_checkpoint", failing(TypeError("a bug")))
    trainer.checkpointer.save()
    with pytest.raises(TypeError, match="a bug"):
        trainer.checkpointer.wait()
