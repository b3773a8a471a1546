"""Charts: ticks that are round and inside, points at the right place, labels as text."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.report.charts import MAX_POINTS, ChartLine, LineChart, line_chart, round_ticks, thinned
from nmt.report.metrics_log import Curve

NUMBERS = st.floats(-1e9, 1e9)


@given(NUMBERS, st.floats(1e-6, 1e9))
def test_ticks_lie_between_the_ends(low: float, extent: float) -> None:
    high = low + extent
    if high - low < 1e-12 * max(abs(low), abs(high)) * 1e6:
        return  # closer together than their own precision
    ticks = round_ticks(low, high, 5)
    assert 1 <= len(ticks) <= 7
    slack = 1e-6 * extent
    assert low - slack <= ticks[0] and ticks[-1] <= high + slack


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0, 8000, [0, 2000, 4000, 6000, 8000]),
        (1.6, 9.1, [2, 4, 6, 8]),
        (0, 1, [0, 0.25, 0.5, 0.75, 1]),
    ],
)
def test_ticks_are_round_numbers(low: float, high: float, ticks: list[float]) -> None:
    assert round_ticks(low, high, 4) == pytest.approx(ticks)


def chart(*curves: Curve, from_zero: bool = True) -> LineChart:
    lines = [ChartLine(f"line {n}", curve, "blue") for n, curve in enumerate(curves)]
    found = line_chart("Loss", "nats", lines, ".2f", from_zero)
    assert found is not None
    return found


def places(chart: LineChart) -> list[tuple[float, float]]:
    pairs = (point.split() for point in chart.points(chart.lines[0]))
    return [(float(x), float(y)) for x, y in pairs]


def test_points_are_placed_in_proportion() -> None:
    drawn = places(chart({50: 1.0, 100: 2.0}))
    assert [x for x, _ in drawn] == [500, 1000]
    assert 1000 - drawn[0][1] == pytest.approx((1000 - drawn[1][1]) / 2, abs=0.2)


@pytest.mark.parametrize("curve", [{1: 0.0}, {7: 3.0}, {1: -1e-9, 2: -1e-9}])
@pytest.mark.parametrize("from_zero", [True, False])
def test_single_points_and_constants_can_be_drawn(curve: Curve, from_zero: bool) -> None:
    drawn = chart(curve, from_zero=from_zero)
    assert all(0 <= x <= 1000 for x, _ in places(drawn))
    assert drawn.value_ticks() and drawn.step_ticks()


def test_the_values_of_the_tooltip_are_those_of_each_line() -> None:
    drawn = chart({1: 1.0, 2: 2.0}, {}, {2: 0.5})
    assert json.loads(drawn.texts_on_hover()) == [
        {"name": "line 0", "steps": [1, 2], "texts": ["1.00", "2.00"]},
        {"name": "line 2", "steps": [2], "texts": ["0.50"]},
    ]


def test_a_long_curve_keeps_evenly_spaced_points_and_its_ends() -> None:
    found = thinned({step: float(step) for step in range(10_000)})
    assert len(found) == MAX_POINTS and (min(found), max(found)) == (0, 9_999)
    assert all(step == value for step, value in found.items())
    assert thinned(found) == found
