"""SIGKILL at any moment: the continued run is the uninterrupted one, bit for bit."""

import random
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from nmt.run.directory import RunDirectory
from tests.killed_commands import command_forks
from tests.training.runs import Recipe, Trained, contents, write_recipe

Train = Callable[..., int]
SETTINGS = ("training.log_every=1", "tokenizer.sampling=0.2")


@pytest.fixture(scope="module")
def train(recipe: Recipe, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Train]:
    """Train into a folder, be killed perhaps, and say how it ended."""
    config = write_recipe(recipe(*SETTINGS), tmp_path_factory.mktemp("recipe"))
    with command_forks() as forks:

        def trained(run: Path, **plan: Any) -> int:
            return forks.run(["train", "--config", config, "--run-dir", run], **plan)

        yield trained


@pytest.fixture(scope="module")
def whole(trained: Trained) -> list[Any]:
    """The contents of a run that nobody kills."""
    return contents(trained(*SETTINGS))


# weights, state, manifest and folder are flushed and renamed; last.json and best.json are written
# anew; an old checkpoint is forgotten
POINTS = [
    ("os.fsync", 1),
    ("os.fsync", 3),
    ("os.fsync", 5),
    ("pathlib.Path.rename", 1),
    ("pathlib.Path.rename", 2),
    ("pathlib.Path.replace", 2),
    ("pathlib.Path.replace", 4),
    ("shutil.rmtree", 2),
    ("os.fsync", 12),
]


@pytest.mark.parametrize(("point", "count"), POINTS)
def test_a_kill_inside_saving_loses_nothing(
    train: Train, whole: list[Any], tmp_path: Path, point: str, count: int
) -> None:
    assert train(tmp_path / "run", point=point, count=count) == -signal.SIGKILL
    assert train(tmp_path / "run") == 0
    assert contents(RunDirectory(tmp_path / "run")) == whole


@pytest.mark.parametrize(
    "seed", [*range(5), *(pytest.param(n, marks=pytest.mark.slow) for n in range(5, 100))]
)
def test_kills_at_random_moments_lose_nothing(
    train: Train, whole: list[Any], tmp_path: Path, seed: int
) -> None:
    draw = random.Random(seed)
    for _ in range(3):
        train(tmp_path / "run", seconds=draw.uniform(0.01, 0.8))
    assert train(tmp_path / "run") == 0
    assert contents(RunDirectory(tmp_path / "run")) == whole
