"""Stopping costs nothing: a run in parts is the run in one, bit for bit."""

import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from nmt.data.tokens.token_store import Indices
from nmt.errors import StoppedBySignal
from nmt.files import read_json, write_json
from nmt.run.directory import RunDirectory
from nmt.training.gradients import ComputedStep, GradientComputer
from nmt.training.train import train
from nmt.training.validation import Validation, Validator
from tests.training.runs import (
    Diverge,
    PowerFailure,
    Recipe,
    Trained,
    assert_same_run,
    copied,
    fail,
    interrupted,
    quiet,
    records,
    same_weights,
    stop,
)

PARTS = "training.micro_batch_tokens=40"


@pytest.fixture
def whole(trained: Trained) -> RunDirectory:
    return trained()


def test_the_same_recipe_trains_the_same_model_over_more_than_an_epoch(
    recipe: Recipe, whole: RunDirectory, tmp_path: Path
) -> None:
    train(recipe(), tmp_path / "again", quiet)
    assert_same_run(tmp_path / "again", whole)
    epochs = [record["epoch"] for record in records(whole) if record["event"] == "train"]
    assert epochs[0] < 1 < epochs[-1]


@pytest.mark.parametrize("step", [1, 3, 4, 5, 6, 8, 10, 11, 12])
def test_a_stopped_run_resumes_bit_for_bit(
    recipe: Recipe, whole: RunDirectory, tmp_path: Path, step: int
) -> None:
    log: list[str] = []
    handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    error = interrupted(recipe(), tmp_path / "run", step, stop)
    assert [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)] == handlers
    assert isinstance(error, StoppedBySignal)
    assert f"stopped by SIGTERM after step {step}; saved in {tmp_path / 'run'}" in str(error)
    assert error.exit_code == 128 + signal.SIGTERM
    train(recipe(), tmp_path / "run", log.append)
    assert any(line.startswith(f"resuming after step {step} from ") for line in log)
    assert_same_run(tmp_path / "run", whole)


@pytest.mark.parametrize("step", [4, 5, 6, 9])
def test_a_run_in_stages_resumes_bit_for_bit_before_and_after_a_stage_begins(
    recipe: Recipe, trained: Trained, tmp_path: Path, step: int
) -> None:
    [text] = recipe().data.train
    files = f"source: {text.source}, target: {text.target}"
    texts = f"data.train=[{{{files}, until_step: 5}}, {{{files}, weight: 0.5, after_step: 4}}]"
    interrupted(recipe(texts), tmp_path / "run", step, stop)
    train(recipe(texts), tmp_path / "run", quiet)
    assert_same_run(tmp_path / "run", trained(texts))


def test_several_validation_texts_choose_the_weights_that_their_lines_choose_in_one_text(
    recipe: Recipe, whole: RunDirectory, tmp_path: Path
) -> None:
    [text] = recipe().data.validation
    files = []
    for path in map(Path, text.paths):
        lines = path.read_text("utf-8").splitlines(keepends=True)
        for name, part in (("one", lines[:3]), ("two", lines[3:])):
            (tmp_path / f"{name}{path.suffix}").write_text("".join(part), "utf-8")
    files = [
        f"{{name: {n}, source: {tmp_path}/{n}.en, target: {tmp_path}/{n}.de}}"
        for n in ("one", "two")
    ]
    run = train(recipe(f"data.validation=[{', '.join(files)}]"), tmp_path / "run", quiet)
    found, expected = read_json(run.best), read_json(whole.best)
    assert {key: found[key] for key in ("weights", "loss", "bleu")} == {
        key: expected[key] for key in ("weights", "loss", "bleu")
    }
    assert {"bleu one", "bleu two"} <= found.keys()
    names = ("data_fingerprint", "validation_fingerprint")
    facts = [read_json(each.environment) for each in (run, whole)]
    assert len({tuple(each[name] for name in names) for each in facts}) == 1
    for record, other in zip(records(run), records(whole), strict=True):
        parts = {key for key in record if key.startswith("bleu ")}
        assert {key: record[key] for key in record.keys() - parts} == other
        assert len(parts) == (2 if record["event"] == "validation" else 0)


@pytest.mark.parametrize("step", [1, 3, 4, 5, 6, 8, 10, 11, 12])
def test_a_run_that_lost_power_resumes_bit_for_bit(
    recipe: Recipe, whole: RunDirectory, tmp_path: Path, step: int
) -> None:
    """Also if its last record was cut, and translations of a later step were written."""
    run = RunDirectory(tmp_path / "run")
    interrupted(recipe(), run.path, step, fail)
    with run.metrics.open("a") as file:
        file.write('{"event": "train", "st')
    run.translations.mkdir(exist_ok=True)
    later = run.translations / f"step-{step + 1:08d}.txt"
    later.write_text("source     a\nreference  b\nmodel      c\n", "utf-8")
    train(recipe(), run.path, quiet)
    assert_same_run(run.path, whole)


@pytest.mark.parametrize("step", [1, 2, 5, 8, 12])
def test_a_stop_inside_accumulation_interrupts_the_gradient(
    recipe: Recipe, trained: Trained, tmp_path: Path, step: int
) -> None:
    compute, steps = GradientComputer.compute, list[int]()

    def computed(gradients: GradientComputer, number: int) -> ComputedStep:
        steps.append(number)
        return compute(gradients, number)

    class Parts(list[Indices]):
        def __iter__(self) -> Iterator[Indices]:
            for part in super().__iter__():
                yield part
                if steps[-1:] == [step]:
                    stop()
                    raise AssertionError("not obeyed at once")

    expected = "before the first step" if step == 1 else f"after step {step - 1}; saved"
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(GradientComputer, "compute", computed)
        divided = GradientComputer._divide
        patched.setattr(GradientComputer, "_divide", lambda *them: Parts(divided(*them)))
        with pytest.raises(StoppedBySignal, match=expected):
            train(recipe(PARTS), tmp_path / "run", quiet)
    train(recipe(PARTS), tmp_path / "run", quiet)
    assert_same_run(tmp_path / "run", trained(PARTS))


@pytest.mark.parametrize("step", [5, 10, 12])
@pytest.mark.parametrize("then", ["goes on", "loses power in the next step", "is stopped again"])
def test_a_stop_interrupts_a_validation_which_is_repeated(
    recipe: Recipe, whole: RunDirectory, tmp_path: Path, step: int, then: str
) -> None:
    def validate(validator: Validator, beam_size: int = 1) -> Validation:
        result = original(validator, beam_size)
        if due.pop(0) == step:
            stop()
            raise AssertionError("not obeyed at once")
        return result

    original, due = Validator.validate, [n for n in (5, 10, 12) if n <= step]
    for _ in range(2 if then == "is stopped again" else 1):
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(Validator, "validate", validate)
            with pytest.raises(StoppedBySignal, match=f"after step {step}; saved"):
                train(recipe(), tmp_path / "run", quiet)
        due = [step]
    if then == "loses power in the next step" and step < 12:
        interrupted(recipe(), tmp_path / "run", step + 1, fail)
    train(recipe(), tmp_path / "run", quiet)
    assert_same_run(tmp_path / "run", whole)


def test_many_stops_are_as_good_as_none(
    recipe: Recipe, whole: RunDirectory, tmp_path: Path
) -> None:
    for step, how in ((2, stop), (3, fail), (6, stop), (9, fail), (10, stop)):
        interrupted(recipe(), tmp_path / "run", step, how)
    train(recipe(), tmp_path / "run", quiet)
    assert_same_run(tmp_path / "run", whole)


@pytest.mark.parametrize(
    "settings",
    [
        ("tokenizer.sampling=0.2",),
        ("training.moving_average=0.9",),
        ("training.threads=2", "training.validation_metric=loss", PARTS),
    ],
    ids=["sampled pieces", "moving average", "several threads"],
)
def test_a_run_resumes_bit_for_bit_whatever_its_state_holds(
    recipe: Recipe, trained: Trained, tmp_path: Path, settings: tuple[str, ...]
) -> None:
    whole, config = trained(*settings), recipe(*settings)
    interrupted(config, tmp_path / "run", 7, fail)
    train(config, tmp_path / "run", quiet)
    assert_same_run(tmp_path / "run", whole)
    has_average = config.training.moving_average is not None
    assert (records(whole)[0]["loss"] == records(trained())[0]["loss"]) is has_average
    if has_average:
        assert read_json(whole.best)["candidates"].keys() >= {"averaged", "moving-average"}


def test_a_rolled_back_run_resumes_bit_for_bit(
    recipe: Recipe, tmp_path: Path, diverge: Diverge
) -> None:
    diverge(7)
    config = recipe("training.on_divergence=roll_back")
    whole = train(config, tmp_path / "whole", quiet)
    interrupted(config, tmp_path / "run", 10, fail)
    train(config, tmp_path / "run", quiet)
    assert_same_run(tmp_path / "run", whole)


@pytest.mark.parametrize("file", ["model.safetensors", "training_state.pt", "manifest.json"])
def test_a_damaged_newest_checkpoint_costs_only_its_steps(
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


def test_a_second_signal_is_obeyed_at_once(recipe: Recipe, tmp_path: Path) -> None:
    def twice() -> None:
        stop()
        signal.raise_signal(signal.SIGINT)

    error = interrupted(recipe(), tmp_path / "run", 3, twice)
    assert isinstance(error, StoppedBySignal)
    assert "stopped at once by a second SIGINT" in str(error)
    assert error.exit_code == 130
    assert not RunDirectory(tmp_path / "run").saved_checkpoints()


def test_the_same_signal_stops_at_once_after_half_a_second(
    recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def twice() -> None:
        stop()
        stop()

    monkeypatch.setattr("nmt.training.stopping._REPEAT_SECONDS", 0.0)
    error = interrupted(recipe(), tmp_path / "run", 3, twice)
    assert "stopped at once by a second SIGTERM" in str(error)


def test_a_signal_that_arrives_twice_is_one_request(recipe: Recipe, tmp_path: Path) -> None:
    def twice() -> None:  # as `timeout` does
        stop()
        stop()

    error = interrupted(recipe(), tmp_path / "run", 3, twice)
    assert "saved" in str(error)
    assert len(RunDirectory(tmp_path / "run").saved_checkpoints()) == 1


def test_a_finished_run_continues_with_a_larger_max_steps(
    recipe: Recipe, trained: Trained, whole: RunDirectory, tmp_path: Path
) -> None:
    run = copied(trained("training.max_steps=8"), tmp_path)
    train(recipe(), run.path, quiet)
    # the shorter run validated at its last step, which the longer one does not validate
    assert [r for r in records(run) if r["step"] != 8 or r["event"] == "train"] == records(whole)
    assert same_weights(run.checkpoint(12), whole.checkpoint(12))


def test_a_run_that_lost_power_while_choosing_its_best_weights_chooses_again(
    recipe: Recipe, whole: RunDirectory, tmp_path: Path
) -> None:
    run = RunDirectory(tmp_path / "run")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("nmt.training.result.write_json", lambda *arguments: fail())
        with pytest.raises(PowerFailure):
            train(recipe(), run.path, quiet)
    assert run.averaged.is_dir()
    train(recipe(), run.path, quiet)
    assert_same_run(run.path, whole)


def test_a_kill_between_a_checkpoint_and_what_follows_is_repaired(
    recipe: Recipe, whole: RunDirectory, tmp_path: Path
) -> None:
    """The last checkpoint is there, but last.json and the one to delete are those of before."""
    run = copied(whole, tmp_path)
    shutil.copytree(run.checkpoint(8), run.checkpoint(3))
    write_json(run.last, {"weights": "checkpoints/step-00000008"})
    run.best.unlink()
    train(recipe(), run.path, quiet)
    assert [p.name for p in run.saved_checkpoints()] == [p.name for p in whole.saved_checkpoints()]
    assert run.last.read_bytes() == whole.last.read_bytes()


def test_a_run_cut_short_before_its_first_validation_keeps_what_it_has(
    recipe: Recipe, tmp_path: Path
) -> None:
    interrupted(recipe(), tmp_path / "run", 3, stop)
    run = train(recipe("training.max_steps=3"), tmp_path / "run", quiet)
    best = read_json(run.best)
    assert (best["weights"], best["trained_steps"]) == ("averaged", 3)
