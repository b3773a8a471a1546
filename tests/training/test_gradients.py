"""A gradient does not depend on how it fits in memory; what cannot be learnt from is named."""

import concurrent.futures
import gc
import random
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from nmt.config import Config, ModelConfig, TokenizerConfig, TrainingConfig
from nmt.data.tokens.token_store import TokenStore
from nmt.data.tokens.tokenizer import EOS
from nmt.errors import DivergedError
from nmt.model.transformer import Transformer
from nmt.training import threads as threads_module
from nmt.training.gradients import GradientComputer
from nmt.training.layers import enable_activation_checkpointing
from nmt.training.trainer import Trainer

V = 16


class Spelling:
    """Ids as words."""

    def __init__(self) -> None:
        self.target = self

    def decode(self, rows: Sequence[Sequence[int]]) -> list[str]:
        return [" ".join(f"w{token}" for token in row) for row in rows]


@pytest.fixture
def threads() -> Iterator[Callable[[int], None]]:
    """Set the number of threads until the end of the test."""
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


@pytest.fixture
def trainer(
    make_trainer: Callable[..., Trainer], threads: Callable[[int], None]
) -> Callable[..., Trainer]:
    threads(1)
    draw = random.Random(1)
    rows = [[*draw.choices(range(4, V), k=draw.randint(1, 6)), EOS] for _ in range(300)]

    def made(dropout: float = 0.0, attention_dropout: float = 0.0, **training: Any) -> Trainer:
        config = Config(
            tokenizer=TokenizerConfig(vocabulary_size=V),
            model=ModelConfig(
                d_model=16,
                heads=2,
                d_ff=32,
                encoder_layers=2,
                decoder_layers=2,
                dropout=dropout,
                attention_dropout=attention_dropout,
            ),
            training=TrainingConfig(**{"batch_tokens": 300, "device": "cpu", **training}),
        )
        return make_trainer(config, TokenStore.of(rows, rows), V, Spelling())

    return made


def gradients_of(trainer: Trainer, step: int = 1) -> list[Tensor]:
    trainer.gradients.compute(step)
    return [p.grad for p in trainer.model.parameters() if p.grad is not None]


def no_room_above(tokens: int, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Let a forward pass of more padded tokens run out of memory; returns how many each had."""
    seen = []
    outputs = Transformer.outputs

    def limited(self: Transformer, source: Tensor, *arguments: Any, **options: Any) -> Tensor:
        seen.append(source.numel())
        if source.numel() > tokens:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried 8 GB")
        return outputs(self, source, *arguments, **options)

    monkeypatch.setattr(Transformer, "outputs", limited)
    return seen


def test_where_memory_runs_out_the_same_pairs_are_computed_in_smaller_parts(
    trainer: Callable[..., Trainer], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = gradients_of(trainer(micro_batch_tokens=1000))
    limited = trainer(micro_batch_tokens=1000)
    seen = no_room_above(100, monkeypatch)
    found = gradients_of(limited)
    assert max(seen) > 100 and limited.gradients.micro_batch.tokens < 1000
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)
    seen.clear()
    limited.gradients.compute(2)
    assert max(seen) <= 100  # the size that fits is remembered


def test_no_room_for_a_single_pair_is_an_error(
    trainer: Callable[..., Trainer], monkeypatch: pytest.MonkeyPatch
) -> None:
    no_room_above(0, monkeypatch)
    with pytest.raises(RuntimeError, match="can't allocate memory"):
        trainer().gradients.compute(1)


def test_other_errors_do_not_count_as_out_of_memory(
    trainer: Callable[..., Trainer], monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(*arguments: object, **options: object) -> None:
        raise RuntimeError("shapes do not fit")

    monkeypatch.setattr(Transformer, "outputs", wrong)
    with pytest.raises(RuntimeError, match="shapes do not fit"):
        trainer().gradients.compute(1)


def test_activations_computed_again_give_the_same_gradient(
    trainer: Callable[..., Trainer],
) -> None:
    plain = gradients_of(trainer(dropout=0.3))
    twice = trainer(dropout=0.3)
    enable_activation_checkpointing(twice.model)
    again = gradients_of(twice)
    for one, other in zip(plain, again, strict=True):
        assert torch.equal(one, other)


def test_a_loss_of_nan_names_the_pairs_and_changes_nothing(
    trainer: Callable[..., Trainer],
) -> None:
    diverged = trainer()
    with torch.no_grad():
        diverged.model.decoder.layers[0].feed_forward.outer.bias.fill_(float("nan"))
    before = [parameter.clone() for parameter in diverged.model.parameters()]
    with pytest.raises(DivergedError, match=r"step 1: the loss is nan for \d+ pairs .* 'w\d+ "):
        diverged.stepper.take()
    for parameter, old in zip(diverged.model.parameters(), before, strict=True):
        torch.testing.assert_close(parameter, old, rtol=0, atol=0, equal_nan=True)


def test_only_the_micro_batch_at_fault_is_named(trainer: Callable[..., Trainer]) -> None:
    diverged = trainer(micro_batch_tokens=40)
    with torch.no_grad():
        diverged.model.target_embedding.weight[7] = float("inf")
    with pytest.raises(DivergedError, match=r"for \d pairs"):
        diverged.stepper.take()


def test_a_spike_of_the_loss_stops_before_the_update(trainer: Callable[..., Trainer]) -> None:
    trained = trainer(largest_spike=0.5)
    for _ in range(5):
        trained.stepper.take()
    with torch.no_grad():
        trained.model.output_embedding.weight.mul_(20)
    before = [parameter.clone() for parameter in trained.model.parameters()]
    with pytest.raises(DivergedError, match=r"step 6: the loss is .* for \d+ pairs"):
        trained.stepper.take()
    for parameter, old in zip(trained.model.parameters(), before, strict=True):
        assert torch.equal(parameter, old)


def test_an_infinite_gradient_stops_before_the_update(
    trainer: Callable[..., Trainer], monkeypatch: pytest.MonkeyPatch
) -> None:
    diverged = trainer()
    backward = Tensor.backward

    def infinite(loss: Tensor) -> None:
        backward(loss)  # type: ignore[no-untyped-call]
        gradient = diverged.model.output_embedding.weight.grad
        assert gradient is not None
        gradient[3, 1] = float("inf")

    monkeypatch.setattr(Tensor, "backward", infinite)
    before = [parameter.clone() for parameter in diverged.model.parameters()]
    with pytest.raises(DivergedError, match=r"step 1: the norm of the gradient is inf for \d+ pai"):
        diverged.stepper.take()
    assert all(map(torch.equal, before, diverged.model.parameters()))


@pytest.mark.parametrize("number", [2, 3])
@pytest.mark.parametrize("tokens", [1000, 40])
def test_threads_side_by_side_find_the_gradient_of_one(
    trainer: Callable[..., Trainer], threads: Callable[[int], None], number: int, tokens: int
) -> None:
    threads(1)
    alone = trainer(micro_batch_tokens=tokens)
    expected = gradients_of(alone)
    threads(number)
    together = trainer(micro_batch_tokens=tokens)
    found = gradients_of(together)
    assert torch.get_num_threads() == number
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)
    first, second = (made.gradients.compute(2) for made in (together, alone))
    assert first.tokens == second.tokens
    torch.testing.assert_close(first.loss, second.loss, rtol=1e-5, atol=0)


def test_threads_draw_masks_of_their_own_and_the_same_each_time(
    trainer: Callable[..., Trainer], threads: Callable[[int], None]
) -> None:
    threads(2)
    once = gradients_of(trainer(dropout=0.3), step=4)
    torch.rand(3)
    again = gradients_of(trainer(dropout=0.3), step=4)
    assert all(torch.equal(one, other) for one, other in zip(once, again, strict=True))
    without = gradients_of(trainer(), step=4)
    assert not any(torch.equal(one, other) for one, other in zip(once, without, strict=True))


@pytest.mark.parametrize(
    "settings", [{"attention_dropout": 0.3}, {"dropout": 0.3, "activation_checkpointing": True}]
)
def test_masks_that_threads_could_not_keep_apart_are_still_the_same_each_time(
    trainer: Callable[..., Trainer], threads: Callable[[int], None], settings: dict[str, Any]
) -> None:
    threads(2)
    once, again = (gradients_of(trainer(**settings), step=4) for _ in range(2))
    assert all(torch.equal(one, other) for one, other in zip(once, again, strict=True))


def test_what_stops_one_thread_stops_all(
    trainer: Callable[..., Trainer],
    threads: Callable[[int], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    threads(2)
    many = trainer(micro_batch_tokens=8)
    seen = no_room_above(10**9, monkeypatch)
    with monkeypatch.context() as patch:
        patch.setattr(threads_module, "wait", interrupted_wait())
        with pytest.raises(KeyboardInterrupt):
            many.gradients.compute(1)
    stopped = len(seen)
    many.model.zero_grad()
    many.gradients.compute(1)
    assert stopped < len(seen) - stopped


def interrupted_wait() -> Callable[[Any], None]:
    """A wait that a signal cuts short the first time."""
    calls: list[int] = []

    def wait(tasks: Any, **options: Any) -> None:
        calls.append(1)
        if len(calls) == 1:
            raise KeyboardInterrupt
        concurrent.futures.wait(tasks, **options)

    return wait


def test_where_memory_still_runs_out_shares_are_computed_one_after_the_other(
    trainer: Callable[..., Trainer], threads: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    threads(2)
    expected = gradients_of(trainer(dropout=0.3, micro_batch_tokens=1))
    limited = trainer(dropout=0.3, micro_batch_tokens=1)
    lock, outputs = threading.Lock(), Transformer.outputs

    def alone(self: Transformer, *arguments: Any, **options: Any) -> Tensor:
        if not lock.acquire(blocking=False):
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried 8 GB")
        try:
            time.sleep(0.002)
            return outputs(self, *arguments, **options)
        finally:
            lock.release()

    monkeypatch.setattr(Transformer, "outputs", alone)
    found = gradients_of(limited)
    assert all(torch.equal(one, other) for one, other in zip(found, expected, strict=True))


def test_what_failed_is_not_kept_alive(
    trainer: Callable[..., Trainer], threads: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    threads(2)
    limited = trainer(micro_batch_tokens=1000)
    kept: list[weakref.ref[Tensor]] = []
    backward = torch.autograd.grad
    first_attempt = [True]

    def grad(loss: Tensor, parameters: Any) -> tuple[Tensor, ...]:
        gradients = backward(loss, parameters)
        if first_attempt[0]:
            kept.append(weakref.ref(gradients[0]))
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried 8 GB")
        deadline = time.monotonic() + 5  # a thread may be just about to leave what it did
        while any(reference() is not None for reference in kept) and time.monotonic() < deadline:
            time.sleep(0.001)
        assert all(reference() is None for reference in kept)
        return gradients

    def less_at_once(self: GradientComputer, *arguments: Any) -> bool:
        first_attempt[0] = False
        return original(self, *arguments)

    original = GradientComputer._compute_less_at_once
    gc.disable()
    try:
        monkeypatch.setattr(torch.autograd, "grad", grad)
        monkeypatch.setattr(GradientComputer, "_compute_less_at_once", less_at_once)
        limited.gradients.compute(1)
    finally:
        gc.enable()
    assert kept and not first_attempt[0]


def test_a_number_of_shares_is_kept_whatever_threads_there_are(
    trainer: Callable[..., Trainer], threads: Callable[[int], None]
) -> None:
    threads(3)
    expected = gradients_of(trainer(dropout=0.3))
    for number in (1, 2):
        threads(number)
        other = trainer(dropout=0.3)
        other.gradients.set_cpu_shards(3)
        found = gradients_of(other)
        assert all(torch.equal(one, two) for one, two in zip(found, expected, strict=True))


def test_a_large_model_has_room_for_few_gradients() -> None:
    assert threads_module.number_of_shards(16, parameters=2_000_000) == 16
    assert threads_module.number_of_shards(16, parameters=65_000_000) == 4
    assert threads_module.number_of_shards(2, parameters=213_000_000) == 1


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
    trainer: Callable[..., Trainer], before: Any, now: dict[str, Any], expected: int
) -> None:
    resumed = trainer(**now)
    resumed.state.load_state({**resumed.state.state(), "micro_batches": [before]})
    assert resumed.gradients.micro_batch.tokens == expected
    assert resumed.gradients.micro_batch.halved == before["halved"]


def test_going_back_to_an_earlier_state_does_not_bring_more_memory(
    trainer: Callable[..., Trainer], monkeypatch: pytest.MonkeyPatch
) -> None:
    limited = trainer(micro_batch_tokens=1000)
    earlier = limited.state.state()
    no_room_above(100, monkeypatch)
    limited.gradients.compute(1)
    found = limited.gradients.micro_batch.tokens
    limited.state.load_state(earlier)
    assert limited.gradients.micro_batch.tokens == found < 1000
    resumed = trainer(micro_batch_tokens=1000)
    resumed.state.load_state(limited.state.state())
    assert resumed.gradients.micro_batch.tokens == found
