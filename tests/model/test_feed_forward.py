"""Eq. 2, position by position."""

import math
from typing import Any, get_args

import numpy as np
import pytest
import torch

from nmt.config import Activation
from nmt.model.feed_forward import ACTIVATIONS, FeedForward


@pytest.mark.parametrize(
    ("activation", "function"),
    [
        ("relu", lambda x: np.maximum(0, x)),
        ("gelu", lambda x: x * (1 + np.vectorize(math.erf)(x / math.sqrt(2))) / 2),
        ("swish", lambda x: x / (1 + np.exp(-x))),
    ],
)
def test_feed_forward_is_equation_2(activation: Activation, function: Any) -> None:
    torch.manual_seed(1)
    network = FeedForward(6, 10, activation=activation).double()
    x = torch.randn(2, 3, 6, dtype=torch.float64)
    w1, b1 = network.inner.weight.detach().numpy().T, network.inner.bias.detach().numpy()
    w2, b2 = network.outer.weight.detach().numpy().T, network.outer.bias.detach().numpy()
    expected = function(x.numpy() @ w1 + b1) @ w2 + b2
    np.testing.assert_allclose(network(x).detach().numpy(), expected, rtol=1e-12)


def test_every_activation_of_the_configuration_has_its_function() -> None:
    assert ACTIVATIONS.keys() == set(get_args(Activation))


def test_each_position_is_transformed_on_its_own() -> None:
    torch.manual_seed(2)
    network = FeedForward(6, 10)
    x = torch.randn(2, 4, 6)
    alone = torch.cat([network(x[:, t : t + 1]) for t in range(4)], dim=1)
    torch.testing.assert_close(network(x), alone)
    torch.testing.assert_close(network(x.flip(1)), network(x).flip(1))


def test_dropout_acts_inside_while_training_only() -> None:
    network = FeedForward(6, 10, dropout=0.5)
    x = torch.randn(2, 4, 6)
    assert not torch.equal(network(x), network(x))
    network.eval()
    assert torch.equal(network(x), network(x))
