"""Matrices in the layout of the C code."""

import numpy as np
import pytest

from nmt.errors import NonFiniteScoresError
from nmt.inference.native.weights import row_scales

FLOATS = np.random.default_rng(1).normal(size=(7, 12)).astype(np.float32)
INTEGERS = np.random.default_rng(2).integers(-126, 127, (7, 12))
INTEGERS[3, 4], INTEGERS[5] = -127, 0


@pytest.mark.parametrize("multiplier", [0.37, 1.0, 164.3480224609375, 9e4])
def test_a_matrix_imported_in_int8_keeps_its_integers(multiplier: float) -> None:
    weight = INTEGERS.astype(np.float32) * np.float32(1 / np.float32(multiplier))
    scales = row_scales(weight)
    assert np.array_equal(np.rint(weight / scales[:, None]), INTEGERS)
    assert scales == pytest.approx(np.full(7, 1 / multiplier), rel=1e-6)


def test_the_largest_number_of_each_row_of_another_matrix_becomes_127() -> None:
    integers = FLOATS / row_scales(FLOATS)[:, None]
    assert np.abs(integers).max(1) == pytest.approx(np.full(7, 127), rel=1e-6)


def test_one_other_number_makes_it_another_matrix() -> None:
    weight = INTEGERS.astype(np.float32)
    weight[0, 0] += 0.4
    assert row_scales(weight)[1] == pytest.approx(np.abs(weight[1]).max() / 127)


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_what_is_no_number_has_no_scale(number: float) -> None:
    weight = FLOATS.copy()
    weight[2, 2] = number
    with pytest.raises(NonFiniteScoresError):
        row_scales(weight)
