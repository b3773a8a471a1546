"""Stages change which texts are learnt, and the order stays a pure function of (seed, step)."""

import numpy as np
import pytest

from nmt.data.tokens.batches import BatchPlan, CorpusWeight
from nmt.data.tokens.stages import Stage, StagedPlan
from nmt.data.tokens.token_store import TokenStore
from nmt.errors import DataError
from nmt.training.distributed import shard

RANDOM = np.random.default_rng(3)
SOURCE, TARGET = RANDOM.integers(2, 20, 900), RANDOM.integers(2, 20, 900)
FIRST = [CorpusWeight(600, 0.4), CorpusWeight(300, 0)]
BOTH = [CorpusWeight(600, 1), CorpusWeight(300, 2)]
LAST = [CorpusWeight(600, 0), CorpusWeight(300, 1)]
STAGES = [Stage(0, FIRST), Stage(25, BOTH), Stage(90, LAST)]
STEPS = 150


def plan_of(seed: int = 7, stages: list[Stage] = STAGES) -> StagedPlan:
    return StagedPlan(SOURCE, TARGET, 300, seed, stages)


def steps_of(seed: int, start: int, end: int) -> list[list[int]]:
    plan = plan_of(seed)
    return [plan.step(step).tolist() for step in range(start, end)]


def test_a_plan_that_starts_at_any_step_or_goes_back_gives_the_same_steps() -> None:
    whole = steps_of(7, 0, STEPS)
    assert steps_of(8, 0, STEPS) != whole
    for start in (*range(0, STEPS, 17), 24, 25, 26, 89, 90, 91):
        assert steps_of(7, start, STEPS) == whole[start:]
    plan = plan_of()
    assert [plan.step(step).tolist() for step in range(STEPS - 1, -1, -1)] == whole[::-1]


def test_two_processes_divide_the_same_steps_in_every_stage() -> None:
    store = TokenStore.of([[5] * n for n in SOURCE], [[5] * n for n in TARGET])
    plans = [plan_of(), plan_of()]  # one of each process
    for step in range(STEPS):
        parts = [shard(store, plans[rank].step(step), rank, 2) for rank in (0, 1)]
        assert sorted(np.concatenate(parts)) == sorted(plan_of().step(step))


def test_a_stage_has_its_own_texts_from_its_first_step_to_its_last() -> None:
    texts = [set(np.array(step) >= 600) for step in steps_of(7, 0, STEPS)]
    assert set.union(*texts[:25]) == {False}
    assert set.union(*texts[25:90]) == {False, True}
    assert set.union(*texts[90:]) == {True}


def test_every_epoch_of_a_stage_has_each_pair_as_often_as_it_weighs() -> None:
    plan = plan_of()
    steps = plan.steps_per_epoch[2]
    for epoch in range(2):
        start = 90 + epoch * steps
        pairs = np.concatenate([plan.step(step) for step in range(start, start + steps)])
        assert sorted(pairs) == list(range(600, 900))


def test_one_stage_is_the_plan_without_stages() -> None:
    plain = BatchPlan(SOURCE, TARGET, 300, 7, BOTH)
    for plan in (
        plan_of(stages=[Stage(0, BOTH)]),
        plan_of(stages=[Stage(0, BOTH), Stage(40, LAST)]),
    ):
        assert all(np.array_equal(plan.step(step), plain.step(step)) for step in range(40))
    without = StagedPlan(SOURCE, TARGET, 300, 7)
    assert np.array_equal(without.step(99), BatchPlan(SOURCE, TARGET, 300, 7).step(99))
    assert plan_of(stages=[]).epochs(99) == 99 / without.steps_per_epoch[0]


def test_a_text_of_two_stages_comes_in_another_order_in_the_second() -> None:
    plan = plan_of(stages=[Stage(0, BOTH), Stage(40, [CorpusWeight(600, 1), CorpusWeight(300, 2)])])
    first, second = ([plan.step(start + step).tolist() for step in range(40)] for start in (0, 40))
    assert first != second


def test_epochs_add_up_over_the_stages() -> None:
    plan = plan_of()
    first, both, last = plan.steps_per_epoch
    assert plan.epochs(25) == 25 / first
    assert plan.epochs(26) == pytest.approx(25 / first + 1 / both)
    assert plan.epochs(100) == pytest.approx(25 / first + 65 / both + 10 / last)


def test_a_stage_with_empty_epochs_is_an_error_at_the_start() -> None:
    stages = [Stage(0, BOTH), Stage(1000, [CorpusWeight(600, 0), CorpusWeight(300, 0.001)])]
    with pytest.raises(DataError, match="leave epochs without a single pair"):
        plan_of(stages=stages)
