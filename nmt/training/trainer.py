"""The rhythm of training: step, record, validate, save (sections 5.1 to 5.4)."""

import contextlib
import gc
import math
import signal
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from nmt.checkpoint import weights_of
from nmt.data.tokens.batches import BatchPlan, CorpusWeight
from nmt.data.tokens.token_store import TokenStore
from nmt.errors import CheckpointError, DivergedError, StoppedBySignal
from nmt.run_directory import LoadedModel, RunDirectory
from nmt.training.checkpoint_writer import CheckpointWriter
from nmt.training.distributed import ProcessGroup
from nmt.training.divergence import DivergenceDetector, PendingCheck, is_synchronous
from nmt.training.examples import delete_examples_after, write_examples
from nmt.training.gradients import Gradients, StepGradient
from nmt.training.monitor import Monitor
from nmt.training.moving_average import MovingAverage
from nmt.training.optimizer import build_optimizers, update_weights
from nmt.training.ranking import Ranking
from nmt.training.retention import ranking_size
from nmt.training.schedule import learning_rate
from nmt.training.stopping import Interrupted, StopSignals
from nmt.training.validation import Validator

# Steps until it is asked how saving went.
_STEPS_TO_SAVE = 50


@contextlib.contextmanager
def _collecting_only_what_is_new() -> Iterator[None]:
    """Spare Python's garbage collector all that exists by now, which stays until training ends."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


@dataclass(frozen=True)
class PendingStep:
    """A step that was taken; whether anything came of it is only known when it is read."""

    step: int
    gradient: StepGradient
    verdict: PendingCheck


class Trainer:
    """One model, its optimiser and its place in the data.

    A step depends on the weights, the optimiser's moments and its own number: its pairs are a
    function of (seed, step), and so are its dropout masks, for a number of shares and a size of
    micro-batches that are kept in the state where they are not the recipe's. So a resumed run is
    exact.
    """

    def __init__(
        self,
        run: LoadedModel,
        directory: RunDirectory,
        store: TokenStore,
        validator: Validator,
        precision: str,
        corpus_weights: Sequence[CorpusWeight] = (),
        group: ProcessGroup | None = None,
    ) -> None:
        self.group = group or ProcessGroup()
        self.run, self.config, self.model = run, run.config, run.model
        self.directory, self.store, self.validator = directory, store, validator
        self.precision = precision
        self.device = next(run.model.parameters()).device
        self.optimizers = build_optimizers(run.model, run.config.training, precision)
        self.plan = BatchPlan(
            store.source.lengths,
            store.target.lengths,
            run.config.training.batch_tokens,
            run.config.seed,
            corpus_weights,
        )
        self.gradients = Gradients(run, store, self.plan, precision, self.group)
        self.monitor = Monitor(
            directory.metrics,
            silent=not self.group.is_main,
            tensorboard=directory.tensorboard if run.config.training.tensorboard else None,
        )
        self.step = 0
        self.ranking = Ranking(ranking_size(run.config.training))
        self.roll_backs = 0
        decay = run.config.training.moving_average
        self.moving_average = MovingAverage(run.model, decay) if decay else None
        self.divergence = DivergenceDetector(self.device, run.config.training.largest_spike)
        self._pending_step: PendingStep | None = None
        self._writer = CheckpointWriter(directory, run.config.training)
        self._poll_at_step: int | None = None
        self._unsaved = False
        self._validation_due = False
        # torchrun tells every process to stop, and perhaps whoever told it does so as well
        self._signals = StopSignals(insistent=self.group.size == 1)

    def state(self) -> dict[str, Any]:
        """What a resumed run needs beside the weights; plain types and tensors only.

        To be asked for by all workers together.
        """
        return {
            "step": self.step,
            **self._moments(),
            "ranking": self.ranking.state(),
            "monitor": self.monitor.state(),
            "usual_loss": self.divergence.running_loss,
            "roll_backs": self.roll_backs,
            "validation_due": self._validation_due,
            "micro_batches": self.group.all_gather(self.gradients.micro_batch.state()),
            "shares": self.gradients.shares,
        }

    def _moments(self) -> dict[str, Any]:
        """The part of the state that takes memory."""
        return {
            "optimizers": [optimizer.state_dict() for optimizer in self.optimizers],
            "moving_average": self.moving_average.weights if self.moving_average else None,
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on from a `state()`; the weights are already in the model."""
        if not {"optimizers", "ranking", "shares", "micro_batches"} <= state.keys():
            raise CheckpointError(
                f"{self.directory.path}: its training state is of an earlier version of nmt; "
                "train it on with that version, or choose another --run-dir"
            )
        self.step = state["step"]
        for optimizer, saved in zip(self.optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)
        self.ranking.load_state(state["ranking"])
        self._validation_due = state["validation_due"]
        self.monitor.load_state(state["monitor"], self.step, validated=not self._validation_due)
        if self.group.is_main:
            last_validated = self.step - self._validation_due
            delete_examples_after(self.directory.translations, last_validated)
        if self.moving_average:
            self.moving_average.load(state["moving_average"])
        self.divergence.reset(state["usual_loss"])
        self._pending_step, self.roll_backs = None, state["roll_backs"]
        self.gradients.set_cpu_shards(state["shares"])
        before = state["micro_batches"]  # of each worker; there may be more of them now, or fewer
        self.gradients.micro_batch.load_state(before[self.group.rank % len(before)])

    def skip_to(self, step: int) -> None:
        """Go on after `step`, whatever step the weights are of."""
        self.step = step
        self._validation_due = False

    def train(self) -> None:
        """Train until `max_steps` or early stopping.

        Raises:
            StoppedBySignal: after saving, on SIGINT or SIGTERM.
            DivergedError: a step's loss is not a number, or far above that of the steps before, and
                nothing was changed by it; or the validation loss is none.
        """
        with self._signals, _collecting_only_what_is_new():
            self.model.train()
            self.monitor.open_bar(self.step, self.config.training.max_steps)
            try:
                while not self.finished():
                    self._advance()
                self._check_stop_signal()
            except Interrupted:
                self._check_stop_signal()
            finally:
                self._close()

    def _close(self) -> None:
        """Leave nothing half-done, unless a second signal has asked for that."""
        if not isinstance(sys.exception(), StoppedBySignal):
            self._writer.wait()
        self._writer.release_memory()
        self.monitor.close_bar()

    def _advance(self) -> None:
        """One step and all that is due after it."""
        training = self.config.training
        validation_was_abandoned = self._validation_due
        if not validation_was_abandoned:
            self.take_step()
            self._preallocate_snapshot()
            if self.step % training.log_every == 0:
                self._record()
            self._validation_due = self.step % training.validate_every == 0 or self._at_end()
            self._check_stop_signal()
        improved = self._validation_due and self._validate()
        self._poll_checkpoint()
        regular = self.step % training.checkpoint_every == 0 or self._unsaved
        if improved or regular or self.finished() or validation_was_abandoned:
            self.save(overwrite=validation_was_abandoned, wait=self.finished())

    def _preallocate_snapshot(self) -> None:
        """Once there is a state that takes memory: after the first step."""
        if self.group.is_main and not self._writer.is_preallocated:
            self._writer.preallocate(weights_of(self.model), self._moments())

    def _check_stop_signal(self) -> None:
        """Leave if any process has been told to stop."""
        if number := self.group.all_reduce_max(self._signals.number):
            self._save_and_stop(number)

    def _at_end(self) -> bool:
        return self.step >= self.config.training.max_steps

    def finished(self) -> bool:
        """Whether nothing is left to do."""
        patience = self.config.training.early_stopping
        given_up = patience is not None and self.ranking.without_gain >= patience
        return not self._validation_due and (given_up or self._at_end())

    def take_step(self) -> StepGradient:
        """One update from `batch_tokens` tokens; returns what it was made from.

        A step that must not be learnt from changes neither weights nor moments. A GPU is usually
        still computing it when this returns, so that such a step is heard of at the next one, or
        when `synchronize` asks, which all do before anything is validated or saved.

        Raises:
            DivergedError: naming the step, which is then the last one that was taken.
        """
        self.step += 1
        try:
            with self._signals.interruptible(self.group.size == 1):  # others would wait for it
                gradient = self.gradients.compute(self.step)
        except Interrupted:
            self.step -= 1
            raise
        verdict = self.divergence.check(gradient.loss, gradient.tokens, gradient.norm)
        former, self._pending_step = self._pending_step, PendingStep(self.step, gradient, verdict)
        at_once = is_synchronous(self.device)
        if at_once:
            self.synchronize()
        rate = learning_rate(self.step, self.config)
        # the gradients are means over the workers of sums over their tokens
        divisor = gradient.tokens / self.group.size
        rejected = None if at_once else verdict.rejected
        update_weights(self.optimizers, divisor, rate, self.config.training.clip_norm, rejected)
        if self.moving_average:
            self.moving_average.update(self.step)
        if former:
            self._finish_step(former)
        return gradient

    def synchronize(self) -> None:
        """Hear of the last step, for which a GPU is waited for.

        Raises:
            DivergedError: as `take_step`.
        """
        former, self._pending_step = self._pending_step, None
        if former:
            self._finish_step(former)

    def _finish_step(self, taken: PendingStep) -> None:
        """Count a step that was taken, or refuse to go on from it."""
        finding = taken.verdict.read()
        if finding.rejected:
            self.step = taken.step
            raise DivergedError(
                f"step {self.step:,}: {finding.problem()} for "
                f"{self.gradients.examples(taken.gradient)}"
            )
        self.monitor.count(finding.loss, taken.gradient.tokens)

    def _record(self) -> None:
        self.synchronize()
        epoch = self.step / self.plan.steps_per_epoch
        self.monitor.record_training(self.step, epoch, learning_rate(self.step, self.config))

    def _validate(self) -> bool:
        """Validate, tell, and say whether this is among the best models so far."""
        self.synchronize()
        self.wait_for_checkpoint()  # the best so far is one that is saved
        with self.monitor.paused():
            measured = self.group.broadcast_from_main(self._measure)
        if measured is None:
            raise Interrupted
        score, figures = measured
        if not math.isfinite(figures["loss"]):
            raise DivergedError(f"step {self.step:,}: the validation loss is {figures['loss']}")
        self._validation_due = False
        return self.ranking.add(self.step, score, figures)

    def _measure(self) -> tuple[float, dict[str, float]] | None:
        """The score of this step's weights and what it is made of; None if it was abandoned."""
        try:
            with self._signals.interruptible():
                result = self.validator.validate()
        except Interrupted:
            return None
        if math.isfinite(result.loss):
            self.monitor.record_validation(self.step, result.figures(), str(result))
            folder = self.directory.translations
            try:
                write_examples(folder, self.step, self.validator.examples(result))
            except OSError as error:
                self.monitor.say(f"{folder}: not written: {error.strerror}")
        return result.score, result.figures()

    def save(self, *, overwrite: bool = False, wait: bool = False) -> None:
        """Checkpoint this step, `anew` if it is saved already, while training goes on.

        Where it fails, say for want of space, it is tried again a little later: what was saved
        before is untouched.

        Raises:
            CheckpointError: it fails, and was to `wait` for the end of it.
            DivergedError: the weights are not numbers: what was saved before is better.
        """
        self.synchronize()
        self.wait_for_checkpoint()
        if not math.isfinite(torch.nn.utils.get_total_norm(self.model.parameters()).item()):
            raise DivergedError(f"step {self.step:,}: the weights are not numbers")
        with self.monitor.paused():
            self.monitor.flush()
            state = self.state()
            if self.group.is_main:
                weights = weights_of(self.model)
                self._writer.start(self.step, weights, state, self.ranking, overwrite=overwrite)
        self._poll_at_step, self._unsaved = self.step + _STEPS_TO_SAVE, False
        if wait and (problem := self._end_of_saving()):
            raise CheckpointError(problem)

    def wait_for_checkpoint(self) -> None:
        """Wait for the checkpoint that is being written; see to it if something went wrong."""
        if problem := self._end_of_saving():
            self._unsaved = True
            self.monitor.say(f"{problem}; training goes on and tries again")

    def _poll_checkpoint(self) -> None:
        """Settle what is written by now; where others must be asked, not at every step."""
        if self._poll_at_step is None or (self.group.size > 1 and self.step < self._poll_at_step):
            return
        if not self.group.broadcast_from_main(self._writer.writing):
            self.wait_for_checkpoint()
        else:
            self._poll_at_step = self.step + _STEPS_TO_SAVE

    def _end_of_saving(self) -> str | None:
        """Wait for the checkpoint that is being written and rank it; what went wrong, if any."""
        if self._poll_at_step is None:
            return None
        self._poll_at_step = None
        with self.monitor.paused():
            saved, problem = self.group.broadcast_from_main(self._writer.outcome)
        if saved:
            self.ranking.keep()
        else:
            self.ranking.rollback()
        return problem

    def _save_and_stop(self, number: int) -> None:
        name = signal.Signals(number).name
        if self.step == 0:
            raise StoppedBySignal(f"stopped by {name} before the first step was taken", number)
        self.save(wait=True)
        raise StoppedBySignal(
            f"stopped by {name} after step {self.step:,}; saved in {self.directory.path}. "
            "Run the same command again to go on.",
            number,
        )
