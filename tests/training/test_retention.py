"""Which checkpoints stay on disk."""

from pathlib import Path

import pytest

from nmt.config import TrainingConfig
from nmt.run_directory import RunDirectory
from nmt.training.retention import forget_old_checkpoints, regular_checkpoints

TRAINING = TrainingConfig(checkpoint_every=10, average_checkpoints=3)


@pytest.fixture
def directory(tmp_path: Path) -> RunDirectory:
    return RunDirectory(tmp_path)


def saved(directory: RunDirectory, *steps: int) -> None:
    for step in steps:
        directory.checkpoint(step).mkdir(parents=True)


def steps_of(paths: list[Path]) -> list[int]:
    return [int(path.name.removeprefix("step-")) for path in paths]


def test_the_last_regular_checkpoints_are_averaged(directory: RunDirectory) -> None:
    saved(directory, 10, 20, 25, 30, 40, 41)
    assert steps_of(regular_checkpoints(directory, TRAINING)) == [20, 30, 40]


def test_where_none_is_regular_the_last_stands_alone(directory: RunDirectory) -> None:
    saved(directory, 5, 7)
    assert steps_of(regular_checkpoints(directory, TRAINING)) == [7]


def test_what_is_averaged_the_best_and_the_last_two_stay(directory: RunDirectory) -> None:
    saved(directory, 5, 10, 20, 25, 30, 35, 40, 50, 51, 52)
    forget_old_checkpoints(directory, TRAINING, best_step=25)
    assert steps_of(directory.saved_checkpoints()) == [25, 30, 40, 50, 51, 52]


def test_the_best_may_be_unknown(directory: RunDirectory) -> None:
    saved(directory, 10, 20, 30, 40, 50)
    forget_old_checkpoints(directory, TRAINING, best_step=None)
    assert steps_of(directory.saved_checkpoints()) == [30, 40, 50]


def test_a_million_steps_sort_behind_a_thousand(directory: RunDirectory) -> None:
    saved(directory, 1_000_000, 1000, 99_990)
    assert steps_of(directory.saved_checkpoints()) == [1000, 99_990, 1_000_000]
