"""A plan combines all estimates and converts to JSON."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from nmt.config import Config
from nmt.config_file import load_config
from nmt.errors import ConfigError
from nmt.planning import plan as module
from nmt.planning.plan import Plan, make_plan
from tests.machine_speed import constant_speed
from tests.training.runs import Recipe

SPEED = replace(constant_speed(2.0), waiting=0.5, greedy_seconds=4.0, forward_seconds=1.0)


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> Callable[[Config], Plan]:
    """A plan for a machine of known speed."""
    monkeypatch.setattr(module, "probe", lambda config, store, sizes: SPEED)
    return make_plan


def test_the_run_time_is_the_sum_of_steps_validations_and_end(
    recipe: Recipe, planned: Callable[[Config], Plan]
) -> None:
    time = planned(recipe()).time
    assert time is not None and time.validation_pairs == 8
    batches = 8 * 25 / 4096
    assert time.training == 40 * 2.0
    assert time.validations == pytest.approx(4 * batches * (1.0 + 4.0))
    assert time.ending == pytest.approx(batches * (2 * (1.0 + 4 * 4.0) + 4 * 4.0))
    assert time.total == time.training + time.validations + time.ending


def test_disabled_features_take_no_time(recipe: Recipe, planned: Callable[[Config], Plan]) -> None:
    default = planned(recipe()).time
    unscored = planned(recipe("training.score_test_set=false")).time
    by_loss = planned(recipe("training.validation_metric=loss")).time
    averaged = planned(recipe("training.moving_average=0.9")).time
    assert default and unscored and by_loss and averaged
    assert unscored.ending < default.ending < averaged.ending
    assert by_loss.validations < default.validations


def test_a_model_larger_than_the_memory_is_not_probed(
    recipe: Recipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "free_memory", lambda device: 10_000)
    with pytest.raises(ConfigError) as raised:
        make_plan(recipe("model.d_model=1024", "model.d_ff=4096"))
    assert "so its time cannot be measured; --no-probe plans the rest" in str(raised.value)
    assert make_plan(recipe("model.d_model=1024"), measure=False).speed is None


def test_the_plan_of_base_matches_the_paper(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    plan = make_plan(load_config("base.yaml"), measure=False)
    assert plan.parameters.total == 63_082_496
    assert plan.counterpart is not None and plan.counterpart.parameters == 65_000_000
    assert plan.operations == pytest.approx(9.5e17, rel=0.02)
    assert plan.disk.checkpoint == 3 * 4 * plan.parameters.total
    assert plan.time is None and plan.speed is None
    assert not list(tmp_path.iterdir())


def test_a_plan_converts_to_json(recipe: Recipe, planned: Callable[[Config], Plan]) -> None:
    plain = planned(recipe()).as_json()
    assert json.loads(json.dumps(plain)) == plain
    assert plain["memory"]["total"] == sum(
        plain["memory"][part]
        for part in ("weights", "gradients", "optimizer", "activations", "logits")
    )
    assert plain["time"]["total"] > plain["time"]["training"] == 80.0
    assert {spent["name"] for spent in plain["paper"]} == {"base", "big"}
