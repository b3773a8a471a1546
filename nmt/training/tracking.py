"""The figures of a run in tracking programs: TensorBoard, Weights & Biases, MLflow, Trackio.

`training.track` names them. Each is an extra of this package, imported only if it is named. A
tracker gets what metrics.jsonl gets, each figure as EVENT/NAME, in a thread of its own: neither an
error nor a server that does not answer stops a training or slows it down. Where a tracker keeps its
files, or finds its server, is decided by its own environment variables.
"""

import contextlib
import importlib.util
import os
import queue
import secrets
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from nmt.errors import Log, MissingExtraError
from nmt.files import read_json_or_empty, write_json

_PROJECT = "nmt"  # what Weights & Biases and Trackio call a project, and MLflow an experiment
_MAX_CLOSING_S = 60.0
"""the longest time that the end of a training waits for its trackers"""

_writing = threading.Lock()  # one thread at a time changes tracking.json

Figures = Mapping[str, float]
"""values by EVENT/NAME, such as train/loss"""
Queue = queue.SimpleQueue[tuple[Figures, int] | None]
"""figures with their step; None: close"""


def check_trackers(names: Sequence[str]) -> None:
    """Check that the packages of trackers are installed, without importing them.

    Raises:
        MissingExtraError: one is missing.
    """
    for name in names:
        if importlib.util.find_spec(name) is None:  # each has a module of its own name
            raise MissingExtraError(f"training.track: {name}", name)


@dataclass(frozen=True)
class TrackedRun:
    """A run as a tracker sees it."""

    folder: Path
    """the run directory"""
    settings: Mapping[str, Any]
    """the recipe, by section.key"""
    first_step: int = 1
    """figures of this step and later ones follow; those that an earlier session has sent of them
    are replaced if the tracker can do so"""

    @property
    def _identities(self) -> Path:
        return self.folder / "tracking.json"

    def identity(self, tracker: str) -> str | None:
        """Return what an earlier session has remembered as the name of this run in a tracker."""
        return read_json_or_empty(self._identities).get(tracker)

    def remember(self, tracker: str, identity: str) -> None:
        """Write the name of this run in a tracker to tracking.json.

        Raises:
            OSError: the file cannot be written.
        """
        with _writing:
            others = read_json_or_empty(self._identities)
            write_json(self._identities, {**others, tracker: identity})

    def own_identity(self, tracker: str) -> str:
        """Return the name of this run in a tracker; the first time, the folder's and 8 digits."""
        identity = self.identity(tracker)
        if identity is None:
            identity = f"{self.folder.resolve().name}-{secrets.token_hex(4)}"
            self.remember(tracker, identity)
        return identity


class Tracker(Protocol):
    """A run that is open in a tracking program; every method may raise any error."""

    def log(self, figures: Figures, step: int) -> None:
        """Add figures of a step."""

    def close(self) -> None:
        """Send what is not sent yet, and end."""


class _TensorBoard:
    """Event files in tensorboard/ of the run, which `tensorboard --logdir` plots."""

    def __init__(self, run: TrackedRun) -> None:
        from torch.utils.tensorboard import SummaryWriter

        folder = str(run.folder / "tensorboard")
        self._writer: Any = SummaryWriter(folder, purge_step=run.first_step)  # hides later steps

    def log(self, figures: Figures, step: int) -> None:
        for name, value in figures.items():
            self._writer.add_scalar(name, value, step)
        self._writer.flush()

    def close(self) -> None:
        self._writer.close()


class _WeightsAndBiases:
    """A run of Weights & Biases; without a login, files in wandb/ of the run for `wandb sync`."""

    def __init__(self, run: TrackedRun) -> None:
        import wandb

        mode: Literal["offline"] | None = None  # as the environment variable WANDB_MODE says
        if "WANDB_MODE" not in os.environ and not wandb.login(prompt=False):
            mode = "offline"
        identity = run.own_identity("wandb")
        self._run: Any = wandb.init(
            project=os.environ.get("WANDB_PROJECT", _PROJECT),
            name=run.folder.resolve().name,
            id=identity,
            resume="allow",
            dir=str(run.folder),
            config=dict(run.settings),
            mode=mode,
            settings=wandb.Settings(console="off"),
        )
        # a step may come again after a roll-back, which the program's own counter of steps refuses
        self._run.define_metric("*", step_metric="step")

    def log(self, figures: Figures, step: int) -> None:
        self._run.log({**figures, "step": step})

    def close(self) -> None:
        self._run.finish()


class _MLflow:
    """A run of MLflow, on the server that MLFLOW_TRACKING_URI names, else in its own database."""

    def __init__(self, run: TrackedRun) -> None:
        from mlflow import MlflowClient
        from mlflow.entities import Param

        self._client = MlflowClient()
        identity = run.identity("mlflow")
        if identity is None:
            name = os.environ.get("MLFLOW_EXPERIMENT_NAME", _PROJECT)
            found = self._client.get_experiment_by_name(name)
            experiment = found.experiment_id if found else self._client.create_experiment(name)
            created = self._client.create_run(experiment, run_name=run.folder.resolve().name)
            identity = str(created.info.run_id)
            run.remember("mlflow", identity)
            params = [Param(key, str(value)[:500]) for key, value in run.settings.items()]
            for start in range(0, len(params), 100):  # the most in one request
                self._client.log_batch(identity, params=params[start : start + 100])
        else:
            self._client.update_run(identity, status="RUNNING")
        self._identity = identity

    def log(self, figures: Figures, step: int) -> None:
        from mlflow.entities import Metric

        now_ms = int(time.time() * 1000)
        metrics = [Metric(name, float(value), now_ms, step) for name, value in figures.items()]
        self._client.log_batch(self._identity, metrics=metrics)

    def close(self) -> None:
        self._client.set_terminated(self._identity)


class _Trackio:
    """A run of Trackio, in its own database, or in the Space that TRACKIO_SPACE_ID names."""

    def __init__(self, run: TrackedRun) -> None:
        import trackio

        with contextlib.redirect_stdout(sys.stderr):  # stdout is for results
            self._run: Any = trackio.init(
                project=os.environ.get("TRACKIO_PROJECT", _PROJECT),
                name=run.own_identity("trackio"),
                config=dict(run.settings),
                resume="allow",
            )

    def log(self, figures: Figures, step: int) -> None:
        self._run.log(dict(figures), step=step)

    def close(self) -> None:
        with contextlib.redirect_stdout(sys.stderr):
            self._run.finish()


def open_tracker(name: str, run: TrackedRun) -> Tracker:
    """Return the run, opened or continued, in the tracking program of this name.

    Raises:
        Exception: whatever the program raises.
    """
    trackers: dict[str, Callable[[TrackedRun], Tracker]] = {
        "tensorboard": _TensorBoard,
        "wandb": _WeightsAndBiases,
        "mlflow": _MLflow,
        "trackio": _Trackio,
    }
    return trackers[name](run)


class Tracking:
    """Sends the records of a run to its trackers; nothing of it raises an error."""

    def __init__(
        self, names: Sequence[str], folder: Path, settings: Mapping[str, Any], warn: Log
    ) -> None:
        """Open no tracker yet; `warn` receives one message for each that fails."""
        self._senders = [_Sender(name, warn) for name in names]
        self._folder, self._settings = folder, settings
        self.last_step = 0
        """figures up to this step stay; later ones of an earlier session are replaced"""

    def log(self, record: Mapping[str, Any]) -> None:
        """Send the figures of a record of metrics.jsonl, and open trackers that are not open."""
        figures = {
            f"{record['event']}/{name}": value
            for name, value in record.items()
            if name not in ("event", "step")
        }
        run = TrackedRun(self._folder, self._settings, self.last_step + 1)
        for sender in self._senders:
            sender.send(run, figures, record["step"])

    def close(self) -> None:
        """Wait until all is sent, at most a minute; the next record opens the runs again."""
        for sender in self._senders:
            sender.finish()
        end = time.monotonic() + _MAX_CLOSING_S
        for sender in self._senders:
            sender.wait_until(end)


class _Sender:
    """A thread that opens a tracker and sends it figures, until its first error."""

    def __init__(self, name: str, warn: Log) -> None:
        self._name, self._warn = name, warn
        self._figures: Queue = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._has_failed = False

    def send(self, run: TrackedRun, figures: Figures, step: int) -> None:
        if self._has_failed:
            return
        if self._thread is None:
            self._figures = queue.SimpleQueue()
            work = self._work
            self._thread = threading.Thread(target=work, args=(run, self._figures), daemon=True)
            self._thread.start()
        self._figures.put((figures, step))

    def _work(self, run: TrackedRun, figures: Queue) -> None:
        """Open the tracker, send it what comes, and close it; this is what the thread does."""
        try:
            tracker = open_tracker(self._name, run)
            while item := figures.get():
                tracker.log(*item)
            tracker.close()
        except BaseException as error:  # some programs exit: only this thread may end by that
            reason = " ".join(str(error).split()) or type(error).__name__
            self._give_up(reason)

    def _give_up(self, reason: str) -> None:
        if not self._has_failed:
            self._has_failed = True
            self._warn(
                f"warning: training.track: {self._name} is not written any more: {reason}; all "
                "figures stand in metrics.jsonl"
            )

    def finish(self) -> None:
        """Let the thread close the tracker when it has sent all figures."""
        self._figures.put(None)

    def wait_until(self, end: float) -> None:
        """Wait for the thread until a time of `time.monotonic`; what is late is not waited for."""
        if self._thread is not None:
            self._thread.join(max(0.0, end - time.monotonic()))
            if self._thread.is_alive():
                self._give_up(f"no answer within {_MAX_CLOSING_S:g} seconds")
            self._thread = None
