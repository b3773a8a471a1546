"""A run continues under the recipe and with the text that it began with, or not at all."""

import math
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from nmt.data.tokens.tokenizer import Tokenizer
from nmt.errors import CheckpointError, ConfigError
from nmt.files import read_json
from nmt.recipe.config import Config, TextPair
from nmt.run.checkpoint import load_state, load_weights, save_checkpoint
from nmt.run.directory import RunDirectory
from nmt.training.changed_recipe import check_recipe_unchanged
from nmt.training.state import FORMAT
from nmt.training.train import train
from tests.training.runs import Recipe, Trained, copied, files_of, quiet, records, same_weights

FIRST = "training.max_steps=4"
SECOND = "training.max_steps=5"


def started(directory: Path, config: Config, step: int = 1) -> RunDirectory:
    run = RunDirectory(directory)
    run.checkpoints.mkdir(parents=True)
    run.write_config(config)
    run.checkpoint(step).mkdir()
    return run


@pytest.mark.parametrize(
    ("key", "old", "new", "reason"),
    [
        ("training.batch_tokens", 120, 99, ""),
        ("model.d_ff", 64, 65, ""),
        ("model.dropout", 0.2, 0.1, ""),
        ("seed", 1, 2, ""),
        ("tokenizer.kind", "bpe", "char", ""),
        ("data.cleaning.max_length", 256, 9, ""),
        ("training.precision", "fp32", "bf16", ""),
        ("training.warmup_steps", 6, 7, " (another learning rate at step 1, and 1 are taken)"),
        ("training.clip_norm", None, 1.0, ""),  # the norms are not known
        ("model.norm", "post", "pre", ""),
    ],
)
def test_a_changed_recipe_is_refused(
    recipe: Recipe, tmp_path: Path, key: str, old: object, new: object, reason: str
) -> None:
    run = started(tmp_path, recipe())
    before = run.config.read_text()
    with pytest.raises(ConfigError) as raised:
        train(recipe(f"{key}={new}"), tmp_path, quiet)
    assert str(raised.value) == (
        f"{tmp_path}: already holds a run with another recipe: {key}: the run has {old!r}, now "
        f"{new!r}{reason}. Undo this; or choose another `run_dir`, where "
        f"training.initialize_from: {tmp_path} begins with the weights of this run"
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
        "training.validation_metric=loss",
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


COOLDOWN = "training.cooldown_steps=2"


@pytest.mark.parametrize(
    ("before", "now", "taken", "other_rate"),
    [
        # where the rate had begun to fall towards the end, the end cannot move
        (["training.schedule=cosine"], ["training.max_steps=9"], 3, 2),
        ([COOLDOWN], ["training.max_steps=9"], 3, 3),
        ([COOLDOWN], ["training.max_steps=9"], 2, None),
        ([], ["training.max_steps=9"], 3, None),
        # a cooldown may come, go or change before it begins
        ([], [COOLDOWN], 2, None),
        ([], [COOLDOWN], 3, 3),
        ([COOLDOWN], ["training.cooldown_steps=0"], 2, None),
        ([COOLDOWN], ["training.cooldown_steps=3"], 1, None),
        ([COOLDOWN], ["training.cooldown_steps=3"], 2, 2),
        (["training.schedule=constant"], ["training.schedule=warmup_stable_decay"], 3, None),
        (["training.schedule=constant"], ["training.schedule=linear"], 3, 2),
        # the default, written out
        ([], [f"training.peak_learning_rate={64**-0.5!r}"], 3, None),
        ([], ["training.peak_learning_rate=0.5"], 3, 1),
    ],
)
def test_what_decides_the_rate_may_change_if_no_step_had_another_one(
    recipe: Recipe,
    tmp_path: Path,
    before: list[str],
    now: list[str],
    taken: int,
    other_rate: int | None,
) -> None:
    plain = ["training.peak_learning_rate=null", "training.warmup_steps=1", "training.max_steps=4"]
    run = started(tmp_path, recipe(*plain, *before), taken)
    check_recipe_unchanged(run, recipe(*plain, *before))
    changed = recipe(*plain, *before, *now)
    if other_rate is None:
        assert check_recipe_unchanged(run, changed) is None
        return
    reason = f"another learning rate at step {other_rate}, and {taken} are taken"
    with pytest.raises(ConfigError, match=f"{now[0].partition('=')[0]}: the run has .*{reason}"):
        check_recipe_unchanged(run, changed)


@pytest.mark.parametrize(
    ("before", "now", "norm", "allowed"),
    [
        (None, 2.0, 1.9, True),
        (None, 2.0, 2.1, False),
        (2.0, None, 1.9, True),
        (2.0, None, 2.1, False),
        (3.0, 2.0, 1.9, True),
        (2.0, 3.0, 2.5, False),
        (None, 2.0, math.inf, False),  # an older nmt had not recorded it
        (None, 2.0, None, False),
    ],
)
def test_the_clip_norm_may_change_if_no_gradient_would_have_been_clipped(
    recipe: Recipe,
    tmp_path: Path,
    before: float | None,
    now: float | None,
    norm: float | None,
    allowed: bool,
) -> None:
    def settings(clip_norm: float | None) -> str:
        return f"training.clip_norm={'null' if clip_norm is None else clip_norm}"

    run = started(tmp_path, recipe(settings(before)))
    state = {} if norm is None else {"largest_norm": norm}
    save_checkpoint(run.checkpoint(1), {"weight": torch.zeros(1)}, state)
    if allowed:
        assert check_recipe_unchanged(run, recipe(settings(now))) is None
        return
    is_known = norm is not None and math.isfinite(norm)
    reason = rf" \(a gradient had the norm {norm}\)" if is_known else ""
    problem = rf"clip_norm: the run has {before}, now {now}{reason}\. Undo this; or choose"
    with pytest.raises(ConfigError, match=problem):
        check_recipe_unchanged(run, recipe(settings(now)))


def test_a_clip_norm_that_clips_nothing_may_be_set_in_a_run(
    recipe: Recipe, trained: Trained, tmp_path: Path
) -> None:
    run = copied(trained(FIRST), tmp_path)
    largest = load_state(run.checkpoint(4))["largest_norm"]
    assert 0 < largest < math.inf
    problem = f"now {largest / 2} (a gradient had the norm {largest:.3g})"
    with pytest.raises(ConfigError, match=re.escape(problem)):
        train(recipe(SECOND, f"training.clip_norm={largest / 2}"), run.path, quiet)
    train(recipe(SECOND, f"training.clip_norm={largest * 2}"), run.path, quiet)
    whole = trained(SECOND)
    assert same_weights(run.checkpoint(5), whole.checkpoint(5)) == (
        load_state(whole.checkpoint(5))["largest_norm"] < largest * 2
    )


def test_a_run_with_a_cooldown_goes_on_for_longer_from_a_checkpoint_before_it(
    recipe: Recipe, trained: Trained, tmp_path: Path
) -> None:
    short = [FIRST, "training.warmup_steps=1", COOLDOWN, "training.checkpoint_every=1"]
    longer = recipe(*short, "training.max_steps=7")
    run = copied(trained(*short), tmp_path)
    before = files_of(run)
    advice = "the checkpoint of step 2, which is from before, with `from_step` 2; or choose"
    for from_step in (None, 3):
        with pytest.raises(ConfigError, match=advice):
            train(longer, run.path, quiet, from_step=from_step)
    with pytest.raises(ConfigError, match="no checkpoint of step 9 to go on from; the run has tho"):
        train(longer, run.path, quiet, from_step=9)
    assert files_of(run) == before
    log: list[str] = []
    train(longer, run.path, log.append, from_step=2)
    assert any(line.startswith("going back to step 2: ") for line in log)
    aside = [run.checkpoints / f"set-aside-step-0000000{step}" for step in (3, 4)]
    assert all(path.is_dir() for path in aside)
    whole = trained(*short, "training.max_steps=7")
    assert records(run) == records(whole)
    assert same_weights(run.checkpoint(7), whole.checkpoint(7))
    assert read_json(run.best)["trained_steps"] == 7
    # the same command again has nothing to do, as always
    train(longer, run.path, log.append, from_step=2)
    assert any(line.startswith("the recipe fits the last checkpoint") for line in log)
    assert all(path.is_dir() for path in aside)


def test_a_step_to_go_on_from_needs_a_run(recipe: Recipe, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no checkpoint of step 2 to go on from; the run has non"):
        train(recipe(), tmp_path / "run", quiet, from_step=2)


def test_another_validation_metric_counts_from_now_on(
    recipe: Recipe, trained: Trained, tmp_path: Path
) -> None:
    settings = [FIRST, "training.validate_every=2"]
    run = copied(trained(*settings), tmp_path)
    log: list[str] = []
    train(recipe(*settings, "training.validation_metric=loss"), run.path, log.append)
    assert any("its weights were chosen by bleu, which training.val" in line for line in log)
    train(recipe(*settings, SECOND, "training.validation_metric=loss"), run.path, quiet)
    ranking = load_state(run.checkpoint(5))["ranking"]["entries"]
    assert [entry["score"] for entry in ranking] == [-entry["loss"] for entry in ranking]
    assert same_weights(run.checkpoint(5), trained(*settings, SECOND).checkpoint(5))


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
