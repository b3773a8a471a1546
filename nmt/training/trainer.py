"""The rhythm of training: step, record, validate, save (sections 5.1 to 5.4)."""

import math
import os
import signal
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import torch

from nmt.checkpoint import save_checkpoint, weights_of
from nmt.data.batch import collate
from nmt.data.batches import BatchPlan, Share, micro_batches
from nmt.data.sampling import resample
from nmt.data.token_store import Indices, TokenStore
from nmt.data.tokenizer import PAD
from nmt.device import autocast, seed_step
from nmt.errors import CheckpointError, DivergedError, StoppedBySignal
from nmt.run_directory import Run, RunDirectory
from nmt.training.loss import label_smoothed_cross_entropy
from nmt.training.monitor import Monitor
from nmt.training.optimizer import make_optimizers, update
from nmt.training.retention import forget_old_checkpoints
from nmt.training.schedule import learning_rate
from nmt.training.validation import Validation, Validator

MICRO_BATCH_TOKENS = {"cpu": 8192, "cuda": 32_768}
# A GPU's kernels are fastest on multiples of 8, and are chosen anew for each new shape.
PAD_MULTIPLE = {"cpu": 1, "cuda": 8}


class Trainer:
    """One model, its optimiser and its place in the data.

    A step depends on the weights, the optimiser's moments and its own number, on nothing else:
    batches and dropout masks are functions of (seed, step). So a resumed run is exact.
    """

    def __init__(
        self,
        run: Run,
        directory: RunDirectory,
        store: TokenStore,
        validator: Validator,
        precision: str,
        shares: Sequence[Share] = (),
    ) -> None:
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
        self.monitor = Monitor(directory.metrics)
        self.step = 0
        self.best: dict[str, Any] = {}
        self.validations_without_gain = 0
        self._stop_signal: int | None = None

    def state(self) -> dict[str, Any]:
        """What a resumed run needs beside the weights; plain types and tensors only."""
        return {
            "step": self.step,
            "optimizers": [optimizer.state_dict() for optimizer in self.optimizers],
            "best": self.best,
            "validations_without_gain": self.validations_without_gain,
            "monitor": self.monitor.state(),
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
        self.monitor.load_state(state["monitor"], self.step)

    def train(self) -> None:
        """Train until `max_steps` or early stopping.

        Raises:
            StoppedBySignal: after saving, on SIGINT or SIGTERM.
        """
        every = self.config.training
        handlers = {n: signal.signal(n, self._on_signal) for n in (signal.SIGINT, signal.SIGTERM)}
        self.model.train()
        self.monitor.open_bar(self.step, every.max_steps)
        try:
            while not self.finished():
                loss, tokens = self.take_step()
                self.monitor.count(loss, tokens)
                if self.step % every.log_every == 0:
                    self._record()
                improved = False
                if self.step % every.validate_every == 0 or self.step == every.max_steps:
                    improved = self._validate()
                if improved or self.step % every.checkpoint_every == 0 or self.finished():
                    self._save()
                if self._stop_signal is not None:
                    self._leave(self._stop_signal)
        finally:
            self.monitor.close_bar()
            for number, handler in handlers.items():
                signal.signal(number, handler)

    def finished(self) -> bool:
        """Whether nothing is left to do."""
        patience = self.config.training.early_stopping
        given_up = patience is not None and self.validations_without_gain >= patience
        return given_up or self.step >= self.config.training.max_steps

    def take_step(self) -> tuple[float, int]:
        """One update from `batch_tokens` tokens; returns its summed loss (nats) and its tokens."""
        training = self.config.training
        self.step += 1
        seed_step(self.config.seed, self.step)
        total, tokens = torch.zeros((), device=self.device), 0
        size = training.micro_batch_tokens
        if size == "auto":
            size = MICRO_BATCH_TOKENS[self.device.type]
        store, indices = self._pairs_of_step()
        for rows in micro_batches(indices, store.source.lengths, store.target.lengths, size):
            batch = collate(store, rows, PAD_MULTIPLE[self.device.type]).to(self.device)
            with autocast(self.device, self.precision):
                logits = self.model(batch.source, batch.target_input)
            loss = label_smoothed_cross_entropy(
                logits, batch.target_output, PAD, training.label_smoothing
            )
            loss.total.backward()
            total += loss.total.detach()
            tokens += batch.tokens
        summed = total.item()
        if not math.isfinite(summed):
            raise DivergedError(
                f"step {self.step:,}: the loss is {summed}; the last checkpoint in "
                f"{self.directory.checkpoints} is from before. Lower training.peak_learning_rate, "
                f"raise training.warmup_steps or set training.clip_norm, in a new --run-dir"
            )
        rate = learning_rate(self.step, self.config)
        update(self.optimizers, tokens, rate, training.clip_norm)
        return summed, tokens

    def _pairs_of_step(self) -> tuple[TokenStore, Indices]:
        """The pairs that step `step` learns from, and their places in what holds their ids."""
        indices = self.plan.step(self.step - 1)
        alpha = self.config.tokenizer.sampling
        if not alpha:
            return self.store, indices
        tokenizer, seed = self.run.tokenizer, self.config.seed
        pairs = resample(self.store, indices, tokenizer, alpha, seed, self.step)
        return pairs, np.arange(len(indices))

    def _record(self) -> None:
        epoch = self.step / self.plan.steps_per_epoch
        self.monitor.record_training(self.step, epoch, learning_rate(self.step, self.config))

    def _validate(self) -> bool:
        """Validate, tell, and say whether this is the best model so far."""
        with self.monitor.paused():
            result = self.validator.validate()
            self.monitor.record_validation(self.step, result.loss, result.bleu)
            self._keep_examples(result)
        if self.best and result.score <= self.best["score"]:
            self.validations_without_gain += 1
            return False
        self.validations_without_gain = 0
        self.best = {"step": self.step, "score": result.score, **result.figures()}
        return True

    def _keep_examples(self, result: Validation, count: int = 8) -> None:
        """Leave the first validation translations beside the metrics, to be read over time."""
        examples = zip(self.validator.pairs[:count], result.translations[:count], strict=False)
        text = "\n".join(
            f"source     {pair.source}\nreference  {pair.target}\nmodel      {translation}\n"
            for pair, translation in examples
        )
        if text:
            self.directory.translations.mkdir(exist_ok=True)
            path = self.directory.translations / f"step-{self.step:08d}.txt"
            path.write_text(text, "utf-8")

    def _save(self) -> None:
        """Checkpoint this step; point last.json and best.json to what is now last and best."""
        with self.monitor.paused():
            path = self.directory.checkpoint(self.step)
            if not path.exists():
                save_checkpoint(path, weights_of(self.model), self.state())
            self._point(self.directory.last, self.step, {})
            if self.best:
                self._point(self.directory.best, self.best["step"], self.best)
            forget_old_checkpoints(self.directory, self.config.training, self.best.get("step"))

    def _point(self, file: Path, step: int, figures: dict[str, Any]) -> None:
        """Let last.json or best.json name a checkpoint, relative to the run."""
        weights = self.directory.checkpoint(step).relative_to(self.directory.path)
        self.directory.write_json(file, {"weights": str(weights), **figures})

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        """The first signal asks for a stop after this step; the second one is obeyed at once."""
        if self._stop_signal is not None:
            raise StoppedBySignal(
                f"stopped at once by a second {signal.Signals(number).name}", number
            )
        self._stop_signal = number
        # Straight to stderr: the handler may have interrupted a write to Python's own buffer.
        os.write(2, b"stopping after this step and saving; a second signal stops at once\n")

    def _leave(self, number: int) -> None:
        self._save()
        raise StoppedBySignal(
            f"stopped by {signal.Signals(number).name} after step {self.step:,}; "
            f"saved in {self.directory.path}. Run the same command again to go on.",
            number,
        )
