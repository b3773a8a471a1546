"""A few real steps of the real model on this machine, to tell how long the rest will take.

Nothing is written anywhere but into a folder that is gone afterwards.
"""

import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from nmt.config import Config
from nmt.data.tokens.token_store import TokenStore
from nmt.data.tokens.tokenizer import BOS, PAD
from nmt.device import pick_device, pick_precision, tune_memory, use_threads
from nmt.inference.prepare import packed
from nmt.model.transformer import Transformer
from nmt.run_directory import LoadedModel, RunDirectory
from nmt.training.layers import prepare_layers
from nmt.training.optimizer import update_weights
from nmt.training.schedule import learning_rate
from nmt.training.trainer import Trainer
from nmt.training.validation import BATCH_TOKENS

_WARM_UP = 2
"""steps that are not counted: memory and kernels are being prepared"""
_FEWEST, _MOST = 6, 40
_ENOUGH_SECONDS, _PATIENCE_SECONDS = 8.0, 40.0
"""of computing, and of waiting for it where others have the processor"""
_STEP_SECONDS = 3.0
"""a longer step is cut short and counted as often as it would take"""
_SMALLEST_STEP = 512
_INSTANT, _MOST_WAITING = 1e-6, 0.99
_BUSY = 0.1
"""share of the time that other processes may take before it is worth a word"""


@dataclass(frozen=True)
class Speed:
    """What was measured, in seconds that this process was not kept waiting by others."""

    device: str
    precision: str
    threads: int
    step_seconds: float
    """a whole step of the recipe"""
    target_tokens: float
    """a second, of such steps"""
    steps: int
    """that were taken"""
    step_tokens: int
    """what a step of the probe was allowed; less than the recipe's where that takes long"""
    waiting: float
    """share of the time in which other processes had the processor"""
    greedy_seconds: float
    """to translate one batch of a validation greedily"""
    forward_seconds: float
    """for the loss of such a batch"""
    peak_bytes: int
    """of memory on a GPU, 0 on a CPU"""

    @property
    def busy(self) -> bool:
        """Whether others took a good part of the machine."""
        return self.waiting > _BUSY


def probe(config: Config, store: TokenStore, vocabularies: tuple[int, int]) -> Speed:
    """Train a new model for some seconds; `vocabularies` are the sizes of source and target.

    Raises:
        NmtError: what would stand in the way of training as well.
    """
    device = pick_device(config.training.device)
    precision = pick_precision(config.training.precision, device)
    threads = use_threads(config.training.threads)
    tune_memory()
    torch.manual_seed(config.seed)
    model = Transformer(config.model, *vocabularies, PAD).to(device)
    prepare_layers(model, config.training)
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
    with TemporaryDirectory() as folder:
        tokens = _affordable(config, model, store, precision, folder)
        trainer = _trainer(config, model, store, precision, folder, tokens)
        try:
            steps = _take_steps(trainer)
        finally:
            trainer.gradients.release_process_group()
    scale = config.training.batch_tokens / tokens
    computing = _middle([step.computing for step in steps]) * scale
    step_seconds = computing + _middle([step.updating for step in steps])
    trained = sum(step.tokens for step in steps) / len(steps) * scale
    length = round(float(store.target.lengths.mean()))
    elapsed = sum(step.elapsed for step in steps)
    greedy = _greedy_seconds(model, max(length, 2), precision)
    return Speed(
        device=torch.cuda.get_device_name() if device.type == "cuda" else "cpu",
        precision=precision,
        threads=threads,
        step_seconds=step_seconds,
        target_tokens=trained / step_seconds,
        steps=len(steps),
        step_tokens=tokens,
        waiting=min(_MOST_WAITING, sum(step.waited for step in steps) / elapsed),
        greedy_seconds=greedy,
        forward_seconds=computing / 3 * BATCH_TOKENS / config.training.batch_tokens,
        peak_bytes=torch.cuda.max_memory_allocated() if device.type == "cuda" else 0,
    )


def _trainer(
    config: Config, model: Transformer, store: TokenStore, precision: str, folder: str, tokens: int
) -> Trainer:
    """The trainer of the recipe, with steps of so many tokens; it needs no tokenizer."""
    training = config.training.model_copy(update={"batch_tokens": tokens, "tensorboard": False})
    tokenizer = config.tokenizer.model_copy(update={"sampling": 0.0})
    smaller = config.model_copy(update={"training": training, "tokenizer": tokenizer})
    run = LoadedModel(smaller, None, model, Path(folder))  # type: ignore[arg-type]
    return Trainer(run, RunDirectory(folder), store, None, precision)  # type: ignore[arg-type]


def _affordable(
    config: Config, model: Transformer, store: TokenStore, precision: str, folder: str
) -> int:
    """Tokens of a step that does not take long, as a small one tells."""
    wanted = config.training.batch_tokens
    small = min(_SMALLEST_STEP, wanted)
    trainer = _trainer(config, model, store, precision, folder, small)
    try:
        # of a step of milliseconds, what was waited for is not known well enough to take all of it
        tried = [_one_step(trainer) for _ in range(2)]
        seconds = min(max(step.computing, step.elapsed / 10) for step in tried)
    finally:
        trainer.gradients.release_process_group()
    return max(small, min(wanted, int(small * _STEP_SECONDS / seconds)))


@dataclass(frozen=True)
class _Step:
    """Seconds of a step; what this process was kept waiting is taken off the first two."""

    computing: float
    updating: float
    elapsed: float
    waited: float
    tokens: int


def _take_steps(trainer: Trainer) -> Sequence[_Step]:
    steps: list[_Step] = []
    while len(steps) < _MOST + _WARM_UP:
        steps.append(_one_step(trainer))
        measured = steps[_WARM_UP:]
        elapsed = sum(step.elapsed for step in measured)
        own = elapsed - sum(step.waited for step in measured)
        if len(measured) >= _FEWEST and (own > _ENOUGH_SECONDS or elapsed > _PATIENCE_SECONDS):
            break
    return steps[_WARM_UP:]


def _one_step(trainer: Trainer) -> _Step:
    trainer.model.train()
    trainer.step += 1
    config, gradients = trainer.config, trainer.gradients
    start = _Clock()
    tokens = gradients.compute(trainer.step).tokens
    _wait_for(trainer.device)
    computed = _Clock()
    rate = learning_rate(trainer.step, config)
    update_weights(trainer.optimizers, tokens, rate, config.training.clip_norm)
    if trainer.moving_average:
        trainer.moving_average.update(trainer.step)
    _wait_for(trainer.device)
    end = _Clock()
    return _Step(
        computing=computed.own_since(start),
        updating=end.own_since(computed),
        elapsed=end.since(start),
        waited=end.waited_since(start),
        tokens=tokens,
    )


def _wait_for(device: torch.device) -> None:
    """Until a GPU has done what it was asked to."""
    if device.type == "cuda":
        torch.cuda.synchronize()


class _Clock:
    """The time, and how long each thread has been ready to run while others had the processor."""

    def __init__(self) -> None:
        self._time = time.perf_counter()
        self._waits: dict[str, int] = {}
        for thread in Path("/proc/self/task").glob("*/schedstat"):
            with contextlib.suppress(OSError, ValueError, IndexError):
                self._waits[thread.parent.name] = int(thread.read_text("ascii").split()[1])

    def since(self, earlier: "_Clock") -> float:
        """Seconds."""
        return self._time - earlier._time

    def waited_since(self, earlier: "_Clock") -> float:
        """Seconds that the thread which waited longest has waited; 0 where that is unknown."""
        waits = (wait - earlier._waits.get(name, 0) for name, wait in self._waits.items())
        return min(max(waits, default=0) / 1e9, self.since(earlier))

    def own_since(self, earlier: "_Clock") -> float:
        """Seconds without those, more than none."""
        return max(_INSTANT, self.since(earlier) - self.waited_since(earlier))


def _middle(values: Sequence[float]) -> float:
    """The mean of the middle half: neither a hiccup of the machine nor an odd step moves it far."""
    ordered, quarter = sorted(values), len(values) // 4
    middle = ordered[quarter : len(ordered) - quarter]
    return sum(middle) / len(middle)


@torch.inference_mode()
def _greedy_seconds(model: Transformer, length: int, precision: str) -> float:
    """To decode a batch of a validation token by token, all its sentences being of this length."""
    device = next(model.parameters()).device
    ready = packed(model, precision)
    rows = max(1, BATCH_TOKENS // length)
    source = torch.full((rows, length), BOS, device=device)
    start = _Clock()
    cache = ready.start(ready.encode(source), source)
    for _ in range(length):
        ready.step(source[:, :1], cache)[:, 0].float().logsumexp(1)
    _wait_for(device)
    return _Clock().own_since(start)
