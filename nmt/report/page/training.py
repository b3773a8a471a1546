"""The chapter on training: loss, quality, learning rate and speed over the steps."""

from collections.abc import Callable, Iterator

from nmt.evaluation.metrics import METRIC_NAMES
from nmt.report.metrics_log import Record, curve, number, running_mean
from nmt.report.page.charts import ChartLine, line_chart
from nmt.report.page.html import Html, collapsible, element, note, placeholder, section, table


def training_section(records: list[Record]) -> Html:
    """Return curves over the optimiser steps, and a table of all validations."""
    charts = [*_loss_chart(records), *_other_charts(records)]
    if not charts:
        words = "No figures are recorded yet: the run has not come to its first record."
        return section("training", "Training", placeholder(words))
    children = [element("div", *charts, class_="charts")]
    if backs := [record for record in records if record.get("event") == "roll_back"]:
        places = ", ".join(f"{record['step']:,} (to {record.get('to')})" for record in backs)
        children.append(note(f"After a step that diverged the weights were taken back: {places}."))
    if validations := _validations(records):
        children.append(collapsible("Every validation", validations))
    return section("training", "Training", *children)


def _loss_chart(records: list[Record]) -> Iterator[Html]:
    objective = curve(records, "train", "loss")
    validation = curve(records, "validation", "loss")
    if objective.steps or validation.steps:
        lines = [
            ChartLine("training objective", objective, "blue faint"),
            ChartLine("its running mean", running_mean(objective), "blue"),
            ChartLine("validation cross-entropy", validation, "orange", dots=True),
        ]
        unit = "nats per target token"
        yield line_chart("Loss", unit, lines, "{:.2f}".format, from_zero=False)


def _other_charts(records: list[Record]) -> Iterator[Html]:
    """Yield a chart of each quality, the learning rate and the throughput, if recorded."""

    def chart(
        title: str, unit: str, line: ChartLine, write: Callable[[float], str]
    ) -> Iterator[Html]:
        if line.curve.steps:
            yield line_chart(title, unit, [line], write, from_zero=True)

    for key, name in METRIC_NAMES.items():
        quality = curve(records, "validation", key)
        line = ChartLine(f"validation {name}", quality, "green", dots=True)
        yield from chart(f"Validation {name}", "greedy search", line, "{:.1f}".format)
    line = ChartLine("learning rate", curve(records, "train", "learning_rate"), "blue")
    yield from chart("Learning rate", "", line, "{:.2g}".format)
    line = ChartLine("throughput", curve(records, "train", "tokens_per_second"), "blue")
    yield from chart("Throughput", "target tokens per second", line, "{:,.0f}".format)


def _validations(records: list[Record]) -> Html | None:
    """Return a table of all validations; of two at the same step the later one counts."""
    keys = {"loss": "loss", "perplexity": "perplexity", **METRIC_NAMES}
    found = {record["step"]: record for record in records if record.get("event") == "validation"}
    shown = [key for key in keys if any(key in record for record in found.values())]

    def row(step: int) -> list[str]:
        record = found[step]
        minutes = number(record, "seconds")
        figures = [
            "–" if (value := number(record, key)) is None else f"{value:,.2f}" for key in shown
        ]
        return [f"{step:,}", *figures, "–" if minutes is None else f"{minutes / 60:,.1f}"]

    if not found:
        return None
    return table(["step", *(keys[key] for key in shown), "minutes"], map(row, sorted(found)), 0)
