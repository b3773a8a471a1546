"""Eq. 3, step by step, and the other shapes a learning rate may take."""

import math
from typing import Any, get_args

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from nmt.recipe.config import Config, ModelConfig, TrainingConfig
from nmt.training.schedule import inverse_square_root, learning_rate

SCHEDULES = get_args(TrainingConfig.model_fields["schedule"].annotation)


def configured(**training: Any) -> Config:
    section = TrainingConfig(**{"warmup_steps": 400, **training})
    return Config(model=ModelConfig(d_model=256, heads=4), training=section)


def rates(schedule: str, **training: Any) -> list[float]:
    """The rate of each step from 1 to 1,000; the warm-up takes 100 steps to 1.0."""
    settings = {"warmup_steps": 100, "max_steps": 1000, "peak_learning_rate": 1.0, **training}
    config = configured(schedule=schedule, **settings)
    return [learning_rate(step, config) for step in range(1, 1001)]


@pytest.mark.parametrize("step", [1, 2, 50, 399, 400, 401, 5000, 100_000])
def test_default_is_equation_3(step: int) -> None:
    expected = 256**-0.5 * min(step**-0.5, step * 400**-1.5)
    assert learning_rate(step, configured()) == pytest.approx(expected, rel=1e-12)


def test_one_step_of_warm_up_starts_at_the_peak_and_the_decay_is_an_inverse_square_root() -> None:
    assert inverse_square_root(1, peak=0.5, warmup_steps=1) == 0.5
    assert inverse_square_root(400, peak=0.5, warmup_steps=100) == pytest.approx(0.25)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_every_schedule_rises_to_the_peak_and_never_again(schedule: str) -> None:
    found = rates(schedule)
    assert max(found) == found[99] == pytest.approx(1.0, rel=1e-12)
    assert found[:100] == sorted(found[:100])
    assert found[99:] == sorted(found[99:], reverse=True)
    if schedule != "one_cycle":
        assert found[:100] == pytest.approx([step / 100 for step in range(1, 101)])


@pytest.mark.parametrize("schedule", ["linear", "cosine", "warmup_stable_decay"])
def test_what_decays_to_zero_meets_it_one_step_after_the_last(schedule: str) -> None:
    config = configured(schedule=schedule, warmup_steps=100, max_steps=1000, peak_learning_rate=1.0)
    assert 0 < learning_rate(1000, config) < 0.006
    assert learning_rate(1001, config) == pytest.approx(0, abs=1e-12)


def test_the_middle_of_each_decay() -> None:
    assert rates("constant")[549] == 1
    assert rates("linear")[549] == pytest.approx(451 / 901)
    assert rates("cosine")[549] == pytest.approx(0.5 + math.cos(math.pi * 450 / 901) / 2)
    stable = rates("warmup_stable_decay")
    assert stable[799] == 1 and stable[899] == pytest.approx(101 / 201)


def test_one_cycle_is_that_of_pytorch() -> None:
    """PyTorch counts from 0, and its lowest rates are those of our steps 0 and 1,001."""
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    theirs = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=1.0, total_steps=1002, pct_start=101 / 1002, cycle_momentum=False
    )
    expected = []
    for _ in range(1001):
        expected.append(theirs.get_last_lr()[0])
        optimizer.step()
        theirs.step()
    assert rates("one_cycle") == pytest.approx(expected[1:], rel=1e-9)


def test_a_cooldown_ends_any_schedule_and_leaves_what_went_before() -> None:
    plain, cooled = rates("inverse_square_root"), rates("inverse_square_root", cooldown_steps=200)
    assert cooled[:800] == plain[:800]
    assert cooled[899] == pytest.approx(plain[899] * 101 / 201)
    assert cooled[999] == pytest.approx(plain[999] / 201)


def test_the_default_cooldown_does_not_begin_before_the_warmup_has_ended() -> None:
    settings = {"schedule": "warmup_stable_decay", "max_steps": 60, "peak_learning_rate": 1.0}
    for warmup_steps, after in [(58, [2 / 3, 1 / 3]), (60, []), (70, [])]:
        config = configured(**settings, warmup_steps=warmup_steps)
        rising = [step / warmup_steps for step in range(1, 61 - len(after))]
        found = [learning_rate(step, config) for step in range(1, 61)]
        assert found == pytest.approx([*rising, *after])


@given(
    schedule=st.sampled_from(SCHEDULES),
    warmup_steps=st.integers(1, 50),
    max_steps=st.integers(1, 50),
    cooldown_steps=st.integers(0, 60),
)
def test_no_combination_leaves_the_range_of_rates(
    schedule: str, warmup_steps: int, max_steps: int, cooldown_steps: int
) -> None:
    """Warm-ups longer than the training included."""
    assume(cooldown_steps == 0 or warmup_steps + cooldown_steps <= max_steps)
    config = configured(
        schedule=schedule,
        warmup_steps=warmup_steps,
        max_steps=max_steps,
        cooldown_steps=cooldown_steps,
        peak_learning_rate=0.5,
    )
    for step in range(1, max_steps + 1):
        assert 0 < learning_rate(step, config) <= 0.5 * (1 + 1e-9)
