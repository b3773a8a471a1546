"""The training loop: take a step, record, validate, save (sections 5.1 to 5.4)."""

import gc
import math
import signal
import sys
from collections.abc import Sequence

from nmt.data.tokens.batches import Stage, StagedPlan
from nmt.data.tokens.token_store import TokenStore
from nmt.errors import DivergedError, Log, StoppedBySignal
from nmt.machine.memory import return_freed_memory
from nmt.recipe.config_file import flatten_settings
from nmt.run.directory import RunDirectory
from nmt.run.model import LoadedModel
from nmt.training.callbacks import Callbacks
from nmt.training.checkpointing import Checkpointer
from nmt.training.distributed import ProcessGroup
from nmt.training.divergence import describe_useless_model
from nmt.training.gradients import GradientComputer
from nmt.training.monitor import Monitor
from nmt.training.schedule import learning_rate
from nmt.training.state import RunState
from nmt.training.step import Stepper
from nmt.training.stopping import Interrupted, StopSignals
from nmt.training.validation import Validator, thin_out_examples, write_examples


class Trainer:
    """Trains one model: says when to take a step, to validate and to save a checkpoint."""

    def __init__(
        self,
        loaded: LoadedModel,
        store: TokenStore,
        validator: Validator,
        precision: str,
        stages: Sequence[Stage] = (),
        group: ProcessGroup | None = None,
        log: Log = lambda message: None,
    ) -> None:
        """Start at step 0; `stages` say which pairs of `store` are learnt when, by default all."""
        self.loaded, self.config, self.model = loaded, loaded.config, loaded.model
        self.directory = directory = RunDirectory(loaded.path)
        self.store, self.validator, self.precision, self.log = store, validator, precision, log
        self.device = next(loaded.model.parameters()).device
        self.group = group or ProcessGroup()
        training = loaded.config.training
        lengths = store.source.lengths, store.target.lengths
        self.plan = StagedPlan(*lengths, training.batch_tokens, loaded.config.seed, stages)
        self.gradient_computer = GradientComputer(loaded, store, self.plan, precision, self.group)
        self.monitor = Monitor(
            directory.metrics,
            silent=not self.group.is_main,
            track=training.track,
            settings=flatten_settings(self.config.model_dump()),
        )
        self.state = RunState(loaded, precision, self.gradient_computer, self.monitor)
        # torchrun forwards a signal to every process, and the sender may have done so as well
        self._signals = StopSignals(
            second_stops_at_once=self.group.size == 1, silent=not self.group.is_main
        )
        self.stepper = Stepper(
            loaded.config, self.state, self.gradient_computer, self.monitor, self._signals
        )
        self.checkpointer = Checkpointer(loaded, self.state, self.monitor, self.group)
        self._callbacks = Callbacks()

    def use(self, callbacks: Callbacks) -> None:
        """Call these functions from now on."""
        self._callbacks = callbacks
        self.checkpointer.after_save = callbacks.after_save
        self.model.eval()  # what is trained is a copy with the same weights
        if callbacks.objective:
            self.gradient_computer.use_objective(callbacks.objective)

    def train(self) -> None:
        """Train from `state` until `max_steps` or early stopping, and save checkpoints meanwhile.

        Raises:
            StoppedBySignal: SIGINT or SIGTERM was received; steps that were taken are saved.
            DivergedError: the loss or gradient of a step, or a validation loss, has diverged.
        """
        with self._signals:
            gc.freeze()  # garbage collection is faster without objects that live until the end
            self.monitor.open_bar(self.state.step, self.config.training.max_steps)
            try:
                while not self.finished():
                    self._advance()
                self._check_stop_signal()  # one may have come during the last save
            except Interrupted:  # the signal that interrupted a computation stops the run
                self._check_stop_signal()
            finally:
                # after a first signal all is saved already, and a second one stops at once
                has_stopped = isinstance(sys.exception(), StoppedBySignal)
                self.checkpointer.close(wait=not has_stopped)
                self.monitor.close()
                gc.unfreeze()

    def finished(self) -> bool:
        """Return whether training is over (last step or early stop) and no validation is due."""
        at_last_step = self.state.step >= self.config.training.max_steps
        return not self.state.validation_due and (at_last_step or self.stops_early())

    def stops_early(self) -> bool:
        """Return whether early stopping ends the training before its last step."""
        state, training = self.state, self.config.training
        patience = training.early_stopping
        is_early = state.step < training.max_steps
        return is_early and patience is not None and state.ranking.without_gain >= patience

    def _advance(self) -> None:
        """Take one step (`Stepper.take`); then record, validate and save if that is due."""
        state, training = self.state, self.config.training
        # True only if the last session was stopped in the validation of a step that it had taken
        resumes_validation = state.validation_due
        if not resumes_validation:
            computed = self.stepper.take()
            if self._callbacks.after_step:
                loss = computed.loss / computed.tokens
                self._callbacks.after_step(state.step, self.model, loss)
                self.model.zero_grad(set_to_none=True)
            self.checkpointer.preallocate()
            if state.step % training.log_every == 0:
                self.stepper.synchronize()
                epoch = self.plan.epochs(state.step)
                rate = learning_rate(state.step, self.config)
                self.monitor.record_training(state.step, epoch, rate)
            at_last_step = state.step >= training.max_steps
            state.validation_due = at_last_step or state.step % training.validate_every == 0
            self._check_stop_signal()
        is_among_best = state.validation_due and self._validate()
        self.checkpointer.poll()
        is_due = state.step % training.checkpoint_every == 0 or self.checkpointer.must_retry
        is_last = self.finished()
        # a checkpoint of a resumed validation says that it is due: it is overwritten
        if is_among_best or is_due or is_last or resumes_validation:
            self.save(overwrite=resumes_validation, wait=is_last)

    def _validate(self) -> bool:
        """Validate the weights of this step; return whether they are among the best so far."""
        self.stepper.synchronize()
        self.checkpointer.wait()  # only a saved step can be among the best
        with self.monitor.paused():
            result = self.group.broadcast_from_main(self._measure)
            gc.collect()  # objects that refer to each other; else half a megabyte would stay
            return_freed_memory()  # else each validation would leave gaps between what is kept
        if result is None:
            raise Interrupted
        score, figures = result
        step, loss = self.state.step, figures["loss"]
        if not math.isfinite(loss):
            raise DivergedError(f"step {step:,}: the validation loss is {loss}")
        vocabulary, warmup = self.loaded.tokenizer.target.size, self.config.training.warmup_steps
        if problem := describe_useless_model(loss, vocabulary, step, warmup):
            self.monitor.say(f"warning: step {step:,}: {problem}")
        self.state.validation_due = False
        if self._callbacks.after_validation:
            self._callbacks.after_validation(step, self.model, figures)
            self.model.zero_grad(set_to_none=True)
        return self.state.ranking.add(step, score, figures)

    def _measure(self) -> tuple[float, dict[str, float]] | None:
        """Return score and figures of a validation; None if a stop signal interrupted it."""
        try:
            with self._signals.interruptible():
                result = self.validator.validate()
        except Interrupted:
            return None
        if math.isfinite(result.loss):
            self.monitor.record_validation(self.state.step, result.figures(), str(result))
            folder, every = self.directory.translations, self.config.training.validate_every
            try:
                write_examples(folder, self.state.step, self.validator.examples(result))
                thin_out_examples(folder, self.state.step, every)
            except OSError as error:
                self.monitor.say(f"{folder}: not written: {error.strerror}")
        return result.score, result.figures()

    def save(self, *, overwrite: bool = False, wait: bool = False) -> None:
        """Wait for the loss of this step and check it; then save as `Checkpointer.save` does."""
        self.stepper.synchronize()
        self.checkpointer.save(overwrite=overwrite, wait=wait)

    def _check_stop_signal(self) -> None:
        """Save and stop if any process has received a stop signal."""
        number = self.group.all_reduce_max(self._signals.number)
        if not number:
            return
        name = signal.Signals(number).name
        if self.state.step == 0:
            raise StoppedBySignal(f"stopped by {name} before the first step was taken", number)
        self.save(wait=True)
        raise StoppedBySignal(
            f"stopped by {name} after step {self.state.step:,}; saved in {self.directory.path}. "
            "Run the same command again to continue.",
            number,
        )
