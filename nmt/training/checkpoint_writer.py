"""Checkpoints are written by a thread: training waits only while its state is copied."""

import contextlib
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from nmt.checkpoint import save_checkpoint
from nmt.config import TrainingConfig
from nmt.device import is_out_of_memory
from nmt.errors import CheckpointError
from nmt.run_directory import RunDirectory
from nmt.training.ranking import Ranking
from nmt.training.retention import delete_old_checkpoints, write_pointers


def _copy(tensor: Tensor) -> Tensor:
    return tensor.detach().to("cpu", copy=True)


def _allocate(tensor: Tensor) -> Tensor:
    return torch.zeros_like(tensor, device="cpu")


def snapshot(value: Any, previous: Any = None, new: Callable[[Tensor], Tensor] = _copy) -> Any:
    """Return a copy on the CPU of all tensors in nested dicts, lists and tuples.

    Tensors of a `previous` snapshot are overwritten where they fit, because new memory takes
    longer to fill; `new` makes the other ones. Values that are no tensors stay the same.
    """
    if isinstance(value, Tensor):
        if isinstance(previous, Tensor) and _fits(value, previous):
            return previous.copy_(value.detach())
        return new(value)
    if isinstance(value, Mapping):
        known = previous if isinstance(previous, Mapping) else {}
        return {name: snapshot(item, known.get(name), new) for name, item in value.items()}
    if isinstance(value, list | tuple):
        known = dict(enumerate(previous)) if isinstance(previous, list | tuple) else {}
        return type(value)(snapshot(item, known.get(i), new) for i, item in enumerate(value))
    return value


def _fits(one: Tensor, other: Tensor) -> bool:
    return (one.shape, one.dtype, one.stride()) == (other.shape, other.dtype, other.stride())


@dataclass
class _Writing:
    """A checkpoint that is being written."""

    saved: bool = False
    """whether it is complete under its name"""
    problem: str | None = None
    bug: BaseException | None = None
    """an exception that is not the fault of the disk"""
    thread: threading.Thread | None = None


class CheckpointWriter:
    """Writes one checkpoint at a time, and updates what points to checkpoints.

    After each `start`, ask for the `result` before the next one.
    """

    def __init__(self, directory: RunDirectory, training: TrainingConfig) -> None:
        self._directory, self._training = directory, training
        self._writing: _Writing | None = None
        self._copied: Any = None
        self._allocation: threading.Thread | None = None

    @property
    def is_preallocated(self) -> bool:
        """Whether there is memory for a copy of the state, or soon will be."""
        return self._copied is not None or self._allocation is not None

    def preallocate(self, weights: Mapping[str, Tensor], state: Mapping[str, Any]) -> None:
        """Allocate memory for a copy of weights and state in the background.

        The operating system provides new memory page by page, which takes longer than filling it.
        Otherwise training would wait for this at the first checkpoint.
        """

        def allocate() -> None:
            # if there is not enough, the first checkpoint reports it
            with contextlib.suppress(RuntimeError, MemoryError):
                self._copied = snapshot((weights, state), new=_allocate)

        self._allocation = threading.Thread(target=allocate, daemon=True)
        self._allocation.start()

    def _wait_for_allocation(self) -> None:
        if self._allocation:
            self._allocation.join()
        self._allocation = None

    def start(
        self,
        step: int,
        weights: Mapping[str, Tensor],
        state: Mapping[str, Any],
        ranking: Ranking,
        *,
        overwrite: bool = False,
    ) -> None:
        """Start to save `step`; an existing checkpoint of it stays unless `overwrite`.

        All steps of the ranking are saved already, except possibly this one.
        """
        assert self._writing is None
        self._writing = writing = _Writing()
        arguments = (writing, step, ranking.best, ranking.steps)
        self._wait_for_allocation()
        try:
            writing.saved = self._directory.checkpoint(step).exists() and not overwrite
            if not writing.saved:
                self._copied = snapshot((weights, state), self._copied)
        except (OSError, MemoryError, RuntimeError) as error:
            if not isinstance(error, OSError) and not is_out_of_memory(error):
                raise
            path = self._directory.checkpoint(step)
            reason = getattr(error, "strerror", None) or "no memory for a copy of the state"
            writing.problem = f"{path}: checkpoint not saved: {reason}"
            return
        # a daemon thread: a second stop signal ends the process without waiting for it
        writing.thread = threading.Thread(target=self._write, args=arguments, daemon=True)
        writing.thread.start()

    def _write(
        self, writing: _Writing, step: int, best: Mapping[str, Any], ranked: Sequence[int]
    ) -> None:
        try:
            if not writing.saved:
                save_checkpoint(self._directory.checkpoint(step), *self._copied)
                writing.saved = True
            write_pointers(self._directory, step, best)
            delete_old_checkpoints(self._directory, self._training, ranked)
        except CheckpointError as error:
            writing.problem = str(error)
        except OSError as error:
            where = error.filename or self._directory.path
            writing.problem = f"{where}: not written: {error.strerror}"
        except BaseException as error:
            writing.bug = error

    def is_writing(self) -> bool:
        """Return whether the last checkpoint is still being written."""
        thread = self._writing.thread if self._writing else None
        return thread is not None and thread.is_alive()

    def wait(self) -> None:
        """Wait until nothing is being written."""
        if self._writing and self._writing.thread:
            self._writing.thread.join()

    def result(self) -> tuple[bool, str | None]:
        """Wait for the last checkpoint; return whether it is saved, and what went wrong.

        Both can be the case: the checkpoint is saved, but a file that points to it could not be
        written, or an old checkpoint could not be deleted.
        """
        self.wait()
        writing, self._writing = self._writing or _Writing(saved=True), None
        if writing.bug:
            raise writing.bug
        return writing.saved, writing.problem

    def release_memory(self) -> None:
        """Free the copy of the state that was kept for the next checkpoint."""
        self._wait_for_allocation()
        self._copied = None
