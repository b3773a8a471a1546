"""The head of the page: a dozen figures about the run."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from nmt.config import Config
from nmt.evaluation.metrics import METRIC_NAMES, Score
from nmt.report.metrics_log import Record, curve, last_number, number
from nmt.report.text_format import duration, short_number


def tiles(
    records: list[Record], score: tuple[str, Score] | None, parameters: int | None
) -> list[tuple[str, str, str]]:
    """Return the figures that are known, each as its name, its value and a remark.

    `score` is the name of the translated set and its first score.
    """
    found = []
    if score:
        where, first = score
        interval = f"± {first.confidence.half_width:.2f}, " if first.confidence else ""
        found.append((first.name, f"{first.value:.2f}", f"{interval}{where}"))
    for metric, name in METRIC_NAMES.items():
        if best := curve(records, "validation", metric).best():
            found.append((f"validation {name}", f"{best.value:.2f}", f"greedy, step {best.step:,}"))
    if (seconds := last_number(records, "seconds")) is not None:
        found.append(("training time", duration(seconds), "without validating and saving"))
    if (tokens := last_number(records, "target_tokens")) is not None:
        speed = f"{tokens / seconds:,.0f} a second" if seconds else ""
        found.append(("target tokens", short_number(tokens), speed))
    if parameters is not None:
        found.append(("parameters", short_number(parameters), f"{parameters:,}"))
    return found


def facts(
    config: Config, environment: Mapping[str, Any], taken: int, weights: str | None
) -> list[tuple[str, str]]:
    """Return facts about the run as names and values.

    `taken` is the number of steps that were taken, `weights` the folder of the weights that the
    report uses.
    """
    data, model = config.data, config.model
    shape = (
        f"d_model {model.d_model}, {model.heads} heads, d_ff {model.d_ff}, "
        f"{model.encoder_layers} + {model.decoder_layers} layers, {model.norm}-norm"
    )
    hardware = [str(environment[key]) for key in ("processor", "device") if environment.get(key)]
    return [
        ("languages", f"{data.source_language} to {data.target_language}"),
        ("corpus", (data.corpus or "files of one's own") + (", tokenised" * data.tokenized)),
        ("model", shape),
        ("steps", f"{taken:,} of {config.training.max_steps:,}"),
        ("tokens a step", f"{config.training.batch_tokens:,}"),
        ("precision", str(environment.get("precision", "unknown"))),
        ("hardware", ", ".join(hardware) or "unknown"),
        ("started", start_time(environment)),
        ("weights", weights or "none that can be read"),
    ]


def start_time(environment: Mapping[str, Any]) -> str:
    """Format the start of the run: 2026-11-21T21:08:18+00:00 -> 2026-11-21 21:08 UTC."""
    words = str(environment.get("started", "unknown"))
    try:
        return f"{datetime.fromisoformat(words).astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    except ValueError:
        return words


def compared_weights(best: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a table of the weights that were compared at the end, or None if there are none."""
    found = best.get("candidates")
    candidates = found if isinstance(found, Mapping) else {}
    figures = {name: value for name, value in candidates.items() if isinstance(value, Mapping)}
    keys = sorted({key for value in figures.values() for key in value})
    rows = []
    for name, value in figures.items():
        values = (number(value, key) for key in keys)
        rows.append([name, *("–" if x is None else f"{x:.3f}" for x in values)])
    head = ["weights", *(f"validation {key}" for key in keys)]
    return {"head": head, "rows": rows} if rows else None
