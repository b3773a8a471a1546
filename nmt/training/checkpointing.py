"""Saving a run in the background: training waits only while its state is copied."""

import contextlib
import functools
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor

from nmt.errors import CheckpointError, DivergedError
from nmt.machine.memory import is_out_of_memory
from nmt.run.checkpoint import save_checkpoint, weights_of
from nmt.run.directory import RunDirectory
from nmt.run.model import LoadedModel
from nmt.training.distributed import ProcessGroup
from nmt.training.monitor import Monitor
from nmt.training.retention import update_after_checkpoint
from nmt.training.state import RunState

_T = TypeVar("_T")

# Several processes ask each other only every so many steps whether the checkpoint is written.
_STEPS_BETWEEN_POLLS = 50


_Outcome = tuple[bool, str | None]
"""whether a checkpoint is saved, and an error message: also a saved one can have a problem, such as
a file that points to it and could not be written"""


def snapshot(
    value: Any,
    previous: Any = None,
    new: Callable[[Tensor], Tensor] = lambda tensor: tensor.detach().to("cpu", copy=True),
) -> Any:
    """Return a copy of `value`, nested dicts, lists and tuples, with all tensors on the CPU.

    If `previous`, an earlier snapshot, has a tensor of the same shape and type at the same place,
    that tensor is overwritten, because new memory takes longer to fill; else `new` makes a tensor.
    Values that are no tensors are shared.
    """
    if isinstance(value, Tensor):
        if isinstance(previous, Tensor) and _memory_format(value) == _memory_format(previous):
            return previous.copy_(value.detach())
        return new(value)
    if isinstance(value, Mapping):
        earlier = previous if isinstance(previous, Mapping) else {}
        return {name: snapshot(item, earlier.get(name), new) for name, item in value.items()}
    if isinstance(value, list | tuple):
        # by index, like a dict: there is no earlier item where `previous` is shorter
        earlier = dict(enumerate(previous)) if isinstance(previous, list | tuple) else {}
        return type(value)(snapshot(item, earlier.get(i), new) for i, item in enumerate(value))
    return value


def _memory_format(tensor: Tensor) -> tuple[object, ...]:
    return tensor.shape, tensor.dtype, tensor.stride()


def _in_background(work: Callable[[], _T]) -> Future[_T]:
    """Call `work` in a new thread and return the future of its result."""
    future: Future[_T] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    # a daemon thread: a second stop signal ends the process without waiting for it
    threading.Thread(target=run, daemon=True).start()
    return future


class Checkpointer:
    """Saves the state of a run; all processes of the group must call each method together.

    The main process copies weights and state, and a thread writes this copy to the disk.
    """

    def __init__(
        self, loaded: LoadedModel, state: RunState, monitor: Monitor, group: ProcessGroup
    ) -> None:
        self._model, self._training = loaded.model, loaded.config.training
        self._metadata = loaded.metadata
        self._directory, self._state = RunDirectory(loaded.path), state
        self._monitor, self._group = monitor, group
        self._allocation: Future[Any] | None = None
        """memory for the first copy, while it is being allocated"""
        self._snapshot: Any = None
        """the last copy of weights and state, whose memory the next copy overwrites"""
        self._outcome: Future[_Outcome] = Future()
        """what becomes of the last checkpoint; only in the main process"""
        self._is_writing = False
        """whether a checkpoint is being written, as far as this process knows"""
        self._next_poll = 0
        """with several processes: the step at which they ask again whether it is written"""
        self.must_retry = False
        """whether the last checkpoint could not be written, so that the next step saves again"""
        self.after_save: Callable[[int, Path], object] | None = None
        """is called with the step and the folder of each checkpoint that is on the disk"""
        self._written_step = 0
        """the step whose checkpoint is being written"""

    def preallocate(self) -> None:
        """Allocate memory for the first copy in the background; call this after every step.

        Only the first call has an effect: the optimizers have created their moments then. Without
        this, training would wait at the first checkpoint, because new memory takes long to fill.
        """
        if self._group.is_main and self._allocation is None and self._snapshot is None:
            tensors = weights_of(self._model), self._state.large_tensors()
            zeros = functools.partial(torch.zeros_like, device="cpu")
            self._allocation = _in_background(lambda: snapshot(tensors, new=zeros))

    def save(self, *, overwrite: bool = False, wait: bool = False) -> None:
        """Write a checkpoint of the current step, in the background unless `wait` is True.

        If `overwrite` is True, an existing checkpoint of this step is replaced, else it is kept. If
        writing fails in the background, as on a full disk, the next `wait()` or `poll()` prints
        a message and sets `must_retry`. Earlier checkpoints are not changed.

        Raises:
            CheckpointError: `wait` is True, and writing has failed.
            DivergedError: a weight is NaN or infinite, so nothing is written.
        """
        self.wait()  # for the checkpoint before, whose copy lies in the same memory
        if not torch.nn.utils.get_total_norm(self._model.parameters()).isfinite():
            raise DivergedError(f"step {self._state.step:,}: some weights are NaN or infinite")
        with self._monitor.paused():
            self._monitor.flush()
            state = self._state.state()  # in all processes, as it holds figures of each
            if self._group.is_main:
                self._outcome = self._start(state, overwrite)
        self._is_writing, self._written_step = True, self._state.step
        self._next_poll = self._state.step + _STEPS_BETWEEN_POLLS
        self.must_retry = False
        problem = self._finish() if wait else None
        if problem:
            raise CheckpointError(problem)

    def _start(self, state: Mapping[str, Any], overwrite: bool) -> Future[_Outcome]:
        """Copy weights and state, start to write the copy, and return its outcome, a future."""
        step, ranked = state["step"], self._state.ranking.entries
        if self._allocation:
            with contextlib.suppress(RuntimeError, MemoryError):  # the copy below reports it
                self._snapshot = self._allocation.result()
            self._allocation = None
        try:
            self._snapshot = snapshot((weights_of(self._model), state), self._snapshot)
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            path = self._directory.checkpoint(step)
            problem = f"{path}: checkpoint not saved: no memory for a copy of the state"
            return _in_background(lambda: (False, problem))
        return _in_background(
            functools.partial(self._write, step, self._snapshot, ranked, overwrite)
        )

    def _write(
        self, step: int, copy: Any, ranked: Sequence[Mapping[str, Any]], overwrite: bool
    ) -> _Outcome:
        """Write a checkpoint and the files that point to it; delete old checkpoints.

        `copy` has weights and state; `ranked` are the entries of the ranking.
        """
        path, saved = self._directory.checkpoint(step), False
        try:
            if overwrite or not path.exists():
                weights, state = copy
                save_checkpoint(path, weights, state, self._metadata)
            saved = True
            update_after_checkpoint(self._directory, self._training, step, ranked)
        except CheckpointError as error:
            return saved, str(error)
        except OSError as error:
            where = error.filename or self._directory.path
            return saved, f"{where}: not written: {error.strerror or error}"
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            return saved, f"{path}: checkpoint not saved: no memory to write it"
        return saved, None

    def wait(self) -> None:
        """Wait until the checkpoint is written; if that fails, print why and set `must_retry`."""
        problem = self._finish()
        if problem:
            self.must_retry = True
            self._monitor.say(f"{problem}; training goes on and tries again")

    def poll(self) -> None:
        """Do what `wait` does if the writing has ended; call this after every step."""
        if not self._is_writing:
            return
        # several processes wait for each other to exchange the answer, so they do it seldom
        if self._group.size > 1 and self._state.step < self._next_poll:
            return
        has_ended = self._group.broadcast_from_main(self._outcome.done)
        if has_ended:
            self.wait()
        else:
            self._next_poll = self._state.step + _STEPS_BETWEEN_POLLS

    def _finish(self) -> str | None:
        """Wait for the checkpoint that is being written, if any; return an error message or None.

        If it is saved, the ranking of validated steps is committed, else it is rolled back.
        """
        if not self._is_writing:
            return None
        self._is_writing = False
        with self._monitor.paused():
            is_saved, problem = self._group.broadcast_from_main(self._outcome.result)
        if is_saved:
            self._state.ranking.commit()
            if self.after_save:
                self.after_save(self._written_step, self._directory.checkpoint(self._written_step))
        else:
            self._state.ranking.rollback()
        return problem

    def close(self, *, wait: bool) -> None:
        """Free the memory of the copy; if `wait` is True, first wait for the writing thread."""
        if wait and self._group.is_main and self._is_writing:
            self._outcome.exception()  # only waits: unlike `result`, it raises nothing
        self._allocation = self._snapshot = None
