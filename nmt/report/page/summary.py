"""The head of the page: a dozen figures about the run."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from nmt.config import Config
from nmt.evaluation.metrics import METRIC_NAMES, Score
from nmt.report.metrics_log import Record, curve, last_number, last_step, number
from nmt.report.text_format import duration, short_number


@dataclass(frozen=True)
class Summary:
    """What the files of the run say, and what was measured for the report."""

    config: Config
    environment: Mapping[str, Any]
    best: Mapping[str, Any]
    """best.json"""
    records: list[Record]
    problem: str = ""
    """what is wrong with metrics.jsonl; empty if nothing is"""
    parameters: int | None = None
    weights: str | None = None
    """the folder of the weights that the report uses"""
    score: tuple[str, Score] | None = None
    """the name of the translated set, and its first score"""


def summary_chapter(summary: Summary) -> dict[str, Any]:
    """Return the values of summary.html: figures, facts, and the scores of compared weights."""
    return {
        "tiles": _tiles(summary),
        "problem": summary.problem,
        "facts": _facts(summary),
        "candidates": _candidates(summary.best),
    }


def _tiles(summary: Summary) -> list[tuple[str, str, str]]:
    tiles = []
    if summary.score:
        where, score = summary.score
        interval = f"± {score.confidence.half_width:.2f}, " if score.confidence else ""
        tiles.append((score.name, f"{score.value:.2f}", f"{interval}{where}"))
    for metric, name in METRIC_NAMES.items():
        if best := curve(summary.records, "validation", metric).best():
            tiles.append((f"validation {name}", f"{best.value:.2f}", f"greedy, step {best.step:,}"))
    if (seconds := last_number(summary.records, "seconds")) is not None:
        tiles.append(("training time", duration(seconds), "without validating and saving"))
    if (tokens := last_number(summary.records, "target_tokens")) is not None:
        speed = f"{tokens / seconds:,.0f} a second" if seconds else ""
        tiles.append(("target tokens", short_number(tokens), speed))
    if summary.parameters is not None:
        tiles.append(("parameters", short_number(summary.parameters), f"{summary.parameters:,}"))
    return tiles


def _facts(summary: Summary) -> list[tuple[str, str]]:
    config, environment = summary.config, summary.environment
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
        ("steps", f"{last_step(summary.records):,} of {config.training.max_steps:,}"),
        ("tokens a step", f"{config.training.batch_tokens:,}"),
        ("precision", str(environment.get("precision", "unknown"))),
        ("hardware", ", ".join(hardware) or "unknown"),
        ("started", start_time(environment)),
        ("weights", summary.weights or "none that can be read"),
    ]


def start_time(environment: Mapping[str, Any]) -> str:
    """Format the start of the run: 2026-11-21T21:08:18+00:00 -> 2026-11-21 21:08 UTC."""
    words = str(environment.get("started", "unknown"))
    try:
        return f"{datetime.fromisoformat(words).astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    except ValueError:
        return words


def _candidates(best: Mapping[str, Any]) -> dict[str, Any] | None:
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
