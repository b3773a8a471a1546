"""A table of integers gives what a dictionary gives."""

import numpy as np
import pytest

from nmt.data.tokens.integer_table import IntegerTable


@pytest.mark.parametrize("count", [0, 1, 2, 1000, 30_000])
@pytest.mark.parametrize("spread", [1, 1 << 40])
def test_it_finds_what_a_dictionary_finds(count: int, spread: int) -> None:
    draw = np.random.default_rng(count)
    keys = np.unique(draw.integers(0, 4 * max(1, count), count)) * spread
    values = draw.integers(0, 1 << 62, len(keys))
    expected = dict(zip(keys.tolist(), values.tolist(), strict=True))
    wanted = np.concatenate((keys, draw.integers(0, 4 * spread * max(1, count), 2 * count)))
    found = IntegerTable(keys, values)[wanted]
    assert found.tolist() == [expected.get(key, -1) for key in wanted.tolist()]
