"""The chapter on training: loss, quality, learning rate and speed over the steps."""

from collections.abc import Iterator
from typing import Any

from nmt.evaluation.metrics import METRIC_NAMES
from nmt.report.metrics_log import Record, curve, number, running_mean
from nmt.report.page.charts import ChartLine, LineChart, line_chart


def training_chapter(records: list[Record]) -> dict[str, Any] | str:
    """Return the values of training.html, or a sentence that says why there are none."""
    charts = [*_charts(records)]
    if not charts:
        return "No figures are recorded yet: the run has not come to its first record."
    backs = [record for record in records if record.get("event") == "roll_back"]
    return {
        "charts": charts,
        "roll_backs": [f"{record['step']:,} (to {record.get('to')})" for record in backs],
        "validations": _validations(records),
    }


def _charts(records: list[Record]) -> Iterator[LineChart]:
    """Yield a chart of the losses, each quality, the learning rate and the speed, if recorded."""
    objective = curve(records, "train", "loss")
    losses = [
        ChartLine("training objective", objective, "blue faint"),
        ChartLine("its running mean", running_mean(objective), "blue"),
        ChartLine("validation cross-entropy", curve(records, "validation", "loss"), "orange", True),
    ]
    yield from line_chart("Loss", "nats per target token", losses, ".2f", from_zero=False)
    for key, name in METRIC_NAMES.items():
        line = ChartLine(f"validation {name}", curve(records, "validation", key), "green", True)
        yield from line_chart(f"Validation {name}", "greedy search", [line], ".1f")
    line = ChartLine("learning rate", curve(records, "train", "learning_rate"), "blue")
    yield from line_chart("Learning rate", "", [line], ".2g")
    line = ChartLine("throughput", curve(records, "train", "tokens_per_second"), "blue")
    yield from line_chart("Throughput", "target tokens per second", [line], ",.0f")


def _validations(records: list[Record]) -> dict[str, Any]:
    """Return a table of all validations; of two at the same step the later one counts."""
    keys = {"loss": "loss", "perplexity": "perplexity", **METRIC_NAMES}
    found = {record["step"]: record for record in records if record.get("event") == "validation"}
    shown = [key for key in keys if any(key in record for record in found.values())]
    rows = []
    for step, record in sorted(found.items()):
        figures = (number(record, key) for key in shown)
        minutes = number(record, "seconds")
        rows.append([f"{step:,}", *("–" if x is None else f"{x:,.2f}" for x in figures)])
        rows[-1].append("–" if minutes is None else f"{minutes / 60:,.1f}")
    return {"head": ["step", *(keys[key] for key in shown), "minutes"], "rows": rows}
