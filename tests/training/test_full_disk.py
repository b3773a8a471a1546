"""A disk that is full for a while costs a run no step, no record and no checkpoint of before."""

import builtins
import errno
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from nmt.checkpoint import (
    MANIFEST,
    STATE,
    WEIGHTS,
    intact_checkpoints,
    load_state,
    load_weights,
    newest_checkpoint,
)
from nmt.config_file import dump_config
from nmt.errors import CheckpointError
from nmt.run_directory import RunDirectory
from nmt.training.monitor import Monitor
from nmt.training.train import train
from tests.training.runs import Recipe, quiet

SETTINGS = ("training.log_every=1", "training.validation_metric=loss")


@pytest.fixture(scope="module")
def undisturbed(recipe: Recipe, tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    """A run that always had space."""
    return train(recipe(*SETTINGS), tmp_path_factory.mktemp("undisturbed") / "run", quiet)


def events(run: RunDirectory) -> list[tuple[str, int, float]]:
    lines = [json.loads(line) for line in run.metrics.read_text("utf-8").splitlines()]
    return [(line["event"], line["step"], line["loss"]) for line in lines]


def assert_recovered(run: RunDirectory, undisturbed: RunDirectory) -> None:
    """Nothing of what was learnt or recorded is missing, and nothing half-written is left."""
    last = run.checkpoint(12)
    weights, expected = load_weights(last), load_weights(undisturbed.checkpoint(12))
    assert weights.keys() == expected.keys()
    assert all(torch.equal(weights[name], expected[name]) for name in expected)
    assert load_state(last)["step"] == 12
    assert events(run) == events(undisturbed)
    saved = run.saved_checkpoints()
    assert intact_checkpoints(saved, quiet) == saved
    assert json.loads(run.last.read_text())["weights"] == "checkpoints/step-00000012"
    best = run.path / json.loads(run.best.read_text())["weights"]
    assert intact_checkpoints([best, run.averaged], quiet) == [best, run.averaged]
    assert not [path for path in run.path.rglob(".*") if path.name != ".lock"]


# -- one call that fails --------------------------------------------------------------------------


class WatchedFile:
    """A file that asks before it writes."""

    def __init__(self, file: Any, ask: Callable[[], None]) -> None:
        self._file, self._ask = file, ask

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def __enter__(self) -> "WatchedFile":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def write(self, data: Any) -> int:
        self._ask()
        return int(self._file.write(data))


def full_for(
    run: Path, calls: str, times: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> list[str]:
    """Let the calls fail that match, all or the n-th of them; returns those that did."""
    seen, failed = [], []

    def ask(call: str, path: str) -> None:
        if not path.startswith(f"{run}/") or not re.fullmatch(calls, f"{call} {path}"):
            return
        seen.append(path)
        if not times or len(seen) in times:
            failed.append(path)
            where = [] if call == "write" else [path]
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), *where)

    def watched_open(file: Any, mode: str = "r", *arguments: Any, **named: Any) -> Any:
        opened = original_open(file, mode, *arguments, **named)
        watched = mode[0] != "r" and str(file).startswith(f"{run}/")
        return WatchedFile(opened, lambda: ask("write", str(file))) if watched else opened

    def watch(name: str, call: str, path_of: Callable[..., str]) -> None:
        original = getattr(os, name)

        def watched(*arguments: Any, **named: Any) -> Any:
            ask(call, path_of(*arguments))
            return original(*arguments, **named)

        monkeypatch.setattr(os, name, watched)

    original_open = io.open
    for module in (io, builtins):
        monkeypatch.setattr(module, "open", watched_open)
    watch("fsync", "flush", lambda descriptor: os.readlink(f"/proc/self/fd/{descriptor}"))
    watch("mkdir", "mkdir", lambda path, *_: str(path))
    for name in ("rename", "replace"):
        watch(name, "rename", lambda old, new: str(new))
    return failed


NOT_SAVED = (
    r"checkpoints/step-00000008: checkpoint not saved: No space left on device "
    r"\(needs \d+ MiB, \d+ MiB free\)"
)
CASES = {
    "weights": (rf"write .*step-00000008.*/{WEIGHTS}", (), NOT_SAVED),
    "state": (rf"write .*step-00000008.*/{STATE}", (), NOT_SAVED),
    "manifest": (rf"write .*step-00000008.*/{MANIFEST}", (), NOT_SAVED),
    "flush": (rf"flush .*step-00000008.*/{STATE}", (), NOT_SAVED),
    "mkdir": (r"mkdir .*step-00000008.*", (), NOT_SAVED),
    "rename": (r"rename .*/step-00000008", (), NOT_SAVED),
    "last": (r"write .*last\.json.*", (3,), "not written: No space left on device"),
    "best": (r"rename .*/best\.json", (1,), r"best\.json\S*: not written: No space left on"),
    "metrics": (r"write .*metrics\.jsonl", (3, 4), r"metrics\.jsonl: not written: No space left"),
}


@pytest.mark.parametrize("case", CASES)
def test_training_continues_when_one_file_operation_fails(
    recipe: Recipe,
    undisturbed: RunDirectory,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    case: str,
) -> None:
    run, (calls, times, message) = RunDirectory(tmp_path / "run"), CASES[case]
    told: list[tuple[str, Path | None]] = []

    def say(monitor: Monitor, words: str) -> None:
        if "not " in words:
            saved = run.saved_checkpoints()
            told.append((words, newest_checkpoint(saved, quiet) if saved else None))

    monkeypatch.setattr(Monitor, "say", say)
    with monkeypatch.context() as patched:
        failed = full_for(run.path, calls, times, patched)
        train(recipe(*SETTINGS), run.path, quiet)
    assert failed and told
    assert all(re.search(message, words) for words, _ in told)
    if message == NOT_SAVED:
        assert run.checkpoint(5) in [newest for _, newest in told]
        assert not run.checkpoint(8).exists()
    assert_recovered(run, undisturbed)


def test_a_rerun_makes_the_average_for_which_there_was_no_space(
    recipe: Recipe, undisturbed: RunDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = RunDirectory(tmp_path / "run")
    with monkeypatch.context() as patched:
        full_for(run.path, rf"write .*averaged.*/{MANIFEST}", (), patched)
        with pytest.raises(CheckpointError, match=r"averaged: checkpoint not saved: No space left"):
            train(recipe(*SETTINGS), run.path, quiet)
    assert newest_checkpoint(run.saved_checkpoints(), quiet) == run.checkpoint(12)
    train(recipe(*SETTINGS), run.path, quiet)
    assert_recovered(run, undisturbed)


# -- a disk that is full --------------------------------------------------------------------------

# Trains a run on a disk that is full from step 6 to 10, and copies it to where it stays.
TRAINER = """
import contextlib, pathlib, resource, shutil, signal, subprocess, sys, time
import torch
from nmt.checkpoint import newest_checkpoint
from nmt.config_file import load_config
from nmt.run_directory import RunDirectory
from nmt.training.train import train
from nmt.training.step import Stepper

torch.set_num_threads(1)
disk, folder = sys.argv[1], pathlib.Path(sys.argv[2])
most = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
small, ballast = folder / "small", folder / "small" / "ballast"
small.mkdir()
if disk == "small":
    command = ["mount", "-t", "tmpfs", "-o", "size=48m", "tmpfs", str(small)]
    subprocess.run(command, check=True)
run = RunDirectory(small / "run")


def fill():
    if disk == "small":
        with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))
    else:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (3 << 20, most))


def free():
    ballast.unlink(missing_ok=True)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))


def take(stepper):
    if stepper._state.step == 5:
        deadline = time.monotonic() + 120
        while "step-00000005" not in run.last.read_text() and time.monotonic() < deadline:
            time.sleep(0.01)
        fill()
    if stepper._state.step == 10:
        print(newest_checkpoint(run.saved_checkpoints(), print).name)
        free()
    return original(stepper)


original, Stepper.take = Stepper.take, take
train(load_config(str(folder / "recipe.yaml"), []), run.path, lambda message: None)
shutil.copytree(run.path, folder / "run")
"""


@pytest.mark.parametrize("disk", ["small", "limited"])
def test_training_continues_until_the_disk_has_space_again(
    recipe: Recipe, tmp_path: Path, disk: str
) -> None:
    """A tmpfs without a free page, and a limit between the sizes of weights and state."""
    alone = ["unshare", "--map-root-user", "--mount"] if disk == "small" else []
    if disk == "small":
        mount = [*alone, "mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(tmp_path)]
        try:
            subprocess.run(mount, check=True, capture_output=True, text=True)
        except (OSError, subprocess.CalledProcessError) as error:
            reason = getattr(error, "stderr", None) or error
            pytest.skip(f"no small disk can be mounted here: {reason}")
    settings = (*SETTINGS, "model.d_ff=8192", "training.checkpoint_every=2")
    (tmp_path / "recipe.yaml").write_text(dump_config(recipe(*settings)), "utf-8")
    done = subprocess.run(
        [*alone, sys.executable, "-c", TRAINER, disk, str(tmp_path)],
        capture_output=True,
        encoding="utf-8",
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "step-00000005\n"
    reason = "No space left on device" if disk == "small" else "File too large"
    message = rf"step-0000000[68]: checkpoint not saved: {reason} \(needs (\d+) MiB, (\d+) MiB free"
    needs = [(int(needed), int(free)) for needed, free in re.findall(message, done.stderr)]
    assert needs and all(needed >= 6 for needed, _ in needs)
    assert disk == "limited" or all(free < needed for needed, free in needs)
    whole = train(recipe(*settings), tmp_path / "whole", quiet)
    assert_recovered(RunDirectory(tmp_path / "run"), whole)
