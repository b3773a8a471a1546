"""The files of a run directory, and its lock.

runs/NAME/
  config.yaml  environment.json  .lock  tokenizer/  metrics.jsonl  translations/
  test-translations/
  checkpoints/step-00012000/   averaged/   moving-average/
  best.json  last.json  result.json  shortlist.npz  plots/  report.html
  tracking.json  tensorboard/  wandb/   of training.track
  imported/   of a model of another program: provenance.json and its original small files
"""

import contextlib
import os
import re
import shlex
import shutil
import socket
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from nmt.errors import CheckpointError, ConfigError, DataError, RunDirectoryBusyError
from nmt.files import final_name, lock_file, read_json_or_empty, write_atomically
from nmt.recipe.config import Config, Section
from nmt.recipe.config_file import dump_config, load_config
from nmt.run.checkpoint_files import WEIGHTS

_Section = TypeVar("_Section", bound=Section)
_PATHS = ("directory", "source", "target", "file", "folder", "model", "target_model")
"""keys of `data` and `tokenizer` whose values are paths"""

_STEP = re.compile(r"step-\d{8,18}")
# other names that nmt writes: checkpoints, translations of a step, averages
_SAVED_NAME = re.compile(r"step-\d{8,18}(\.txt)?|averaged-last-\d+")


class RunDirectory:
    """The paths inside a run directory, and its lock; the constructor creates nothing."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.config = self.path / "config.yaml"
        self.environment = self.path / "environment.json"
        self.tokenizer = self.path / "tokenizer"
        self.metrics = self.path / "metrics.jsonl"
        self.translations = self.path / "translations"
        self.test_translations = self.path / "test-translations"
        self.checkpoints = self.path / "checkpoints"
        self.averaged = self.path / "averaged"
        self.moving_average = self.path / "moving-average"
        self.plots = self.path / "plots"
        self.best = self.path / "best.json"
        self.last = self.path / "last.json"
        self.result = self.path / "result.json"
        self.shortlist = self.path / "shortlist.npz"
        self.imported = self.path / "imported"
        self.provenance = self.imported / "provenance.json"

    def checkpoint(self, step: int) -> Path:
        """Return the folder of the checkpoint of optimiser step `step`; it need not exist."""
        return self.checkpoints / f"step-{step:08d}"

    @staticmethod
    def step_of(checkpoint: Path) -> int:
        """Return the optimiser step in the name of a checkpoint folder."""
        return int(checkpoint.name.removeprefix("step-"))

    def saved_checkpoints(self) -> list[Path]:
        """Return all complete checkpoints, oldest first; folders with other names are ignored."""
        folders = (path for path in self.checkpoints.glob("step-*") if _STEP.fullmatch(path.name))
        return sorted(folders, key=self.step_of)

    @contextlib.contextmanager
    def reserve(self) -> Iterator[None]:
        """Create the directory and lock it while the block runs.

        The temporary files of a killed process are removed first. If the block has not written
        config.yaml, the directory is removed again, unless it holds other files.

        Raises:
            ConfigError: the directory cannot be created or written to.
            RunDirectoryBusyError: another process has locked the directory.
        """
        try:
            self.checkpoints.mkdir(parents=True, exist_ok=True)
            probe = self.path / ".write-probe"  # shows whether the directory can be written
            probe.touch()
            probe.unlink()
        except OSError as error:
            raise ConfigError(
                f"{self.path}: the run directory cannot be written: {error.strerror}; "
                f"choose another `run_dir`"
            ) from error
        with self.lock():
            self._clear_leftovers()
            try:
                yield
            finally:
                if not self.config.is_file():  # nothing has begun
                    # a directory with other files cannot be removed, and stays
                    with contextlib.suppress(OSError):
                        self.checkpoints.rmdir()
                        (self.path / ".lock").unlink()
                        self.path.rmdir()

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Lock the directory during the block; if the process is killed, the lock ends too.

        Raises:
            RunDirectoryBusyError: another process holds the lock.
        """
        with (self.path / ".lock").open("a+") as file:
            try:
                lock_file(file, self.path / ".lock")
            except DataError as error:
                file.seek(0)
                owner = file.read().strip() or "another process"
                raise RunDirectoryBusyError(
                    f"{self.path}: in use by {owner}; wait for it or choose another `run_dir`"
                ) from error
            file.truncate(0)
            file.write(f"process {os.getpid()} on {socket.gethostname()}")
            file.flush()
            try:
                yield
            finally:
                # on another machine nobody can check whether the process in the file still runs
                file.truncate(0)

    def _clear_leftovers(self) -> None:
        """Remove the temporary files of a process that was killed while saving.

        Saving first renames the old folder to .NAME.old. If the new one does not exist yet, the old
        one gets its name back. Files that nmt does not write are never removed.
        """
        for folder in (self.path, self.checkpoints, self.translations):
            for temporary in folder.glob(".*"):
                name = final_name(temporary)
                if name is None:
                    continue
                final = temporary.with_name(name)
                is_path_of_run = final in vars(self).values()
                if not is_path_of_run and not _SAVED_NAME.fullmatch(final.name):
                    continue  # not written by nmt
                if temporary.suffix == ".old" and not final.exists():
                    temporary.rename(final)
                elif temporary.is_dir():
                    shutil.rmtree(temporary)
                else:
                    temporary.unlink()

    def has_scores_of_best(self) -> bool:
        """Return whether result.json has the scores of the weights that best.json names."""
        result, best = read_json_or_empty(self.result), read_json_or_empty(self.best)
        validation = result.get("validation")
        if not isinstance(validation, dict):
            return False
        # equal names may be other weights; with equal step and validation figures they are the same
        scored = {name: result.get(name) for name in ("weights", "trained_steps")} | validation
        return all(best.get(name) == value for name, value in scored.items())

    def config_with_texts(self) -> Config:
        """Return the configuration of the run with paths of texts that lead there from any folder.

        A relative path starts in the folder in which the run was trained, which environment.json
        records. If nothing is there, as in a copied run, or if an older version trained it, the
        path stays, and starts in the current folder.

        Raises:
            ConfigError: the configuration cannot be read.
        """
        first_session = read_json_or_empty(self.environment)
        resumed = first_session.get("resumed")
        sessions = [first_session, *(resumed if isinstance(resumed, list) else [])]
        recorded = [each.get("folder") for each in reversed(sessions) if isinstance(each, dict)]
        folders = [Path(folder) for folder in recorded if isinstance(folder, str)]
        config = load_config(str(self.config))
        data, tokenizer = _found(config.data, folders), _found(config.tokenizer, folders)
        return config.model_copy(update={"data": data, "tokenizer": tokenizer})

    def write_config(self, config: Config) -> None:
        """Write the whole configuration into config.yaml, with all defaults."""
        write_atomically(self.config, dump_config(config))


def _found(section: _Section, folders: Sequence[Path]) -> _Section:
    """Return a section of a recipe with each path in the first of `folders` where it exists."""
    changes: dict[str, object] = {}
    for name, value in section:
        if isinstance(value, Section):
            changes[name] = _found(value, folders)
        elif isinstance(value, list):
            changes[name] = [
                _found(item, folders) if isinstance(item, Section) else item for item in value
            ]
        elif isinstance(value, str) and name in _PATHS:
            there = next((folder for folder in folders if (folder / value).exists()), Path.cwd())
            if there != Path.cwd():  # else it stays as short as it is
                changes[name] = str(there / value)
    return section.model_copy(update=changes)


def find_run(path: Path) -> RunDirectory:
    """Return the run directory `path`, or the one that contains the checkpoint folder `path`.

    Raises:
        CheckpointError: there is no run directory; the message says what is missing.
    """
    # weights lie in RUN/averaged or RUN/checkpoints/step-N
    parents = path.absolute().parents[:2] if (path / WEIGHTS).is_file() else ()
    for folder in (path, *parents):
        directory = RunDirectory(folder)
        if directory.config.is_file():
            return directory
    if (path / "config.json").is_file() or (path / "decoder.yml").is_file():
        raise CheckpointError(
            f"{path}: a model of another program, not a run directory; make one of it with "
            f"`nmt import {shlex.quote(str(path))} -o RUN`"
        )
    reason = "it has no config.yaml" if path.exists() else "no such directory"
    raise CheckpointError(f"{path}: not a run directory: {reason}; give what `nmt train` wrote")


def weights_folder(path: Path, checkpoint: str = "best") -> Path:
    """Return the folder of the weights `checkpoint` in the run directory `path`.

    `checkpoint` is last, averaged, moving-average, step-N or best (by validation, averages too;
    last if nothing was validated). If `path` is itself a checkpoint folder, it is returned.

    Raises:
        CheckpointError: no such weights exist; the message lists those that do.
    """
    directory = find_run(path)
    if (path / WEIGHTS).is_file():
        return path
    saved = directory.saved_checkpoints()
    folder: Path | None = None
    if checkpoint in (directory.averaged.name, directory.moving_average.name):
        folder = directory.path / checkpoint
    elif checkpoint == "best" and directory.best.is_file():
        best = read_json_or_empty(directory.best).get("weights")
        leads_out = isinstance(best, str) and (Path(best).is_absolute() or ".." in Path(best).parts)
        if not isinstance(best, str) or leads_out:
            raise CheckpointError(
                f"{directory.best}: damaged: it names no weights of this run; choose others: last, "
                "averaged or step-N"
            )
        folder = directory.path / best
    elif checkpoint in ("best", "last"):
        folder = saved[-1] if saved else None
    elif re.fullmatch("step-[0-9]{1,18}", checkpoint):
        folder = directory.checkpoint(int(checkpoint.removeprefix("step-")))
    if folder is None or not folder.is_dir():
        averages = [directory.averaged, directory.moving_average]
        averages = [path for path in averages if path.is_dir()]
        names = [path.name for path in (*saved, *averages)]
        existing = ", ".join(names) or "no checkpoint yet"
        raise CheckpointError(f"{directory.path}: no checkpoint '{checkpoint}'; it has: {existing}")
    return folder
