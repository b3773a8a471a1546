"""The files of a run directory, its lock, and loading a model from it.

runs/NAME/
  config.yaml  environment.json  .lock  tokenizer/  metrics.jsonl  translations/
  checkpoints/step-00012000/   averaged/   moving-average/   tensorboard/
  best.json  last.json  result.json  shortlist.npz
"""

import contextlib
import fcntl
import json
import os
import re
import shutil
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import torch

from nmt.checkpoint import WEIGHTS, check_finite, load_into, load_weights
from nmt.config import Config
from nmt.config_file import dump_config, load_config
from nmt.data.tokens.tokenizer import PAD, Tokenizer
from nmt.errors import CheckpointError, ConfigError, RunDirectoryBusyError
from nmt.files import write_atomically, write_json
from nmt.model.transformer import Transformer

_STEP = re.compile(r"step-\d{8,18}")
_WEIGHTS = re.compile(r"step-\d{8,18}|averaged-last-\d+")
# temporary names: .NAME.tmp or .NAME.old, or with the number of a process before the suffix
_PASSING = re.compile(r"\.(.+?)(?:\.\d+)?\.(?:tmp|old)")


class RunDirectory:
    """The paths inside a run directory; nothing is created before something is written."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.config = self.path / "config.yaml"
        self.environment = self.path / "environment.json"
        self.tokenizer = self.path / "tokenizer"
        self.metrics = self.path / "metrics.jsonl"
        self.translations = self.path / "translations"
        self.checkpoints = self.path / "checkpoints"
        self.averaged = self.path / "averaged"
        self.moving_average = self.path / "moving-average"
        self.plots = self.path / "plots"
        self.tensorboard = self.path / "tensorboard"
        self.best = self.path / "best.json"
        self.last = self.path / "last.json"
        self.result = self.path / "result.json"
        self.shortlist = self.path / "shortlist.npz"

    def checkpoint(self, step: int) -> Path:
        """Return the folder of the checkpoint of `step`."""
        return self.checkpoints / f"step-{step:08d}"

    @staticmethod
    def step_of(checkpoint: Path) -> int:
        """Return the step of a checkpoint folder."""
        return int(checkpoint.name.removeprefix("step-"))

    def saved_checkpoints(self) -> list[Path]:
        """Return all complete checkpoints, oldest first; folders with other names are ignored."""
        found = (path for path in self.checkpoints.glob("step-*") if _STEP.fullmatch(path.name))
        return sorted(found, key=self.step_of)

    def create(self) -> None:
        """Create the directory.

        Raises:
            ConfigError: it cannot be created or written to.
        """
        try:
            self.checkpoints.mkdir(parents=True, exist_ok=True)
            probe = self.path / ".write-probe"
            probe.touch()
            probe.unlink()
        except OSError as error:
            raise ConfigError(
                f"{self.path}: the run directory cannot be written: {error.strerror}; "
                f"choose another with --run-dir"
            ) from error

    def clear_leftovers(self) -> None:
        """Remove the temporary files of a process that was killed while saving.

        Saving first renames the old folder. If the new one is not in its place yet, the old one
        gets its name back. Files that nmt has not made stay.
        """
        for folder in (self.path, self.checkpoints):
            for left in filter(self._is_leftover, folder.glob(".*")):
                place = left.with_name(left.name[1 : -len(".old")])
                if left.suffix == ".old" and not place.exists():
                    left.rename(place)
                elif left.is_dir():
                    shutil.rmtree(left)
                else:
                    left.unlink()

    def _is_leftover(self, path: Path) -> bool:
        """Return whether a path has a temporary name, of something that nmt saves here."""
        found = _PASSING.fullmatch(path.name)
        if not found:
            return False
        known = path.with_name(found[1]) in vars(self).values()
        return known or bool(_WEIGHTS.fullmatch(found[1]))

    def discard_if_unused(self) -> None:
        """Remove what `create` and `lock` made, if nothing else has been written."""
        if not self.config.is_file():
            with contextlib.suppress(OSError):
                self.checkpoints.rmdir()
                (self.path / ".lock").unlink()
                self.path.rmdir()

    def lock(self) -> "RunLock":
        """Reserve the directory for this process, for as long as the returned lock lives."""
        return RunLock(self.path)

    def write_json(self, path: Path, value: Mapping[str, Any]) -> None:
        """Replace a small JSON file of the run atomically."""
        write_json(path, value)

    def write_config(self, config: Config) -> None:
        """Write the whole configuration into config.yaml, with all defaults."""
        write_atomically(self.config, dump_config(config))


class RunLock:
    """An advisory lock on the run directory; it ends with its process."""

    def __init__(self, path: Path) -> None:
        self._file = (path / ".lock").open("a+")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            self._file.seek(0)
            owner = self._file.read().strip() or "another process"
            self._file.close()
            raise RunDirectoryBusyError(
                f"{path}: in use by {owner}; wait for it or choose another --run-dir"
            ) from error
        self._file.truncate(0)
        self._file.write(f"process {os.getpid()} on {socket.gethostname()}")
        self._file.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        # on another machine nobody can check whether the process in the file still runs
        self._file.truncate(0)
        self._file.close()


@dataclass(frozen=True)
class LoadedModel:
    """A model, before or after training, with all that it needs to translate text."""

    config: Config
    tokenizer: Tokenizer
    model: Transformer
    path: Path
    """the folder of the weights; during training, the run directory"""


def build_model(config: Config, tokenizer: Tokenizer) -> Transformer:
    """Return a newly initialised Transformer for the vocabularies of `tokenizer`."""
    return Transformer(config.model, tokenizer.source.size, tokenizer.target.size, PAD)


def find_run(path: Path) -> RunDirectory:
    """Return the run directory `path`, or the one that contains the checkpoint folder `path`.

    Raises:
        CheckpointError: there is none; the message says what is missing.
    """
    inside = path.absolute().parents[:2] if (path / WEIGHTS).is_file() else ()
    for folder in (path, *inside):
        run = RunDirectory(folder)
        if run.config.is_file():
            return run
    reason = "it has no config.yaml" if path.exists() else "no such directory"
    raise CheckpointError(f"{path}: not a run directory: {reason}; give what `nmt train` wrote")


def load_run(path: str | Path, device: torch.device, checkpoint: str = "best") -> LoadedModel:
    """Load the weights of a run directory, or of a checkpoint folder in one, ready to translate.

    `checkpoint` is best (by validation score, averages included), last, averaged, moving-average
    or step-N; a checkpoint folder as `path` needs none.

    Raises:
        CheckpointError: not a run directory, or its weights are missing or damaged, or hold NaN or
            infinity.
    """
    run = find_run(Path(path))
    folder = Path(path) if (Path(path) / WEIGHTS).is_file() else checkpoint_folder(run, checkpoint)
    config = load_config(str(run.config))
    tokenizer = Tokenizer.load(run.tokenizer)
    model = build_model(config, tokenizer)
    weights = load_weights(folder)
    load_into(model, weights, folder)
    check_finite(weights, folder)
    return LoadedModel(config, tokenizer, model.to(device).eval(), folder)


def checkpoint_folder(run: RunDirectory, name: str) -> Path:
    """Return the folder of the checkpoint best, last, averaged, moving-average or step-N.

    Raises:
        CheckpointError: there is none; the message lists the existing ones.
    """
    saved = run.saved_checkpoints()
    folder: Path | None = None
    if name in (run.averaged.name, run.moving_average.name):
        folder = run.path / name
    elif name == "best" and run.best.is_file():
        folder = run.path / _best_weights(run.best)
    elif name in ("best", "last"):
        folder = saved[-1] if saved else None
    elif re.fullmatch("step-[0-9]{1,18}", name):
        folder = run.checkpoint(int(name[5:]))
    if folder is None or not folder.is_dir():
        others = [path.name for path in (run.averaged, run.moving_average) if path.is_dir()]
        known = ", ".join([*(path.name for path in saved), *others]) or "no checkpoint yet"
        raise CheckpointError(f"{run.path}: no checkpoint '{name}'; it has: {known}")
    return folder


def _best_weights(best: Path) -> str:
    """Return the folder that best.json names, relative to the run directory."""
    try:
        return str(json.loads(best.read_text("utf-8"))["weights"])
    except (ValueError, KeyError, TypeError) as error:
        raise CheckpointError(
            f"{best}: damaged: it names no weights; choose others: last, averaged or step-N"
        ) from error
