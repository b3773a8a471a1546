"""How a training went: loss and BLEU over the optimiser steps, drawn from a run's metrics.jsonl."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nmt.errors import DataError
from nmt.evaluation.metrics import METRIC_NAMES
from nmt.report.figure import BLUE, COLUMN_WIDTH, GREEN, LINE, ORANGE, drawing, save_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, slots=True)
class Curve:
    """Values at increasing optimiser steps."""

    steps: tuple[int, ...] = ()
    values: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Curves:
    """What a run recorded.

    training: the objective, with label smoothing, in nats per target token
    validation: cross-entropy without label smoothing, in nats per target token
    quality: BLEU or chrF of the validation set, 0 to 100; `metric` says which
    """

    training: Curve
    validation: Curve
    quality: Curve
    metric: str


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """The records of a metrics.jsonl, in file order.

    A last line that has no newline yet is left out: the run may be writing it now.

    Raises:
        DataError: there is no such file, or a line is no record.
    """
    try:
        lines = path.read_bytes().split(b"\n")[:-1]
    except FileNotFoundError as error:
        message = f"{path}: no metrics here; give the directory of a run that has trained"
        raise DataError(message) from error
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from error
    return [_record(line, f"{path}:{n}") for n, line in enumerate(lines, 1) if line.strip()]


def _record(line: bytes, place: str) -> dict[str, Any]:
    """Parse one line of the metrics file."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{place}: not a metrics record (one JSON object a line)") from error
    if not isinstance(record, dict):
        raise DataError(f"{place}: not a metrics record (one JSON object a line)")
    return record


def curve(records: Iterable[dict[str, Any]], event: str, key: str) -> Curve:
    """The finite numbers that records of `event` hold under `key`, by step.

    Where a resumed run recorded a step twice, the later record counts.
    """
    points: dict[int, float] = {}
    for record in records:
        step, value = record.get("step"), number(record, key)
        if record.get("event") == event and isinstance(step, int) and value is not None:
            points[step] = value
    steps = sorted(points)
    return Curve(tuple(steps), tuple(points[step] for step in steps))


def number(record: Mapping[str, Any], key: str) -> float | None:
    """The finite number under `key`, if there is one."""
    value = record.get(key)
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def read_curves(metrics: Path) -> Curves:
    """Group a run's metrics into the curves to draw.

    Raises:
        DataError: no file, a broken line, or no losses in it.
    """
    records = read_metrics(metrics)
    scores = {metric: curve(records, "validation", metric) for metric in METRIC_NAMES}
    metric = next((metric for metric, found in scores.items() if found.steps), "bleu")
    curves = Curves(
        training=curve(records, "train", "loss"),
        validation=curve(records, "validation", "loss"),
        quality=scores[metric],
        metric=METRIC_NAMES[metric],
    )
    if not curves.training.steps and not curves.validation.steps:
        raise DataError(f"{metrics}: no losses recorded yet; let the run train a little longer")
    return curves


def running_mean(values: Sequence[float], window: int) -> list[float]:
    """The mean of up to `window` values (odd) around each one.

    At the start, where losses fall steeply, the window stays symmetric and is therefore narrow;
    at the end it is cut off, so that the last means are no noisier than the others.
    """
    sums = np.concatenate(([0.0], np.cumsum(values, dtype=np.float64)))
    positions = np.arange(len(values))
    before = np.minimum(window // 2, positions)
    after = np.minimum(before, positions[::-1])
    means = (sums[positions + after + 1] - sums[positions - before]) / (before + 1 + after)
    return [float(mean) for mean in means]


def plot_loss(metrics: Path, output: Path) -> list[Path]:
    """Draw training loss, validation loss and BLEU or chrF; write `output`.png and `output`.svg.

    Raises:
        DataError: `metrics` is missing, broken or without losses.
        MissingExtraError: matplotlib is not installed.
    """
    curves = read_curves(metrics)
    panels = 2 if curves.quality.steps else 1
    with drawing(COLUMN_WIDTH, 1.1 + 1.45 * panels) as figure:
        heights = [3, 2][:panels]
        axes = figure.subplots(panels, 1, sharex=True, squeeze=False, height_ratios=heights)[:, 0]
        _draw_losses(axes[0], curves)
        if curves.quality.steps:
            _draw_quality(axes[1], curves.quality, curves.metric)
        for panel in axes:
            panel.grid(axis="y")
        axes[-1].set_xlabel("optimiser step")
        last = max(curves.training.steps + curves.validation.steps)
        axes[-1].set_xlim(0, max(10.0, 1.02 * last))
        axes[-1].locator_params(axis="x", nbins=5, integer=True)
        axes[-1].xaxis.set_major_formatter("{x:,.0f}")
        return save_figure(figure, output)


def _draw_losses(axes: "Axes", curves: Curves) -> None:
    """The upper panel: what training minimised, its trend, and the loss on unseen text."""
    training, validation = curves.training, curves.validation
    if training.steps:
        trend = running_mean(training.values, max(1, len(training.steps) // 20) | 1)
        style = "o-" if len(training.steps) == 1 else "-"
        axes.plot(training.steps, training.values, color=BLUE, alpha=0.3, linewidth=0.7)
        axes.plot(training.steps, trend, style, label="training objective", color=BLUE, **LINE)
    if validation.steps:
        label = "validation cross-entropy"
        axes.plot(validation.steps, validation.values, "o-", label=label, color=ORANGE, **LINE)
    axes.set_ylabel("loss\n(nats per target token)")
    axes.legend(loc="upper right")


def _draw_quality(axes: "Axes", quality: Curve, metric: str) -> None:
    """The lower panel: BLEU or chrF at each validation, the best one named."""
    axes.plot(quality.steps, quality.values, "s-", color=GREEN, **LINE)
    best = max(range(len(quality.values)), key=quality.values.__getitem__)
    axes.axhline(quality.values[best], color=GREEN, linewidth=0.6, linestyle=(0, (4, 3)))
    title = f"best {quality.values[best]:.1f} at step {quality.steps[best]:,}"
    axes.set_title(title, loc="right", color=GREEN, fontsize=7.0, pad=3)
    axes.set_ylabel(f"validation {metric}")
    axes.set_ylim(0, max(1.0, 1.1 * quality.values[best]))
