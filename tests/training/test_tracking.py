"""Trackers get the figures of metrics.jsonl, and neither stop a training nor hold it up."""

import json
import os
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from nmt.errors import ConfigError, MissingExtraError
from nmt.recipe.config_file import parse_config
from nmt.training import tracking
from nmt.training.monitor import Monitor
from nmt.training.tracking import Figures, TrackedRun, Tracking
from nmt.training.train import train
from tests.training.runs import Recipe, quiet

Patch = pytest.MonkeyPatch
SESSIONS = """
import sys
from pathlib import Path
from nmt.training import tracking

tracking._MAX_CLOSING_S = 300
warnings = []
for first, last in ((0, 3), (2, 4)):  # the second session repeats step 3
    run = tracking.Tracking([sys.argv[1]], Path("run"), {"model.d_model": 64}, warnings.append)
    run.last_step = first
    for step in range(first + 1, last + 1):
        run.log({"event": "train", "step": step, "loss": 1 / step})
    run.close()
assert warnings == [], warnings
"""


class Recorder:
    """A tracker that notes what it gets."""

    def __init__(self) -> None:
        self.runs: list[TrackedRun] = []
        self.logged: list[tuple[int, Figures]] = []
        self.closed = 0

    def open(self, name: str, run: TrackedRun) -> "Recorder":
        self.runs.append(run)
        return self

    def log(self, figures: Figures, step: int) -> None:
        self.logged.append((step, dict(figures)))

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def recorder(monkeypatch: Patch) -> Recorder:
    recorder = Recorder()
    monkeypatch.setattr(tracking, "open_tracker", recorder.open)
    return recorder


def test_a_training_sends_every_figure_and_a_resumed_one_goes_on_behind_the_last_step(
    recipe: Recipe, tmp_path: Path, recorder: Recorder
) -> None:
    for last in (9, 12):
        config = recipe("training.track=[tensorboard]", f"training.max_steps={last}")
        run = train(config, tmp_path / "run", quiet)
    expected = [
        (r["step"], {f"{r['event']}/{n}": v for n, v in r.items() if n not in ("event", "step")})
        for r in map(json.loads, run.metrics.read_text("utf-8").splitlines())
    ]
    assert recorder.logged == expected
    assert [each.first_step for each in recorder.runs] == [1, 10]
    assert recorder.runs[0].settings["training.track"] == ["tensorboard"]
    assert recorder.closed == 2


def test_only_the_first_process_tracks(tmp_path: Path, recorder: Recorder) -> None:
    monitor = Monitor(tmp_path / "metrics.jsonl", silent=True, track=["tensorboard"])
    monitor.record_roll_back(1, to=0)
    monitor.close()
    assert recorder.runs == []


@pytest.mark.parametrize("place", ["open", "log", "close"])
def test_a_tracker_that_fails_costs_one_warning_and_not_the_run(
    tmp_path: Path, recorder: Recorder, monkeypatch: Patch, place: str
) -> None:
    def fail(*arguments: object) -> None:
        raise SystemExit("no\n network")

    monkeypatch.setattr(recorder, place, fail)
    monkeypatch.setattr(tracking, "open_tracker", lambda name, run: recorder.open(name, run))
    said: list[str] = []
    run = Tracking(["wandb"], tmp_path, {}, said.append)
    for _ in range(2):
        for step in (1, 2):
            run.log({"event": "train", "step": step, "loss": 1.0})
        run.close()
    assert said == [
        "warning: training.track: wandb is not written any more: no network; all figures stand in "
        "metrics.jsonl"
    ]


def test_a_tracker_that_does_not_answer_is_not_waited_for(
    tmp_path: Path, recorder: Recorder, monkeypatch: Patch
) -> None:
    answer = threading.Event()
    monkeypatch.setattr(recorder, "log", lambda figures, step: answer.wait(60))
    monkeypatch.setattr(tracking, "_MAX_CLOSING_S", 0.1)
    said: list[str] = []
    run = Tracking(["wandb", "mlflow"], tmp_path, {}, said.append)
    begin = time.monotonic()
    run.log({"event": "train", "step": 1, "loss": 1.0})
    run.close()
    assert time.monotonic() - begin < 30
    assert [text.split(": ")[2] for text in said] == [
        "wandb is not written any more",
        "mlflow is not written any more",
    ]
    answer.set()


def test_the_name_of_a_run_stays_the_same(tmp_path: Path) -> None:
    first = TrackedRun(tmp_path / "base", {}).own_identity
    (tmp_path / "base").mkdir()
    identity = first("wandb")
    assert identity.startswith("base-")
    assert TrackedRun(tmp_path / "base", {}, 7).own_identity("wandb") == identity
    assert first("trackio") != identity


def test_a_missing_package_is_told_before_the_training(
    recipe: Recipe, tmp_path: Path, monkeypatch: Patch
) -> None:
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(MissingExtraError, match=r"training.track: wandb needs .*'nmt\[wandb\]'"):
        train(recipe("training.track=[wandb]"), tmp_path / "run", quiet)
    assert not (tmp_path / "run").exists()


def test_recipes_of_before_have_their_key_and_an_unknown_tracker_is_told() -> None:
    for old, track in (("true", ["tensorboard"]), ("false", [])):
        assert parse_config(f"training: {{tensorboard: {old}}}").training.track == track
    with pytest.raises(ConfigError, match="should be 'tensorboard', 'wandb', 'mlflow' or 'trackio"):
        parse_config("training: {track: [comet]}")


# -- the programs themselves, without a network ---------------------------------------------------


def run_sessions(name: str, folder: Path) -> Path:
    """The folder of a run that was tracked in two sessions."""
    pytest.importorskip(name)
    (folder / "run").mkdir()
    variables = {**os.environ, "WANDB_MODE": "offline", "TRACKIO_DIR": str(folder / "trackio")}
    variables.pop("MLFLOW_TRACKING_URI", None)
    command = [sys.executable, "-c", SESSIONS, name]
    variables["PYTHONPATH"] = str(Path(tracking.__file__).parents[2])
    ended = subprocess.run(
        command, cwd=folder, env=variables, capture_output=True, text=True, timeout=500
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == ""
    return folder / "run"


def test_tensorboard_hides_what_is_repeated(tmp_path: Path) -> None:
    run = run_sessions("tensorboard", tmp_path)
    from tensorboard.backend.event_processing import event_accumulator

    shown = event_accumulator.EventAccumulator(str(run / "tensorboard")).Reload()
    curve = {point.step: point.value for point in shown.Scalars("train/loss")}
    assert curve == pytest.approx({step: 1 / step for step in (1, 2, 3, 4)})


def test_weights_and_biases_writes_files_of_one_run(tmp_path: Path) -> None:
    run = run_sessions("wandb", tmp_path)
    identity = json.loads((run / "tracking.json").read_text())["wandb"]
    files = list(run.glob(f"wandb/offline-run-*-{identity}/run-{identity}.wandb"))
    assert 1 <= len(files) <= 2  # named by the second in which they begin
    assert all(b"train/loss" in file.read_bytes() for file in files)


@pytest.mark.slow  # imports much: a minute on a busy machine
def test_mlflow_continues_the_run(tmp_path: Path) -> None:
    run = run_sessions("mlflow", tmp_path)
    identity = json.loads((run / "tracking.json").read_text())["mlflow"]
    database = sqlite3.connect(tmp_path / "mlflow.db")
    rows = database.execute("SELECT run_uuid, key, step, value FROM metrics ORDER BY step")
    steps = (1, 2, 3, 3, 4)
    assert list(rows) == [(identity, "train/loss", s, pytest.approx(1 / s)) for s in steps][:5]
    assert list(database.execute("SELECT status FROM runs")) == [("FINISHED",)]
    assert list(database.execute("SELECT key, value FROM params")) == [("model.d_model", "64")]
    database.close()


def test_trackio_continues_the_run(tmp_path: Path) -> None:
    run = run_sessions("trackio", tmp_path)
    identity = json.loads((run / "tracking.json").read_text())["trackio"]
    database = sqlite3.connect(next((tmp_path / "trackio").glob("nmt*.db")))
    rows = database.execute("SELECT run_name, step FROM metrics ORDER BY step, timestamp")
    assert list(rows) == [(identity, step) for step in (1, 2, 3, 3, 4)]
    database.close()
