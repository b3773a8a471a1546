"""Which checkpoints stay on disk."""

from pathlib import Path

import pytest

from nmt.config import TrainingConfig
from nmt.run_directory import RunDirectory
from nmt.training.retention import (
    checkpoints_to_average,
    delete_old_checkpoints,
    ranking_size,
    regular_checkpoints,
)

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
    delete_old_checkpoints(directory, TRAINING, [25])
    assert steps_of(directory.saved_checkpoints()) == [25, 30, 40, 50, 51, 52]


def test_the_best_may_be_unknown(directory: RunDirectory) -> None:
    saved(directory, 10, 20, 30, 40, 50)
    delete_old_checkpoints(directory, TRAINING, [])
    assert steps_of(directory.saved_checkpoints()) == [30, 40, 50]


def test_the_best_few_may_be_averaged_instead(directory: RunDirectory) -> None:
    training = TRAINING.model_copy(update={"average": "best", "keep_best": 2})
    saved(directory, 10, 15, 20, 25, 30)
    ranked = [25, 15, 30, 10]
    assert steps_of(checkpoints_to_average(directory, training, ranked)) == [15, 25, 30]
    assert steps_of(checkpoints_to_average(directory, training, [])) == [10, 20, 30]
    assert ranking_size(training) == 3


def test_as_many_of_the_last_and_the_best_stay_as_asked_for(directory: RunDirectory) -> None:
    training = TrainingConfig(checkpoint_every=10, average_checkpoints=1, keep_last=3, keep_best=2)
    assert ranking_size(training) == 2
    saved(directory, 3, 5, 10, 20, 30, 31)
    delete_old_checkpoints(directory, training, [5, 3])
    assert steps_of(directory.saved_checkpoints()) == [3, 5, 20, 30, 31]


def test_a_million_steps_sort_behind_a_thousand(directory: RunDirectory) -> None:
    saved(directory, 1_000_000, 1000, 99_990)
    assert steps_of(directory.saved_checkpoints()) == [1000, 99_990, 1_000_000]
