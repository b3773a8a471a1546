"""A disk that is full for a while costs a run no step, no record and no earlier checkpoint."""

import errno
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nmt.errors import CheckpointError
from nmt.files import read_json
from nmt.run.checkpoint import intact_checkpoints, recover_newest_checkpoint
from nmt.run.checkpoint_files import MANIFEST, STATE, WEIGHTS
from nmt.run.directory import RunDirectory
from nmt.training.monitor import Monitor
from nmt.training.train import train
from tests.training.runs import Recipe, Trained, interrupted, losses, quiet, same_weights, stop

SETTINGS = ("training.log_every=1", "training.validation_metric=loss")


@pytest.fixture
def undisturbed(trained: Trained) -> RunDirectory:
    """A run that always had space."""
    return trained(*SETTINGS)


def assert_recovered(run: RunDirectory, undisturbed: RunDirectory) -> None:
    """Nothing of what was learnt or recorded is missing, and nothing half-written is left."""
    assert same_weights(run.checkpoint(12), undisturbed.checkpoint(12))
    assert losses(run) == losses(undisturbed)
    saved = [*run.saved_checkpoints(), run.path / read_json(run.best)["weights"], run.averaged]
    assert intact_checkpoints(saved, quiet) == saved
    assert read_json(run.last)["weights"] == "checkpoints/step-00000012"
    assert not [path for path in run.path.rglob(".*") if path.name != ".lock"]


def full_for(
    run: Path, calls: str, monkeypatch: pytest.MonkeyPatch, times: tuple[int, ...] = ()
) -> None:
    """Let calls of the operating system fail, all that match or only the n-th of them."""
    seen: list[str] = []

    def watch(name: str, path_of: Callable[..., object]) -> None:
        original = getattr(os, name)

        def watched(*arguments: Any, **named: Any) -> Any:
            path = str(path_of(*arguments))
            if path.startswith(f"{run}/") and re.fullmatch(calls, f"{name} {path}"):
                seen.append(path)
                if not times or len(seen) in times:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
            return original(*arguments, **named)

        monkeypatch.setattr(os, name, watched)

    watch("fsync", lambda descriptor: os.readlink(f"/proc/self/fd/{descriptor}"))
    watch("mkdir", lambda path, *_: path)
    watch("rename", lambda old, new: new)
    watch("replace", lambda old, new: new)


NOT_SAVED = (
    r"checkpoints/step-00000008: checkpoint not saved: No space left on device "
    r"\(needs \d+ MiB, \d+ MiB free\); training goes on and tries again"
)


@pytest.mark.parametrize(
    ("calls", "times", "message"),
    [
        (rf"fsync .*step-00000008.*/{WEIGHTS}", (), NOT_SAVED),
        (rf"fsync .*step-00000008.*/{STATE}", (), NOT_SAVED),
        (rf"fsync .*step-00000008.*/{MANIFEST}", (), NOT_SAVED),
        (r"mkdir .*step-00000008.*", (), NOT_SAVED),
        (r"rename .*/step-00000008", (), NOT_SAVED),
        (r"fsync .*last\.json.*", (3,), "not written: No space left on device"),
        (r"replace .*/best\.json", (1,), r"best\.json\S*: not written: No space left on"),
    ],
)
def test_training_continues_when_one_file_operation_fails(
    recipe: Recipe,
    undisturbed: RunDirectory,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    calls: str,
    times: tuple[int, ...],
    message: str,
) -> None:
    run = RunDirectory(tmp_path / "run")
    told: list[tuple[str, Path | None]] = []

    def say(monitor: Monitor, words: str) -> None:
        if "not " in words:
            told.append((words, recover_newest_checkpoint(run.saved_checkpoints(), quiet)))

    monkeypatch.setattr(Monitor, "say", say)
    with monkeypatch.context() as patched:
        full_for(run.path, calls, patched, times)
        train(recipe(*SETTINGS), run.path, quiet)
    assert told
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
        full_for(run.path, rf"fsync .*averaged.*/{MANIFEST}", patched)
        with pytest.raises(CheckpointError, match=r"averaged: checkpoint not saved: No space left"):
            train(recipe(*SETTINGS), run.path, quiet)
    assert recover_newest_checkpoint(run.saved_checkpoints(), quiet) == run.checkpoint(12)
    train(recipe(*SETTINGS), run.path, quiet)
    assert_recovered(run, undisturbed)


@pytest.mark.parametrize("last", [12, 6])
def test_the_last_checkpoint_must_be_saved(
    recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, last: int
) -> None:
    """At the end of training, or when a signal stops it."""
    run = RunDirectory(tmp_path / "run")
    full_for(run.path, rf"mkdir .*step-{last:08d}.*", monkeypatch)
    with pytest.raises(CheckpointError, match="not saved: No space left"):
        if last == 12:
            train(recipe(), run.path, quiet)
        interrupted(recipe(), run.path, last, stop)
    saved = run.saved_checkpoints()
    assert saved and run.checkpoint(last) not in saved
