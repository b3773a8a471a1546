"""Curves over the optimiser steps, from metrics.jsonl of a run, and line charts of them."""

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from nmt.errors import DataError
from nmt.evaluation.metrics import METRIC_NAMES
from nmt.training.monitor import TERM

Record = dict[str, Any]
"""one line of metrics.jsonl"""
Curve = dict[int, float]
"""values by optimiser step, with increasing steps"""
MAX_POINTS = 500
"""points of a line; a longer line keeps evenly spaced points"""


def read_metrics(path: Path) -> list[Record]:
    """Return the records of a metrics.jsonl in file order.

    A last line without a newline is ignored: the run may be writing it at this moment.

    Raises:
        DataError: the file is missing or unreadable, or a line is not a record.
    """
    try:
        *lines, _unfinished = path.read_bytes().split(b"\n")
    except FileNotFoundError as error:
        advice = "give the directory of a run that has trained"
        raise DataError(f"{path}: no metrics here; {advice}") from error
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from error
    return [_parse(line, f"{path}:{n}") for n, line in enumerate(lines, 1) if line.strip()]


def _parse(line: bytes, where: str) -> Record:
    """Return the record in a line; `where` names the line in the error message."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        record = None
    if not isinstance(record, dict):
        raise DataError(f"{where}: not a metrics record (one JSON object a line)")
    return record


def curve(records: Iterable[Record], event: str, key: str) -> Curve:
    """Return the finite values of `key` in the records of one event, such as validation, by step.

    If a resumed run has recorded a step twice, the later record counts.
    """
    points: Curve = {}
    for record in records:
        step, value = record.get("step"), finite_number(record, key)
        if record.get("event") == event and isinstance(step, int) and value is not None:
            points[step] = value
    return dict(sorted(points.items()))


def best_step(curve: Curve) -> int | None:
    """Return the first step with the highest value, or None if the curve is empty."""
    return max(curve, key=curve.__getitem__, default=None)


def finite_number(record: Mapping[str, Any], key: str) -> float | None:
    """Return the number under `key`, or None if it is missing, not finite or no number."""
    value = record.get(key)
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def last_number(records: Sequence[Record], key: str) -> float | None:
    """Return the number under `key` in the last record that has a finite one, or None."""
    values = (finite_number(record, key) for record in reversed(records))
    return next((value for value in values if value is not None), None)


def last_step(records: Iterable[Record]) -> int:
    """Return the highest recorded step, or 0 if there is none."""
    steps = (record.get("step") for record in records)
    return max((step for step in steps if isinstance(step, int)), default=0)


def running_mean(curve: Curve) -> Curve:
    """Return a smooth curve: each value becomes the mean of a window around it, 1/20 of all points.

    Near the start, where losses fall steeply, this window is narrower on both sides of the point.
    Near the end it is narrower only after the point, so that the last means are smooth.
    """
    count = len(curve)
    # sums[n] is the sum of the first n values
    sums = np.concatenate(([0.0], np.cumsum([*curve.values()], dtype=np.float64)))
    indices = np.arange(count)
    half_window = max(1, count // 20) // 2
    before = np.minimum(half_window, indices)  # number of points of the window before each point
    following = indices[::-1]  # number of all points after each point
    after = np.minimum(before, following)  # number of points of the window after each point
    first, end = indices - before, indices + after + 1
    means = (sums[end] - sums[first]) / (end - first)
    return dict(zip(curve, means.tolist(), strict=True))


def evenly_spaced(count: int, most: int) -> list[int]:
    """Return at most `most` (2 or more) evenly spaced indices of `count`, with 0 and the last."""
    if count <= most:
        return list(range(count))
    return sorted({round(n * (count - 1) / (most - 1)) for n in range(most)})


@dataclass(frozen=True, slots=True)
class ChartLine:
    """A curve with its name; `style` names CSS classes of page.css, `dots` marks each point."""

    name: str
    curve: Curve
    style: str
    dots: bool = False


@dataclass(frozen=True, slots=True)
class LineChart:
    """Lines over a common axis of steps; positions are in percent of the width or the height."""

    title: str
    unit: str
    lines: list[ChartLine]
    number_format: str
    """format of the values that the script of the page shows beside a line"""
    low: float
    high: float
    """values at the lower and the upper end of the chart"""

    @property
    def last(self) -> int:
        """The highest step in any line: the right end of the horizontal axis."""
        return max(max(line.curve) for line in self.lines)

    def height(self, value: float) -> float:
        """Return how high in the chart a value is: 0 at `low`, 100 at `high`."""
        return 100 * (value - self.low) / (self.high - self.low)

    def points(self, line: ChartLine) -> Iterator[str]:
        """Yield the points of a line as SVG text "x y", each 0 to 1000; 0 0 is the top left."""
        for step, value in line.curve.items():
            x, y = 1000 * step / self.last, 1000 - 10 * self.height(value)  # y points down
            yield f"{x:.1f} {y:.1f}"

    def value_ticks(self) -> list[tuple[str, float]]:
        """Return labels of the vertical axis, and the height of each in percent."""
        ticks = round_ticks(self.low, self.high, about=5)
        return [(f"{tick:,.10g}", self.height(tick)) for tick in ticks]

    def step_ticks(self) -> list[tuple[str, float]]:
        """Return labels of the axis of steps, and the distance of each from the left in percent."""
        steps = [tick for tick in round_ticks(0, self.last, about=4) if tick.is_integer()]
        return [(f"{step:,.0f}", 100 * step / self.last) for step in steps]

    def texts_on_hover(self) -> str:
        """Return steps and formatted values of all lines as JSON; page.js shows them on hover."""
        shown = []
        for line in self.lines:
            texts = [format(value, self.number_format) for value in line.curve.values()]
            shown.append({"name": line.name, "steps": list(line.curve), "texts": texts})
        return json.dumps(shown)


def training_charts(records: list[Record]) -> list[LineChart]:
    """Return charts of losses, BLEU, chrF, learning rate and speed, each only if it is recorded.

    Terms of the loss, if it has any, follow it.
    """
    objective, validation = curve(records, "train", "loss"), curve(records, "validation", "loss")
    losses = [
        ChartLine("training objective", objective, "blue faint"),
        ChartLine("its running mean", running_mean(objective), "blue"),
        ChartLine("validation cross-entropy", validation, "orange", dots=True),
    ]
    charts = [line_chart("Loss", "nats per target token", losses, ".2f", from_zero=False)]
    names = {key: None for record in records for key in record if key.startswith(TERM)}
    for key in names:  # a chart for each: they may differ by orders of magnitude
        line = ChartLine(key.removeprefix(TERM), curve(records, "train", key), "blue")
        title = f"Term of the loss: {line.name}"
        charts.append(line_chart(title, "per target token, without its weight", [line], ".3g"))
    for key, name in METRIC_NAMES.items():
        quality = curve(records, "validation", key)
        line = ChartLine(f"validation {name}", quality, "green", dots=True)
        charts.append(line_chart(f"Validation {name}", "greedy search", [line], ".1f"))
    line = ChartLine("learning rate", curve(records, "train", "learning_rate"), "blue")
    charts.append(line_chart("Learning rate", "", [line], ".2g"))
    line = ChartLine("throughput", curve(records, "train", "tokens_per_second"), "blue")
    charts.append(line_chart("Throughput", "target tokens per second", [line], ",.0f"))
    return [chart for chart in charts if chart]


def line_chart(
    title: str, unit: str, lines: Sequence[ChartLine], number_format: str, from_zero: bool = True
) -> LineChart | None:
    """Return a chart of the lines that have points, or None if none has.

    `from_zero`: the vertical axis begins at 0, or below if a value is negative.
    """
    drawn = [replace(line, curve=thin(line.curve)) for line in lines if line.curve]
    if not drawn:
        return None
    values = [value for line in drawn for value in line.curve.values()]
    low, high = min([*values, 0.0] if from_zero else values), max(values)
    margin = 0.04 * (high - low) if high > low else 1.0  # free height at the ends of the axis
    if not from_zero:
        low -= margin
    return LineChart(title, unit, drawn, number_format, low, high + margin)


def thin(curve: Curve) -> Curve:
    """Keep at most `MAX_POINTS` evenly spaced points of a curve, with the first and the last."""
    points = list(curve.items())
    return dict(points[index] for index in evenly_spaced(len(points), MAX_POINTS))


def round_ticks(low: float, high: float, about: int) -> list[float]:
    """Return round numbers from low to high, evenly spaced, about `about` many (low < high)."""
    exact_distance = (high - low) / about  # of neighbouring ticks
    power = 10.0 ** math.floor(math.log10(exact_distance))
    round_distances = (power * factor for factor in (1, 2, 2.5, 5, 10))
    # 0.999 and 1e-9 allow for rounding errors
    distance = next(rounded for rounded in round_distances if rounded >= exact_distance * 0.999)
    first, last = math.ceil(low / distance - 1e-9), math.floor(high / distance + 1e-9)
    return [float(n * distance) for n in range(first, last + 1)]
