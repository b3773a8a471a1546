"""The rhythm of training: step, record, validate, save (sections 5.1 to 5.4)."""

import math
import signal
from collections.abc import Sequence
from typing import Any

from nmt.checkpoint import save_checkpoint, weights_of
from nmt.data.batches import BatchPlan, Share
from nmt.data.token_store import TokenStore
from nmt.errors import CheckpointError, DivergedError, StoppedBySignal
from nmt.run_directory import Run, RunDirectory
from nmt.training.distributed import Workers
from nmt.training.gradients import Gradients
from nmt.training.monitor import Monitor
from nmt.training.moving_average import MovingAverage
from nmt.training.optimizer import make_optimizers, update
from nmt.training.retention import forget_old_checkpoints, point_to
from nmt.training.schedule import learning_rate
from nmt.training.stopping import Abandoned, StopSignals
from nmt.training.validation import Validator

# Steps until saving is tried again; the weight of a step in what loss is usual.
_STEPS_TO_NEXT_ATTEMPT = 50
_FOLLOW = 0.02


class Trainer:
    """One model, its optimiser and its place in the data.

    A step depends on the weights, the optimiser's moments and its own number: batches and dropout
    masks are functions of (seed, step). So a resumed run is exact.
    """

    def __init__(
        self,
        run: Run,
        directory: RunDirectory,
        store: TokenStore,
        validator: Validator,
        precision: str,
        shares: Sequence[Share] = (),
        workers: Workers | None = None,
    ) -> None:
        self.workers = workers or Workers()
        self.run, self.config, self.model = run, run.config, run.model
        self.directory, self.store, self.validator = directory, store, validator
        self.precision = precision
        self.device = next(run.model.parameters()).device
        self.optimizers = make_optimizers(run.model, run.config.training, precision)
        self.plan = BatchPlan(
            store.source.lengths,
            store.target.lengths,
            run.config.training.batch_tokens,
            run.config.seed,
            shares,
        )
        self.gradients = Gradients(run, store, self.plan, precision, self.workers)
        self.monitor = Monitor(directory.metrics, silent=not self.workers.leading)
        self.step = 0
        self.best: dict[str, Any] = {}
        self.validations_without_gain = 0
        self.roll_backs = 0
        decay = run.config.training.moving_average
        self.moving_average = MovingAverage(run.model, decay) if decay else None
        self._usual_loss: float | None = None
        self._save_again_at: int | None = None
        self._validation_due = False
        # torchrun tells every process to stop, and perhaps whoever told it does so as well
        self._signals = StopSignals(insistent=self.workers.size == 1)

    def state(self) -> dict[str, Any]:
        """What a resumed run needs beside the weights; plain types and tensors only."""
        return {
            "step": self.step,
            "optimizers": [optimizer.state_dict() for optimizer in self.optimizers],
            "best": self.best,
            "validations_without_gain": self.validations_without_gain,
            "monitor": self.monitor.state(),
            "moving_average": self.moving_average.weights if self.moving_average else None,
            "usual_loss": self._usual_loss,
            "roll_backs": self.roll_backs,
            "validation_due": self._validation_due,
            "micro_batch_tokens": self.gradients.micro_batch_tokens if self.gradients.halved else 0,
        }

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on from a `state()`; the weights are already in the model."""
        if "optimizers" not in state:
            raise CheckpointError(
                f"{self.directory.path}: its training state is of an earlier version of nmt, which "
                "kept one optimiser; train it on with that version, or choose another --run-dir"
            )
        self.step = state["step"]
        for optimizer, saved in zip(self.optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)
        self.best = state["best"]
        self.validations_without_gain = state["validations_without_gain"]
        self._validation_due = state["validation_due"]
        self.monitor.load_state(state["monitor"], self.step, validated=not self._validation_due)
        if self.moving_average:
            self.moving_average.load(state["moving_average"])
        self._usual_loss, self.roll_backs = state["usual_loss"], state["roll_backs"]
        if state["micro_batch_tokens"]:
            self.gradients.halve_to(state["micro_batch_tokens"])

    def skip_to(self, step: int) -> None:
        """Go on after `step`, whatever step the weights are of."""
        self.step = step
        self._validation_due = False

    def train(self) -> None:
        """Train until `max_steps` or early stopping.

        Raises:
            StoppedBySignal: after saving, on SIGINT or SIGTERM.
            DivergedError: a step's loss is not a number, or far above that of the steps before;
                nothing was changed by it.
        """
        with self._signals:
            self.model.train()
            self.monitor.open_bar(self.step, self.config.training.max_steps)
            try:
                while not self.finished():
                    self._go_on()
                self._heed_signals()
            except Abandoned:
                self._heed_signals()
            finally:
                self.monitor.close_bar()

    def _go_on(self) -> None:
        """One step and all that is due after it."""
        training = self.config.training
        validation_was_abandoned = self._validation_due
        if not validation_was_abandoned:
            loss, tokens = self.take_step()
            self.monitor.count(loss, tokens)
            if self.step % training.log_every == 0:
                self._record()
            self._validation_due = self.step % training.validate_every == 0 or self._at_end()
            self._heed_signals()
        best_before = self.best
        improved = self._validation_due and self._validate()
        regular = self.step % training.checkpoint_every == 0 or self.step == self._save_again_at
        if improved or regular or self.finished() or validation_was_abandoned:
            saved = self.save(anew=validation_was_abandoned)
            if improved and not saved:
                self.best = best_before  # what is not saved cannot be the best that there is

    def _heed_signals(self) -> None:
        """Leave if any process has been told to stop."""
        if number := self.workers.largest(self._signals.number):
            self._leave(number)

    def _at_end(self) -> bool:
        return self.step >= self.config.training.max_steps

    def finished(self) -> bool:
        """Whether nothing is left to do."""
        patience = self.config.training.early_stopping
        given_up = patience is not None and self.validations_without_gain >= patience
        return not self._validation_due and (given_up or self._at_end())

    def take_step(self) -> tuple[float, int]:
        """One update from `batch_tokens` tokens; returns its summed loss (nats) and its tokens."""
        self.step += 1
        try:
            with self._signals.abandon(self.workers.size == 1):  # others would wait for it
                loss, tokens = self.gradients.compute(self.step)
        except Abandoned:
            self.step -= 1
            raise
        self._refuse_spike(loss / tokens)
        rate = learning_rate(self.step, self.config)
        # the gradients are means over the workers of sums over their tokens
        share = tokens / self.workers.size
        update(self.optimizers, share, rate, self.config.training.clip_norm)
        if self.moving_average:
            self.moving_average.update(self.step)
        return loss, tokens

    def _refuse_spike(self, loss: float) -> None:
        """Stop before the update where the loss per token leaps; follow it where it does not."""
        usual, most = self._usual_loss, self.config.training.largest_spike
        if usual is not None and most is not None and loss > usual + most:
            raise DivergedError(
                f"step {self.step:,}: the loss is {loss:.2f} nats/token where {usual:.2f} was "
                f"usual, for {self.gradients.describe(self.step)}"
            )
        self._usual_loss = loss if usual is None else usual + _FOLLOW * (loss - usual)

    def _record(self) -> None:
        epoch = self.step / self.plan.steps_per_epoch
        self.monitor.record_training(self.step, epoch, learning_rate(self.step, self.config))

    def _validate(self) -> bool:
        """Validate, tell, and say whether this is the best model so far."""
        with self.monitor.paused():
            measured = self.workers.from_leader(self._measure)
        if measured is None:
            raise Abandoned
        score, figures = measured
        if not math.isfinite(figures["loss"]):
            raise DivergedError(f"step {self.step:,}: the validation loss is {figures['loss']}")
        self._validation_due = False
        if self.best and score <= self.best["score"]:
            self.validations_without_gain += 1
            return False
        self.validations_without_gain = 0
        self.best = {"step": self.step, "score": score, **figures}
        return True

    def _measure(self) -> tuple[float, dict[str, float]] | None:
        """The score of this step's weights and what it is made of; None if it was abandoned."""
        try:
            with self._signals.abandon():
                result = self.validator.validate()
        except Abandoned:
            return None
        if math.isfinite(result.loss):
            self.monitor.record_validation(self.step, result.figures(), str(result))
            path = self.directory.translations / f"step-{self.step:08d}.txt"
            try:
                self.validator.keep_examples(result, path)
            except OSError as error:
                self.monitor.say(f"{path}: not written: {error.strerror}")
        return result.score, result.figures()

    def save(self, *, anew: bool = False, now_or_never: bool = False) -> bool:
        """Checkpoint this step, `anew` if it is saved already; say whether that succeeded.

        Where it fails, say for want of space, training goes on and tries again a little later:
        what was saved before is untouched.

        Raises:
            CheckpointError: it fails, and this is the end or `now_or_never`.
        """
        with self.monitor.paused():
            problem = self.workers.from_leader(lambda: self._write(anew))
        self._save_again_at = None
        if problem is None:
            return True
        if now_or_never or self.finished():
            raise CheckpointError(problem)
        self._save_again_at = self.step + _STEPS_TO_NEXT_ATTEMPT
        self.monitor.say(
            f"{problem}; training goes on and tries again at step {self._save_again_at:,}"
        )
        return False

    def _write(self, anew: bool) -> str | None:
        """What stood in the way of the checkpoint, if anything did."""
        self.monitor.flush()
        try:
            path = self.directory.checkpoint(self.step)
            if anew or not path.exists():
                save_checkpoint(path, weights_of(self.model), self.state())
            point_to(self.directory, self.step, self.best)
            forget_old_checkpoints(self.directory, self.config.training, self.best.get("step"))
        except CheckpointError as error:
            return str(error)
        except OSError as error:
            return f"{error.filename or self.directory.path}: not written: {error.strerror}"
        return None

    def _leave(self, number: int) -> None:
        name = signal.Signals(number).name
        if self.step == 0:
            raise StoppedBySignal(f"stopped by {name} before the first step was taken", number)
        self.save(now_or_never=True)
        raise StoppedBySignal(
            f"stopped by {name} after step {self.step:,}; saved in {self.directory.path}. "
            "Run the same command again to go on.",
            number,
        )
