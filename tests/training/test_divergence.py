"""A divergent step changes nothing, whenever its result is read."""

import math
import random
import signal
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from nmt.config import Config, ModelConfig, TokenizerConfig, TrainingConfig
from nmt.data.tokens.token_store import TokenStore
from nmt.data.tokens.tokenizer import EOS
from nmt.errors import DivergedError, StoppedBySignal
from nmt.model.layout import PADDED
from nmt.training import loss as loss_module
from nmt.training import step as step_module
from nmt.training.divergence import CheckResult, DivergenceDetector
from nmt.training.gradients import GradientComputer, StepGradient
from nmt.training.layers import prepare_layers
from nmt.training.optimizer import update_weights
from nmt.training.step import Stepper
from nmt.training.train import train
from nmt.training.trainer import Trainer
from tests.training.runs import Recipe, contents, quiet

exactly = partial(torch.testing.assert_close, rtol=0, atol=0)
V = 16


def judged(
    divergence: DivergenceDetector, loss: float, tokens: int = 10, norm: float = 1.0
) -> CheckResult:
    number = torch.tensor(loss, dtype=torch.float64)
    return divergence.check(number, tokens, torch.tensor(norm)).read()


def divergence(largest_spike: float | None = None) -> DivergenceDetector:
    return DivergenceDetector(torch.device("cpu"), largest_spike)


@pytest.mark.parametrize(
    ("loss", "norm", "problem"),
    [
        (math.nan, 1.0, "the loss is nan"),
        (math.inf, 1.0, "the loss is inf"),
        (20.0, math.nan, "the norm of the gradient is nan"),
        (20.0, math.inf, "the norm of the gradient is inf"),
        (20.1 + 30.0, 1.0, "the loss is 5.01 nats/token (running mean: 2.00)"),
    ],
)
def test_nan_infinity_and_a_spike_of_the_loss_are_rejected(
    loss: float, norm: float, problem: str
) -> None:
    watching = divergence(largest_spike=3.0)
    assert not judged(watching, 20.0).rejected
    found = judged(watching, loss, norm=norm)
    assert found.rejected and found.problem() == problem
    assert watching.running_loss == 2.0


def test_a_spike_is_allowed_without_a_limit_and_in_the_first_step() -> None:
    assert not judged(divergence(largest_spike=0.1), 1e6).rejected
    careless = divergence()
    assert not any(judged(careless, loss).rejected for loss in (20.0, 1e9))


def test_all_steps_after_a_divergent_one_are_rejected_until_reset() -> None:
    watching = divergence()
    assert [judged(watching, loss).rejected for loss in (20.0, math.nan, 20.0)] == [0, 1, 1]
    watching.reset(2.0)
    assert not judged(watching, 20.0).rejected


def test_the_running_loss_follows_slowly() -> None:
    watching = divergence()
    assert watching.running_loss is None
    expected = None
    for loss in (51.3, 48.7, 49.9, 30.1):
        judged(watching, loss, tokens=7)
        per_token = loss / 7
        expected = per_token if expected is None else expected + 0.02 * (per_token - expected)
        assert watching.running_loss == expected


@pytest.fixture
def late(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read the result of each step when the next one is taken, as on a GPU."""
    monkeypatch.setattr(step_module, "is_synchronous", lambda device: False)


def spoil(step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the loss of a step be no number, and its gradient with it."""
    original = GradientComputer.compute

    def compute(self: GradientComputer, number: int) -> StepGradient:
        gradient = original(self, number)
        if number == step:
            for parameter in self._run.model.parameters():
                assert parameter.grad is not None
                parameter.grad.mul_(math.nan)
            gradient.loss.mul_(math.nan)
        return gradient

    monkeypatch.setattr(GradientComputer, "compute", compute)


@pytest.fixture
def trainer(make_trainer: Callable[..., Trainer]) -> Callable[..., Trainer]:
    draw = random.Random(1)
    rows = [[*draw.choices(range(4, V), k=draw.randint(1, 6)), EOS] for _ in range(300)]
    sizes: dict[str, Any] = {
        "d_model": 16,
        "heads": 2,
        "d_ff": 32,
        "encoder_layers": 2,
        "decoder_layers": 2,
    }

    def made(**training: Any) -> Trainer:
        config = Config(
            tokenizer=TokenizerConfig(vocabulary_size=V),
            model=ModelConfig(**sizes),
            training=TrainingConfig(**{"batch_tokens": 300, "device": "cpu", **training}),
        )
        return make_trainer(config, TokenStore.of(rows, rows), V, Names())

    return made


class Names:
    """Any text for any ids."""

    def __init__(self) -> None:
        self.target = self

    def decode(self, rows: Sequence[Sequence[int]]) -> list[str]:
        return ["text" for _ in rows]


@pytest.mark.usefixtures("late")
@pytest.mark.parametrize("optimizer", ["adam", "muon"])
def test_a_step_rejected_late_and_the_one_begun_meanwhile_change_nothing(
    trainer: Callable[..., Trainer], monkeypatch: pytest.MonkeyPatch, optimizer: str
) -> None:
    spoil(4, monkeypatch)
    kept, diverged = (
        trainer(optimizer=optimizer, weight_decay=0.1, clip_norm=1.0, warmup_steps=2)
        for _ in range(2)
    )
    for _ in range(3):
        kept.stepper.take()
    for _ in range(4):
        diverged.stepper.take()
    with pytest.raises(DivergedError, match=r"step 4: the loss is nan for \d+ pairs .* 'text'"):
        diverged.stepper.take()
    assert diverged.state.step == 4
    exactly(kept.model.state_dict(), diverged.model.state_dict())
    for one, other in zip(kept.state.optimizers, diverged.state.optimizers, strict=True):
        exactly(one.state_dict()["state"], other.state_dict()["state"])


@pytest.mark.parametrize("diverges", [False, True])
@pytest.mark.parametrize("optimizer", ["adam", "muon"])
def test_a_run_is_the_same_whenever_the_results_of_its_steps_are_read(
    recipe: Recipe,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    optimizer: str,
    diverges: bool,
) -> None:
    config = recipe(
        "training.on_divergence=roll_back",
        f"training.optimizer={optimizer}",
        "training.weight_decay=0.1",
        "training.moving_average=0.9",
        "training.log_every=3",
    )
    if diverges:
        spoil(7, monkeypatch)
    said: dict[str, list[str]] = {"at once": [], "late": []}
    at_once = train(config, tmp_path / "at once", said["at once"].append)
    monkeypatch.setattr(step_module, "is_synchronous", lambda device: False)
    late = train(config, tmp_path / "late", said["late"].append)
    assert contents(at_once) == contents(late)
    refusals = [
        [line for line in lines if "step 7: the loss is nan" in line] for lines in said.values()
    ]
    assert refusals[0] == refusals[1] and len(refusals[0]) == diverges


@pytest.mark.usefixtures("late")
def test_a_stop_waits_for_the_pending_step(
    recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = train(recipe(), tmp_path / "whole", quiet)
    original = update_weights

    def update(*arguments: Any) -> None:
        original(*arguments)
        if not stopped:
            stopped.append(1)
            signal.raise_signal(signal.SIGTERM)

    stopped: list[int] = []
    monkeypatch.setattr(step_module, "update_weights", update)
    with pytest.raises(StoppedBySignal, match="after step 1;"):
        train(recipe(), tmp_path / "parts", quiet)
    parts = train(recipe(), tmp_path / "parts", quiet)
    assert contents(parts) == contents(whole)


class ValueReads(TorchDispatchMode):
    """Notes each line that reads the value of a tensor, for which Python would wait for a GPU."""

    ASKING = ("local_scalar", "nonzero", "aten.equal", "masked_select", "unique", "repeat_interl")

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.asked: set[str] = set()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        places = args[1] if "index" in str(func) and len(args) > 1 else []
        booleans = isinstance(places, list) and any(
            p is not None and p.dtype == torch.bool for p in places
        )
        if booleans or any(name in str(func) for name in self.ASKING):
            self.note()
        return func(*args, **(kwargs or {}))

    def note(self) -> None:
        """The line of the toolkit that asks, or of PyTorch where it is none."""
        frames = traceback.extract_stack()[:-2]
        own = [frame for frame in frames if "/nmt/" in frame.filename]
        self.asked.add((own or frames)[-1].line or "")


@pytest.mark.usefixtures("late")
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("settings", [{}, {"activation_checkpointing": True}])
@pytest.mark.parametrize("optimizer", ["adam", "muon"])
def test_nothing_in_a_step_asks_for_the_value_of_a_tensor(
    trainer: Callable[..., Trainer],
    monkeypatch: pytest.MonkeyPatch,
    optimizer: str,
    settings: dict[str, Any],
    precision: str,
) -> None:
    monkeypatch.setattr(loss_module, "UnpaddedLayout", lambda ids, padding: PADDED)  # as on a GPU
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    tried = trainer(
        optimizer=optimizer,
        weight_decay=0.1,
        clip_norm=1.0,
        moving_average=0.9,
        largest_spike=5.0,
        micro_batch_tokens=100,
        **settings,
    )
    prepare_layers(tried.model, tried.config.training)
    tried.gradients._objective.precision = precision
    tried.stepper.take()
    monkeypatch.setattr(Stepper, "_finish_step", lambda self, step: None)
    with ValueReads() as reads:
        for name in ("tolist", "numpy", "cpu"):
            monkeypatch.setattr(Tensor, name, noting(getattr(Tensor, name), reads))
        tried.stepper.take()
    # the loss asks a CPU alone whether it may save itself a product
    (line,) = reads.asked
    assert line.startswith("if grad_total.is_cuda or ")


def noting(method: Callable[..., Any], reads: ValueReads) -> Callable[..., Any]:
    def noted(*arguments: Any) -> Any:
        reads.note()
        return method(*arguments)

    return noted


@pytest.mark.parametrize(
    "question",
    [
        lambda x: x.sum().item(),
        lambda x: float(x.sum()),
        lambda x: bool(x.sum() > 0),
        lambda x: x[x > 0],
        lambda x: x.nonzero(),
    ],
)
def test_reads_of_values_are_noticed(question: Callable[[Tensor], object]) -> None:
    with ValueReads() as reads:
        question(torch.ones(3))
    assert len(reads.asked) == 1


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("optimizer", ["adam", "muon"])
def test_no_step_waits_for_a_gpu(
    trainer: Callable[..., Trainer], optimizer: str, precision: str
) -> None:
    tried = trainer(device="cuda", optimizer=optimizer, clip_norm=1.0, moving_average=0.9)
    tried.gradients._objective.precision = precision
    for _ in range(3):
        tried.stepper.take()
    torch.cuda.set_sync_debug_mode("error")
    try:
        for _ in range(3):
            tried.stepper.take()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    tried.stepper.synchronize()
