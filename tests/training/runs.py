"""Runs in the tests of training: started, compared, stopped and watched in one way."""

import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from nmt.errors import StoppedBySignal
from nmt.recipe.config import Config
from nmt.recipe.config_file import dump_config
from nmt.run.checkpoint import load_state, load_weights
from nmt.run.checkpoint_files import WEIGHTS
from nmt.run.directory import RunDirectory
from nmt.training.optimizer import update_weights
from nmt.training.schedule import learning_rate
from nmt.training.train import train
from nmt.training.trainer import Trainer

Recipe = Callable[..., Config]
Trained = Callable[..., RunDirectory]
MakeTrainer = Callable[..., Trainer]
Diverge = Callable[..., None]
CLOCKS = ("seconds", "tokens_per_second", "training_seconds")
_LAUNCHER = [sys.executable, "-m", "torch.distributed.run", "--standalone"]


def quiet(message: str) -> None:
    """A log that nobody reads."""


class PowerFailure(BaseException):
    """Nothing catches it and nothing is saved."""


def stop() -> None:
    signal.raise_signal(signal.SIGTERM)


def fail() -> None:
    raise PowerFailure


def interrupted(config: Config, path: Path, step: int, how: Callable[[], object]) -> BaseException:
    """Train until `how` happens while the weights are updated in `step`."""

    def update(*arguments: Any) -> None:
        if arguments[2] == learning_rate(step, config):
            how()
        update_weights(*arguments)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("nmt.training.step.update_weights", update)
        with pytest.raises((StoppedBySignal, PowerFailure)) as raised:
            train(config, path, quiet)
    return raised.value


def records(run: RunDirectory) -> list[dict[str, Any]]:
    """What the run recorded, without what a clock has measured."""
    lines = map(json.loads, run.metrics.read_text("utf-8").splitlines())
    return [{key: line[key] for key in line if key not in CLOCKS} for line in lines]


def losses(run: RunDirectory) -> dict[int, tuple[float, int]]:
    """Loss and target tokens so far by step; no step is recorded twice."""
    trained = [record for record in records(run) if record["event"] == "train"]
    found = {record["step"]: (record["loss"], record["target_tokens"]) for record in trained}
    assert len(found) == len(trained)
    return found


def comparable(value: Any) -> Any:
    """Nested values that compare by their contents, without what a clock has measured."""
    if isinstance(value, torch.Tensor):
        return str(value.dtype), tuple(value.shape), value.numpy().tobytes()
    if isinstance(value, dict):
        return {key: comparable(inner) for key, inner in value.items() if key not in CLOCKS}
    return [comparable(inner) for inner in value] if isinstance(value, list | tuple) else value


def contents(run: RunDirectory) -> list[Any]:
    """Everything that training has made, to be compared by ==."""
    weights = [path.read_bytes() for path in sorted(run.path.rglob(WEIGHTS))]
    states = [comparable(load_state(path)) for path in run.saved_checkpoints()]
    pointers = [comparable(json.loads(path.read_text())) for path in (run.best, run.last)]
    names = sorted(str(path.relative_to(run.path)) for path in run.path.rglob("*"))
    return [records(run), weights, states, pointers, names]


def files_of(run: RunDirectory, *others: str) -> dict[Path, tuple[bytes, int]]:
    """Contents and time of each file of a run, but for its lock and `others`."""
    files = (path for path in run.path.rglob("*") if path.is_file())
    kept = [path for path in files if path.name not in (".lock", *others)]
    return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in kept}


def ending(run: RunDirectory) -> list[Any]:
    """What a finished run has recorded, its last state, its best weights and its translations."""
    last = run.saved_checkpoints()[-1]
    weights = [last, run.averaged, run.moving_average]
    return [
        records(run),
        last.name,
        comparable(load_state(last)),
        comparable(json.loads(run.best.read_text())),
        [comparable(load_weights(path)) for path in weights if path.is_dir()],
        {path.name: path.read_bytes() for path in run.translations.glob("*")},
    ]


def assert_same_run(path: Path, whole: RunDirectory) -> None:
    """A run in parts ends as a whole one, though it may have saved other steps."""
    assert ending(RunDirectory(path)) == ending(whole)


def same_weights(one: Path, other: Path) -> bool:
    """Whether two checkpoints hold the same weights."""
    return bool(comparable(load_weights(one)) == comparable(load_weights(other)))


def copied(run: RunDirectory, folder: Path) -> RunDirectory:
    """A copy of a run in `folder`, to be changed or continued."""
    return RunDirectory(shutil.copytree(run.path, folder / "run"))


def write_recipe(config: Config, folder: Path) -> Path:
    """The file of a recipe, for programs."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "recipe.yaml"
    path.write_text(dump_config(config), "utf-8")
    return path


def run_script(processes: int, script: Path, *arguments: object) -> None:
    """Run a script to its end in several processes; a single one needs no launcher."""
    launched = [*_LAUNCHER, f"--nproc-per-node={processes}"] if processes > 1 else [sys.executable]
    command = [*launched, str(script), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=300)
    assert done.returncode == 0, done.stderr


def torchrun(config: Config, folder: Path, processes: int = 2, restarts: int = 3) -> list[str]:
    """The command that trains with several processes and restarts them if one of them fails."""
    options = [f"--max-restarts={restarts}", f"--nproc-per-node={processes}"]
    recipe, run = str(write_recipe(config, folder)), str(folder / "run")
    return [*_LAUNCHER, *options, "-m", "nmt", "train", "--config", recipe, "--run-dir", run]


def processes_by_rank(launcher: "subprocess.Popen[str]") -> dict[int, int]:
    """The process of each rank that torchrun has started."""
    ranks: dict[int, int] = {}
    for child in Path(f"/proc/{launcher.pid}/task/{launcher.pid}/children").read_text().split():
        environment = Path(f"/proc/{child}/environ").read_bytes().split(b"\0")
        ranks |= {int(e[5:]): int(child) for e in environment if e.startswith(b"RANK=")}
    return ranks


def wait_for_records(run: RunDirectory, count: int, seconds: float = 240) -> None:
    """Wait until the run has recorded this many steps and validations."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if run.metrics.is_file() and run.metrics.read_bytes().count(b"\n") >= count:
            return
        time.sleep(0.005)
    raise AssertionError("training has not come so far")
