"""The rhythm of training: what a step is, and that steps lead somewhere."""

import copy
import random
from collections.abc import Callable
from typing import Any

import pytest
import torch

from nmt.config import Config, DecodingConfig, ModelConfig, TokenizerConfig, TrainingConfig
from nmt.data.tokens.batch import collate_source
from nmt.data.tokens.token_store import TokenStore
from nmt.data.tokens.tokenizer import EOS
from nmt.search.sampling import greedy_search
from nmt.training.trainer import Trainer

V = 16


def copy_task(pairs: int, seed: int = 1) -> list[list[int]]:
    """Sentences of one to six random tokens, each ended by EOS."""
    draw = random.Random(seed)
    return [[*draw.choices(range(4, V), k=draw.randint(1, 6)), EOS] for _ in range(pairs)]


def configured(dropout: float = 0.0, **training: Any) -> Config:
    return Config(
        tokenizer=TokenizerConfig(vocabulary_size=V),
        model=ModelConfig(
            d_model=32, heads=2, d_ff=64, encoder_layers=1, decoder_layers=1, dropout=dropout
        ),
        training=TrainingConfig(**{"batch_tokens": 300, "device": "cpu", **training}),
    )


@pytest.fixture
def trainer(make_trainer: Callable[..., Trainer]) -> Callable[[Config], Trainer]:
    rows = copy_task(600)
    return lambda config: make_trainer(config, TokenStore.of(rows, rows), V)


def test_micro_batches_add_up_to_one_batch(trainer: Callable[[Config], Trainer]) -> None:
    """The same recipe trains the same model however its steps are cut to fit in memory."""
    # Attention ignores a constant added to every key, so the gradient of that bias is rounding
    # errors alone; an epsilon above them keeps Adam from magnifying it.
    whole, cut = (
        trainer(configured(micro_batch_tokens=size, warmup_steps=10, adam_epsilon=1e-3))
        for size in (10_000, 40)
    )
    for _ in range(5):
        one, other = whole.stepper.take(), cut.stepper.take()
        assert other.tokens == one.tokens
        assert other.loss.item() == pytest.approx(one.loss.item(), rel=1e-5)
    for weight, its_like in zip(whole.model.parameters(), cut.model.parameters(), strict=True):
        torch.testing.assert_close(weight, its_like, rtol=0, atol=1e-6)


def test_a_step_counts_each_target_token_once(trainer: Callable[[Config], Trainer]) -> None:
    trained = trainer(configured(micro_batch_tokens=40))
    counted = sum(trained.stepper.take().tokens for _ in range(trained.plan.steps_per_epoch))
    assert counted == trained.store.target.lengths.sum()


def test_seeded_training_is_deterministic(trainer: Callable[[Config], Trainer]) -> None:
    first, second = (trainer(configured(dropout=0.3)) for _ in range(2))
    losses = [first.stepper.take().loss for _ in range(20)]
    torch.rand(7)  # whatever else draws random numbers has no say
    assert [second.stepper.take().loss for _ in range(20)] == losses
    for one, other in zip(first.model.parameters(), second.model.parameters(), strict=True):
        assert torch.equal(one, other)


def test_the_copy_task_is_learnt(trainer: Callable[[Config], Trainer]) -> None:
    trained = trainer(configured(warmup_steps=60, peak_learning_rate=5e-3, label_smoothing=0.0))
    for _ in range(500):
        trained.stepper.take()
    unseen = copy_task(50, seed=2)
    trained.model.eval()
    source = collate_source(unseen)
    found = greedy_search(trained.model, source, DecodingConfig())
    right = sum(
        [*hypothesis.tokens, EOS] == row for hypothesis, row in zip(found, unseen, strict=True)
    )
    assert right >= 45


def test_state_survives_a_round_trip(trainer: Callable[[Config], Trainer]) -> None:
    first = trainer(configured(dropout=0.3))
    for _ in range(3):
        first.stepper.take()
    second = trainer(configured(dropout=0.3))
    second.model.load_state_dict(first.model.state_dict())
    second.state.load_state(copy.deepcopy(first.state.state()))
    assert second.state.step == 3
    for _ in range(3):
        assert first.stepper.take().loss == second.stepper.take().loss
