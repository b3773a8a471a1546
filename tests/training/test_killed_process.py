"""SIGKILL to one of two processes: torchrun starts both anew, and nothing tells the run apart."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nmt.config import Config
from nmt.config_file import dump_config
from nmt.run_directory import RunDirectory

Recipe = Callable[..., Config]
Contents = Callable[[RunDirectory], list[Any]]
STEPS = 160
SETTINGS = [
    f"training.max_steps={STEPS}",
    "training.log_every=1",
    "training.checkpoint_every=10",
    "training.validate_every=40",
]


def begin(config: Config, folder: Path) -> "subprocess.Popen[str]":
    """Train with two processes, which are started anew up to three times."""
    recipe = folder / "recipe.yaml"
    recipe.write_text(dump_config(config), "utf-8")
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    nmt = ["-m", "nmt", "train", "--config", str(recipe), "--run-dir", str(folder / "run")]
    return subprocess.Popen(
        [sys.executable, *torchrun, "--max-restarts=3", *nmt], stderr=subprocess.PIPE, text=True
    )


def process_of(launcher: "subprocess.Popen[str]", rank: int) -> int:
    for child in Path(f"/proc/{launcher.pid}/task/{launcher.pid}/children").read_text().split():
        if f"RANK={rank}".encode() in Path(f"/proc/{child}/environ").read_bytes().split(b"\0"):
            return int(child)
    raise AssertionError(f"no process of rank {rank} is alive")


def wait_for_records(run: RunDirectory, count: int) -> None:
    """Until the run has recorded so many steps."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        if run.metrics.is_file() and run.metrics.read_bytes().count(b"\n") >= count:
            return
        time.sleep(0.005)
    raise AssertionError("training has not come so far")


@pytest.fixture(scope="module")
def kept() -> list[Any]:
    return []


@pytest.fixture
def undisturbed(recipe: Recipe, contents: Contents, kept: list[Any], tmp_path: Path) -> list[Any]:
    """What two processes leave that nobody kills."""
    if not kept:
        folder = tmp_path / "undisturbed"
        folder.mkdir()
        launcher = begin(recipe(*SETTINGS), folder)
        _, said = launcher.communicate(timeout=300)
        assert launcher.returncode == 0, said
        kept.extend(contents(RunDirectory(folder / "run")))
    return kept


@pytest.mark.parametrize(
    "number", [0, 1, *(pytest.param(n, marks=pytest.mark.slow) for n in range(2, 10))]
)
def test_a_killed_process_costs_no_more_than_time(
    recipe: Recipe, contents: Contents, undisturbed: list[Any], tmp_path: Path, number: int
) -> None:
    launcher = begin(recipe(*SETTINGS), tmp_path)
    run = RunDirectory(tmp_path / "run")
    wait_for_records(run, random.Random(number).randint(15, STEPS // 2))
    os.kill(process_of(launcher, rank=number % 2), signal.SIGKILL)
    _, said = launcher.communicate(timeout=300)
    assert launcher.returncode == 0, said
    assert "resuming after step" in said
    assert contents(run) == undisturbed
