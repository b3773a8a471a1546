"""The average is the sum that its equation says, and goes on where it was."""

import pytest
import torch
from torch import nn

from nmt.training.moving_average import MovingAverage


@pytest.fixture
def model() -> nn.Linear:
    torch.manual_seed(1)
    return nn.Linear(3, 2)


def test_weights_are_averaged_with_decaying_shares(model: nn.Linear) -> None:
    average = MovingAverage(model, decay=0.9)
    expected = model.weight.detach().double()
    for step in range(1, 200):
        with torch.no_grad():
            model.weight.normal_()
        average.update(step)
        decay = min(0.9, (1 + step) / (10 + step))
        expected = decay * expected + (1 - decay) * model.weight.detach().double()
    torch.testing.assert_close(average.weights["weight"].double(), expected, rtol=0, atol=1e-5)


def test_weights_that_stand_still_are_their_own_average(model: nn.Linear) -> None:
    average = MovingAverage(model, decay=0.999)
    for step in range(1, 50):
        average.update(step)
    torch.testing.assert_close(average.weights["bias"], model.bias.detach())


def test_a_loaded_average_continues_bit_for_bit(model: nn.Linear) -> None:
    first, second = MovingAverage(model, 0.9), MovingAverage(model, 0.9)
    with torch.no_grad():
        model.weight.normal_()
    first.update(1)
    second.load({name: weight.clone() for name, weight in first.weights.items()})
    for average in (first, second):
        average.update(2)
    assert torch.equal(first.weights["weight"], second.weights["weight"])
