"""A run continues under the recipe and with the text that it began with, or not at all."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from nmt.data.tokens.tokenizer import Tokenizer
from nmt.errors import CheckpointError, ConfigError
from nmt.files import read_json
from nmt.recipe.config import Config, TextPair
from nmt.run.checkpoint import load_state, load_weights, save_checkpoint
from nmt.run.directory import RunDirectory
from nmt.training.resume import check_recipe_unchanged
from nmt.training.state import FORMAT
from nmt.training.train import train
from tests.training.runs import Recipe, Trained, copied, files_of, quiet

FIRST = "training.max_steps=4"
SECOND = "training.max_steps=5"


def started(directory: Path, config: Config, step: int = 1) -> RunDirectory:
    run = RunDirectory(directory)
    run.checkpoints.mkdir(parents=True)
    run.write_config(config)
    run.checkpoint(step).mkdir()
    return run


@pytest.mark.parametrize(
    ("key", "old", "new"),
    [
        ("training.batch_tokens", 120, 99),
        ("model.d_ff", 64, 65),
        ("seed", 1, 2),
        ("training.clip_norm", None, 1.0),
        ("tokenizer.kind", "bpe", "char"),
        ("data.cleaning.max_length", 256, 9),
        ("training.precision", "fp32", "bf16"),
        ("training.warmup_steps", 6, 7),
        ("model.norm", "post", "pre"),
        ("training.validation_metric", "bleu", "loss"),
    ],
)
def test_a_changed_recipe_is_refused(
    recipe: Recipe, tmp_path: Path, key: str, old: object, new: object
) -> None:
    run = started(tmp_path, recipe())
    before = run.config.read_text()
    with pytest.raises(ConfigError) as raised:
        train(recipe(f"{key}={new}"), tmp_path, quiet)
    assert str(raised.value) == (
        f"{tmp_path}: already holds a run with another recipe; "
        f"choose another `run_dir`, or undo: {key}: the run has {old!r}, now {new!r}"
    )
    assert run.config.read_text() == before


def test_every_changed_key_is_named(recipe: Recipe, tmp_path: Path) -> None:
    run = started(tmp_path, recipe())
    with pytest.raises(ConfigError, match=r"model\.d_ff: .*; training\.warmup_steps: .*; seed: "):
        check_recipe_unchanged(run, recipe("seed=2", "model.d_ff=25", "training.warmup_steps=7"))


def with_test_set(config: Config) -> Config:
    data = config.data.model_copy(update={"test": [TextPair(source="a", target="b")]})
    return config.model_copy(update={"data": data})


def test_keys_that_alter_no_step_already_taken_may_change(recipe: Recipe, tmp_path: Path) -> None:
    run = started(tmp_path, with_test_set(recipe()))
    for setting in (
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
    ):
        check_recipe_unchanged(run, recipe(setting))
    run.write_config(recipe())
    check_recipe_unchanged(run, with_test_set(recipe()))


@pytest.mark.parametrize(
    ("schedule", "rejected"),
    [
        ("training.schedule=cosine", True),
        ("training.cooldown_steps=2", True),
        ("training.cooldown_steps=1", False),  # it had not begun at the step that was saved
        ("training.schedule=constant", False),
    ],
)
def test_another_end_is_refused_if_the_rate_had_begun_to_fall_towards_the_first(
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


def test_a_training_state_of_another_version_is_refused(
    recipe: Recipe, trained: Trained, tmp_path: Path
) -> None:
    """A state of format 1 may have no format at all, as those of the first versions."""
    run = copied(trained(FIRST), tmp_path)
    path = run.checkpoint(4)
    state, weights = load_state(path), load_weights(path)

    def continue_from(state: dict[str, Any]) -> None:
        save_checkpoint(path, weights, state)
        train(recipe(SECOND), run.path, quiet)

    with pytest.raises(CheckpointError, match="newer nmt .format 2; this one knows up to 1"):
        continue_from({**state, "format": FORMAT + 1})
    assert state.pop("format") == FORMAT
    with pytest.raises(CheckpointError, match="is of an earlier version of nmt"):
        continue_from({name: value for name, value in state.items() if name != "shares"})
    continue_from(state)
    assert run.checkpoint(5).is_dir()


@pytest.mark.parametrize(
    ("name", "text"), [("train", "training text"), ("validation", "validation set")]
)
def test_other_text_is_refused_and_the_run_stays_the_same(
    recipe: Recipe, tmp_path: Path, corpus: Path, name: str, text: str
) -> None:
    """Its ids would mean other words, and the weights would still fit."""
    for language in ("en", "de"):
        shutil.copy(corpus / f"{name}.{language}", tmp_path)
    pair = f"{{source: {tmp_path}/{name}.en, target: {tmp_path}/{name}.de}}"
    config = recipe("training.max_steps=1", f"data.{name}={pair}")
    run = train(config, tmp_path / "run", quiet)
    before = files_of(run)
    for language in ("en", "de"):
        with (tmp_path / f"{name}.{language}").open("a") as file:
            file.write("one more\n")
    with pytest.raises(ConfigError, match=f"the {text} has changed since this run began"):
        train(config, run.path, quiet)
    assert files_of(run) == before


def test_another_tokenizer_is_refused_and_a_lost_one_is_written_again(
    recipe: Recipe, trained: Trained, tmp_path: Path
) -> None:
    run = copied(trained(FIRST), tmp_path)
    other = trained(FIRST, "model.embeddings=separate", "tokenizer.shared=false")
    shutil.rmtree(run.tokenizer)
    shutil.copytree(other.tokenizer, run.tokenizer)
    with pytest.raises(ConfigError, match="its tokenizer differs from the one that was learnt"):
        train(recipe(SECOND), run.path, quiet)
    shutil.rmtree(run.tokenizer)
    train(recipe(SECOND), run.path, quiet)
    tokenizers = [Tokenizer.load(each.tokenizer) for each in (run, trained(FIRST))]
    assert not tokenizers[0].differs_from(tokenizers[1])


def test_nothing_remains_of_a_start_that_failed(
    recipe: Recipe, trained: Trained, tmp_path: Path
) -> None:
    """It died before its first checkpoint, with other text and two vocabularies."""
    other = trained(FIRST, "model.embeddings=separate", "tokenizer.shared=false")
    run = RunDirectory(tmp_path / "run")
    shutil.copytree(other.tokenizer, run.tokenizer)
    run.environment.write_text('{"data_fingerprint": "of another text"}', "utf-8")
    train(recipe(FIRST), run.path, quiet)
    train(recipe(SECOND), run.path, quiet)
    environment = read_json(run.environment)
    assert environment["data_fingerprint"] != "of another text"
    assert len(environment["resumed"]) == 1
    assert [path.name for path in run.tokenizer.iterdir()] == ["tokenizer.model"]


def test_copies_beside_the_checkpoints_stay(
    recipe: Recipe, trained: Trained, tmp_path: Path
) -> None:
    run = copied(trained(FIRST, "training.average=best"), tmp_path)
    copies = [run.checkpoints / "step-00000004-good", run.checkpoints / "step-00000004.tar"]
    for copy in copies:
        shutil.copytree(run.checkpoint(4), copy)
    train(recipe(SECOND, "training.average=best", "training.keep_last=1"), run.path, quiet)
    assert all(copy.is_dir() for copy in copies)
