"""The probe takes real steps, writes no files, and copes with other processes."""

import time
from functools import partial
from pathlib import Path

import pytest
import torch

from nmt.planning import probe as module
from nmt.planning.probe import Speed, probe
from nmt.planning.workload import find_workload, sample_sentences
from nmt.recipe.config import Config
from nmt.run.checkpoint import trained_parameters
from nmt.training.trainer import Trainer
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
        "training.track=[tensorboard]",
        "training.batch_tokens=8",
    ],
)
def test_recipes_are_measured_without_files(recipe: Recipe, tmp_path: Path, setting: str) -> None:
    before = set(tmp_path.rglob("*"))
    speed = measured(recipe(setting))
    assert set(tmp_path.rglob("*")) == before
    assert speed.steps >= 6 and speed.step_seconds > 0 and speed.greedy_seconds > 0
    assert speed.target_tokens > 0 and 0 <= speed.waiting <= 1
    assert (speed.device, speed.precision, speed.threads) == ("cpu", "fp32", 1)


def test_of_an_adapted_model_only_the_adapters_are_trained(
    recipe: Recipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = set[str]()

    def take_step(trainer: Trainer) -> module._ProbedStep:
        names.update(trained_parameters(trainer.model))
        return original(trainer)

    original = module._take_step
    monkeypatch.setattr(module, "_take_step", take_step)
    speed = measured(recipe("training.initialize_from=parent", "training.lora={rank: 2}"))
    assert names and all("lora_" in name for name in names)
    assert speed.greedy_seconds > 0


def test_long_steps_are_measured_in_part(recipe: Recipe, monkeypatch: pytest.MonkeyPatch) -> None:
    config = recipe("training.batch_tokens=20000")
    monkeypatch.setattr(module, "_STEP_SECONDS", 1e-6)
    speed = measured(config)
    assert speed.step_tokens == 512
    assert speed.target_tokens * speed.step_seconds == pytest.approx(20_000, rel=0.2)


def test_outliers_do_not_change_the_interquartile_mean() -> None:
    times = [1.0, 1.1, 0.9, 1.0, 60.0, 1.0, 1.0, 0.1]
    assert module._interquartile_mean(times) == pytest.approx(1.0)
    assert module._interquartile_mean([3.0]) == 3.0


def test_waiting_is_not_computing_and_is_0_without_proc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_read_waits", iter([{"1": 5}, {"1": 9, "2": 10**18}]).__next__)
    work, device = partial(time.sleep, 0.01), torch.device("cpu")
    # a thread waits no longer than the time that has passed
    _, computing, waited = module._timed(device, work)
    assert 0 < computing < 1e-5 and 0.01 <= waited < 60
    monkeypatch.undo()
    monkeypatch.setattr(Path, "glob", lambda *_: [Path("missing/schedstat")])
    _, computing, waited = module._timed(device, work)
    assert computing > 0 and waited == 0.0
