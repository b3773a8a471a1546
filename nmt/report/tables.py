"""The text of `nmt compare`, `nmt data inspect` and `nmt data clean` for a terminal of 100 columns.

Its templates are in templates/, with those of the page of a report, which shows the same rows about
the data. The functions that take rows, sides or counts are called there as filters.
"""

import statistics
import textwrap
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

from nmt.data.quality import BINS, LanguageStatistics, Quality
from nmt.data.text.cleaning import REASONS
from nmt.data.tokens.unknown_parts import describe_parts, describe_unknown
from nmt.evaluation.compare import Comparison
from nmt.evaluation.metrics import Score
from nmt.evaluation.seed_test import GroupComparison

WIDTH = 100


def render_comparison(comparison: Comparison) -> str:
    """Return the output of `nmt compare`: scores, significance, breakdowns and examples."""
    template = template_environment().get_template("comparison.txt")
    return template.render(comparison=comparison).removesuffix("\n")


def render_groups(comparison: GroupComparison) -> str:
    """Return the output of `nmt compare` for groups: scores of each, and their differences."""
    template = template_environment().get_template("groups.txt")
    return template.render(comparison=comparison).removesuffix("\n")


def render_quality(quality: Quality) -> str:
    """Return the output of `nmt data inspect`: cleaning, lengths and leaks of a corpus."""
    template = template_environment().get_template("inspection.txt")
    return template.render(quality=quality).removesuffix("\n")


def render_cleaning(counts: dict[str, Any]) -> str:
    """Return as text what `nmt data clean` prints: how many pairs each rule left out, and examples.

    `counts` has the numbers of pairs `read` and `kept`, and by rule the number `dropped` and
    `examples` of these pairs. The values are those of `Prepared.counts`.
    """
    template = template_environment().get_template("cleaning.txt")
    return template.render(counts=counts).removesuffix("\n")


def template_environment() -> Environment:
    """Return Jinja's environment for templates/ with its filters; .html files escape values."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).with_name("templates")),
        autoescape=select_autoescape(),
        undefined=StrictUndefined,  # a name without a value is an error
        trim_blocks=True,
        extensions=["jinja2.ext.do"],  # {% do … %}: an expression that prints nothing
    )
    filters: list[Callable[..., Any]] = [columns, with_deviation, with_interval, wrap, labelled]
    filters += [cleaning_rows, cleaning_examples, length_rows, histogram]
    filters += [describe_unknown, describe_parts]
    environment.filters |= {function.__name__: function for function in filters}
    environment.filters["number"] = format
    return environment


def columns(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the rows of a table as lines: the first column aligned left, the others right."""
    cells_of_columns = zip(*rows, strict=True)
    label_width, *widths = [max(map(len, cells)) for cells in cells_of_columns]
    for label, *cells in rows:
        line = f"  {label:{label_width}}"
        for cell, width in zip(cells, widths, strict=True):
            line += f"   {cell:>{width}}"
        yield line


def with_interval(score: Score) -> str:
    """Format a score, with its confidence interval if it has one: 25.31 (24.60-26.02)."""
    interval = score.confidence
    if interval:
        return f"{score.value:.2f} ({interval['low']:.2f}-{interval['high']:.2f})"
    return f"{score.value:.2f}"


def with_deviation(values: Sequence[float], decimals: int = 2) -> str:
    """Format the mean of values, and if there are several their standard deviation: 25.3 ± 0.4."""
    text = f"{statistics.mean(values):.{decimals}f}"
    return f"{text} ± {statistics.stdev(values):.{decimals}f}" if len(values) > 1 else text


def wrap(sentence: object) -> str:
    """Break a sentence into lines of `WIDTH`; the second and later lines are indented."""
    return textwrap.fill(str(sentence), WIDTH, subsequent_indent="  ")


def labelled(text: str, name: str) -> str:
    """Wrap `text` with `name` before it; characters that a terminal cannot print are replaced."""

    def printable(character: str) -> str:
        if character.isprintable():
            return character
        return " " if character.isspace() else "\ufffd"

    shown = "".join(map(printable, text)).strip()
    return textwrap.fill(
        shown or "(nothing)",
        WIDTH,
        initial_indent=f"  {name:11}",
        subsequent_indent=" " * 13,
        break_on_hyphens=False,
    )


def cleaning_rows(counts: dict[str, Any]) -> list[list[str]]:
    """Return rows (name, pairs, share of all) as text: pairs read, left out by each rule, kept."""
    pairs = {"read": counts["read"]}
    for reason, description in REASONS.items():
        dropped = counts["dropped"].get(reason)
        if dropped:
            pairs[f"left out: {description}"] = dropped
    pairs["kept"] = counts["kept"]
    total = max(counts["read"], 1)  # 1: an empty text has shares of 0 %
    return [[name, f"{count:,}", f"{count / total:.2%}"] for name, count in pairs.items()]


def cleaning_examples(counts: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    """Return (reason, file:line, source, target) of the first pairs that each rule left out."""
    return [
        (description, f"{pair['file']}:{pair['line']}", pair["source"], pair["target"])
        for reason, description in REASONS.items()
        for pair in counts["examples"].get(reason, [])
    ]


def length_rows(sides: Sequence[LanguageStatistics]) -> list[list[str]]:
    """Return rows (name, value per language): all tokens, then percentiles of sentence length."""
    rows = [["tokens in all", *(f"{side.tokens:,}" for side in sides)]]
    for percent in sides[0].percentiles:
        name = {50: "median", 100: "longest"}.get(percent, f"{percent} % are no longer than")
        rows.append([name, *(f"{side.percentiles[percent]:,}" for side in sides)])
    return rows


def histogram(side: LanguageStatistics) -> list[tuple[str, int]]:
    """Return (lengths as text, sentences) of each bin, without the empty bins at both ends."""
    upper_ends = [*(next_low - 1 for next_low in BINS[1:]), None]  # the last bin has no upper end
    filled = [index for index, count in enumerate(side.histogram) if count]
    if not filled:
        return []
    bars = []
    for index in range(filled[0], filled[-1] + 1):
        low, high = BINS[index], upper_ends[index]
        if high is None:
            lengths = f"{low} and more"
        else:
            lengths = f"{low}" if low == high else f"{low}–{high}"
        bars.append((lengths, side.histogram[index]))
    return bars
