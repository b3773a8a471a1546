"""Plots of a run and of the paper's formulas: curves, attention, schedule, positional encoding.

matplotlib is optional (`nmt[plot]`) and slow to import, so it is imported when a figure is drawn.
`pyplot` and its global state are not used.
"""

import math
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from nmt.errors import ConfigError, DataError, MissingExtraError, NmtError, print_warning
from nmt.evaluation.metrics import METRIC_NAMES
from nmt.recipe.config import Config
from nmt.report.attention_maps import AttentionMap
from nmt.report.curves import Curve, best_step, curve, read_metrics, running_mean

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

STYLE: Any = {
    "font.family": ["DejaVu Sans"],
    "font.size": 8.0,
    "axes.titlesize": 8.0,
    "axes.labelsize": 8.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "grid.color": "0.88",
    "grid.linewidth": 0.5,
    "xtick.labelsize": 7.0,
    "ytick.labelsize": 7.0,
    "legend.fontsize": 7.0,
    "legend.frameon": False,
    # a dollar sign in a sentence does not start a formula
    "text.parse_math": False,
    # the same figure gives the same bytes
    "svg.hashsalt": "nmt",
}

MAX_NAMED = 10
"""characters that a warning about lacking fonts names"""
# Okabe and Ito's palette: distinct for every kind of colour vision, and in grey
BLUE, ORANGE, GREEN = "#0072B2", "#D55E00", "#009E73"
LINE: Any = {"linewidth": 1.3, "markersize": 2.5}
COLUMN_WIDTH = 3.3
"""inches: one column of a two-column page"""
SCHEDULE_POINTS = 2000
"""steps at which the learning rate is drawn, about"""
CELL = 0.125
"""inches: size of a row or column of an attention map, enough for a label"""
LETTER = 0.065
"""inches: average width of a letter of a label"""
TITLE_MARGIN = 0.05
"""inches: free space on each side of the title"""


def plot_loss(metrics: Path, output: Path) -> list[Path]:
    """Draw training loss, validation loss and BLEU or chrF; write `output`.png and `output`.svg.

    Raises:
        DataError: `metrics` is missing, broken or without losses.
        MissingExtraError: matplotlib is not installed.
    """
    records = read_metrics(metrics)
    training, validation = curve(records, "train", "loss"), curve(records, "validation", "loss")
    steps = [*training, *validation]
    if not steps:
        raise DataError(f"{metrics}: no losses recorded yet; let the run train a little longer")
    qualities = {name: curve(records, "validation", key) for key, name in METRIC_NAMES.items()}
    metric = next((name for name, quality in qualities.items() if quality), None)
    height_ratios = [3, 2] if metric else [3]
    count = len(height_ratios)
    with new_figure(COLUMN_WIDTH, 1.1 + 1.45 * count) as figure:
        grid = figure.subplots(count, 1, sharex=True, squeeze=False, height_ratios=height_ratios)
        panels = grid[:, 0]  # one below the other
        _draw_losses(panels[0], training, validation)
        if metric:
            _draw_quality(panels[1], qualities[metric], metric)
        for panel in panels:
            panel.grid(axis="y")
        _format_steps(panels[-1], max(steps))
        return save_figure(figure, output)


def _draw_losses(axes: "Axes", training: Curve, validation: Curve) -> None:
    """Draw the upper panel: the training objective, its running mean, and the validation loss."""
    if training:
        trend = running_mean(training)
        style = "o-" if len(training) == 1 else "-"  # a line of one point would not be seen
        axes.plot([*training], [*training.values()], color=BLUE, alpha=0.3, linewidth=0.7)
        label = "training objective"
        axes.plot([*trend], [*trend.values()], style, label=label, color=BLUE, **LINE)
    if validation:
        label = "validation cross-entropy"
        axes.plot([*validation], [*validation.values()], "o-", label=label, color=ORANGE, **LINE)
    axes.set_ylabel("loss\n(nats per target token)")
    axes.legend(loc="upper right")


def _draw_quality(axes: "Axes", quality: Curve, metric: str) -> None:
    """Draw the lower panel: BLEU or chrF at each validation, and which one is the best."""
    axes.plot([*quality], [*quality.values()], "s-", color=GREEN, **LINE)
    step = best_step(quality)
    assert step is not None  # the curve is not empty
    best = quality[step]
    axes.axhline(best, color=GREEN, linewidth=0.6, linestyle=(0, (4, 3)))
    title = f"best {best:.1f} at step {step:,}"
    axes.set_title(title, loc="right", color=GREEN, fontsize=7.0, pad=3)
    axes.set_ylabel(f"validation {metric}")
    axes.set_ylim(0, max(1.0, 1.1 * best))


def plot_schedule(config: Config, output: Path) -> list[Path]:
    """Draw the learning rate from step 1 to `max_steps`; write `output`.png and `output`.svg.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    from nmt.training.schedule import learning_rate

    last = config.training.max_steps
    warmup = min(config.training.warmup_steps, last)
    interval = max(1, last // SCHEDULE_POINTS)
    steps = sorted({1, warmup, last, *range(1, last + 1, interval)})  # the peak is at `warmup`
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
    """Draw PE(pos, i) of section 3.5 for `length` positions; write `output`.png and `output`.svg.

    Raises:
        ConfigError: `d_model` is odd.
        MissingExtraError: matplotlib is not installed.
    """
    from nmt.model.positional_encoding import sinusoids

    if d_model % 2:
        raise ConfigError(f"d_model {d_model}: expected an even number, each sine has its cosine")
    table = sinusoids(length, d_model).numpy()  # (length, D)
    with new_figure(COLUMN_WIDTH, 2.4) as figure:
        panels = figure.subplots(1, 2, sharey=True)
        for first_dimension, name in enumerate(("sine, i even", "cosine, i odd")):
            panel = panels[first_dimension]
            image = panel.imshow(
                table[:, first_dimension::2],  # every second dimension
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
        # one colour bar for both: all images have the same scale of colours
        figure.colorbar(image, ax=panels, label="PE(position, i)", ticks=[-1, -0.5, 0, 0.5, 1])
        return save_figure(figure, output)


def draw_attention(attention: AttentionMap, output: Path) -> list[Path]:
    """Draw the weights of each head, and before them their mean if there are several heads.

    Writes `output`.png and `output`.svg, and returns both paths.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    heads, row_count, column_count = attention.weights.shape
    names, maps = [""], [*attention.weights]
    if heads > 1:
        names = ["mean of the heads", *(f"head {n}" for n in range(1, heads + 1))]
        maps.insert(0, attention.weights.mean(axis=0))
    across = math.ceil(math.sqrt(len(maps)))  # panels beside each other
    down = math.ceil(len(maps) / across)  # rows of panels
    is_single = len(maps) == 1  # narrow enough for a column of a page, with the colour bar below
    rows, columns = attention.rows.labels, attention.columns.labels
    # inches: the panels, what stands beside or above all of them, and the longest label
    width = across * max(1.0, column_count * CELL) + (0.6 if is_single else 1.3)
    width += LETTER * max(map(len, rows))
    height = down * (max(1.0, row_count * CELL) + 0.3) + (1.3 if is_single else 0.8)
    height += LETTER * max(map(len, columns))
    with new_figure(width, height) as figure:
        families = font_families("".join(rows + columns))
        panels = figure.subplots(down, across, squeeze=False)
        for unused_panel in panels.flat[len(maps) :]:
            unused_panel.set_axis_off()
        for panel, name, weights in zip(panels.flat, names, maps, strict=False):
            image = _draw_map(panel, weights)
            panel.set_title(name)
        for panel in panels[0]:  # the top row
            panel.set_xticks(range(column_count), columns, rotation=90, family=families)
            panel.set_xlabel(attention.column_title)
        for panel in panels[:, 0]:  # the left column
            panel.set_yticks(range(row_count), rows, family=families)
            panel.set_ylabel(attention.row_title)
        title = figure.suptitle(attention.title, fontsize=8.0 if is_single else 9.0)
        title_width = title.get_window_extent().width / figure.dpi + 2 * TITLE_MARGIN
        figure.set_figwidth(max(figure.get_figwidth(), title_width))
        # one colour bar, made from the last image: all have the same scale of colours
        side = "bottom" if is_single else "right"
        colorbar = figure.colorbar(image, ax=panels, location=side, shrink=0.6, aspect=25)
        colorbar.set_label("attention weight")
        return save_figure(figure, output, dots_per_inch=200)


def _draw_map(panel: "Axes", weights: npt.NDArray[np.float32]) -> "AxesImage":
    """Draw the weights (T, S) of one head; dark is 1, with the same scale in every panel."""
    image = panel.imshow(weights, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    panel.xaxis.tick_top()
    panel.xaxis.set_label_position("top")
    panel.set_xticks([])  # the caller names the tokens at the edges of the figure
    panel.set_yticks([])
    panel.tick_params(length=0, pad=2)
    panel.spines[:].set_visible(True)
    panel.spines[:].set_color("0.7")
    return image


@contextmanager
def new_figure(width: float, height: float) -> Iterator["Figure"]:
    """Yield an empty figure of `width` x `height` inches; `STYLE` applies only inside the block.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    try:
        from matplotlib import rc_context
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("plotting", "plot") from error
    with rc_context(STYLE):
        figure = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasAgg(figure)  # attaches itself to the figure, which cannot be drawn without one
        yield figure


def save_figure(figure: "Figure", output: Path, dots_per_inch: int = 300) -> list[Path]:
    """Write `output`.png and `output`.svg, and return both paths, the PNG first.

    A suffix .png or .svg of `output` is removed.

    Raises:
        NmtError: the files cannot be written.
    """
    name = output.stem if output.suffix.lower() in (".png", ".svg") else output.name
    paths = [output.with_name(f"{name}.png"), output.with_name(f"{name}.svg")]
    for path in paths:
        metadata = {"Date": None} if path.suffix == ".svg" else None  # same figure, same bytes
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            figure.savefig(path, dpi=dots_per_inch, metadata=metadata)
        except OSError as error:
            raise NmtError(f"{path}: the plot cannot be written: {error.strerror}") from error
    return paths


def font_for(character: str) -> str:
    """Return the name of a free font for the script of a character."""
    script = unicodedata.name(character, "CJK").split()[0].title()
    if unicodedata.category(character) == "So":
        return "Noto Emoji"
    east_asian = ("Cjk", "Hiragana", "Katakana", "Hangul", "Fullwidth", "Halfwidth", "Ideographic")
    return f"Noto Sans {'CJK' if script in east_asian else script}"


def font_families(text: str) -> list[str]:
    """Return names of fonts for `text`: the default font, and those for characters that it lacks.

    For characters that no font has, warns on stderr and adds a font of boxes, if there is one.
    """
    from matplotlib import font_manager, get_cachedir

    def characters_of(path: str) -> set[str]:
        return set(map(chr, font_manager.get_font(path).get_charmap()))

    families, box_fonts = list(STYLE["font.family"]), []
    lacking = set(text) - characters_of(font_manager.findfont(families[0]))
    if not lacking:
        return families
    for font in font_manager.fontManager.ttflist:
        # the font "Last Resort" (also ".LastResort") has a box for every character
        if font.name.lower().replace(" ", "").lstrip(".").startswith("lastresort"):
            box_fonts.append(font.name)
            continue
        covered = lacking & characters_of(font.fname)
        if covered:
            families.append(font.name)
            lacking -= covered
    if not lacking:
        return families
    in_order = sorted(lacking, key=text.index)
    named = [c if c.isprintable() else f"U+{ord(c):04X}" for c in in_order[:MAX_NAMED]]
    more = " …" if len(in_order) > MAX_NAMED else ""
    print_warning(
        f"no installed font has {' '.join(named)}{more}, "
        f"so boxes are drawn instead; install a font that does, such as {font_for(in_order[0])}, "
        "and delete "
        f"{Path(get_cachedir(), 'fontlist-*.json')}, where matplotlib keeps the fonts it knows"
    )
    return families + box_fonts[:1]
