"""Stopping costs nothing: a run in parts is the run in one, bit for bit."""

import json
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nmt.checkpoint import WEIGHTS, load_weights
from nmt.config import Config
from nmt.data.tokens.batch import Batch
from nmt.errors import DivergedError, StoppedBySignal
from nmt.run_directory import RunDirectory
from nmt.training import step as step_module
from nmt.training.gradients import GradientComputer, StepGradient
from nmt.training.loss import Loss, Objective
from nmt.training.optimizer import update_weights
from nmt.training.schedule import learning_rate
from nmt.training.train import train
from nmt.training.validation import Validation, Validator
from tests.training.runs import Recipe, assert_same_run, comparable, quiet, records

STEPS = range(1, 13)
"""of the recipe: all there are"""
PARTS = "training.micro_batch_tokens=40"


class PowerFailure(BaseException):
    """Nothing catches it and nothing is saved."""


def interrupted(
    config: Config, path: Path, step: int, how: Callable[[], object], log: Any = quiet
) -> BaseException:
    """Train until `how` happens while the weights are updated in `step`."""

    def update(*arguments: Any) -> None:
        if arguments[2] == learning_rate(step, config):
            how()
        original(*arguments)

    original = update_weights
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(step_module, "update_weights", update)
        with pytest.raises((StoppedBySignal, PowerFailure)) as raised:
            train(config, path, log)
    return raised.value


def stop() -> None:
    signal.raise_signal(signal.SIGTERM)


def fail() -> None:
    raise PowerFailure


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Config], RunDirectory]:
    """Trains a recipe the first time that a test asks for it."""
    made: dict[str, RunDirectory] = {}

    def of(config: Config) -> RunDirectory:
        if (key := repr(config)) not in made:
            made[key] = train(config, tmp_path_factory.mktemp("whole") / "run", quiet)
        return made[key]

    return of


@pytest.fixture(scope="module")
def whole(recipe: Recipe, uninterrupted: Callable[[Config], RunDirectory]) -> RunDirectory:
    return uninterrupted(recipe())


def test_the_run_crosses_the_end_of_an_epoch(whole: RunDirectory) -> None:
    """So that the tests below do."""
    epochs = [record["epoch"] for record in records(whole) if record["event"] == "train"]
    assert epochs[0] < 1 < epochs[-1]


def test_the_same_recipe_trains_the_same_model(
    recipe: Recipe, whole: RunDirectory, tmp_path: Path
) -> None:
    train(recipe(), tmp_path / "again", quiet)
    assert_same_run(tmp_path / "again", whole)


def test_sampled_pieces_are_those_of_the_uninterrupted_run(recipe: Recipe, tmp_path: Path) -> None:
    config = recipe("tokenizer.sampling=0.2")
    whole = train(config, tmp_path / "whole", quiet)
    interrupted(config, tmp_path / "run", 8, fail)
    train(config, tmp_path / "run", quiet)
    assert_same_run(tmp_path / "run", whole)
    plain = train(recipe(), tmp_path / "plain", quiet)
    assert records(plain)[0]["loss"] != records(whole)[0]["loss"]


@pytest.mark.parametrize("step", STEPS)
def test_a_stopped_run_resumes_bit_for_bit(
    recipe: Recipe, whole: RunDirectory, tmp_path: Path, step: int
) -> None:
    log: list[str] = []
    error = interrupted(recipe(), tmp_path / "run", step, stop)
    assert isinstance(error, StoppedBySignal)
    assert f"stopped by SIGTERM after step {step}; saved in {tmp_path / 'run'}" in str(error)
    assert error.exit_code == 128 + signal.SIGTERM
    train(recipe(), tmp_path / "run", log.append)
    assert any(line.startswith(f"resuming after step {step} from ") for line in log)
    assert_same_run(tmp_path / "run", whole)


def test_translations_of_steps_that_are_taken_again_are_forgotten(
    recipe: Recipe, whole: RunDirectory, tmp_path: Path
) -> None:
    interrupted(recipe(), tmp_path / "run", 8, fail)
    later = RunDirectory(tmp_path / "run").translations / "step-00000007.txt"
    later.write_text("source     a\nreference  b\nmodel      c\n", "utf-8")
    train(recipe(), tmp_path / "run", quiet)
    assert_same_run(tmp_path / "run", whole)


@pytest.mark.parametrize("step", STEPS)
def test_a_stop_inside_accumulation_interrupts_the_gradient(
    recipe: Recipe,
    uninterrupted: Callable[[Config], RunDirectory],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    step: int,
) -> None:
    compute, forward, place = GradientComputer.compute, Objective.forward, [0, 0]

    def computed(gradients: GradientComputer, number: int) -> StepGradient:
        place[:] = number, 0
        return compute(gradients, number)

    def stopped(objective: Objective, batch: Batch) -> Loss:
        place[1] += 1
        if place == [step, 2]:
            stop()
            raise AssertionError("not obeyed at once")
        return forward(objective, batch)

    expected = "before the first step" if step == 1 else f"after step {step - 1}; saved"
    with monkeypatch.context() as patched:
        patched.setattr(GradientComputer, "compute", computed)
        patched.setattr(Objective, "forward", stopped)
        with pytest.raises(StoppedBySignal, match=expected):
            train(recipe(PARTS), tmp_path / "run", quiet)
    train(recipe(PARTS), tmp_path / "run", quiet)
    assert_same_run(tmp_path / "run", uninterrupted(recipe(PARTS)))


@pytest.mark.parametrize("step", [5, 10, 12])
@pytest.mark.parametrize("then", ["goes on", "loses power in the next step", "is stopped again"])
def test_a_stop_interrupts_a_validation_which_is_repeated(
    recipe: Recipe,
    whole: RunDirectory,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    step: int,
    then: str,
) -> None:
    def validate(validator: Validator, beam_size: int = 1) -> Validation:
        result = original(validator, beam_size)
        if due.pop() == step:
            stop()
            raise AssertionError("not obeyed at once")
        return result

    original = Validator.validate
    for _ in range(2 if then == "is stopped again" else 1):
        due = [12, 10, 5] if not RunDirectory(tmp_path / "run").config.exists() else [step]
        with monkeypatch.context() as patched:
            patched.setattr(Validator, "validate", validate)
            with pytest.raises(StoppedBySignal, match=f"after step {step}; saved"):
                train(recipe(), tmp_path / "run", quiet)
    if then == "loses power in the next step" and step < 12:
        interrupted(recipe(), tmp_path / "run", step + 1, fail)
    train(recipe(), tmp_path / "run", quiet)
    assert_same_run(tmp_path / "run", whole)


@pytest.mark.parametrize("step", STEPS)
def test_a_run_that_lost_power_resumes_bit_for_bit(
    recipe: Recipe, whole: RunDirectory, tmp_path: Path, step: int
) -> None:
    interrupted(recipe(), tmp_path / "run", step, fail)
    train(recipe(), tmp_path / "run", quiet)
    assert_same_run(tmp_path / "run", whole)


def test_many_stops_are_as_good_as_none(
    recipe: Recipe, whole: RunDirectory, tmp_path: Path
) -> None:
    for step, how in ((2, stop), (3, fail), (6, stop), (9, fail), (10, stop)):
        interrupted(recipe(), tmp_path / "run", step, how)
    train(recipe(), tmp_path / "run", quiet)
    assert_same_run(tmp_path / "run", whole)


@pytest.mark.parametrize("file", ["model.safetensors", "training_state.pt", "manifest.json"])
def test_a_damaged_newest_checkpoint_costs_its_steps_alone(
    recipe: Recipe, whole: RunDirectory, tmp_path: Path, file: str
) -> None:
    run = RunDirectory(tmp_path / "run")
    interrupted(recipe(), run.path, 10, stop)
    newest = run.checkpoint(10) / file
    newest.write_bytes(newest.read_bytes()[:-3])
    log: list[str] = []
    train(recipe(), run.path, log.append)
    assert any("step-00000010" in line and "set aside" in line for line in log)
    assert any(line.startswith("resuming after step 8 ") for line in log)
    shutil.rmtree(run.checkpoints / "damaged-step-00000010")
    assert_same_run(run.path, whole)


def test_a_last_record_that_was_cut_is_written_again(
    recipe: Recipe, whole: RunDirectory, tmp_path: Path
) -> None:
    run = RunDirectory(tmp_path / "run")
    interrupted(recipe(), run.path, 7, fail)
    with run.metrics.open("a") as file:
        file.write('{"event": "train", "st')
    train(recipe(), run.path, quiet)
    assert_same_run(run.path, whole)


def test_a_second_signal_is_obeyed_at_once(recipe: Recipe, tmp_path: Path) -> None:
    def twice() -> None:
        stop()
        signal.raise_signal(signal.SIGINT)

    error = interrupted(recipe(), tmp_path / "run", 3, twice)
    assert isinstance(error, StoppedBySignal)
    assert "stopped at once by a second SIGINT" in str(error)
    assert error.exit_code == 130
    assert not RunDirectory(tmp_path / "run").saved_checkpoints()


def test_the_handlers_of_before_are_put_back(recipe: Recipe, tmp_path: Path) -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    interrupted(recipe(), tmp_path / "run", 2, stop)
    assert [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)] == before


def test_a_finished_run_is_left_alone(whole: RunDirectory, recipe: Recipe) -> None:
    def contents() -> dict[Path, bytes]:
        files = (path for path in whole.path.rglob("*") if path.is_file())
        mutable = {whole.environment, whole.config, whole.path / ".lock"}
        return {path: path.read_bytes() for path in files if path not in mutable}

    before, config = contents(), whole.config.read_text()
    log: list[str] = []
    train(recipe(), whole.path, log.append)
    assert log[-1] == f"{whole.path}: already trained to step 12; nothing to do"
    assert contents() == before
    assert whole.config.read_text() == config


def test_a_finished_run_continues_with_a_larger_max_steps(
    recipe: Recipe, whole: RunDirectory, tmp_path: Path
) -> None:
    run = RunDirectory(tmp_path / "run")
    train(recipe("training.max_steps=8"), run.path, quiet)
    train(recipe(), run.path, quiet)
    # the shorter run validated at its last step, which the longer one passes by
    assert [r for r in records(run) if r["step"] != 8 or r["event"] == "train"] == records(whole)
    weights, expected = load_weights(run.checkpoint(12)), load_weights(whole.checkpoint(12))
    assert comparable(weights) == comparable(expected)


def test_a_run_that_lost_power_while_choosing_its_best_weights_chooses_again(
    recipe: Recipe, whole: RunDirectory, tmp_path: Path
) -> None:
    run = RunDirectory(tmp_path / "run")
    validate = Validator.validate

    def with_a_beam_fails(validator: Validator, beam_size: int = 1) -> Validation:
        if beam_size > 1:
            fail()
        return validate(validator, beam_size)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Validator, "validate", with_a_beam_fails)
        with pytest.raises(PowerFailure):
            train(recipe(), run.path, quiet)
    assert run.averaged.is_dir()
    train(recipe(), run.path, quiet)
    assert_same_run(run.path, whole)


def test_a_kill_between_a_checkpoint_and_what_follows_is_repaired(
    whole: RunDirectory, recipe: Recipe, tmp_path: Path
) -> None:
    """The last one is there, the pointer and the one to forget are still those of before."""
    run = RunDirectory(tmp_path / "run")
    shutil.copytree(whole.path, run.path)
    shutil.copytree(run.checkpoint(8), run.checkpoint(3))
    run.write_json(run.last, {"weights": "checkpoints/step-00000008"})
    run.best.unlink()
    train(recipe(), run.path, quiet)
    assert [p.name for p in run.saved_checkpoints()] == [p.name for p in whole.saved_checkpoints()]
    assert run.last.read_bytes() == whole.last.read_bytes()


def test_a_run_cut_short_before_its_first_validation_keeps_what_it_has(
    recipe: Recipe, tmp_path: Path
) -> None:
    interrupted(recipe(), tmp_path / "run", 3, stop)
    run = train(recipe("training.max_steps=3"), tmp_path / "run", quiet)
    best = json.loads(run.best.read_text())
    assert (best["weights"], best["trained_steps"]) == ("averaged", 3)


def test_a_moving_average_resumes_bit_for_bit(recipe: Recipe, tmp_path: Path) -> None:
    config = recipe("training.moving_average=0.9")
    whole = train(config, tmp_path / "whole", quiet)
    interrupted(config, tmp_path / "run", 7, fail)
    run = train(config, tmp_path / "run", quiet)
    assert_same_run(run.path, whole)
    weights = [(r.moving_average / WEIGHTS).read_bytes() for r in (run, whole)]
    assert weights[0] == weights[1]
    assert set(json.loads(whole.best.read_text())["candidates"]) >= {"averaged", "moving-average"}


def test_several_threads_resume_bit_for_bit(recipe: Recipe, tmp_path: Path) -> None:
    config = recipe("training.threads=2", "model.dropout=0.3", "training.micro_batch_tokens=40")
    whole = train(config, tmp_path / "whole", quiet)
    interrupted(config, tmp_path / "run", 7, fail)
    train(config, tmp_path / "run", quiet)
    assert_same_run(tmp_path / "run", whole)


def test_a_rolled_back_run_resumes_bit_for_bit(
    recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = GradientComputer.compute

    def compute(self: GradientComputer, step: int) -> StepGradient:
        result = original(self, step)
        if step == 7:
            raise DivergedError("step 7: the loss is nan")
        return result

    monkeypatch.setattr(GradientComputer, "compute", compute)
    config = recipe("training.on_divergence=roll_back")
    whole = train(config, tmp_path / "whole", quiet)
    interrupted(config, tmp_path / "run", 10, fail)
    train(config, tmp_path / "run", quiet)
    assert_same_run(tmp_path / "run", whole)
