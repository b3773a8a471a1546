"""How a run is doing, as a small table for a terminal, from what it has written so far."""

import json
import re
import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nmt.config import Config
from nmt.config_file import load_config
from nmt.evaluation.metrics import METRIC_NAMES
from nmt.report.curves import Curve, curve, read_metrics
from nmt.report.duration import duration
from nmt.run_directory import RunDirectory

SPARK = "▁▂▃▄▅▆▇█"
SPARK_WIDTH = 32
RECENT = 10
"""records whose speed says how long the rest will take"""
NAME = 20
"""columns of the names in the table"""


@dataclass(frozen=True)
class Progress:
    """What there is to be shown of a run."""

    directory: RunDirectory
    config: Config
    records: list[dict[str, Any]]
    finished: bool
    process: str | None
    """who trains it, where that process is still there"""


def look(directory: RunDirectory) -> Progress:
    """Read what the run has written so far; a line that is only half there is left out.

    Raises:
        ConfigError: the run's configuration cannot be read.
        DataError: a line of its metrics is no record.
    """
    records = read_metrics(directory.metrics) if directory.metrics.is_file() else []
    config = load_config(str(directory.config))
    process = _training_process(directory)
    # The choice of the best weights comes last. One of fewer steps is that of a run before this.
    chosen = _steps_of_the_chosen(directory)
    ended = chosen >= config.training.max_steps or process is None
    finished = bool(chosen) and ended and chosen >= last_step(records)
    return Progress(directory, config, records, finished, process)


def last_step(records: Sequence[dict[str, Any]]) -> int:
    """The last one that was recorded; 0: none."""
    return max((r["step"] for r in records if isinstance(r.get("step"), int)), default=0)


def _steps_of_the_chosen(directory: RunDirectory) -> int:
    """The steps after which the run chose its best weights; 0: it has not."""
    try:
        return int(json.loads(directory.best.read_text("utf-8"))["trained_steps"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0


def _training_process(directory: RunDirectory) -> str | None:
    """The process that the lock file names, if it lives; one on another machine may."""
    try:
        owner = (directory.path / ".lock").read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    found = re.fullmatch(r"process (\d+) on (.*)", owner.strip())
    if not found:
        return None
    here = found[2] == socket.gethostname()
    return found[0] if not here or Path(f"/proc/{found[1]}").exists() else None


def render(progress: Progress, width: int = 80) -> str:
    """The table, cut off at `width` columns."""
    return "\n".join(line[:width].rstrip() for line in _lines(progress))


def _lines(progress: Progress) -> Iterator[str]:
    config, records = progress.config, progress.records
    state = "finished" if progress.finished else progress.process or "no process is training it"
    languages = f"{config.data.source_language} → {config.data.target_language}"
    yield f"{progress.directory.path}   {languages}"
    yield f"  {'state':{NAME}}{state}"
    if not records:
        yield "  nothing is recorded yet"
        return
    most, taken = config.training.max_steps, last_step(records)
    share = min(1.0, taken / most)
    filled = round(share * SPARK_WIDTH)
    yield _row("step", f"{taken:,} of {most:,}", "█" * filled + "░" * (SPARK_WIDTH - filled))
    yield from _curve_row("training objective", curve(records, "train", "loss"), 3)
    yield from _curve_row("validation loss", curve(records, "validation", "loss"), 3)
    for key, name in METRIC_NAMES.items():
        found = curve(records, "validation", key)
        yield from _curve_row(f"validation {name}", found, 2)
        if found.steps:
            best = max(range(len(found.values)), key=found.values.__getitem__)
            yield _row("  its best", f"{found.values[best]:.2f}", f"step {found.steps[best]:,}")
    yield from _curve_row("tokens per second", curve(records, "train", "tokens_per_second"), 0)
    yield from _times(progress)


def _row(name: str, value: str, remark: str = "") -> str:
    return f"  {name:{NAME}}{value:>18}   {remark}"


def _curve_row(name: str, found: Curve, digits: int) -> Iterator[str]:
    if found.steps:
        yield _row(name, f"{found.values[-1]:,.{digits}f}", spark_line(found.values))


def spark_line(values: Sequence[float], width: int = SPARK_WIDTH) -> str:
    """Up to `width` bars, each the mean of its share of `values`, scaled from lowest to highest."""
    count = min(width, len(values))
    edges = [len(values) * n // count for n in range(count + 1)] if count else []
    means = [sum(values[a:b]) / (b - a) for a, b in zip(edges, edges[1:], strict=False)]
    low, high = min(means, default=0.0), max(means, default=0.0)
    if high == low:
        return SPARK[0] * count
    return "".join(SPARK[round((mean - low) / (high - low) * (len(SPARK) - 1))] for mean in means)


def _times(progress: Progress) -> Iterator[str]:
    """How long it has trained, and how long the rest takes at the speed of late."""
    elapsed = curve(progress.records, "train", "seconds")
    if not elapsed.steps:
        return
    yield _row("trained for", duration(elapsed.values[-1]))
    first = max(0, len(elapsed.steps) - 1 - RECENT)
    steps = elapsed.steps[-1] - elapsed.steps[first]
    seconds = elapsed.values[-1] - elapsed.values[first]
    if first == len(elapsed.steps) - 1:  # a single record
        steps, seconds = elapsed.steps[-1], elapsed.values[-1]
    left = progress.config.training.max_steps - last_step(progress.records)
    if left > 0 and steps > 0 and seconds > 0 and not progress.finished:
        yield _row("time left", duration(left * seconds / steps), "without validation and saving")
