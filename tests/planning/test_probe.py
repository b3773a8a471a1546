"""The probe takes real steps, writes no files, and copes with other processes."""

from pathlib import Path

import pytest

from nmt.config import Config
from nmt.planning import probe as module
from nmt.planning.probe import Speed, probe
from nmt.planning.workload import find_workload, sample_sentences
from tests.training.runs import Recipe


def measured(config: Config) -> Speed:
    workload, prepared = find_workload(config)
    return probe(config, sample_sentences(config, workload, prepared), (60, 60))


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
def test_every_kind_of_recipe_is_measured_without_writing_files(
    recipe: Recipe, tmp_path: Path, setting: str
) -> None:
    before = set(tmp_path.rglob("*"))
    speed = measured(recipe(setting))
    assert set(tmp_path.rglob("*")) == before
    assert speed.steps >= 6 and speed.step_seconds > 0 and speed.greedy_seconds > 0
    assert speed.target_tokens > 0 and 0 <= speed.waiting <= 1
    assert (speed.device, speed.precision, speed.threads) == ("cpu", "fp32", 1)


def test_long_steps_are_measured_with_fewer_tokens_and_scaled_up(
    recipe: Recipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = recipe("training.batch_tokens=20000")
    monkeypatch.setattr(module, "_STEP_SECONDS", 1e-6)
    speed = measured(config)
    assert speed.step_tokens == 512
    assert speed.target_tokens * speed.step_seconds == pytest.approx(20_000, rel=0.2)


def test_outliers_do_not_change_the_interquartile_mean() -> None:
    times = [1.0, 1.1, 0.9, 1.0, 60.0, 1.0, 1.0, 0.1]
    assert module._interquartile_mean(times) == pytest.approx(1.0)
    assert module._interquartile_mean([3.0]) == 3.0


def test_the_waiting_time_is_at_most_the_elapsed_time_and_zero_without_proc(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, later = module._read_clock(), module._read_clock()
    assert 0 <= later.waited_since(clock) <= later.since(clock)
    assert later.own_since(clock) > 0
    monkeypatch.setattr(Path, "glob", lambda *_: [Path("missing/schedstat")])
    clock, later = module._read_clock(), module._read_clock()
    assert later.waited_since(clock) == 0.0
