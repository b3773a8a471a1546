"""Checkpoints written in the background: training waits only while its state is copied."""

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


def _room(tensor: Tensor) -> Tensor:
    return torch.zeros_like(tensor, device="cpu")


def snapshot(value: Any, former: Any = None, new: Callable[[Tensor], Tensor] = _copy) -> Any:
    """Copies, on the CPU, of the tensors in dicts, lists and tuples; other values stay the same.

    Tensors of a `former` snapshot are overwritten where they fit: new memory takes longer to fill.
    Where there is none to overwrite, `new` makes one.
    """
    if isinstance(value, Tensor):
        if isinstance(former, Tensor) and _alike(value, former):
            return former.copy_(value.detach())
        return new(value)
    if isinstance(value, Mapping):
        known = former if isinstance(former, Mapping) else {}
        return {name: snapshot(item, known.get(name), new) for name, item in value.items()}
    if isinstance(value, list | tuple):
        known = dict(enumerate(former)) if isinstance(former, list | tuple) else {}
        return type(value)(snapshot(item, known.get(i), new) for i, item in enumerate(value))
    return value


def _alike(one: Tensor, other: Tensor) -> bool:
    return (one.shape, one.dtype, one.stride()) == (other.shape, other.dtype, other.stride())


@dataclass
class _Writing:
    """A checkpoint on its way to the disk, and what has become of it."""

    saved: bool = False
    """whether it is whole under its name"""
    problem: str | None = None
    mistake: BaseException | None = None
    """what no disk is to blame for"""
    thread: threading.Thread | None = None


class CheckpointWriter:
    """Writes one checkpoint at a time, and keeps what points to checkpoints true.

    For each `start`, ask for the `outcome` before the next one.
    """

    def __init__(self, directory: RunDirectory, training: TrainingConfig) -> None:
        self._directory, self._training = directory, training
        self._writing: _Writing | None = None
        self._copied: Any = None
        self._making_room: threading.Thread | None = None

    @property
    def is_preallocated(self) -> bool:
        """Whether there is memory for a copy of the state, or soon will be."""
        return self._copied is not None or self._making_room is not None

    def preallocate(self, weights: Mapping[str, Tensor], state: Mapping[str, Any]) -> None:
        """Claim memory for a copy of these in the background.

        The kernel gives it page by page, which takes longer than to fill it: the first checkpoint
        would hold training up for that long.
        """

        def claim() -> None:
            # where there is none, the first checkpoint says so
            with contextlib.suppress(RuntimeError, MemoryError):
                self._copied = snapshot((weights, state), new=_room)

        self._making_room = threading.Thread(target=claim, daemon=True)
        self._making_room.start()

    def _wait_for_preallocation(self) -> None:
        if self._making_room:
            self._making_room.join()
        self._making_room = None

    def start(
        self,
        step: int,
        weights: Mapping[str, Tensor],
        state: Mapping[str, Any],
        ranking: Ranking,
        *,
        overwrite: bool = False,
    ) -> None:
        """Begin to save `step`, `anew` if it is saved already.

        All steps of the ranking are saved already, except this one perhaps.
        """
        assert self._writing is None
        self._writing = writing = _Writing()
        arguments = (writing, step, ranking.best, ranking.steps)
        self._wait_for_preallocation()
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
        # a daemon: who asks twice for a stop does not wait for it
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
            writing.mistake = error

    def writing(self) -> bool:
        """Whether the last checkpoint begun is still being written."""
        thread = self._writing.thread if self._writing else None
        return thread is not None and thread.is_alive()

    def wait(self) -> None:
        """Until nothing is being written."""
        if self._writing and self._writing.thread:
            self._writing.thread.join()

    def outcome(self) -> tuple[bool, str | None]:
        """Wait for the last checkpoint begun; whether it is saved, and what went wrong, if any.

        A saved one may have a problem all the same: what points to it could not be written, or an
        old one not be removed.
        """
        self.wait()
        writing, self._writing = self._writing or _Writing(saved=True), None
        if writing.mistake:
            raise writing.mistake
        return writing.saved, writing.problem

    def release_memory(self) -> None:
        """Forget the copy of the state that was kept for the next checkpoint."""
        self._wait_for_preallocation()
        self._copied = None
