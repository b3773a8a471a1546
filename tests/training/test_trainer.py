"""What a step is, whatever it is cut into, and what a trainer continues from."""

import copy
import random
from collections.abc import Callable
from typing import Any

import pytest
import torch

from nmt.config import Config, ModelConfig, TokenizerConfig, TrainingConfig
from nmt.data.tokens.token_store import TokenStore
from nmt.data.tokens.tokenizer import EOS
from nmt.training.trainer import Trainer

V = 16


@pytest.fixture
def trainer(make_trainer: Callable[..., Trainer]) -> Callable[..., Trainer]:
    """A function of settings; the task is to copy sentences of one to six random tokens."""
    draw = random.Random(1)
    rows = [[*draw.choices(range(4, V), k=draw.randint(1, 6)), EOS] for _ in range(600)]

    def made(dropout: float = 0.0, **training: Any) -> Trainer:
        config = Config(
            tokenizer=TokenizerConfig(vocabulary_size=V),
            model=ModelConfig(
                d_model=32, heads=2, d_ff=64, encoder_layers=1, decoder_layers=1, dropout=dropout
            ),
            training=TrainingConfig(**{"batch_tokens": 300, "device": "cpu", **training}),
        )
        return make_trainer(config, TokenStore.of(rows, rows), V)

    return made


def test_micro_batches_add_up_to_one_batch(trainer: Callable[..., Trainer]) -> None:
    """The same recipe trains the same model however its steps are cut to fit in memory."""
    # Attention ignores a constant added to every key, so the gradient of that bias is rounding
    # errors alone; an epsilon above them keeps Adam from magnifying it.
    whole, cut = (
        trainer(micro_batch_tokens=size, warmup_steps=10, adam_epsilon=1e-3)
        for size in (10_000, 40)
    )
    for _ in range(5):
        one, other = whole.stepper.take(), cut.stepper.take()
        assert other.tokens == one.tokens
        assert other.loss.item() == pytest.approx(one.loss.item(), rel=1e-5)
    for weight, its_like in zip(whole.model.parameters(), cut.model.parameters(), strict=True):
        torch.testing.assert_close(weight, its_like, rtol=0, atol=1e-6)


def test_a_step_counts_each_target_token_once(trainer: Callable[..., Trainer]) -> None:
    trained = trainer(micro_batch_tokens=40)
    counted = sum(trained.stepper.take().tokens for _ in range(trained.plan.steps_per_epoch))
    assert counted == trained.store.target.lengths.sum()


def test_seeded_training_is_deterministic_also_from_a_saved_state(
    trainer: Callable[..., Trainer],
) -> None:
    first, second = (trainer(dropout=0.3) for _ in range(2))
    losses = [first.stepper.take().loss for _ in range(10)]
    torch.rand(7)  # other random numbers that are drawn make no difference
    assert [second.stepper.take().loss for _ in range(10)] == losses
    for one, other in zip(first.model.parameters(), second.model.parameters(), strict=True):
        assert torch.equal(one, other)
    resumed = trainer(dropout=0.3)
    resumed.model.load_state_dict(first.model.state_dict())
    resumed.state.load_state(copy.deepcopy(first.state.state()))
    assert resumed.state.step == 10
    for _ in range(3):
        assert first.stepper.take().loss == resumed.stepper.take().loss
