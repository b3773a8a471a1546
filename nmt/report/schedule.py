"""The learning rate of a recipe over its optimiser steps, drawn before any of them is taken."""

from pathlib import Path

from nmt.config import Config
from nmt.report.figure import BLUE, COLUMN_WIDTH, LINE, drawing, save_figure
from nmt.training.schedule import learning_rate

POINTS = 2000


def plot_schedule(config: Config, output: Path) -> list[Path]:
    """Draw the learning rate from step 1 to `max_steps`; write `output`.png and `output`.svg.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    last = config.training.max_steps
    warmup = min(config.training.warmup_steps, last)
    # the evenly spaced steps, and the one where the rate turns
    steps = sorted({1, warmup, last, *range(1, last + 1, max(1, last // POINTS))})
    rates = [learning_rate(step, config) for step in steps]
    with drawing(COLUMN_WIDTH, 2.0) as figure:
        axes = figure.subplots()
        axes.plot(steps, rates, color=BLUE, **LINE)
        axes.set_title(f"highest {max(rates):.2e}", loc="right", color=BLUE, fontsize=7.0, pad=3)
        axes.set_xlabel("optimiser step")
        axes.set_ylabel("learning rate")
        axes.set_xlim(0, max(10.0, 1.02 * last))
        axes.set_ylim(0, 1.08 * max(rates))
        axes.locator_params(axis="x", nbins=5, integer=True)
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.ticklabel_format(axis="y", style="sci", scilimits=(0, 0), useMathText=False)
        axes.grid(axis="y")
        return save_figure(figure, output)
