import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from nmt.errors import ConfigError, StoppedBySignal
from nmt.machine.processor import available_cores
from nmt.planning import sweep
from nmt.planning.sweep import check_points, is_done, run_all, start_training
from nmt.recipe.variants import Point
from nmt.run.checkpoint_files import WEIGHTS
from nmt.run.directory import RunDirectory
from nmt.training.train import train
from tests.training.runs import Recipe, quiet

ENDS = {"good": 0, "bad": 3, "also-good": 0}


@pytest.fixture(autouse=True)
def quick_polls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "POLL_SECONDS", 0.01)


def program(code: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-c", code], start_new_session=True)


def points(*names: str) -> list[Point]:
    return [Point(name, ()) for name in names]


def test_a_run_that_fails_does_not_stop_the_others_and_places_are_used_again() -> None:
    ended: dict[str, int] = {}
    places: list[int] = []

    def start(point: Point, place: int) -> "subprocess.Popen[bytes]":
        places.append(place)
        return program(f"raise SystemExit({ENDS[point.name]})")

    run_all(points(*ENDS), start, 2, lambda name, code: ended.setdefault(name, code))
    assert ended == ENDS
    assert set(places) == {0, 1}


def test_an_unwanted_run_is_stopped_once() -> None:
    answers, ended = iter([True]), dict[str, int]()
    waits = "import time; time.sleep(60)"
    run_all(
        points("slow"),
        lambda point, place: program(waits),
        1,
        lambda name, code: ended.setdefault(name, code),
        lambda name: next(answers, False),
    )
    assert ended == {"slow": -signal.SIGTERM}


def test_a_signal_stops_all_and_waits_until_they_have_saved(tmp_path: Path) -> None:
    saves = """
import signal, sys, time
def save(number, frame):
    time.sleep(0.3)
    open(sys.argv[1], "w").close()
    sys.exit(143)
signal.signal(signal.SIGTERM, save)
open(sys.argv[1] + ".ready", "w").close()
time.sleep(60)
"""
    files = [tmp_path / "a", tmp_path / "b"]

    def start(point: Point, place: int) -> "subprocess.Popen[bytes]":
        words = [sys.executable, "-c", saves, str(tmp_path / point.name)]
        return subprocess.Popen(words, start_new_session=True)

    def stop_when_both_run(name: str) -> bool:
        if all(file.with_name(f"{file.name}.ready").exists() for file in files):
            raise StoppedBySignal("stopped by SIGINT", signal.SIGINT)
        return False

    with pytest.raises(StoppedBySignal):
        run_all(points("a", "b"), start, 2, lambda name, code: None, stop_when_both_run)
    assert all(file.exists() for file in files)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="cores are shared on Linux alone")
def test_each_place_has_its_cores_and_its_gpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shows = "import os, time; time.sleep(0.2); "
    shows += "print(sorted(os.sched_getaffinity(0)), os.environ['CUDA_VISIBLE_DEVICES'])"
    popen = subprocess.Popen
    monkeypatch.setattr(
        subprocess, "Popen", lambda words, **how: popen([words[0], "-c", shows], **how)
    )
    for place in range(2):
        assert start_training(["x"], tmp_path / f"{place}", place, 2, ["4", "7"]).wait() == 0
    cores = sorted(os.sched_getaffinity(0))[: available_cores()]
    for place, gpu in enumerate("47"):
        own = cores[place::2] or [cores[place % len(cores)]]
        assert (tmp_path / str(place)).read_text().split("\n")[0] == f"{own} {gpu}"


@pytest.mark.skipif(sys.platform != "linux", reason="a signal of Linux")
def test_runs_end_when_the_sweep_is_killed(tmp_path: Path) -> None:
    """The sweep is another process here, whose run says when it was asked to stop."""
    waits = """
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: (print("saved", flush=True), sys.exit(0)))
print("ready", flush=True)
time.sleep(60)
"""
    log = tmp_path / "run.log"
    starts = f"""
import pathlib, subprocess, sys
from nmt.planning.sweep import start_training
popen = subprocess.Popen
subprocess.Popen = lambda words, **how: popen([words[0], "-c", {waits!r}], **how)
start_training(["x"], pathlib.Path({str(log)!r}), 0, 1, []).wait()
"""
    parent = subprocess.Popen([sys.executable, "-c", starts])
    wait_until(lambda: log.exists() and log.read_text() == "ready\n")
    parent.kill()
    parent.wait()
    wait_until(lambda: log.read_text() == "ready\nsaved\n")


def wait_until(happened: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_run_is_done_if_all_of_its_recipe_is(recipe: Recipe, tmp_path: Path) -> None:
    config = recipe("training.max_steps=2", "training.validate_every=2")
    run = RunDirectory(tmp_path / "run")
    assert not is_done(run, config)
    train(config, run.path, quiet)
    assert is_done(run, config)
    longer = recipe("training.max_steps=3", "training.validate_every=2")
    assert not is_done(run, longer)
    run.result.unlink()
    assert not is_done(run, config)


def test_all_mistakes_are_found_before_the_first_run(recipe: Recipe, tmp_path: Path) -> None:
    loaders = {
        name: lambda name=name: recipe(f"model.norm={name.partition('-')[0]}")
        for name in ("pre-1", "sandwich-1", "sandwich-2", "none-1")
    }
    with pytest.raises(ConfigError) as caught:
        check_points(loaders, tmp_path)
    first, second = str(caught.value).split("\n")
    assert first.startswith("sandwich-1: ") and "got 'sandwich'" in first
    assert second.startswith("none-1: ")


def test_costs_follow_operations_and_a_text_is_prepared_once(recipe: Recipe) -> None:
    steps = [recipe(f"training.max_steps={steps}", "seed=2") for steps in (40, 40, 80)]
    (first, size), (second, _), (longer, _) = sweep._estimate_costs(steps)
    assert first >= second > 0 and size > 0
    assert longer == pytest.approx(2 * second)


def test_recipes_are_completed_by_their_parents(recipe: Recipe, tmp_path: Path) -> None:
    """So that the plan is that of the model which is trained, and a run that is done is known."""
    parent = RunDirectory(tmp_path / "parent")
    parent.checkpoint(1).mkdir(parents=True)
    (parent.checkpoint(1) / WEIGHTS).touch()
    parent.write_config(recipe("model.activation=gelu"))
    child = recipe(f"training.initialize_from={parent.path}")
    assert check_points({"child": lambda: child}, tmp_path)["child"].model.activation == "gelu"
