"""The records of a run: metrics.jsonl, a progress bar on a terminal, trackers if asked."""

import contextlib
import json
import math
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tqdm import tqdm

from nmt.files import write_atomically
from nmt.training.tracking import Tracking

TERM = "loss "
"""how the keys of the terms of the loss begin in a training record"""
_COUNTERS = ("loss", "tokens", "total_tokens", "seconds")
_SMOOTHING = 0.2
"""weight of the latest training record in the running mean of the time of a step"""


class Monitor:
    """Counts loss, tokens and time, and writes records to metrics.jsonl and the trackers.

    It also shows the progress bar. All counters are in `state()`, so a resumed run writes the same
    records as an uninterrupted one; only `seconds` and `tokens_per_second` depend on the machine.
    """

    def __init__(
        self,
        metrics: Path,
        *,
        silent: bool = False,
        track: Sequence[str] = (),
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        """Write to the file `metrics` of a run, and to trackers; if `silent`, only count.

        `track` are the names of `training.track`; trackers show `settings`, by section.key.
        """
        self.metrics = metrics
        self._silent = silent
        self._tracking = Tracking(
            () if silent else track, metrics.parent, settings or {}, warn=self.say
        )
        self.loss, self.tokens = 0.0, 0
        """summed loss (nats) and target tokens since the last training record"""
        self.terms: dict[str, float] = {}
        """the sum of each term of the loss (`Loss.terms`), likewise"""
        self.total_tokens, self.seconds = 0, 0.0
        """target tokens, and seconds of training, since the run began"""
        self._recorded_tokens, self._recorded_seconds = 0, 0.0
        """`total_tokens` and `seconds` at the last training record"""
        self._recorded_step, self._max_steps = 0, 0
        """the step of the last training record, and of the end"""
        self._step_seconds = 0.0
        """running mean of the seconds of a step in this session; 0 before the first record"""
        self._first_step, self._validated_step = 0, 0
        """the steps at which this session began, and of its last validation"""
        self._paused_seconds, self._paused_per_step = 0.0, 0.0
        """seconds of validations and saving in this session: all of them, and for each step"""
        self._unwritten = ""
        """records, as lines, that could not be written yet"""
        self._clock = time.perf_counter()
        """the time up to which `seconds` are counted"""
        self._bar: tqdm[Any] | None = None

    def state(self) -> dict[str, Any]:
        """Return the counters, for `load_state`."""
        return {name: getattr(self, name) for name in _COUNTERS} | {"terms": dict(self.terms)}

    def load_state(self, state: dict[str, Any]) -> None:
        """Continue to count from a `state()` of an earlier session."""
        for name in _COUNTERS:
            setattr(self, name, state[name])
        self.terms = dict(state.get("terms", {}))  # states of older versions have none
        self._recorded_tokens, self._recorded_seconds = self.total_tokens, self.seconds

    def drop_records_after(self, step: int, *, validated: bool = True) -> None:
        """Remove the records of steps after `step`, which the resumed run writes again.

        metrics.jsonl is rewritten; TensorBoard hides them, other trackers show both. If `validated`
        is False, the validation of `step` will be repeated: its record is removed too. An
        incomplete last line is removed.
        """

        def is_kept(line: str) -> bool:
            try:
                record = json.loads(line)
                if record["step"] == step and record["event"] == "validation":
                    return validated
                return bool(record["step"] <= step)
            except (ValueError, TypeError, KeyError):  # a power failure may leave zeros
                return False

        def kept_lines(text: str) -> str:
            lines = [line for line in text.split("\n") if line.endswith("}") and is_kept(line)]
            return "".join(f"{line}\n" for line in lines)

        self._recorded_step = min(self._recorded_step, step)
        self._tracking.last_step = step
        self._unwritten = kept_lines(self._unwritten)
        if not self._silent and self.metrics.is_file():
            # an incomplete last line may end inside of a character
            text = self.metrics.read_text("utf-8", errors="replace")
            new_text = kept_lines(text)
            if new_text != text:
                write_atomically(self.metrics, new_text)

    def open_bar(self, step: int, max_steps: int) -> None:
        """Show a progress bar of `step` of `max_steps` if stderr is a terminal; start the clock."""
        disable = self._silent or None  # None: disabled only if stderr is no terminal
        self._recorded_step, self._max_steps = step, max_steps
        self._first_step = self._validated_step = step
        self._step_seconds = self._paused_seconds = self._paused_per_step = 0.0
        self._bar = tqdm(
            total=max_steps,
            initial=step,
            unit="step",
            disable=disable,
            dynamic_ncols=True,
            smoothing=0,  # the mean speed of the session, pauses included
        )
        self._clock = time.perf_counter()

    def close(self) -> None:
        """Write records that are not written yet, and close the progress bar and the trackers."""
        self.flush()
        if self._bar is not None:
            self._bar.close()
        self._tracking.close()

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Stop the clock inside the block: validation and saving are not training time."""
        self._tick()
        try:
            yield
        finally:
            now = time.perf_counter()
            self._paused_seconds += now - self._clock
            self._clock = now
            # over whole intervals between validations, so that it does not change within one
            if self._validated_step > self._first_step:
                steps = self._validated_step - self._first_step
                self._paused_per_step = self._paused_seconds / steps

    def _tick(self) -> None:
        """Add the time since the last tick to `seconds`."""
        now = time.perf_counter()
        self.seconds += now - self._clock
        self._clock = now

    def count(self, loss: float, tokens: int, terms: Mapping[str, float] | None = None) -> None:
        """Count a finished step with its summed loss (nats), its target tokens, and its terms."""
        self._tick()
        for name, term in (terms or {}).items():
            self.terms[name] = self.terms.get(name, 0.0) + term
        self.loss += loss
        self.tokens += tokens
        self.total_tokens += tokens
        if self._bar is not None:
            self._bar.update()

    def record_training(self, step: int, epoch: float, learning_rate: float) -> None:
        """Record and show the mean loss per token and the speed since the last training record.

        Where no bar is shown, a line tells the time that is left; it includes the pauses of later
        validations and saving.
        """
        elapsed = self.seconds - self._recorded_seconds
        tokens = self.total_tokens - self._recorded_tokens
        speed = tokens / elapsed if elapsed > 0 else 0.0  # tokens per second
        self._recorded_tokens, self._recorded_seconds = self.total_tokens, self.seconds
        latest_seconds = elapsed / max(1, step - self._recorded_step)  # of a step
        mean_seconds = self._step_seconds or latest_seconds
        self._step_seconds = mean_seconds + _SMOOTHING * (latest_seconds - mean_seconds)
        self._recorded_step = step
        loss = self.loss / self.tokens  # the sum of the loss over tokens: nats per token
        terms = {name: term / self.tokens for name, term in self.terms.items()}
        self.loss, self.tokens, self.terms = 0.0, 0, {}
        self._write(
            event="train",
            step=step,
            epoch=round(epoch, 4),
            loss=loss,
            **{TERM + name: term for name, term in terms.items()},
            learning_rate=learning_rate,
            target_tokens=self.total_tokens,
            tokens_per_second=round(speed, 1),
            seconds=round(self.seconds, 2),
        )
        losses = "".join(f", {name} {term:.3f}" for name, term in {"loss": loss, **terms}.items())
        text = f"epoch {epoch:.1f}{losses}, {speed:,.0f} tokens/s"
        if self._bar is not None and not self._bar.disable:
            self._bar.set_postfix_str(text)
        else:
            step_seconds = self._step_seconds + self._paused_per_step
            minutes_left = step_seconds * (self._max_steps - step) / 60
            self.say(f"step {step:,} of {self._max_steps:,}: {text}, {minutes_left:.0f} min left")

    def record_validation(self, step: int, figures: dict[str, float], text: str) -> None:
        """Record the `figures` of a validation (loss per token, scores); print them as `text`."""
        self._validated_step = step
        perplexity = math.exp(min(figures["loss"], 700.0))  # exp(710) is too large for a float
        self._write(
            event="validation",
            step=step,
            **figures,
            perplexity=perplexity,
            seconds=round(self.seconds, 2),
        )
        self.say(
            f"step {step:,} after {self.seconds / 60:.1f} min: {text}, "
            f"perplexity {_three_digits(perplexity)}"
        )

    def record_roll_back(self, step: int, to: int) -> None:
        """Record that after the divergent `step` the weights of step `to` were loaded again."""
        self._write(event="roll_back", step=step, to=to, seconds=round(self.seconds, 2))

    def _write(self, **record: Any) -> None:
        """Write a record: its `event`, its `step`, and figures by name."""
        self._unwritten += json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n"
        self._tracking.log(record)
        self.flush()

    def flush(self) -> None:
        """Append all unwritten records to metrics.jsonl; on a full disk, keep them and say so."""
        if self._silent or not self._unwritten:
            return
        size = self.metrics.stat().st_size if self.metrics.is_file() else 0
        try:
            with self.metrics.open("ab") as file:
                file.write(self._unwritten.encode())
            self._unwritten = ""
        except OSError as error:
            with contextlib.suppress(OSError):
                os.truncate(self.metrics, size)  # remove a half-written line
            self.say(f"{self.metrics}: not written: {error.strerror}; will be tried again")

    def say(self, message: str) -> None:
        """Print a message on stderr, above the progress bar, unless `silent`."""
        if not self._silent:
            with contextlib.suppress(OSError):  # the program that reads it may have ended
                tqdm.write(message, file=sys.stderr)


def _three_digits(number: float) -> str:
    """Return a number of 1 or more with three significant digits: 8.00, 126, 12,300, 1.5e+07."""
    if number >= 1e6:
        return f"{number:.3g}"
    digits = 2 - math.floor(math.log10(number))
    return f"{round(number, digits):,.{max(0, digits)}f}"
