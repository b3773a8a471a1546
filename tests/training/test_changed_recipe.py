"""A run goes on under the recipe and with the text it began with, or not at all."""

import shutil
from pathlib import Path

import pytest

from nmt.checkpoint import load_state, load_weights, save_checkpoint
from nmt.config import Config, TextPair
from nmt.errors import CheckpointError, ConfigError
from nmt.run_directory import RunDirectory
from nmt.training.resume import check_recipe_unchanged
from nmt.training.state import FORMAT
from nmt.training.train import train
from tests.training.runs import Recipe, quiet


def started(directory: Path, config: Config, step: int = 1) -> RunDirectory:
    run = RunDirectory(directory)
    run.create()
    run.write_config(config)
    run.checkpoint(step).mkdir()
    return run


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("training.batch_tokens=99", "training.batch_tokens: the run has 120, now 99"),
        ("model.d_ff=25", "model.d_ff: the run has 24, now 25"),
        ("seed=2", "seed: the run has 1, now 2"),
        ("training.clip_norm=1", "training.clip_norm: the run has None, now 1.0"),
        ("tokenizer.kind=char", "tokenizer.kind: the run has 'bpe', now 'char'"),
        ("data.cleaning.max_length=9", "data.cleaning.max_length: the run has 256, now 9"),
        ("training.precision=bf16", "training.precision: the run has 'fp32', now 'bf16'"),
        ("training.warmup_steps=7", "training.warmup_steps: the run has 6, now 7"),
        ("model.norm=pre", "model.norm: the run has 'post', now 'pre'"),
        (
            "training.validation_metric=loss",
            "training.validation_metric: the run has 'bleu', now 'loss'",
        ),
    ],
)
def test_a_changed_recipe_is_refused(
    recipe: Recipe, tmp_path: Path, setting: str, message: str
) -> None:
    run = started(tmp_path, recipe())
    with pytest.raises(ConfigError) as raised:
        check_recipe_unchanged(run, recipe(setting))
    assert str(raised.value) == (
        f"{tmp_path}: already holds a run with another recipe; "
        f"choose another --run-dir, or undo: {message}"
    )


def test_every_changed_key_is_named(recipe: Recipe, tmp_path: Path) -> None:
    run = started(tmp_path, recipe())
    with pytest.raises(ConfigError, match=r"model\.d_ff: .*; training\.warmup_steps: .*; seed: "):
        check_recipe_unchanged(run, recipe("seed=2", "model.d_ff=25", "training.warmup_steps=7"))


def test_a_refused_recipe_changes_nothing(recipe: Recipe, tmp_path: Path) -> None:
    run = started(tmp_path, recipe())
    before = run.config.read_text()
    with pytest.raises(ConfigError, match="another recipe"):
        train(recipe("seed=2"), tmp_path, quiet)
    assert run.config.read_text() == before


@pytest.mark.parametrize(
    "setting",
    [
        "training.max_steps=99",
        "training.log_every=7",
        "training.validate_every=7",
        "training.checkpoint_every=7",
        "training.early_stopping=3",
        "training.micro_batch_tokens=64",
        "training.threads=2",
        "training.device=auto",
        "training.average_checkpoints=9",
        "decoding.beam_size=9",
        "data.directory=elsewhere",
    ],
)
def test_keys_that_alter_no_step_already_taken_may_change(
    recipe: Recipe, tmp_path: Path, setting: str
) -> None:
    check_recipe_unchanged(started(tmp_path, recipe()), recipe(setting))


@pytest.mark.parametrize(
    ("schedule", "rejected"),
    [
        ("training.schedule=cosine", True),
        ("training.cooldown_steps=2", True),
        ("training.cooldown_steps=1", False),  # it had not begun at the step that was saved
        ("training.schedule=constant", False),
    ],
)
def test_another_end_is_refused_where_the_rate_had_begun_to_fall_towards_the_first(
    recipe: Recipe, tmp_path: Path, schedule: str, rejected: bool
) -> None:
    settings = [schedule, "training.warmup_steps=1"]
    short, longer = (recipe(*settings, f"training.max_steps={n}") for n in (4, 9))
    run = started(tmp_path, short, step=3)
    check_recipe_unchanged(run, short)
    if not rejected:
        check_recipe_unchanged(run, longer)
        return
    with pytest.raises(ConfigError, match=r"max_steps 9 instead of 4 .* another learning rate at"):
        check_recipe_unchanged(run, longer)


def test_a_test_set_may_be_named_later(recipe: Recipe, tmp_path: Path) -> None:
    without = recipe()
    data = without.data.model_copy(update={"test": TextPair(source="a", target="b")})
    with_test = without.model_copy(update={"data": data})
    check_recipe_unchanged(started(tmp_path / "a", without), with_test)
    check_recipe_unchanged(started(tmp_path / "b", with_test), without)


def test_a_new_directory_takes_any_recipe(recipe: Recipe, tmp_path: Path) -> None:
    check_recipe_unchanged(RunDirectory(tmp_path), recipe())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": FORMAT + 1}, "has format 2, and this version of nmt reads formats up to 1"),
        ({"shares": None}, "is of an earlier version of nmt"),
    ],
)
def test_a_training_state_of_another_version_is_refused(
    recipe: Recipe, tmp_path: Path, change: dict[str, int | None], message: str
) -> None:
    """A state of format 1 may have no format at all, as those of the first versions."""
    run = train(recipe("training.max_steps=1"), tmp_path / "run", quiet)
    path = run.checkpoint(1)
    state, weights = load_state(path), load_weights(path)
    assert state.pop("format") == FORMAT
    save_checkpoint(path, weights, state)
    train(recipe("training.max_steps=2"), run.path, quiet)
    changed = {key: value for key, value in {**state, **change}.items() if value is not None}
    save_checkpoint(run.checkpoint(2), weights, changed)
    with pytest.raises(CheckpointError, match=message):
        train(recipe("training.max_steps=3"), run.path, quiet)


def test_other_training_text_is_refused_and_the_run_left_as_it_was(
    recipe: Recipe, tmp_path: Path, corpus: Path
) -> None:
    """Its ids would mean other words, and the weights would still fit."""
    for language in ("en", "de"):
        shutil.copy(corpus / f"train.{language}", tmp_path)
    text = f"{{source: {tmp_path}/train.en, target: {tmp_path}/train.de}}"
    config = recipe("training.max_steps=1", f"data.train={text}")
    run = train(config, tmp_path / "run", quiet)
    before = {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()}
    for language in ("en", "de"):
        with (tmp_path / f"train.{language}").open("a") as file:
            file.write("one more\n")
    with pytest.raises(ConfigError, match="the training text has changed since this run began"):
        train(config, run.path, quiet)
    assert {path: path.read_bytes() for path in before} == before
