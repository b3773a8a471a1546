"""SIGKILL at any moment: the continued run is the uninterrupted one, bit for bit."""

import json
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from nmt.run_directory import RunDirectory
from tests.training.runs import Recipe, Trained, contents, write_recipe

# Forks a child for each line it reads, which trains until it is killed or done.
TRAINER = """
import json, os, pathlib, signal, shutil, sys, time
import torch
from nmt.config_file import load_config
from nmt.training.train import train
import torch._dynamo  # which every optimiser loads: once, and not in each child

torch.set_num_threads(1)


def die_at(owner, name, count):
    original, calls = getattr(owner, name), []
    def counted(*arguments, **named):
        calls.append(1)
        if len(calls) == count:
            os.kill(os.getpid(), signal.SIGKILL)
        return original(*arguments, **named)
    setattr(owner, name, counted)


OWNERS = {"os": os, "Path": pathlib.Path, "shutil": shutil}
for line in sys.stdin:
    plan = json.loads(line)
    child = os.fork()
    if child == 0:
        if plan.get("point"):
            owner, name = plan["point"].split(".")
            die_at(OWNERS[owner], name, plan["count"])
        train(load_config(plan["config"], []), pathlib.Path(plan["run"]), lambda message: None)
        os._exit(0)
    if plan.get("seconds"):
        time.sleep(plan["seconds"])
        os.kill(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    print(json.dumps(os.waitstatus_to_exitcode(status)), flush=True)
"""

Train = Callable[..., int]
SETTING = "training.log_every=1"


@pytest.fixture(scope="module")
def train(recipe: Recipe, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Train]:
    """Train into a folder, be killed perhaps, and say how it ended."""
    config = write_recipe(recipe(SETTING), tmp_path_factory.mktemp("recipe"))
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen([sys.executable, "-c", TRAINER], text=True, **pipes) as process:

        def trained(run: Path, **plan: Any) -> int:
            assert process.stdin and process.stdout
            line = json.dumps({"config": str(config), "run": str(run), **plan})
            print(line, file=process.stdin, flush=True)
            return int(json.loads(process.stdout.readline()))

        yield trained


@pytest.fixture(scope="module")
def whole(trained: Trained) -> list[Any]:
    """The contents of a run that nobody kills."""
    return contents(trained(SETTING))


# weights, state, manifest and folder are flushed and renamed; last.json and best.json are written
# anew; an old checkpoint is forgotten
POINTS = [
    ("os.fsync", 1),
    ("os.fsync", 3),
    ("os.fsync", 5),
    ("Path.rename", 1),
    ("Path.rename", 2),
    ("Path.replace", 2),
    ("Path.replace", 4),
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
    "seed", [*range(10), *(pytest.param(n, marks=pytest.mark.slow) for n in range(10, 100))]
)
def test_kills_at_random_moments_lose_nothing(
    train: Train, whole: list[Any], tmp_path: Path, seed: int
) -> None:
    draw = random.Random(seed)
    for _ in range(3):
        train(tmp_path / "run", seconds=draw.uniform(0.01, 0.8))
    assert train(tmp_path / "run") == 0
    assert contents(RunDirectory(tmp_path / "run")) == whole
