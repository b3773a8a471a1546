"""A plan combines all estimates, and becomes text or JSON."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nmt.data.prepared import prepare
from nmt.errors import ConfigError
from nmt.model.anatomy import weight_shapes
from nmt.planning import plan as module
from nmt.planning.plan import RunTime, describe_plan, fit_into_minutes, make_plan
from nmt.planning.probe import Speed
from nmt.planning.workload import find_workload
from nmt.recipe.config import Config
from nmt.recipe.config_file import load_config, parse_config
from nmt.training.train import train
from tests.machine_speed import constant_speed
from tests.training.runs import Recipe, quiet

SPEED = replace(constant_speed(2.0), greedy_seconds=4.0, forward_seconds=1.0)
LONG = (
    *("training.max_steps=1000", "training.warmup_steps=100", "training.cooldown_steps=600"),
    *("training.validate_every=200", "training.checkpoint_every=7"),
)


@pytest.fixture(autouse=True)
def known_speed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine of known speed."""
    monkeypatch.setattr(module, "probe", lambda config, store, sizes: SPEED)


def time_of(config: Config) -> RunTime:
    """The planned time of a recipe."""
    time = make_plan(config).time
    assert time is not None
    return time


def test_the_run_time_is_the_sum_of_steps_validations_and_end(recipe: Recipe) -> None:
    time = time_of(recipe())
    assert time.validation_pairs == 8
    batches = 8 * find_workload(recipe())[0].target_length / 4096
    assert time.training == 40 * 2.0
    assert time.validations == pytest.approx(4 * batches * (1.0 + 4.0))
    assert time.ending == pytest.approx(batches * (2 * (1.0 + 4 * 4.0) + 4 * 4.0))
    assert time.preparation is not None and 0 < time.preparation < 60
    assert time.total == time.preparation + time.training + time.validations + time.ending
    prepare(recipe(), lambda message: None)
    assert time_of(recipe()).preparation == 0


def test_disabled_features_take_no_time(recipe: Recipe) -> None:
    default = time_of(recipe())
    unscored = time_of(recipe("training.score_test_set=false"))
    averaged = time_of(recipe("training.moving_average=0.9"))
    assert unscored.ending < default.ending < averaged.ending
    by_loss = time_of(recipe("training.validation_metric=loss"))
    assert by_loss.validations < default.validations


def test_a_too_large_model_is_not_probed(recipe: Recipe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "free_memory", lambda device: 10_000)
    with pytest.raises(ConfigError) as raised:
        make_plan(recipe("model.d_model=1024", "model.d_ff=4096"))
    assert "so its time cannot be measured; plan the rest without it (`measure`)" in str(
        raised.value
    )
    assert make_plan(recipe("model.d_model=1024"), measure=False).speed is None


@pytest.mark.usefixtures("empty_folder")
def test_the_plan_of_base_matches_the_paper() -> None:
    plan = make_plan(load_config("base.yaml"), measure=False)
    assert plan.operations == pytest.approx(9.5e17, rel=0.02)
    assert plan.disk["checkpoint"] == 3 * 4 * plan.parameters["total"]
    assert plan.time is None and plan.speed is None
    text = describe_plan(plan)
    assert "63,082,496: embeddings 18,944,000, encoder 18,914,304, decoder 25,224,192" in text
    assert (
        "table 3 states 65 M for its base, which takes about 40,745 entries; ours has 63.1 M"
        in text
    )
    assert "381 MFLOP a target token" in text and "time here     not measured\n" in text
    assert "base: 100,000 steps, 12.0 h on 8 P100, 3.3e+18 FLOP" in text


def test_a_plan_converts_to_json(recipe: Recipe) -> None:
    plain = make_plan(recipe()).as_json()
    assert json.loads(json.dumps(plain)) == plain
    parts = ("weights", "gradients", "optimizer", "activations", "logits")
    assert plain["memory"]["total"] == sum(plain["memory"][part] for part in parts)
    assert plain["time"]["total"] > plain["time"]["training"] == 80.0
    assert {spent["name"] for spent in plain["paper"]} == {"base", "big"}


@pytest.mark.usefixtures("empty_folder")
def test_time_and_load_of_other_processes_are_described(monkeypatch: pytest.MonkeyPatch) -> None:
    speed = Speed("cpu", "bf16", 2, 26.3, 868.0, 6, 1973, 0.5, 30.0, 5.0, 0)
    monkeypatch.setattr(module, "probe", lambda config, store, sizes: speed)
    text = describe_plan(make_plan(load_config("base.yaml")))
    for part in (
        "without preparing the text, which is not here",
        "training 30.4 days",
        "26.3 s a step, 868 target tokens/s",
        "measured on 2 threads, bf16, over 6 steps of 1,973 tokens",
        "other processes used the processor for 50% of that time",
        "if they go on, training takes 60.9 days",
    ):
        assert part in text


@pytest.mark.usefixtures("empty_folder")
def test_unknown_epochs_and_too_small_gpus_are_described() -> None:
    config = parse_config(
        "data: {train: {source: a, target: b}, validation: {source: c, target: d}}\n"
        "model: {d_model: 8192, heads: 64, d_ff: 32768}\n"
    )
    text = describe_plan(make_plan(config, measure=False))
    assert "too little memory" in text
    assert "the text cannot be used: a: no such file; check the path; 25 tokens a" in text
    assert "100,000 steps; the size of an epoch is not known" in text


@pytest.fixture
def only_steps_take_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Validations take none."""
    speed = replace(SPEED, greedy_seconds=0.0, forward_seconds=0.0)
    monkeypatch.setattr(module, "probe", lambda config, store, sizes: speed)


@pytest.mark.usefixtures("only_steps_take_time")
@pytest.mark.parametrize(
    ("minutes", "expected"),
    [
        (10, (300, 30, 180, 60, 2)),
        (0.5, (50, 5, 30, 10, 1)),  # fewer steps teach nothing
        (60, (1000, 100, 600, 200, 7)),  # never more than the recipe has
    ],
)
def test_all_parts_of_the_schedule_keep_their_share(
    recipe: Recipe, tmp_path: Path, minutes: float, expected: tuple[int, ...]
) -> None:
    said: list[str] = []
    found = fit_into_minutes(recipe(*LONG), minutes, tmp_path / "run", said.append).training
    steps = (found.max_steps, found.warmup_steps, found.cooldown_steps)
    assert (*steps, found.validate_every, found.checkpoint_every) == expected
    assert f"{minutes:g} minutes are {expected[0]:,} of 1,000 steps (2.00 s a step)" in said


@pytest.mark.usefixtures("only_steps_take_time")
def test_a_schedule_without_cooldown_gets_none(recipe: Recipe, tmp_path: Path) -> None:
    config = fit_into_minutes(recipe("training.max_steps=900"), 5, tmp_path / "run", quiet)
    assert config.training.cooldown_steps == 0 and config.training.max_steps == 150


@pytest.mark.usefixtures("only_steps_take_time")
def test_a_begun_training_keeps_its_steps(
    recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"
    short = fit_into_minutes(recipe(*LONG), 0.5, run, quiet)
    train(short, run, quiet)
    faster = constant_speed(0.1)
    monkeypatch.setattr(module, "probe", lambda config, store, sizes: faster)
    again = fit_into_minutes(recipe(*LONG), 10, run, quiet)
    assert again.training == short.training


@pytest.mark.usefixtures("only_steps_take_time")
def test_a_text_that_ends_at_a_step_is_refused(recipe: Recipe, tmp_path: Path) -> None:
    config = recipe("data.train.until_step=2000", *LONG)
    with pytest.raises(ConfigError, match="texts with after_step or until_step would not fit"):
        fit_into_minutes(config, 5, tmp_path / "run", quiet)


def test_weights_that_the_table_lacks_are_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config = load_config("base.yaml")
    make_plan(config, measure=False)
    assert "has been changed" not in capsys.readouterr().err

    def without_one(*arguments: Any) -> dict[str, Any]:
        shapes = weight_shapes(*arguments)
        del shapes["encoder.layers.0.feed_forward.inner.bias"]
        return shapes

    monkeypatch.setattr(module, "weight_shapes", without_one)
    make_plan(config, measure=False)
    said = capsys.readouterr().err
    assert "from which encoder.layers.0.feed_forward.inner.bias differs" in said
