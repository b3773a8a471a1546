"""Section 3.5, position by position."""

import math
import random

import torch

from nmt.model.positional_encoding import PositionalEncoding, sinusoids

D = 48


def test_table_is_the_formula_of_the_paper() -> None:
    table = sinusoids(2000, D)
    assert table.dtype == torch.float32
    draw = random.Random(1)
    for _ in range(500):
        position, i = draw.randrange(2000), draw.randrange(D // 2)
        angle = position / 10000 ** (2 * i / D)
        assert abs(table[position, 2 * i].item() - math.sin(angle)) < 1e-7
        assert abs(table[position, 2 * i + 1].item() - math.cos(angle)) < 1e-7


def test_encoding_is_added() -> None:
    x = torch.randn(2, 9, D)
    torch.testing.assert_close(PositionalEncoding(D)(x), x + sinusoids(9, D))


def test_start_continues_where_the_positions_before_ended() -> None:
    x = torch.randn(1, 12, D)
    encoding = PositionalEncoding(D)
    steps = [encoding(x[:, t : t + 1], start=t) for t in range(12)]
    assert torch.equal(torch.cat(steps, dim=1), encoding(x))


def test_table_grows_where_text_is_longer_and_keeps_its_values() -> None:
    short, long = PositionalEncoding(D, initial_length=4), PositionalEncoding(D, 100)
    x = torch.randn(1, 33, D)
    assert torch.equal(short(x), long(x))
    assert torch.equal(short(x[:, :1], start=70), long(x[:, :1], start=70))
    assert len(short.table) > 70


def test_table_is_computed_and_never_saved() -> None:
    encoding = PositionalEncoding(D)
    assert not encoding.state_dict()
    assert not list(encoding.parameters())


def test_a_table_that_grew_while_translating_can_still_be_trained_with() -> None:
    positions = PositionalEncoding(4, initial_length=2)
    with torch.inference_mode():
        positions(torch.zeros(1, 5, 4))
    assert len(positions.table) == 10
    assert not positions.table.is_inference()
