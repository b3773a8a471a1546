"""Charts: lines over optimiser steps, and bars.

Lines are SVG that stretches with the page. Labels are HTML and keep their size.
"""

import json
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from nmt.report.metrics_log import Curve, evenly_spaced
from nmt.report.page.html import Html, concatenate, element

SIZE = 1000
"""width and height of the plotting area"""
MAX_POINTS = 500
"""points of a line; a longer line keeps evenly spaced points"""


@dataclass(frozen=True, slots=True)
class ChartLine:
    """A curve with its name; `style` is a class of page.css."""

    name: str
    curve: Curve
    style: str
    dots: bool = False


@dataclass(frozen=True, slots=True)
class Bar:
    """A row of a bar chart: a bar of length `value`, followed by `text` and `remark`."""

    label: str
    value: float
    text: str
    remark: str = ""


def line_chart(
    title: str,
    unit: str,
    lines: Sequence[ChartLine],
    write: Callable[[float], str],
    from_zero: bool,
) -> Html:
    """Draw lines over a common axis of steps; the script of the page shows values on hover."""
    lines = [ChartLine(x.name, thinned(x.curve), x.style, x.dots) for x in lines if x.curve.steps]
    values = [value for line in lines for value in line.curve.values]
    low, high = min(values), max(values)
    low = min(low, 0.0) if from_zero else low
    room = 0.04 * (high - low) or 1.0
    low, high = low if from_zero else low - room, high + room
    marks = round_ticks(low, high, 5)
    last = max(line.curve.steps[-1] for line in lines)

    def height(value: float) -> float:
        return 100 * (value - low) / (high - low)

    drawing = [_path(line, last, height) for line in lines]
    rules = [_rule(height(mark)) for mark in marks]
    labels = [_label(f"{mark:,.4g}", "y", f"bottom:{height(mark):.2f}%") for mark in marks]
    labels += [
        _label(f"{mark:,.0f}", "x", f"left:{100 * mark / last:.2f}%")
        for mark in round_ticks(0, last, 4)
        if mark.is_integer()  # there is no half a step
    ]
    legend = [
        element("span", line.name, class_=f"key {line.style}") for line in lines if len(lines) > 1
    ]
    svg = element(
        "svg",
        *rules,
        *drawing,
        viewBox=f"0 0 {SIZE} {SIZE}",
        preserveAspectRatio="none",
        role="img",
        aria_label=f"{title}, {unit}, over the optimiser steps",
    )
    data = [_values_on_hover(line, write) for line in lines]
    plot = element("div", svg, *labels, class_="plot", data_lines=json.dumps(data), data_last=last)
    caption = element("figcaption", element("b", title), f" {unit}", *legend)
    return element("figure", caption, plot, class_="chart")


def _values_on_hover(line: ChartLine, write: Callable[[float], str]) -> dict[str, object]:
    """The texts that the script of the page shows beside a line."""
    texts = [write(value) for value in line.curve.values]
    return {"name": line.name, "steps": line.curve.steps, "texts": texts}


def _path(line: ChartLine, last: int, height: Callable[[float], float]) -> Html:
    places = [
        (SIZE * step / last, SIZE * (1 - height(value) / 100))
        for step, value in zip(line.curve.steps, line.curve.values, strict=True)
    ]
    course = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
    parts = [element("path", d=course, class_=f"line {line.style}")]
    if line.dots or len(places) == 1:
        # a line of no length with round ends is a dot that does not stretch
        dots = "".join(f"M{x:.1f} {y:.1f}h0" for x, y in places)
        parts.append(element("path", d=dots, class_=f"dots {line.style}"))
    return concatenate(parts)


def _rule(height: float) -> Html:
    y = SIZE * (1 - height / 100)
    return element("path", d=f"M0 {y:.1f}H{SIZE}", class_="rule")


def _label(text: str, axis: str, place: str) -> Html:
    return element("span", text, class_=f"mark {axis}", style=place)


def thinned(curve: Curve) -> Curve:
    """Return at most `MAX_POINTS` evenly spaced points, with the first and the last."""
    kept = evenly_spaced(len(curve.steps), MAX_POINTS)
    return Curve(tuple(curve.steps[n] for n in kept), tuple(curve.values[n] for n in kept))


def round_ticks(low: float, high: float, about: int) -> list[float]:
    """Return about `about` evenly spaced round numbers between low and high (low < high)."""
    rough = (high - low) / about
    power = 10.0 ** math.floor(math.log10(rough))
    distance = next(power * n for n in (1, 2, 2.5, 5, 10) if power * n >= rough * 0.999)
    first, final = math.ceil(low / distance - 1e-9), math.floor(high / distance + 1e-9)
    return [float(n * distance) for n in range(first, final + 1)]


def bar_chart(title: str, unit: str, bars: Iterable[Bar], most: float | None = None) -> Html:
    """Draw bars below each other; `most` is the largest possible value."""
    bars = list(bars)
    longest = most or max((bar.value for bar in bars), default=0) or 1
    rows = [
        element(
            "tr",
            element("th", bar.label, scope="row"),
            element(
                "td",
                element("i", style=f"width:{100 * max(0.0, bar.value) / longest:.2f}%"),
                class_="bar",
            ),
            element("td", bar.text, class_="number"),
            element("td", bar.remark, class_="number quiet"),
        )
        for bar in bars
    ]
    caption = element("figcaption", element("b", title), f" {unit}")
    return element("figure", caption, element("table", *rows, class_="bars"), class_="chart list")
