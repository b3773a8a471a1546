"""The record of a training: metrics.jsonl of a run, and curves over the optimiser steps."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from nmt.errors import DataError

Record = dict[str, Any]
"""one line of metrics.jsonl"""
Curve = dict[int, float]
"""values by optimiser step, with increasing steps"""


def read_metrics(path: Path) -> list[Record]:
    """Return the records of a metrics.jsonl in file order.

    A last line without a newline is ignored: the run may be writing it at this moment.

    Raises:
        DataError: the file is missing or unreadable, or a line is not a record.
    """
    try:
        lines = path.read_bytes().split(b"\n")[:-1]
    except FileNotFoundError as error:
        advice = "give the directory of a run that has trained"
        raise DataError(f"{path}: no metrics here; {advice}") from error
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from error
    return [_parse(line, f"{path}:{n}") for n, line in enumerate(lines, 1) if line.strip()]


def _parse(line: bytes, place: str) -> Record:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        record = None
    if not isinstance(record, dict):
        raise DataError(f"{place}: not a metrics record (one JSON object a line)")
    return record


def curve(records: Iterable[Record], event: str, key: str) -> Curve:
    """Return the finite numbers that records of `event` have under `key`, by step.

    If a resumed run has recorded a step twice, the later record counts.
    """
    points: Curve = {}
    for record in records:
        step, value = record.get("step"), number(record, key)
        if record.get("event") == event and isinstance(step, int) and value is not None:
            points[step] = value
    return dict(sorted(points.items()))


def best_step(curve: Curve) -> int | None:
    """Return the first step with the highest value, or None if the curve is empty."""
    return max(curve, key=curve.__getitem__, default=None)


def number(record: Mapping[str, Any], key: str) -> float | None:
    """Return the number under `key`, or None if there is no finite one."""
    value = record.get(key)
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def last_number(records: Sequence[Record], key: str) -> float | None:
    """Return the number under `key` of the last record that has one, or None."""
    values = (number(record, key) for record in reversed(records))
    return next((value for value in values if value is not None), None)


def last_step(records: Iterable[Record]) -> int:
    """Return the highest recorded step, or 0 if there is none."""
    return max((r["step"] for r in records if isinstance(r.get("step"), int)), default=0)


def running_mean(curve: Curve) -> Curve:
    """Smooth a curve by the mean of neighbouring points; the window is a 20th of the points.

    At the start, where losses fall steeply, the window stays symmetric and is therefore narrow;
    at the end it is cut off, so that the last means are as smooth as the others.
    """
    count = len(curve)
    sums = np.concatenate(([0.0], np.cumsum([*curve.values()], dtype=np.float64)))
    positions = np.arange(count)
    before = np.minimum(max(1, count // 20) // 2, positions)
    after = np.minimum(before, positions[::-1])
    means = (sums[positions + after + 1] - sums[positions - before]) / (before + 1 + after)
    return dict(zip(curve, means.tolist(), strict=True))


def evenly_spaced(count: int, most: int) -> list[int]:
    """Return at most `most` evenly spaced numbers below `count`, with the first and the last."""
    if count <= most:
        return list(range(count))
    return sorted({round(n * (count - 1) / (most - 1)) for n in range(most)})
