"""Saving a run: all processes agree on it, the main process writes, training goes on meanwhile."""

import torch

from nmt.checkpoint import weights_of
from nmt.errors import CheckpointError, DivergedError
from nmt.model.transformer import Transformer
from nmt.training.checkpoint_writer import CheckpointWriter
from nmt.training.distributed import ProcessGroup
from nmt.training.monitor import Monitor
from nmt.training.state import RunState

# Several processes ask only every so many steps whether a checkpoint is written by now.
_STEPS_BETWEEN_POLLS = 50


class Checkpointer:
    """Saves the state of a run; all processes of a group call each method together."""

    def __init__(
        self,
        model: Transformer,
        state: RunState,
        writer: CheckpointWriter,
        monitor: Monitor,
        group: ProcessGroup,
    ) -> None:
        self._model, self._state, self._writer = model, state, writer
        self._monitor, self._group = monitor, group
        self._poll_at_step: int | None = None
        """the next step to poll at; None if no checkpoint is being written"""
        self.must_retry = False
        """whether the last checkpoint could not be written"""

    def preallocate(self) -> None:
        """Reserve memory for a copy of weights and moments; call it after the first step.

        The optimizers create their moments in that step.
        """
        if self._group.is_main and not self._writer.is_preallocated:
            self._writer.preallocate(weights_of(self._model), self._state.large_tensors())

    def save(self, *, overwrite: bool = False, wait: bool = False) -> None:
        """Write a checkpoint of the current step in the background.

        An existing checkpoint of this step stays unless `overwrite`. If writing fails, for example
        on a full disk, `must_retry` says so later; earlier checkpoints stay as they are.

        Raises:
            CheckpointError: writing has failed, and the caller wanted to `wait` for its end.
            DivergedError: a weight is NaN or infinite, so the earlier checkpoints are better.
        """
        self.wait()
        if not torch.nn.utils.get_total_norm(self._model.parameters()).isfinite():
            raise DivergedError(f"step {self._state.step:,}: some weights are NaN or infinite")
        with self._monitor.paused():
            self._monitor.flush()
            state = self._state.state()
            if self._group.is_main:
                weights = weights_of(self._model)
                ranking = self._state.ranking
                self._writer.start(state["step"], weights, state, ranking, overwrite=overwrite)
        self._poll_at_step, self.must_retry = self._state.step + _STEPS_BETWEEN_POLLS, False
        if wait and (problem := self._finish()):
            raise CheckpointError(problem)

    def wait(self) -> None:
        """Wait until no checkpoint is being written; report a problem, if there was one."""
        if problem := self._finish():
            self.must_retry = True
            self._monitor.say(f"{problem}; training goes on and tries again")

    def poll(self) -> None:
        """Do what `wait` does if the checkpoint is written by now; call this after every step."""
        if self._poll_at_step is None:
            return
        if self._group.size > 1 and self._state.step < self._poll_at_step:
            return
        if self._group.broadcast_from_main(self._writer.is_writing):
            self._poll_at_step = self._state.step + _STEPS_BETWEEN_POLLS
        else:
            self.wait()

    def _finish(self) -> str | None:
        """Wait for the checkpoint that is being written; return what went wrong, if anything.

        The best validations are those whose checkpoints have been written.
        """
        if self._poll_at_step is None:
            return None
        self._poll_at_step = None
        with self._monitor.paused():
            saved, problem = self._group.broadcast_from_main(self._writer.result)
        if saved:
            self._state.ranking.commit()
        else:
            self._state.ranking.rollback()
        return problem

    def close(self, *, wait: bool) -> None:
        """Give back the memory for the copy; before that, `wait` for what is being written."""
        if wait:
            self._writer.wait()
        self._writer.release_memory()
