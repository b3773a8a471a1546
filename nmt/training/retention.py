"""Which checkpoints stay on disk, and which of them are the last and the best."""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nmt.config import TrainingConfig
from nmt.run_directory import RunDirectory


def regular_checkpoints(directory: RunDirectory, training: TrainingConfig) -> list[Path]:
    """The checkpoints to average: the last few at multiples of `checkpoint_every`, or the last one.

    A checkpoint kept only because it validated best stands at no regular distance from the others.
    """
    saved = directory.saved_checkpoints()
    regular = [p for p in saved if int(p.name[5:]) % training.checkpoint_every == 0]
    return regular[-training.average_checkpoints :] or saved[-1:]


def ranking_size(training: TrainingConfig) -> int:
    """How many of the best checkpoints stay."""
    averaged = training.average_checkpoints if training.average == "best" else 1
    return max(training.keep_best, averaged)


def checkpoints_to_average(
    directory: RunDirectory, training: TrainingConfig, ranked: Sequence[int]
) -> list[Path]:
    """The last few regular checkpoints, or the best few: those of the `ranked` steps, best first.

    Oldest first, as the sum of their weights is rounded differently in another order.
    """
    best = sorted(ranked[: training.average_checkpoints] if training.average == "best" else [])
    there = [path for step in best if (path := directory.checkpoint(step)).exists()]
    return there or regular_checkpoints(directory, training)


def delete_old_checkpoints(
    directory: RunDirectory, training: TrainingConfig, ranked: Sequence[int]
) -> None:
    """Keep what is averaged, those of the `ranked` steps, and the last to resume from."""
    saved = directory.saved_checkpoints()
    keep = {directory.checkpoint(step) for step in ranked}
    keep |= {*checkpoints_to_average(directory, training, ranked), *saved[-training.keep_last :]}
    for path in saved:
        if path not in keep:
            shutil.rmtree(path)


def write_pointers(directory: RunDirectory, last: int, best: Mapping[str, Any]) -> None:
    """Let last.json and best.json name the checkpoints of steps, relative to the run.

    `best` holds the step and its figures, or nothing as long as none is known.
    """
    _point(directory, directory.last, last, {})
    if best:
        _point(directory, directory.best, best["step"], best)


def _point(directory: RunDirectory, file: Path, step: int, figures: Mapping[str, Any]) -> None:
    weights = directory.checkpoint(step).relative_to(directory.path)
    directory.write_json(file, {"weights": str(weights), **figures})
