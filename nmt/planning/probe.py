"""The probe: times a few training steps, so that the time of a whole run can be estimated.

`nmt plan` and `nmt init` use it. It writes no files.
"""

import contextlib
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

import torch

from nmt.data.links import flat_links
from nmt.data.tokens.token_store import Sentences, TokenStore
from nmt.data.tokens.tokenizer import BOS, PAD
from nmt.inference.prepare import prepare_for_inference
from nmt.machine.device import (
    device_name,
    peak_memory,
    pick_device,
    pick_precision,
    reset_peak_memory,
    synchronize,
    use_threads,
)
from nmt.machine.memory import tune_memory
from nmt.model.transformer import Transformer
from nmt.recipe.config import Config
from nmt.run.model import LoadedModel
from nmt.training.lora import add_adapters, merged
from nmt.training.trainer import Trainer
from nmt.training.validation import BATCH_TOKENS

_Result = TypeVar("_Result")

_WARM_UP_STEPS = 2
"""number of first steps that do not count: memory and kernels are still being set up"""
_MIN_STEPS, _MAX_STEPS = 6, 40
"""limits of the number of measured steps"""
_ENOUGH_SECONDS, _PATIENCE_SECONDS = 8.0, 40.0
"""no more steps are measured after so much computing, or so much time (on a busy machine)"""
_STEP_SECONDS = 3.0
"""a step that would take longer is measured with fewer tokens, and its time scaled up"""
_MIN_STEP_TOKENS = 512  # tokens
_NO_RUN = Path("not-a-run")
"""the run directory of the probe: nothing is written into it"""
_SHORTEST_SECONDS, _MAX_WAITING = 1e-6, 0.99  # so that no divisor is 0
_BUSY = 0.1
"""share of the time that other processes may take without being reported"""


@dataclass(frozen=True)
class Speed:
    """Measured times in seconds, without the time this process waited for a processor."""

    device: str
    precision: str
    threads: int
    step_seconds: float
    """seconds of a whole step of the recipe"""
    target_tokens: float
    """target tokens that are trained on per second"""
    steps: int
    """number of measured steps"""
    step_tokens: int
    """batch_tokens of the measured steps; fewer than the recipe's if its steps are long"""
    waiting: float
    """share of the time in which other processes used the processor"""
    greedy_seconds: float
    """seconds to translate one batch of a validation greedily"""
    forward_seconds: float
    """seconds to compute the loss of one batch of a validation"""
    peak_bytes: int
    """largest memory use on a GPU; 0 on a CPU, or if the device does not say"""

    @property
    def busy(self) -> bool:
        """Whether this process waited for a processor in more than 10 % of the measured time."""
        return self.waiting > _BUSY


def probe(config: Config, store: TokenStore, vocabularies: tuple[int, int]) -> Speed:
    """Measure how fast this machine trains and translates, with a new model on pairs of `store`.

    `vocabularies` are the sizes of the source and target vocabulary. Long steps are measured with
    fewer tokens, and their time is scaled up. Sets PyTorch's number of threads and random seed.

    Raises:
        NmtError: an error that training would raise as well.
    """
    device = pick_device(config.training.device)
    precision = pick_precision(config.training.precision, device)
    threads = use_threads(config.training.threads)
    tune_memory()
    torch.manual_seed(config.seed)
    model = Transformer(config.model, *vocabularies, PAD).to(device)
    if config.training.lora:  # only the adapters are trained
        add_adapters(model, config.training.lora)
    reset_peak_memory(device)
    step_tokens = _affordable_tokens(config, model, store, precision)
    steps = _take_steps(_build_trainer(config, model, store, precision, step_tokens))
    batch_tokens = config.training.batch_tokens
    scale = batch_tokens / step_tokens  # above 1 if the steps were made smaller
    # the time of the gradient grows with the tokens, the time of the update does not
    gradient_seconds = _interquartile_mean([step.computing for step in steps]) * scale
    step_seconds = gradient_seconds + _interquartile_mean([step.updating for step in steps])
    target_tokens = sum(step.tokens for step in steps) / len(steps) * scale  # of a whole step
    target_length = round(float(store.target.lengths.mean()))
    waiting = sum(step.waited for step in steps) / sum(step.elapsed for step in steps)
    return Speed(
        device=device_name(device),
        precision=precision,
        threads=threads,
        step_seconds=step_seconds,
        target_tokens=target_tokens / step_seconds,
        steps=len(steps),
        step_tokens=step_tokens,
        waiting=min(_MAX_WAITING, waiting),
        greedy_seconds=_greedy_seconds(merged(model), max(target_length, 2), precision),
        # forward and backward take three times as long as forward alone
        forward_seconds=gradient_seconds / 3 * BATCH_TOKENS / batch_tokens,
        peak_bytes=peak_memory(device),
    )


def _build_trainer(
    config: Config, model: Transformer, store: TokenStore, precision: str, step_tokens: int
) -> Trainer:
    """Return the trainer of the recipe with steps of this many tokens; it never validates.

    It samples no subwords and writes no files, so that it needs no tokenizer and no run directory.
    """
    changes = {"batch_tokens": step_tokens, "track": []}
    training = config.training.model_copy(update=changes)
    tokenizer = config.tokenizer.model_copy(update={"sampling": 0.0})
    changed = config.model_copy(update={"training": training, "tokenizer": tokenizer})
    loaded = LoadedModel(changed, None, model, _NO_RUN)  # type: ignore[arg-type]
    if training.guided_alignment and store.links is None:
        store = replace(store, links=_made_up_links(store))
    return Trainer(loaded, store, None, precision)  # type: ignore[arg-type]


def _made_up_links(store: TokenStore) -> Sentences:
    """Return a link for each target token: any source token takes the same time."""
    lengths = store.source.lengths - 1, store.target.lengths - 1  # without EOS
    return flat_links(
        [[(t * s // max(1, n), t) for t in range(n)] for s, n in zip(*lengths, strict=True)]
    )


def _affordable_tokens(
    config: Config, model: Transformer, store: TokenStore, precision: str
) -> int:
    """Return the tokens of a step of about `_STEP_SECONDS`, at most those of the recipe's steps.

    Trains two small steps to estimate it.
    """
    batch_tokens = config.training.batch_tokens
    small = min(_MIN_STEP_TOKENS, batch_tokens)
    trainer = _build_trainer(config, model, store, precision, small)
    steps = [_take_step(trainer) for _ in range(2)]
    # Linux measures the waiting time of short steps too coarsely to subtract all of it
    seconds = min(max(step.computing, step.elapsed / 10) for step in steps)
    affordable = int(small * _STEP_SECONDS / seconds)
    return max(small, min(batch_tokens, affordable))


@dataclass(frozen=True)
class _ProbedStep:
    """Seconds of a step: the gradient, the update, and waiting for a processor in both."""

    computing: float
    """seconds of the gradient, without `waited`"""
    updating: float
    """seconds of the update, without `waited`"""
    waited: float
    tokens: int
    """target tokens"""

    @property
    def elapsed(self) -> float:
        """All seconds of the step."""
        return self.computing + self.updating + self.waited


def _take_steps(trainer: Trainer) -> Sequence[_ProbedStep]:
    """Take steps until there are enough or they took too long; return all after the warm-up."""
    for _ in range(_WARM_UP_STEPS):
        _take_step(trainer)
    steps: list[_ProbedStep] = []
    while len(steps) < _MAX_STEPS:
        steps.append(_take_step(trainer))
        elapsed = sum(step.elapsed for step in steps)
        worked = elapsed - sum(step.waited for step in steps)
        long_enough = worked > _ENOUGH_SECONDS or elapsed > _PATIENCE_SECONDS
        if len(steps) >= _MIN_STEPS and long_enough:
            break
    return steps


def _take_step(trainer: Trainer) -> _ProbedStep:
    """Train one step, and measure the gradient and the update separately; changes the model."""
    state, stepper = trainer.state, trainer.stepper
    state.step += 1
    compute = partial(trainer.gradient_computer.compute, state.step)
    computed, computing, waited = _timed(trainer.device, compute)
    _, updating, also_waited = _timed(trainer.device, partial(stepper.update, computed))
    return _ProbedStep(computing, updating, waited + also_waited, computed.tokens)


def _timed(device: torch.device, work: Callable[[], _Result]) -> tuple[_Result, float, float]:
    """Return the result of `work`, the seconds that it computes (above 0), and those that it waits.

    It waits for a processor that others use. The time is that of the thread that waited longest, or
    0 if it is unknown.
    """
    earlier_waits, start = _read_waits(), time.perf_counter()
    result = work()
    synchronize(device)
    elapsed = time.perf_counter() - start
    waits = [wait - earlier_waits.get(thread, 0) for thread, wait in _read_waits().items()]  # ns
    waited = min(max(waits, default=0) / 1e9, elapsed)
    return result, max(_SHORTEST_SECONDS, elapsed - waited), waited


def _read_waits() -> dict[str, int]:
    """Return the ns that each thread of this process waited for a processor; empty if unknown."""
    waits = {}
    for thread in Path("/proc/self/task").glob("*/schedstat"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            # columns of schedstat: ns on a processor, ns of waiting for one, time slices
            waits[thread.parent.name] = int(thread.read_text("ascii").split()[1])
    return waits


def _interquartile_mean(values: Sequence[float]) -> float:
    """Return the mean without the lowest and the highest quarter, so that outliers do not count."""
    ascending, quarter = sorted(values), len(values) // 4
    return statistics.fmean(ascending[quarter : len(values) - quarter])


@torch.inference_mode()
def _greedy_seconds(model: Transformer, length: int, precision: str) -> float:
    """Return the seconds of greedy search for a validation batch of sentences of this length."""
    device = next(model.parameters()).device
    prepared = prepare_for_inference(model, precision)
    sentences = max(1, BATCH_TOKENS // length)
    source = torch.full((sentences, length), BOS, device=device)  # any id takes the same time

    def search() -> None:
        cache = prepared.start(prepared.encode(source), source)
        for _ in range(length):
            logits = prepared.step(source[:, :1], cache)
            # a search normalises the logits: the result is not used, but takes time
            logits[:, 0].float().logsumexp(1)

    _, computing, _waited = _timed(device, search)
    return computing
