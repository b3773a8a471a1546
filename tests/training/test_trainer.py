"""What a step is, whatever it is cut into, and what a trainer continues from."""

import copy

import pytest
import torch

from tests.training.runs import MakeTrainer


def test_micro_batches_add_up_to_one_batch(small_trainer: MakeTrainer) -> None:
    """The same recipe trains the same model however its steps are cut to fit in memory."""
    # Attention ignores a constant added to every key, so the gradient of that bias is rounding
    # errors alone; an epsilon above them keeps Adam from magnifying it.
    whole, cut = (
        small_trainer(micro_batch_tokens=size, warmup_steps=10, adam_epsilon=1e-3)
        for size in (10_000, 40)
    )
    for _ in range(5):
        one, other = whole.stepper.take(), cut.stepper.take()
        assert other.tokens == one.tokens
        assert other.loss.item() == pytest.approx(one.loss.item(), rel=1e-5)
    for weight, its_like in zip(whole.model.parameters(), cut.model.parameters(), strict=True):
        torch.testing.assert_close(weight, its_like, rtol=0, atol=1e-6)


def test_a_step_counts_each_target_token_once(small_trainer: MakeTrainer) -> None:
    trained = small_trainer(micro_batch_tokens=40)
    counted = sum(trained.stepper.take().tokens for _ in range(trained.plan.steps_per_epoch))
    assert counted == trained.store.target.lengths.sum()


def test_seeded_training_is_deterministic_also_from_a_saved_state(
    small_trainer: MakeTrainer,
) -> None:
    first, second = (small_trainer(dropout=0.3) for _ in range(2))
    losses = [first.stepper.take().loss for _ in range(10)]
    torch.rand(7)  # other random numbers that are drawn make no difference
    assert [second.stepper.take().loss for _ in range(10)] == losses
    for one, other in zip(first.model.parameters(), second.model.parameters(), strict=True):
        assert torch.equal(one, other)
    resumed = small_trainer(dropout=0.3)
    resumed.model.load_state_dict(first.model.state_dict())
    resumed.state.load_state(copy.deepcopy(first.state.state()))
    assert resumed.state.step == 10
    for _ in range(3):
        assert first.stepper.take().loss == resumed.stepper.take().loss
