"""The progress of a run as a small table for a terminal, read from the files of the run."""

import itertools
import re
import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from nmt.evaluation.metrics import METRIC_NAMES
from nmt.files import read_json
from nmt.recipe.config import Config
from nmt.recipe.config_file import load_config
from nmt.report.curves import Record, best_step, curve, last_step, read_metrics
from nmt.run.directory import RunDirectory

BARS = "▁▂▃▄▅▆▇█"
"""the bars of a spark line, from the lowest value to the highest"""
SPARK_WIDTH = 32
"""columns of a spark line, a small curve of characters"""
RECENT = 10
"""number of records from which the remaining time is estimated"""
NAME_WIDTH = 20
"""columns of the names in the table"""


@dataclass(frozen=True)
class WatchedRun:
    """The state of a run at one moment."""

    directory: RunDirectory
    config: Config
    records: list[Record]
    finished: bool
    process: str | None
    """the process that trains the run, as its lock file names it; None: no process trains it"""


def read_progress(directory: RunDirectory) -> WatchedRun:
    """Return the state of a run, from its files; it may still be training.

    Raises:
        ConfigError: the run's configuration cannot be read.
        DataError: a line of its metrics is not a record.
    """
    records = read_metrics(directory.metrics) if directory.metrics.is_file() else []
    config = load_config(str(directory.config))
    process = _training_process(directory)
    # A training ends with the choice of its best weights. A choice after fewer steps than the last
    # record is from an earlier training of this run, which was then continued. A choice before
    # max_steps ends a training only if no process goes on with it.
    chosen_at = _step_of_choice(directory)
    has_chosen = chosen_at > 0 and chosen_at >= last_step(records)
    finished = has_chosen and (chosen_at >= config.training.max_steps or process is None)
    return WatchedRun(directory, config, records, finished, process)


def _step_of_choice(directory: RunDirectory) -> int:
    """Return the step at which the run chose its best weights, or 0 if it has chosen none."""
    try:
        return int(read_json(directory.best)["trained_steps"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0


def _training_process(directory: RunDirectory) -> str | None:
    """Return the process in the lock file if it is alive or runs on another machine, else None."""
    try:
        owner = (directory.path / ".lock").read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    match = re.fullmatch(r"process (\d+) on (.*)", owner.strip())
    if not match:
        return None
    process, host = match.groups()
    if host == socket.gethostname() and not Path(f"/proc/{process}").exists():
        return None
    return match[0]


def render_progress(run: WatchedRun, width: int = 80) -> str:
    """Return the state of a run as a table; its lines are cut off at `width` columns."""
    return "\n".join(line[:width].rstrip() for line in _lines(run))


def _lines(run: WatchedRun) -> Iterator[str]:
    """Yield the lines of the table: path and languages, state, steps, curves, times."""
    config, records = run.config, run.records
    state = "finished" if run.finished else run.process or "no process is training it"
    languages = " → ".join(config.data.languages_of(config.data.train))
    yield f"{run.directory.path}   {languages}"
    yield f"  {'state':{NAME_WIDTH}}{state}"
    if not records:
        yield "  nothing is recorded yet"
        return
    step, max_steps = last_step(records), config.training.max_steps
    filled = round(min(1.0, step / max_steps) * SPARK_WIDTH)
    yield _row("step", f"{step:,} of {max_steps:,}", "█" * filled + "░" * (SPARK_WIDTH - filled))
    curves = [  # name, event and key of the records, digits after the point
        ("training objective", "train", "loss", 3),
        ("validation loss", "validation", "loss", 3),
        *((f"validation {name}", "validation", key, 2) for key, name in METRIC_NAMES.items()),
        ("tokens per second", "train", "tokens_per_second", 0),
    ]
    for name, event, key, digits in curves:
        points = curve(records, event, key)
        if points:
            values = list(points.values())
            yield _row(name, f"{values[-1]:,.{digits}f}", spark_line(values))
        if key in METRIC_NAMES and (best := best_step(points)) is not None:
            yield _row("  its best", f"{points[best]:.2f}", f"step {best:,}")
    yield from _times(run)


def _row(name: str, value: str, remark: str = "") -> str:
    """Return a line of the table with its value aligned right; a bar or a remark follows it."""
    return f"  {name:{NAME_WIDTH}}{value:>18}   {remark}"


def spark_line(values: Sequence[float], width: int = SPARK_WIDTH) -> str:
    """Return up to `width` bars, ▁ (lowest) to █ (highest); a bar is the mean of neighbours."""
    count = min(width, len(values))
    if count == 0:
        return ""
    edges = [len(values) * n // count for n in range(count + 1)]  # of `count` equal parts
    means = [sum(values[start:end]) / (end - start) for start, end in itertools.pairwise(edges)]
    low, high = min(means), max(means)
    if high == low:
        return BARS[0] * count
    levels = [round((mean - low) / (high - low) * (len(BARS) - 1)) for mean in means]
    return "".join(BARS[level] for level in levels)


def duration(seconds: float) -> str:
    """Format a duration: 40 s; 1.5 min; 1 h 30 min; 2 d 2 h."""
    if round(seconds) < 60:
        return f"{seconds:.0f} s"
    minutes = seconds / 60
    if round(minutes, 1) < 10:
        return f"{minutes:.1f} min"
    if round(minutes) < 60:
        return f"{minutes:.0f} min"
    hours, rest = divmod(round(minutes), 60)
    return f"{hours} h {rest:02} min" if hours < 48 else f"{hours // 24} d {hours % 24} h"


def _times(run: WatchedRun) -> Iterator[str]:
    """Yield the time so far, and the remaining time at the speed of the latest records."""
    elapsed = curve(run.records, "train", "seconds")
    if not elapsed:
        return
    recent = list(elapsed.items())[-1 - RECENT :]
    last, total_seconds = recent[-1]
    yield _row("trained for", duration(total_seconds))
    first, first_seconds = recent[0] if len(recent) > 1 else (0, 0.0)  # else since the start
    steps, seconds = last - first, total_seconds - first_seconds
    steps_left = run.config.training.max_steps - last_step(run.records)
    if steps_left > 0 and steps > 0 and seconds > 0 and not run.finished:
        time_left = duration(steps_left * seconds / steps)
        yield _row("time left", time_left, "without validation and saving")
