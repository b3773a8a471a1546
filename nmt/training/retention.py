"""Which checkpoints stay on disk, and which of them are the last and the best."""

import shutil
from collections.abc import Mapping
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


def forget_old_checkpoints(
    directory: RunDirectory, training: TrainingConfig, best_step: int | None
) -> None:
    """Keep what will be averaged, the best, and the last two to resume from."""
    saved = directory.saved_checkpoints()
    keep = {*regular_checkpoints(directory, training), *saved[-2:]}
    if best_step is not None:
        keep.add(directory.checkpoint(best_step))
    for path in saved:
        if path not in keep:
            shutil.rmtree(path)


def point_to(directory: RunDirectory, last: int, best: Mapping[str, Any]) -> None:
    """Let last.json and best.json name the checkpoints of steps, relative to the run.

    `best` holds the step and its figures, or nothing as long as none is known.
    """
    _point(directory, directory.last, last, {})
    if best:
        _point(directory, directory.best, best["step"], best)


def _point(directory: RunDirectory, file: Path, step: int, figures: Mapping[str, Any]) -> None:
    weights = directory.checkpoint(step).relative_to(directory.path)
    directory.write_json(file, {"weights": str(weights), **figures})
