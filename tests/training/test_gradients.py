"""A gradient does not depend on how it fits in memory, nor on the number of threads."""

import concurrent.futures
import gc
import threading
import time
import weakref
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor

from nmt.data.tokens.batch import Batch
from nmt.data.tokens.token_store import Indices, TokenStore
from nmt.data.tokens.tokenizer import EOS
from nmt.machine import control_groups
from nmt.training import threads as threads_module
from nmt.training.distributed import ProcessGroup
from nmt.training.gradients import GradientComputer, MicroBatch
from nmt.training.loss import Loss, Objective
from nmt.training.trainer import Trainer
from tests.training.runs import MakeTrainer

NO_MEMORY = "DefaultCPUAllocator: can't allocate memory: you tried 8 GB"


def gradients_of(trainer: Trainer, step: int = 4) -> list[Tensor]:
    trainer.gradient_computer.compute(step)
    return [p.grad for p in trainer.model.parameters() if p.grad is not None]


def equal(one: Sequence[Tensor], other: Sequence[Tensor]) -> list[bool]:
    return [torch.equal(*pair) for pair in zip(one, other, strict=True)]


assert_near = partial(torch.testing.assert_close, rtol=1e-4, atol=1e-4)


def test_a_step_counts_each_target_token_once(small_trainer: MakeTrainer) -> None:
    trained = small_trainer(micro_batch_tokens=40)
    [steps] = trained.plan.steps_per_epoch
    counted = sum(trained.stepper.take().tokens for _ in range(steps))
    assert counted == trained.store.target.lengths.sum()


def no_room_above(tokens: int, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Let a forward pass of more padded tokens run out of memory; returns how many each had."""
    seen = []
    forward = Objective.forward

    def limited(self: Objective, batch: Batch) -> Loss:
        seen.append(batch.source.numel())
        if batch.source.numel() > tokens:
            raise RuntimeError(NO_MEMORY)
        return forward(self, batch)

    monkeypatch.setattr(Objective, "forward", limited)
    return seen


def test_where_memory_runs_out_the_same_pairs_are_computed_in_smaller_parts(
    small_trainer: MakeTrainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = gradients_of(small_trainer(micro_batch_tokens=1000))
    limited = small_trainer(micro_batch_tokens=1000)
    earlier = limited.state.state()
    seen = no_room_above(100, monkeypatch)
    assert_near(gradients_of(limited), expected)
    found = limited.gradient_computer.micro_batch_size.tokens
    assert max(seen) > 100 and found < 1000
    seen.clear()
    limited.gradient_computer.compute(5)
    assert max(seen) <= 100  # the size that fits is remembered
    saved = limited.state.state()
    resumed = small_trainer(micro_batch_tokens=1000)
    resumed.state.load_state(saved)
    limited.state.load_state(earlier)  # an earlier state does not bring more memory
    sizes = [each.gradient_computer.micro_batch_size.tokens for each in (limited, resumed)]
    assert sizes == [found, found]


def test_no_room_for_a_single_pair_and_other_problems_are_errors(
    small_trainer: MakeTrainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_room_above(0, monkeypatch)
    with pytest.raises(RuntimeError, match="can't allocate memory"):
        small_trainer().gradient_computer.compute(1)

    def wrong(*arguments: object, **options: object) -> None:
        raise RuntimeError("shapes do not fit")

    monkeypatch.setattr(Objective, "forward", wrong)
    with pytest.raises(RuntimeError, match="shapes do not fit"):
        small_trainer().gradient_computer.compute(1)


@pytest.mark.parametrize(("processes", "part"), [(1, 0), (1, -1), (2, 0), (2, -1)])
def test_a_step_is_repeated_only_before_gradients_are_averaged_over_processes(
    small_trainer: MakeTrainer, monkeypatch: pytest.MonkeyPatch, processes: int, part: int
) -> None:
    trainer, attempts = small_trainer(micro_batch_tokens=40), list[Tensor]()
    forward = Objective.forward

    def limited(self: Objective, batch: Batch) -> Loss:
        attempts.append((loss := forward(self, batch)).total)
        if len(attempts) == failing:
            loss.total.register_hook(no_memory)
        return loss

    def no_memory(gradient: Tensor) -> None:
        raise RuntimeError(NO_MEMORY)

    def compute() -> list[MicroBatch]:
        group = ProcessGroup(0, processes)
        computer = GradientComputer(trainer.loaded, trainer.store, trainer.plan, "fp32", group)
        return computer.compute(1).micro_batches

    monkeypatch.setattr(Objective, "forward", limited)
    monkeypatch.setattr(ProcessGroup, "data_parallel", lambda self, module: module)
    monkeypatch.setattr(ProcessGroup, "all_reduce_sum", lambda self, value: value)
    failing = 0
    parts = len(compute())
    assert parts > 1
    failing = parts + range(1, parts + 1)[part]
    if processes > 1 and part == -1:  # the others are averaging, and cannot begin again
        with pytest.raises(RuntimeError, match="can't allocate memory"):
            compute()
        assert len(attempts) == failing
    else:
        assert len(compute()) == len(attempts) - failing > parts


def test_activations_computed_again_give_the_same_gradient(small_trainer: MakeTrainer) -> None:
    plain = small_trainer(dropout=0.3)
    twice = small_trainer(dropout=0.3, activation_checkpointing=True)
    plain.gradient_computer.set_cpu_shards(1)
    assert all(equal(gradients_of(plain), gradients_of(twice)))


@pytest.mark.parametrize("number", [2, 3])
@pytest.mark.parametrize("tokens", [1000, 40])
def test_threads_side_by_side_find_the_gradient_of_one(
    small_trainer: MakeTrainer, number: int, tokens: int
) -> None:
    alone = small_trainer(micro_batch_tokens=tokens)
    expected = gradients_of(alone)
    together = small_trainer(threads=number, micro_batch_tokens=tokens)
    assert_near(gradients_of(together), expected)
    assert torch.get_num_threads() == number
    first, second = (made.gradient_computer.compute(2) for made in (together, alone))
    assert first.tokens == second.tokens
    torch.testing.assert_close(first.loss, second.loss, rtol=1e-5, atol=0)


@pytest.mark.parametrize(
    "settings",
    [
        {"dropout": 0.3},
        # threads could not keep these masks apart
        {"attention_dropout": 0.3},
        {"dropout": 0.3, "activation_checkpointing": True},
    ],
)
def test_threads_draw_the_same_masks_each_time(
    small_trainer: MakeTrainer, settings: dict[str, Any]
) -> None:
    once = gradients_of(small_trainer(threads=2, **settings))
    torch.rand(3)
    again = gradients_of(small_trainer(threads=2, **settings))
    assert all(equal(once, again))
    assert not any(equal(once, gradients_of(small_trainer(threads=2))))


def test_a_number_of_shards_is_kept_whatever_threads_there_are(small_trainer: MakeTrainer) -> None:
    expected = gradients_of(small_trainer(threads=3, dropout=0.3))
    for number in (1, 2):
        other = small_trainer(threads=number, dropout=0.3)
        other.gradient_computer.set_cpu_shards(3)
        assert all(equal(gradients_of(other), expected))


def test_a_large_model_has_room_for_few_gradients() -> None:
    assert threads_module.number_of_shards(16, parameters=2_000_000) == 16
    assert threads_module.number_of_shards(16, parameters=65_000_000) == 4
    assert threads_module.number_of_shards(2, parameters=213_000_000) == 1


def test_what_stops_one_thread_stops_all(
    small_trainer: MakeTrainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A signal cuts the first wait for the threads short."""
    many = small_trainer(threads=2, micro_batch_tokens=8)
    seen = no_room_above(10**9, monkeypatch)
    interrupts = [KeyboardInterrupt()]

    def wait(tasks: Any, **options: Any) -> None:
        if interrupts:
            raise interrupts.pop()
        concurrent.futures.wait(tasks, **options)

    monkeypatch.setattr(threads_module, "wait", wait)
    with pytest.raises(KeyboardInterrupt):
        many.gradient_computer.compute(1)
    stopped = len(seen)
    many.model.zero_grad()
    many.gradient_computer.compute(1)
    assert stopped < len(seen) - stopped


def test_where_memory_still_runs_out_shards_are_computed_one_after_the_other(
    small_trainer: MakeTrainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected, limited = (
        small_trainer(threads=2, dropout=0.3, micro_batch_tokens=1) for _ in range(2)
    )
    wanted = gradients_of(expected)
    lock, forward = threading.Lock(), Objective.forward

    def alone(self: Objective, batch: Batch) -> Loss:
        if not lock.acquire(blocking=False):
            raise RuntimeError(NO_MEMORY)
        try:
            time.sleep(0.002)
            return forward(self, batch)
        finally:
            lock.release()

    monkeypatch.setattr(Objective, "forward", alone)
    assert all(equal(gradients_of(limited), wanted))


def test_micro_batches_become_smaller_before_a_control_group_ends_the_training(
    small_trainer: MakeTrainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = gradients_of(small_trainer(micro_batch_tokens=1000))
    limited = small_trainer(micro_batch_tokens=1000)
    monkeypatch.setattr(control_groups, "free_memory", lambda: 1)
    with pytest.raises(MemoryError, match="more are needed, 0 left"):
        limited.gradient_computer.compute(4)
    size = limited.gradient_computer.micro_batch_size
    assert size.halved and size.tokens < 1000
    monkeypatch.setattr(control_groups, "free_memory", lambda: 1 << 40)
    assert_near(gradients_of(limited), wanted)


def test_what_failed_is_not_kept_alive(
    small_trainer: MakeTrainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    limited = small_trainer(threads=2, micro_batch_tokens=1000)
    kept: list[weakref.ref[Tensor]] = []
    backward = torch.autograd.grad

    def grad(loss: Tensor, parameters: Any, **options: Any) -> tuple[Tensor, ...]:
        gradients = backward(loss, parameters, **options)
        if not limited.gradient_computer.micro_batch_size.halved:
            kept.append(weakref.ref(gradients[0]))
            raise RuntimeError(NO_MEMORY)
        deadline = time.monotonic() + 5  # a thread may be just about to leave what it did
        while any(reference() is not None for reference in kept) and time.monotonic() < deadline:
            time.sleep(0.001)
        assert all(reference() is None for reference in kept)
        return gradients

    monkeypatch.setattr(torch.autograd, "grad", grad)
    gc.disable()
    try:
        limited.gradient_computer.compute(1)
    finally:
        gc.enable()
    assert kept and limited.gradient_computer.micro_batch_size.halved


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        ({"tokens": 64, "auto": True, "halved": False}, {}, 64),  # on a machine with more memory
        ({"tokens": 1 << 20, "auto": True, "halved": False}, {}, 8192),  # with less
        ({"tokens": 64, "auto": True, "halved": False}, {"micro_batch_tokens": 200}, 200),
        ({"tokens": 64, "auto": False, "halved": False}, {}, 8192),
        ({"tokens": 64, "auto": False, "halved": True}, {"micro_batch_tokens": 200}, 64),
        ({"tokens": 64, "auto": True, "halved": True}, {}, 64),
    ],
)
def test_a_resumed_run_keeps_its_micro_batch_size_unless_the_recipe_has_another(
    small_trainer: MakeTrainer, before: Any, now: dict[str, Any], expected: int
) -> None:
    resumed = small_trainer(**now)
    resumed.state.load_state({**resumed.state.state(), "micro_batches": [before]})
    assert resumed.gradient_computer.micro_batch_size.tokens == expected
    assert resumed.gradient_computer.micro_batch_size.halved == before["halved"]


@pytest.mark.parametrize("sampling", [0.0, 0.1])
def test_processes_divide_a_step_alike_whatever_segmentations_they_draw(
    small_trainer: MakeTrainer, monkeypatch: pytest.MonkeyPatch, sampling: float
) -> None:
    trainer = small_trainer()
    store, pairs, drawn = trainer.store, trainer.plan.step(2), list[int]()

    class Longer:
        def __init__(self, *_: object) -> None: ...

        def draw(self, store: TokenStore, rows: Indices, step: int) -> TokenStore:
            longer = [[4] * ((len(drawn) + row) % 7) + [EOS] for row in rows.tolist()]
            drawn.extend(rows.tolist())
            return TokenStore.of(longer, longer)

    monkeypatch.setattr("nmt.training.gradients.SubwordRegularization", Longer)
    config = trainer.config
    tokenizer = config.tokenizer.model_copy(update={"sampling": sampling})
    loaded = replace(trainer.loaded, config=config.model_copy(update={"tokenizer": tokenizer}))
    for rank in range(2):
        gradients = GradientComputer(loaded, store, trainer.plan, "fp32", ProcessGroup(rank, 2))
        own, rows = gradients.pairs_of_process(3, pairs)
        assert len(own) == (len(rows) if sampling else len(store))
        if not sampling:
            drawn.extend(rows.tolist())
    assert sorted(drawn) == sorted(pairs.tolist())
