"""Which checkpoints stay on disk, and which of them are the last and the best."""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nmt.config import TrainingConfig
from nmt.run_directory import RunDirectory


def regular_checkpoints(directory: RunDirectory, training: TrainingConfig) -> list[Path]:
    """Return the last few checkpoints at multiples of `checkpoint_every`, or else the last one.

    A checkpoint that was kept only because it validated best is at no regular distance from them.
    """
    saved = directory.saved_checkpoints()
    regular = [p for p in saved if directory.step_of(p) % training.checkpoint_every == 0]
    return regular[-training.average_checkpoints :] or saved[-1:]


def ranking_size(training: TrainingConfig) -> int:
    """Return how many of the best checkpoints stay."""
    averaged = training.average_checkpoints if training.average == "best" else 1
    return max(training.keep_best, averaged)


def checkpoints_to_average(
    directory: RunDirectory, training: TrainingConfig, ranked: Sequence[int]
) -> list[Path]:
    """Return the last few regular checkpoints, or the best few of the `ranked` steps (best first).

    The oldest comes first, because another order would round the sum of the weights differently.
    """
    best = sorted(ranked[: training.average_checkpoints] if training.average == "best" else [])
    existing = [path for step in best if (path := directory.checkpoint(step)).exists()]
    return existing or regular_checkpoints(directory, training)


def delete_old_checkpoints(
    directory: RunDirectory, training: TrainingConfig, ranked: Sequence[int]
) -> None:
    """Keep what will be averaged, the `ranked` steps, and the last ones to resume from."""
    saved = directory.saved_checkpoints()
    keep = {directory.checkpoint(step) for step in ranked}
    keep |= {*checkpoints_to_average(directory, training, ranked), *saved[-training.keep_last :]}
    for path in saved:
        if path not in keep:
            shutil.rmtree(path)


def write_pointers(directory: RunDirectory, last: int, best: Mapping[str, Any]) -> None:
    """Write which checkpoints are the last and the best, into last.json and best.json.

    `best` holds a step and its figures; best.json is not written if it is empty.
    """
    _write_pointer(directory, directory.last, last, {})
    if best:
        _write_pointer(directory, directory.best, best["step"], best)


def _write_pointer(
    directory: RunDirectory, file: Path, step: int, figures: Mapping[str, Any]
) -> None:
    weights = directory.checkpoint(step).relative_to(directory.path)
    directory.write_json(file, {"weights": str(weights), **figures})
