"""A training is shortened to the minutes that there are, and goes on with the same steps."""

from dataclasses import replace
from pathlib import Path

import pytest

from nmt.errors import ConfigError
from nmt.planning import plan as module
from nmt.planning.time_limit import fit_into_minutes
from nmt.training.train import train
from tests.machine_speed import constant_speed
from tests.training.runs import Recipe, quiet

SPEED = replace(constant_speed(2.0), greedy_seconds=0.0, forward_seconds=0.0)
LONG = (
    *("training.max_steps=1000", "training.warmup_steps=100", "training.cooldown_steps=600"),
    *("training.validate_every=200", "training.checkpoint_every=7"),
)


@pytest.fixture(autouse=True)
def known_speed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine of known speed."""
    monkeypatch.setattr(module, "probe", lambda config, store, sizes: SPEED)


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


def test_a_schedule_without_cooldown_gets_none(recipe: Recipe, tmp_path: Path) -> None:
    config = fit_into_minutes(recipe("training.max_steps=900"), 5, tmp_path / "run", quiet)
    assert config.training.cooldown_steps == 0 and config.training.max_steps == 150


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


def test_a_text_that_ends_at_a_step_is_refused(recipe: Recipe, tmp_path: Path) -> None:
    config = recipe("data.train.until_step=2000", *LONG)
    with pytest.raises(ConfigError, match="texts with after_step or until_step would not fit"):
        fit_into_minutes(config, 5, tmp_path / "run", quiet)
