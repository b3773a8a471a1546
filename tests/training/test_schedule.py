"""Eq. 3, step by step."""

import pytest

from nmt.config import Config, ModelConfig, TrainingConfig
from nmt.training.schedule import inverse_square_root, learning_rate


def configured(peak: float | None = None) -> Config:
    training = TrainingConfig(warmup_steps=400, peak_learning_rate=peak)
    return Config(model=ModelConfig(d_model=256, heads=4), training=training)


@pytest.mark.parametrize("step", [1, 2, 50, 399, 400, 401, 5000, 100_000])
def test_default_is_equation_3(step: int) -> None:
    expected = 256**-0.5 * min(step**-0.5, step * 400**-1.5)
    assert learning_rate(step, configured()) == pytest.approx(expected, rel=1e-12)


def test_peak_is_reached_at_the_end_of_the_warm_up() -> None:
    rates = [learning_rate(step, configured(peak=3e-3)) for step in range(1, 2001)]
    assert max(rates) == rates[399] == pytest.approx(3e-3, rel=1e-12)
    assert rates == sorted(rates[:400]) + sorted(rates[400:], reverse=True)


def test_warm_up_is_linear_and_the_decay_an_inverse_square_root() -> None:
    def rate(step: int) -> float:
        return inverse_square_root(step, peak=1e-3, warmup_steps=100)

    assert rate(25) == pytest.approx(rate(100) / 4)
    assert rate(400) == pytest.approx(rate(100) / 2)


def test_one_step_of_warm_up_starts_at_the_peak() -> None:
    assert inverse_square_root(1, peak=0.5, warmup_steps=1) == 0.5
