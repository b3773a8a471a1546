"""The plan is a pure function that wastes little; a batch holds what was put in."""

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.data.tokens.batch import collate, collate_source
from nmt.data.tokens.batches import BatchPlan, CorpusWeight, Stage, StagedPlan, micro_batches
from nmt.data.tokens.token_store import Indices, TokenStore
from nmt.data.tokens.tokenizer import BOS, EOS, PAD
from nmt.errors import DataError
from nmt.training.distributed import shard

Pairs = list[tuple[int, int]]
Lengths = npt.NDArray[np.int64]

lengths_of_pairs = st.lists(st.tuples(st.integers(1, 40), st.integers(1, 40)), min_size=1)


def sides(pairs: Pairs) -> tuple[Lengths, Lengths]:
    source, target = np.array(pairs, np.int64).T
    return source, target


def natural(count: int, seed: int = 0) -> tuple[Lengths, Lengths]:
    """Lengths as text has them: many middling, a few long, both sides alike."""
    random = np.random.default_rng(seed)
    target = np.clip(random.lognormal(2.6, 0.4, count), 2, 80)
    source = np.clip(target * random.normal(1, 0.15, count), 2, 80)
    return source.astype(np.int64), target.astype(np.int64)


def epoch_of(plan: BatchPlan, epoch: int) -> list[Indices]:
    first = epoch * plan.steps_per_epoch + 1
    return [plan.step(first + position) for position in range(plan.steps_per_epoch)]


@settings(max_examples=150, deadline=None)
@given(lengths_of_pairs, st.integers(1, 120), st.integers(0, 3))
def test_every_pair_comes_once_and_no_step_is_over_budget(
    pairs: Pairs, budget: int, epoch: int
) -> None:
    source, target = sides(pairs)
    steps = epoch_of(BatchPlan(source, target, budget, seed=1), epoch)
    assert sorted(np.concatenate(steps)) == list(range(len(pairs)))
    for step in steps:
        assert len(step) >= 1
        assert len(step) == 1 or max(source[step].sum(), target[step].sum()) <= budget


def test_steps_come_in_mixed_order_and_hold_other_pairs_in_the_next_epoch() -> None:
    source, target = natural(5000)
    assert BatchPlan(source[:50], target[:50], 5000, seed=1).steps_per_epoch == 1
    plan = BatchPlan(source, target, 1000, seed=1)
    means = [target[step].mean() for step in epoch_of(plan, 0)]
    assert abs(np.corrcoef(means[:-1], means[1:])[0, 1]) < 0.3
    step_of = np.empty((2, 5000), np.int64)
    for epoch in (0, 1):
        for number, step in enumerate(epoch_of(plan, epoch)):
            step_of[epoch, step] = number
    together = np.zeros((plan.steps_per_epoch,) * 2)
    np.add.at(together, (step_of[0], step_of[1]), 1)
    before = together.sum(1)
    met_again = (together * (together - 1)).sum() / (before * (before - 1)).sum()
    assert met_again < 0.25  # 1 if steps stayed as they are


def test_similar_lengths_share_a_step_and_steps_are_nearly_as_few_as_the_budget_allows() -> None:
    source, target = natural(40_000)
    steps = epoch_of(BatchPlan(source, target, 4096, seed=1), 0)
    assert len(steps) <= 1.02 * np.maximum(source, target).sum() / 4096 + 2
    padded_source = sum(len(step) * source[step].max() for step in steps)
    padded_target = sum(len(step) * target[step].max() for step in steps)
    assert 1 - source.sum() / padded_source < 0.15
    assert 1 - target.sum() / padded_target < 0.08


def test_noise_that_needs_too_many_steps_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    # long and short in turn: every step ends half full
    source = target = np.repeat([51, 10], 40)
    worst = np.arange(80).reshape(2, 40).T.ravel()
    plan = BatchPlan(source, target, 100, seed=1)
    layout = plan._cut(worst)
    assert len(layout) <= plan.steps_per_epoch
    plan.steps_per_epoch = len(layout) - 1
    monkeypatch.setattr(BatchPlan, "_noisy_layout", lambda *_, **__: layout)
    with_noise_gone = [tuple(sorted(source[step])) for step in epoch_of(plan, 0)]
    assert len(with_noise_gone) == plan.steps_per_epoch


@settings(max_examples=150, deadline=None)
@given(lengths_of_pairs, st.integers(1, 200), st.sampled_from([1, 8, 32]))
def test_micro_batches_hold_the_step_and_fit_in_memory(
    pairs: Pairs, budget: int, multiple: int
) -> None:
    source, target = sides(pairs)
    indices = np.arange(len(pairs))[::2]
    parts = micro_batches(indices, source, target, budget, multiple)
    assert sorted(np.concatenate(parts)) == list(indices)
    for part in parts:
        longest = max(source[part].max(), target[part].max())
        assert len(part) == 1 or len(part) * (-(-longest // multiple) * multiple) <= budget


def test_micro_batches_pad_less_than_the_step() -> None:
    source, target = natural(1000)
    parts = micro_batches(np.arange(1000), source, target, 512)
    padded = sum(len(part) * target[part].max() for part in parts)
    assert 1 - target.sum() / padded < 0.05
    assert len(parts) < 1.4 * np.maximum(source, target).sum() / 512


def test_a_plan_that_starts_at_any_step_or_goes_back_gives_the_same_steps() -> None:
    """50 random places in four epochs, over two weighted texts; another seed gives other steps."""
    source, target = natural(900)
    weights = [CorpusWeight(600, 0.4), CorpusWeight(300, 2.0)]

    def steps(seed: int, start: int, end: int) -> list[list[int]]:
        plan = BatchPlan(source, target, 300, seed, weights)
        return [plan.step(step).tolist() for step in range(start + 1, end + 1)]

    count = 4 * BatchPlan(source, target, 300, 7, weights).steps_per_epoch
    whole = steps(7, 0, count)
    assert steps(8, 0, count) != whole
    for start in np.random.default_rng(1).integers(count - 40, size=50):
        assert steps(7, start, start + 40) == whole[start : start + 40]
    plan = BatchPlan(source, target, 300, 7, weights)
    assert [plan.step(step).tolist() for step in range(count, 0, -1)] == whole[::-1]


def times_in(plan: BatchPlan, epochs: int, pairs: int) -> npt.NDArray[np.int64]:
    """How often each pair comes in each epoch: (epochs, pairs)."""
    rows = [np.bincount(np.concatenate(epoch_of(plan, e)), minlength=pairs) for e in range(epochs)]
    return np.array(rows)


@pytest.mark.parametrize("weights", [(1.0, 3.0, 2.0), (3.0, 1.0, 1.0), (1.0, 1.0, 1.0)])
def test_whole_weights_repeat_the_pairs_of_a_text(weights: tuple[float, ...]) -> None:
    source, target = natural(300)
    texts = [CorpusWeight(100, weight) for weight in weights]
    plan, plain = (BatchPlan(source, target, 200, 1, some) for some in (texts, ()))
    assert (times_in(plan, 3, 300) == np.repeat(weights, 100)).all()
    unchanged = all(np.array_equal(plan.step(step), plain.step(step)) for step in range(1, 31))
    assert unchanged == (max(weights) == 1)


@settings(max_examples=40, deadline=None)
@given(st.sampled_from([0.1, 0.25, 1 / 3, 0.5, 0.9, 1.5, 2.75]), st.integers(0, 3))
def test_parts_of_a_weight_take_turns(weight: float, seed: int) -> None:
    """After e epochs every pair has come e * weight times, give or take one."""
    source, target = natural(400)
    plan = BatchPlan(source, target, 300, seed, [CorpusWeight(300, weight), CorpusWeight(100)])
    so_far = np.cumsum(times_in(plan, 8, 400), axis=0)
    for epoch, times in enumerate(so_far, start=1):
        assert (times[300:] == epoch).all()
        assert (abs(times[:300] - epoch * weight) < 1.01).all()
        assert abs(times[:300].sum() - 300 * epoch * weight) <= epoch


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_batch_holds_the_sentences_it_was_asked_for(data: st.DataObject) -> None:
    """Read back row by row: the source, BOS and the target, the target and EOS."""
    ids = st.lists(st.integers(4, 65_535), max_size=9).map(lambda row: [*row, EOS])
    rows = data.draw(st.lists(st.tuples(ids, ids), min_size=1, max_size=8))
    store = TokenStore.of(*zip(*rows, strict=True))
    chosen = data.draw(st.lists(st.integers(0, len(rows) - 1), min_size=1))
    multiple = data.draw(st.sampled_from([1, 8]))
    batch = collate(store, np.array(chosen), pad_multiple=multiple)
    for place, number in enumerate(chosen):
        source, target = rows[number]
        for tensor, expected in (
            (batch.source, source),
            (batch.target_input, [BOS, *target[:-1]]),
            (batch.target_output, target),
        ):
            row = tensor[place].tolist()
            assert row == expected + [PAD] * (len(row) - len(expected))
    assert batch.tokens == sum(len(rows[number][1]) for number in chosen)
    longest = max(len(rows[number][0]) for number in chosen)
    assert batch.source.shape == (len(chosen), -(-longest // multiple) * multiple)
    tensors = (batch.source, batch.target_input, batch.target_output)
    assert {tensor.dtype for tensor in tensors} == {torch.int64}
    assert torch.equal(collate_source([rows[n][0] for n in chosen]), batch.source[:, :longest])
    moved = batch.to(torch.device("meta"))
    tensors = (moved.source, moved.target_input, moved.target_output)
    assert {tensor.device.type for tensor in tensors} == {"meta"}
    assert moved.tokens == batch.tokens


def test_small_weights_leave_no_step_empty_and_lose_no_pair() -> None:
    """One pair a step, and epochs of different sizes."""
    ones = np.full(10, 9)
    plan = BatchPlan(ones, ones, 9, 1, [CorpusWeight(5), CorpusWeight(5, 0.5)])
    for epoch in range(20):
        steps = epoch_of(plan, epoch)
        assert all(len(step) for step in steps)
        assert set(range(5)) <= set(np.concatenate(steps).tolist())
    times = times_in(plan, 20, 10).sum(axis=0)
    assert (times[:5] == 20).all() and (abs(times[5:] - 10) <= 1).all()


def test_weights_that_leave_an_epoch_empty_are_refused() -> None:
    with pytest.raises(DataError, match=r"weights of data\.train leave epochs without a single"):
        BatchPlan(np.array([3]), np.array([3]), 9, 1, [CorpusWeight(1, 0.25)])


# -- stages ---------------------------------------------------------------------------------------

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
    return [plan.step(step).tolist() for step in range(start + 1, end + 1)]


def test_a_plan_of_stages_that_starts_at_any_step_or_goes_back_gives_the_same_steps() -> None:
    whole = steps_of(7, 0, STEPS)
    assert steps_of(8, 0, STEPS) != whole
    for start in (*range(0, STEPS, 17), 24, 25, 26, 89, 90, 91):
        assert steps_of(7, start, STEPS) == whole[start:]
    plan = plan_of()
    assert [plan.step(step).tolist() for step in range(STEPS, 0, -1)] == whole[::-1]


def test_two_processes_divide_the_same_steps_in_every_stage() -> None:
    store = TokenStore.of([[5] * n for n in SOURCE], [[5] * n for n in TARGET])
    plans = [plan_of(), plan_of()]  # one of each process
    for step in range(1, STEPS + 1):
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
        start = 91 + epoch * steps
        pairs = np.concatenate([plan.step(step) for step in range(start, start + steps)])
        assert sorted(pairs) == list(range(600, 900))


def test_one_stage_is_the_plan_without_stages() -> None:
    plain = BatchPlan(SOURCE, TARGET, 300, 7, BOTH)
    for plan in (
        plan_of(stages=[Stage(0, BOTH)]),
        plan_of(stages=[Stage(0, BOTH), Stage(40, LAST)]),
    ):
        assert all(np.array_equal(plan.step(step), plain.step(step)) for step in range(1, 41))
    without = StagedPlan(SOURCE, TARGET, 300, 7)
    assert np.array_equal(without.step(99), BatchPlan(SOURCE, TARGET, 300, 7).step(99))
    assert plan_of(stages=[]).epochs(99) == 99 / without.steps_per_epoch[0]


def test_a_text_of_two_stages_comes_in_another_order_in_the_second() -> None:
    plan = plan_of(stages=[Stage(0, BOTH), Stage(40, [CorpusWeight(600, 1), CorpusWeight(300, 2)])])
    first, second = ([plan.step(start + step).tolist() for step in range(40)] for start in (1, 41))
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
