"""What a run does where the disk is full or a step cannot be learnt from."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from nmt.checkpoint import load_weights, save_checkpoint
from nmt.errors import CheckpointError, DivergedError
from nmt.run_directory import RunDirectory
from nmt.training import checkpoint_writer, checkpointing
from nmt.training import resume as resume_module
from nmt.training import step as step_module
from nmt.training.checkpoint_writer import CheckpointWriter
from nmt.training.gradients import GradientComputer, StepGradient
from nmt.training.optimizer import update_weights
from nmt.training.step import PendingStep, Stepper
from nmt.training.train import train
from nmt.training.trainer import Trainer
from tests.training.runs import Recipe, quiet, same_weights


def events(run: RunDirectory) -> list[tuple[str, int, Any]]:
    """What was recorded, at which step, and the loss or where it went back to."""
    lines = [json.loads(line) for line in run.metrics.read_text("utf-8").splitlines()]
    return [(line["event"], line["step"], line.get("loss", line.get("to"))) for line in lines]


def failing_saves(monkeypatch: pytest.MonkeyPatch, *steps: int) -> None:
    """Let the disk be full whenever one of the steps is to be saved."""
    original = save_checkpoint

    def save(path: Path, *arguments: Any) -> None:
        if RunDirectory.step_of(path) in steps:
            raise CheckpointError(f"{path}: checkpoint not saved: No space left (needs 9 MiB)")
        original(path, *arguments)

    monkeypatch.setattr(checkpoint_writer, "save_checkpoint", save)


def test_training_continues_when_a_checkpoint_cannot_be_saved(
    recipe: Recipe,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    whole = train(recipe(), tmp_path / "whole", quiet)
    failing_saves(monkeypatch, 8)
    monkeypatch.setattr(checkpointing, "_STEPS_BETWEEN_POLLS", 1)
    monkeypatch.setattr(CheckpointWriter, "is_writing", lambda writer: False)
    run = train(recipe(), tmp_path / "run", quiet)
    said = capsys.readouterr().err
    assert "No space left (needs 9 MiB); training goes on and tries again" in said
    assert run.checkpoint(9).is_dir() and not run.checkpoint(8).exists()
    assert same_weights(run.checkpoint(12), whole.checkpoint(12))
    assert events(run) == events(whole)


def test_a_step_that_could_not_be_saved_is_not_the_best(
    recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """best.json always names a checkpoint that is there."""
    config = recipe("training.validation_metric=loss", "training.checkpoint_every=100")
    failing_saves(monkeypatch, 10)
    pointed = []
    original = RunDirectory.write_json

    def write_json(run: RunDirectory, path: Path, value: dict[str, Any]) -> None:
        original(run, path, value)
        if path == run.best:
            pointed.append((value["weights"], (run.path / value["weights"]).is_dir()))

    monkeypatch.setattr(RunDirectory, "write_json", write_json)
    train(config, tmp_path / "run", quiet)
    assert all(there for _, there in pointed)
    names = [name[-2:] for name, _ in pointed]
    assert "05" in names and "10" not in names


def stopped_in_step_6(monkeypatch: pytest.MonkeyPatch) -> None:
    original = Stepper._finish_step

    def finish(stepper: Stepper, step: PendingStep) -> None:
        if step.number == 6:
            signal.raise_signal(signal.SIGTERM)
        original(stepper, step)

    monkeypatch.setattr(Stepper, "_finish_step", finish)


@pytest.mark.parametrize("how", ["at the end", "when stopped"])
def test_the_last_checkpoint_must_be_saved(
    recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    failing_saves(monkeypatch, 12, 6)
    with pytest.raises(CheckpointError, match="not saved: No space left"):
        if how == "at the end":
            train(recipe(), tmp_path / "run", quiet)
        else:
            stopped_in_step_6(monkeypatch)
            train(recipe(), tmp_path / "run", quiet)
    names = [path.name for path in RunDirectory(tmp_path / "run").saved_checkpoints()]
    assert names and not {"step-00000012", "step-00000006"} & set(names)


def diverging(monkeypatch: pytest.MonkeyPatch, *steps: int) -> None:
    original = GradientComputer.compute

    def compute(self: GradientComputer, step: int) -> StepGradient:
        result = original(self, step)
        if step in steps:
            raise DivergedError(f"step {step}: the loss is nan for 3 pairs")
        return result

    monkeypatch.setattr(GradientComputer, "compute", compute)


def test_divergence_stops_with_advice(
    recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    diverging(monkeypatch, 7)
    with pytest.raises(
        DivergedError, match=r"step 7: .* for 3 pairs\. All checkpoints in .* are from before"
    ):
        train(recipe(), tmp_path / "run", quiet)


def test_a_run_may_roll_back_instead(
    recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes up the weights of step 5, the last saved, and goes on with step 8."""
    all_are_kept = "training.keep_last=9"
    whole = train(recipe(all_are_kept), tmp_path / "whole", quiet)
    diverging(monkeypatch, 7)
    log: list[str] = []
    rolling_back = recipe(all_are_kept, "training.on_divergence=roll_back")
    run = train(rolling_back, tmp_path / "run", log.append)
    assert any("going on with the weights of step-00000005, without the" in line for line in log)
    assert same_weights(run.checkpoint(5), whole.checkpoint(5))
    assert ("roll_back", 7, 5) in events(run)
    assert events(run)[-1][:2] == ("validation", 12)


def test_rolling_back_again_and_again_ends(
    recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resume_module, "MAX_ROLL_BACKS", 3)
    diverging(monkeypatch, 6, 7, 8, 9, 10)
    with pytest.raises(DivergedError, match="step 9: .* an earlier checkpoint 3 times already"):
        train(recipe("training.on_divergence=roll_back"), tmp_path / "run", quiet)


def test_a_run_that_rolls_back_at_its_last_step_saves_it(
    recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    diverging(monkeypatch, 12)
    waited = []
    save = Trainer.save

    def noted(self: Trainer, *, overwrite: bool = False, wait: bool = False) -> None:
        waited.append((self.state.step, wait))
        save(self, overwrite=overwrite, wait=wait)

    monkeypatch.setattr(Trainer, "save", noted)
    run = train(recipe("training.on_divergence=roll_back"), tmp_path / "run", quiet)
    assert waited[-1] == (12, True)
    assert run.checkpoint(12).is_dir()


def test_weights_that_are_not_numbers_are_not_saved(
    recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The update of step 7 ruins them; step 5 remains to go back to."""
    original = update_weights

    def ruined(optimizers: Any, *arguments: Any) -> None:
        original(optimizers, *arguments)
        calls.append(1)
        if len(calls) == 7:
            optimizers[0].param_groups[0]["params"][0].data.fill_(float("nan"))

    calls: list[int] = []
    monkeypatch.setattr(step_module, "update_weights", ruined)
    settings = ("training.on_divergence=roll_back", "training.checkpoint_every=1")
    run = train(recipe(*settings), tmp_path / "run", quiet)
    assert ("roll_back", 7, 6) in events(run)
    assert all(w.isfinite().all() for w in load_weights(run.checkpoint(12)).values())
