"""Which checkpoints stay on disk."""

import shutil
from pathlib import Path

from nmt.config import TrainingConfig
from nmt.run_directory import RunDirectory


def regular_checkpoints(directory: RunDirectory, training: TrainingConfig) -> list[Path]:
    """The checkpoints to average: the last ones at multiples of `checkpoint_every`, or the last.

    A checkpoint kept only because it validated best stands at no regular distance from the others.
    """
    saved = directory.saved_checkpoints()
    regular = [p for p in saved if int(p.name[5:]) % training.checkpoint_every == 0]
    return (regular or saved)[-training.average_checkpoints :]


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
