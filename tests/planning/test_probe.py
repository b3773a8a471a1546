"""The probe takes real steps, leaves nothing behind, and is not misled by other processes."""

from collections.abc import Callable
from pathlib import Path

import pytest

from nmt.config import Config
from nmt.planning import probe as module
from nmt.planning.probe import Speed, probe
from nmt.planning.workload import find_workload, sample_text

Recipe = Callable[..., Config]


def measured(config: Config) -> Speed:
    workload, prepared = find_workload(config)
    return probe(config, sample_text(config, workload, prepared), (60, 60))


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_ENOUGH_SECONDS", -1.0)


@pytest.mark.parametrize(
    "setting",
    [
        "training.optimizer=muon",
        "training.moving_average=0.9",
        "training.activation_checkpointing=true",
        "tokenizer.sampling=0.1",
        "training.tensorboard=true",
        "training.batch_tokens=8",
    ],
)
def test_every_kind_of_recipe_is_measured_and_nothing_is_written(
    recipe: Recipe, tmp_path: Path, setting: str
) -> None:
    before = set(tmp_path.rglob("*"))
    speed = measured(recipe(setting))
    assert set(tmp_path.rglob("*")) == before
    assert speed.steps >= 6 and speed.step_seconds > 0 and speed.greedy_seconds > 0
    assert speed.target_tokens > 0 and 0 <= speed.waiting <= 1
    assert (speed.device, speed.precision, speed.threads) == ("cpu", "fp32", 1)


def test_long_steps_are_cut_short_and_counted_in_full(
    recipe: Recipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = recipe("training.batch_tokens=200000")
    monkeypatch.setattr(module, "_STEP_SECONDS", 0.001)
    speed = measured(config)
    assert speed.step_tokens < 20_000
    assert speed.target_tokens * speed.step_seconds == pytest.approx(200_000, rel=0.2)


def test_a_hiccup_of_the_machine_does_not_count() -> None:
    assert module._middle([1.0, 1.1, 0.9, 1.0, 60.0, 1.0, 1.0, 0.1]) == pytest.approx(1.0)
    assert module._middle([3.0]) == 3.0


def test_time_that_others_had_the_processor_is_no_more_than_has_passed() -> None:
    clock = module._Clock()
    later = module._Clock()
    assert 0 <= later.waited_since(clock) <= later.since(clock)
    assert later.own_since(clock) > 0


def test_without_proc_nothing_is_known_of_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*arguments: object, **named: object) -> str:
        raise FileNotFoundError

    monkeypatch.setattr(module.Path, "read_text", missing)
    clock = module._Clock()
    assert module._Clock().waited_since(clock) == 0.0
