"""Curves of metrics.jsonl; charts with round ticks, points at the right place, labels as text."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.errors import DataError
from nmt.report.curves import (
    MAX_POINTS,
    ChartLine,
    Curve,
    LineChart,
    curve,
    line_chart,
    read_metrics,
    round_ticks,
    running_mean,
    thin,
    training_charts,
)
from tests.report.conftest import training, validation, write_metrics

NUMBERS = st.floats(-1e9, 1e9)


@pytest.mark.parametrize("line", ["{broken", "[1, 2]", "\x00", "[" * 100_000])
def test_a_broken_line_is_named(tmp_path: Path, line: str) -> None:
    path = write_metrics(tmp_path / "metrics.jsonl", training(10, 8.0), tail=f"{line}\n")
    with pytest.raises(DataError, match=r"metrics\.jsonl:2: not a metrics record"):
        read_metrics(path)


def test_a_missing_and_an_unreadable_file_are_errors(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"m\.jsonl: no metrics here; give the directory of a run"):
        read_metrics(tmp_path / "m.jsonl")
    with pytest.raises(DataError, match="cannot be read: "):
        read_metrics(tmp_path)


def test_a_step_counts_once_steps_ascend_and_values_are_finite() -> None:
    records = [training(step, loss) for step, loss in ((20, 6.0), (10, 8.0), (20, 5.0))]
    records += [training(30, float("nan")), training(40, float("inf")), validation(60, 7.0, None)]
    records += [{"event": "train", "step": 50}, {"event": "note"}]
    assert curve(records, "train", "loss") == {10: 8.0, 20: 5.0}
    assert curve(records, "validation", "loss") == {60: 7.0}
    assert curve(records, "validation", "bleu") == {}


def test_each_term_of_the_loss_has_a_chart() -> None:
    records = [training(step, 3.0, **{"loss a b": 0.5 * step, "loss c": 1.0}) for step in (1, 2)]
    charts = {chart.title: chart for chart in training_charts(records)}
    assert list(charts) == ["Loss", "Term of the loss: a b", "Term of the loss: c"]
    assert charts["Term of the loss: a b"].lines[0].curve == {1: 0.5, 2: 1.0}


@pytest.mark.parametrize("count", [1, 3, 39, 40, 120])
def test_each_mean_covers_a_20th_of_the_curve_and_is_symmetric_at_its_start(count: int) -> None:
    values = np.random.default_rng(count).normal(size=count)
    means = running_mean(dict(enumerate(values))).values()
    for position, mean in enumerate(means):
        before = min(count // 40, position)
        assert mean == pytest.approx(values[position - before : position + before + 1].mean())


@pytest.mark.parametrize("count", [0, 1, MAX_POINTS, MAX_POINTS + 1, 10_000])
def test_a_long_curve_keeps_evenly_spaced_points_and_its_ends(count: int) -> None:
    found = thin({step: float(step) for step in range(count)})
    assert len(found) == min(count, MAX_POINTS) and list(found) == sorted(found)
    assert not found or (min(found), max(found)) == (0, count - 1)
    assert all(step == value for step, value in found.items())


@given(NUMBERS, st.floats(1e-6, 1e9))
def test_ticks_lie_between_the_ends(low: float, extent: float) -> None:
    high = low + extent
    if high - low < 1e-12 * max(abs(low), abs(high)) * 1e6:
        return  # closer together than their own precision
    ticks = round_ticks(low, high, 5)
    assert 1 <= len(ticks) <= 7
    slack = 1e-6 * extent
    assert low - slack <= ticks[0] and ticks[-1] <= high + slack


def test_ticks_are_round_numbers() -> None:
    assert round_ticks(0, 8000, 4) == [0, 2000, 4000, 6000, 8000]
    assert round_ticks(1.6, 9.1, 4) == [2, 4, 6, 8]
    assert round_ticks(0, 1, 4) == pytest.approx([0, 0.25, 0.5, 0.75, 1])


def chart(*curves: Curve, from_zero: bool = True) -> LineChart:
    lines = [ChartLine(f"line {n}", curve, "blue") for n, curve in enumerate(curves)]
    found = line_chart("Loss", "nats", lines, ".2f", from_zero)
    assert found is not None
    return found


def test_points_are_placed_in_proportion() -> None:
    drawn = chart({50: 1.0, 100: 2.0})
    (x1, y1), (x2, y2) = (map(float, point.split()) for point in drawn.points(drawn.lines[0]))
    assert (x1, x2) == (500, 1000)
    assert 1000 - y1 == pytest.approx((1000 - y2) / 2, abs=0.2)


@pytest.mark.parametrize("curve", [{1: 0.0}, {7: 3.0}, {1: -1e-9, 2: -1e-9}])
@pytest.mark.parametrize("from_zero", [True, False])
def test_single_points_and_constants_can_be_drawn(curve: Curve, from_zero: bool) -> None:
    drawn = chart(curve, from_zero=from_zero)
    assert all(0 <= float(x) <= 1000 for p in drawn.points(drawn.lines[0]) for x in p.split())
    assert drawn.value_ticks() and drawn.step_ticks()


def test_large_values_are_labelled_without_an_exponent() -> None:
    labels = [label for label, _height in chart({1: 14_000.0}).value_ticks()]
    assert labels == ["0", "5,000", "10,000"]


def test_the_values_of_the_tooltip_are_those_of_each_line() -> None:
    drawn = chart({1: 1.0, 2: 2.0}, {}, {2: 0.5})
    assert json.loads(drawn.texts_on_hover()) == [
        {"name": "line 0", "steps": [1, 2], "texts": ["1.00", "2.00"]},
        {"name": "line 2", "steps": [2], "texts": ["0.50"]},
    ]
