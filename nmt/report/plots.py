"""Plots of a run and of the paper's formulas: learning curves, schedule, positional encoding."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nmt.config import Config
from nmt.errors import ConfigError, DataError
from nmt.evaluation.metrics import METRIC_NAMES
from nmt.report.figure import BLUE, COLUMN_WIDTH, GREEN, LINE, ORANGE, new_figure, save_figure
from nmt.report.metrics_log import Curve, curve, read_metrics, running_mean

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SCHEDULE_POINTS = 2000


@dataclass(frozen=True, slots=True)
class LearningCurves:
    """The curves of a run; losses are in nats per target token."""

    training: Curve
    """the objective, with label smoothing"""
    validation: Curve
    """cross-entropy without label smoothing"""
    quality: Curve
    """BLEU or chrF of the validation set, 0 to 100"""
    metric: str
    """the name of the quality"""


def read_curves(metrics: Path) -> LearningCurves:
    """Read the learning curves from a metrics.jsonl.

    Raises:
        DataError: the file is missing or broken, or holds no losses.
    """
    records = read_metrics(metrics)
    training, validation = curve(records, "train", "loss"), curve(records, "validation", "loss")
    if not training.steps and not validation.steps:
        raise DataError(f"{metrics}: no losses recorded yet; let the run train a little longer")
    qualities = {name: curve(records, "validation", key) for key, name in METRIC_NAMES.items()}
    metric = next((name for name, found in qualities.items() if found.steps), METRIC_NAMES["bleu"])
    return LearningCurves(training, validation, qualities[metric], metric)


def plot_loss(metrics: Path, output: Path) -> list[Path]:
    """Draw training loss, validation loss and BLEU or chrF; write `output`.png and `output`.svg.

    Raises:
        DataError: `metrics` is missing, broken or without losses.
        MissingExtraError: matplotlib is not installed.
    """
    curves = read_curves(metrics)
    panels = 2 if curves.quality.steps else 1
    with new_figure(COLUMN_WIDTH, 1.1 + 1.45 * panels) as figure:
        heights = [3, 2][:panels]
        axes = figure.subplots(panels, 1, sharex=True, squeeze=False, height_ratios=heights)[:, 0]
        _draw_losses(axes[0], curves)
        if curves.quality.steps:
            _draw_quality(axes[1], curves.quality, curves.metric)
        for panel in axes:
            panel.grid(axis="y")
        _format_steps(axes[-1], max(curves.training.steps + curves.validation.steps))
        return save_figure(figure, output)


def _draw_losses(axes: "Axes", curves: LearningCurves) -> None:
    """Draw the upper panel: training objective, its running mean, and validation loss."""
    training, validation = curves.training, curves.validation
    if training.steps:
        trend = running_mean(training).values
        style = "o-" if len(training.steps) == 1 else "-"
        axes.plot(training.steps, training.values, color=BLUE, alpha=0.3, linewidth=0.7)
        axes.plot(training.steps, trend, style, label="training objective", color=BLUE, **LINE)
    if validation.steps:
        label = "validation cross-entropy"
        axes.plot(validation.steps, validation.values, "o-", label=label, color=ORANGE, **LINE)
    axes.set_ylabel("loss\n(nats per target token)")
    axes.legend(loc="upper right")


def _draw_quality(axes: "Axes", quality: Curve, metric: str) -> None:
    """Draw the lower panel: BLEU or chrF at each validation, and which one is the best."""
    axes.plot(quality.steps, quality.values, "s-", color=GREEN, **LINE)
    best = quality.best()
    assert best is not None
    axes.axhline(best.value, color=GREEN, linewidth=0.6, linestyle=(0, (4, 3)))
    title = f"best {best.value:.1f} at step {best.step:,}"
    axes.set_title(title, loc="right", color=GREEN, fontsize=7.0, pad=3)
    axes.set_ylabel(f"validation {metric}")
    axes.set_ylim(0, max(1.0, 1.1 * best.value))


def plot_schedule(config: Config, output: Path) -> list[Path]:
    """Draw the learning rate from step 1 to `max_steps`; write `output`.png and `output`.svg.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    from nmt.training.schedule import learning_rate

    last = config.training.max_steps
    warmup = min(config.training.warmup_steps, last)
    # evenly spaced steps, and the last one of the warm-up
    steps = sorted({1, warmup, last, *range(1, last + 1, max(1, last // SCHEDULE_POINTS))})
    rates = [learning_rate(step, config) for step in steps]
    with new_figure(COLUMN_WIDTH, 2.0) as figure:
        axes = figure.subplots()
        axes.plot(steps, rates, color=BLUE, **LINE)
        axes.set_title(f"highest {max(rates):.2e}", loc="right", color=BLUE, fontsize=7.0, pad=3)
        axes.set_ylabel("learning rate")
        axes.set_ylim(0, 1.08 * max(rates))
        _format_steps(axes, last)
        axes.ticklabel_format(axis="y", style="sci", scilimits=(0, 0), useMathText=False)
        axes.grid(axis="y")
        return save_figure(figure, output)


def _format_steps(axes: "Axes", last: int) -> None:
    """Label the horizontal axis with whole optimiser steps from 0 to `last`."""
    axes.set_xlabel("optimiser step")
    axes.set_xlim(0, max(10.0, 1.02 * last))
    axes.locator_params(axis="x", nbins=5, integer=True)
    axes.xaxis.set_major_formatter("{x:,.0f}")


def plot_positions(length: int, d_model: int, output: Path) -> list[Path]:
    """Draw PE(pos, i) of section 3.5 for `length` positions and all dimensions i as PNG and SVG.

    Raises:
        ConfigError: `d_model` is odd.
        MissingExtraError: matplotlib is not installed.
    """
    from nmt.model.positional_encoding import sinusoids

    if d_model % 2:
        raise ConfigError(f"--d-model {d_model}: expected an even number, each sine has its cosine")
    table = sinusoids(length, d_model).numpy()  # (length, D)
    with new_figure(COLUMN_WIDTH, 2.4) as figure:
        panels = figure.subplots(1, 2, sharey=True)
        for first, name in enumerate(("sine, i even", "cosine, i odd")):
            panel = panels[first]
            image = panel.imshow(
                table[:, first::2],
                cmap="RdBu_r",
                vmin=-1,
                vmax=1,
                aspect="auto",
                origin="lower",
                interpolation="nearest",
                extent=(0, d_model, -0.5, length - 0.5),
            )
            panel.set_title(name)
            panel.set_xlabel("dimension i")
            panel.locator_params(axis="x", nbins=4, integer=True)
            panel.spines[:].set_visible(True)
        panels[0].set_ylabel("position")
        figure.colorbar(image, ax=panels, label="PE(position, i)", ticks=[-1, -0.5, 0, 0.5, 1])
        return save_figure(figure, output)
