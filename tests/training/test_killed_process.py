"""SIGKILL to one of two processes: torchrun starts both anew, and nothing tells the run apart."""

import os
import random
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from nmt.config import Config
from nmt.run_directory import RunDirectory
from tests.training.runs import Recipe, contents, processes_by_rank, torchrun, wait_for_records

STEPS = 160
SETTINGS = [
    f"training.max_steps={STEPS}",
    "training.log_every=1",
    "training.checkpoint_every=10",
    "training.validate_every=40",
]


def start(config: Config, folder: Path) -> "subprocess.Popen[str]":
    return subprocess.Popen(torchrun(config, folder), stderr=subprocess.PIPE, text=True)


@pytest.fixture(scope="module")
def undisturbed(recipe: Recipe, tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """What two processes leave that nobody kills."""
    folder = tmp_path_factory.mktemp("undisturbed")
    launcher = start(recipe(*SETTINGS), folder)
    _, said = launcher.communicate(timeout=300)
    assert launcher.returncode == 0, said
    return contents(RunDirectory(folder / "run"))


@pytest.mark.parametrize(
    "number", [0, 1, *(pytest.param(n, marks=pytest.mark.slow) for n in range(2, 10))]
)
def test_a_killed_process_costs_no_more_than_time(
    recipe: Recipe, undisturbed: list[Any], tmp_path: Path, number: int
) -> None:
    launcher = start(recipe(*SETTINGS), tmp_path)
    run = RunDirectory(tmp_path / "run")
    wait_for_records(run, random.Random(number).randint(15, STEPS // 2))
    os.kill(processes_by_rank(launcher)[number % 2], signal.SIGKILL)
    _, said = launcher.communicate(timeout=300)
    assert launcher.returncode == 0, said
    assert "resuming after step" in said
    assert contents(run) == undisturbed
