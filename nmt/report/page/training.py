"""The chapter on training: how losses, learning rate, quality and speed went."""

from typing import Any

from nmt.evaluation.metrics import METRIC_NAMES
from nmt.report.curves import Curve, curve, number, running_mean
from nmt.report.page.charts import Line, line_chart
from nmt.report.page.html import Html, element, folded, missing, note, section, table


def training_section(records: list[dict[str, Any]]) -> Html:
    """Curves over the optimiser steps from the records of metrics.jsonl."""
    charts = [chart for chart in _charts(records) if chart]
    if not charts:
        words = "No figures are recorded yet: the run has not come to its first record."
        return section("training", "Training", missing(words))
    children = [element("div", *charts, class_="charts")]
    if backs := [record for record in records if record.get("event") == "roll_back"]:
        places = ", ".join(f"{record['step']:,} (to {record.get('to')})" for record in backs)
        children.append(note(f"After a step that diverged the weights were taken back: {places}."))
    if validations := _validations(records):
        children.append(folded("Every validation", validations))
    return section("training", "Training", *children)


def _charts(records: list[dict[str, Any]]) -> list[Html]:
    def of(event: str, key: str) -> Curve:
        return curve(records, event, key)

    objective = of("train", "loss")
    window = max(1, len(objective.steps) // 20) | 1
    trend = Curve(objective.steps, tuple(running_mean(objective.values, window)))
    charts = [
        line_chart(
            "Loss",
            "nats per target token",
            [
                Line("training objective", objective, "blue faint"),
                Line("its running mean", trend, "blue"),
                Line("validation cross-entropy", of("validation", "loss"), "orange", dots=True),
            ],
            lambda value: f"{value:.2f}",
            from_zero=False,
        )
        if objective.steps or of("validation", "loss").steps
        else Html()
    ]
    for key, name in METRIC_NAMES.items():
        if (found := of("validation", key)).steps:
            line = Line(f"validation {name}", found, "green", dots=True)
            charts.append(
                line_chart(
                    f"Validation {name}", "greedy search", [line], _one_decimal, from_zero=True
                )
            )
    for title, unit, key, write, style in (
        ("Learning rate", "", "learning_rate", lambda rate: f"{rate:.2g}", "blue"),
        ("Throughput", "target tokens per second", "tokens_per_second", _whole, "blue"),
    ):
        if (found := of("train", key)).steps:
            line = Line(title.lower(), found, style)
            charts.append(line_chart(title, unit, [line], write, from_zero=True))
    return charts


def _one_decimal(value: float) -> str:
    return f"{value:.1f}"


def _whole(value: float) -> str:
    return f"{value:,.0f}"


def _validations(records: list[dict[str, Any]]) -> Html | None:
    """A table of all validations; a step that was validated twice stands there once, the later."""
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
