"""A divergent step changes nothing, whenever its result is read."""

import math
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

import nmt
from nmt.errors import DivergedError
from nmt.training import step as step_module
from nmt.training.divergence import DivergenceDetector
from nmt.training.step import Stepper
from nmt.training.train import train
from tests.training.runs import (
    Diverge,
    MakeTrainer,
    Recipe,
    Trained,
    assert_same_run,
    contents,
    interrupted,
    quiet,
    stop,
)

exactly = partial(torch.testing.assert_close, rtol=0, atol=0)
LATE = (step_module, "is_synchronous", lambda device: False)
"""what reads the result of each step when the next one is taken, as on a GPU"""


def problem(
    divergence: DivergenceDetector, loss: float, tokens: int = 10, norm: float = 1.0
) -> str | None:
    """What the check of a step of this summed loss says."""
    number = torch.tensor(loss, dtype=torch.float64)
    found, reason = divergence.check(number, tokens, torch.tensor(norm)).read()
    assert found == pytest.approx(loss, nan_ok=True)
    return reason


def divergence(largest_spike: float | None = None) -> DivergenceDetector:
    return DivergenceDetector(torch.device("cpu"), largest_spike)


@pytest.mark.parametrize(
    ("loss", "norm", "expected"),
    [
        (math.nan, 1.0, "the loss is nan"),
        (math.inf, 1.0, "the loss is inf"),
        (20.0, math.nan, "the norm of the gradient is nan"),
        (20.0, math.inf, "the norm of the gradient is inf"),
        (20.1 + 30.0, 1.0, "the loss is 5.01 nats/token (running mean: 2.00)"),
    ],
)
def test_nan_infinity_and_a_spike_of_the_loss_are_rejected_and_all_later_steps_until_reset(
    loss: float, norm: float, expected: str
) -> None:
    watching = divergence(largest_spike=3.0)
    assert problem(watching, 20.0) is None
    assert problem(watching, loss, norm=norm) == expected
    assert watching.running_loss == 2.0
    assert problem(watching, 20.0)
    watching.reset(2.0)
    assert problem(watching, 20.0) is None


def test_a_spike_is_allowed_without_a_limit_and_in_the_first_step() -> None:
    assert problem(divergence(largest_spike=0.1), 1e6) is None
    careless = divergence()
    assert [problem(careless, loss) for loss in (20.0, 1e9)] == [None, None]


def test_the_running_loss_follows_slowly() -> None:
    watching = divergence()
    assert watching.running_loss is None
    expected = 51.3 / 7
    for loss in (51.3, 48.7, 49.9, 30.1):
        problem(watching, loss, tokens=7)
        expected += 0.02 * (loss / 7 - expected)
        assert watching.running_loss == expected


@pytest.mark.parametrize(
    ("name", "spoil_weight", "message"),
    [
        # the pairs of the micro-batch at fault, or of the whole step
        (
            "decoder.layers.0.feed_forward.outer.bias",
            lambda w: w.fill_(math.nan),
            r"loss is nan for [12]?\d pairs",
        ),
        ("target_embedding.weight", lambda w: w[7].fill_(math.inf), r"loss is .* [12]?\d pairs"),
        ("target_embedding.weight", lambda w: w.mul_(20), r"loss is [\d.]+ nats/.* [4-9]\d pairs"),
        (
            "target_embedding.weight",
            lambda w: w.register_hook(lambda gradient: gradient * math.inf),
            r"norm of the gradient is (nan|inf) for [4-9]\d pairs",
        ),
    ],
)
def test_a_divergent_step_names_its_pairs_and_changes_nothing(
    small_trainer: MakeTrainer, name: str, spoil_weight: Callable[[Tensor], object], message: str
) -> None:
    diverged = small_trainer(micro_batch_tokens=40, largest_spike=0.5)
    for _ in range(5):
        diverged.stepper.take()
    with torch.no_grad():
        spoil_weight(diverged.model.get_parameter(name))
    before = [parameter.clone() for parameter in diverged.model.parameters()]
    with pytest.raises(DivergedError, match=rf"step 6: the {message} .* 'w\d+ "):
        diverged.stepper.take()
    exactly(list(diverged.model.parameters()), before, equal_nan=True)


@pytest.mark.parametrize("optimizer", ["adam", "muon"])
def test_a_step_rejected_late_and_the_one_begun_meanwhile_change_nothing(
    small_trainer: MakeTrainer, monkeypatch: pytest.MonkeyPatch, diverge: Diverge, optimizer: str
) -> None:
    monkeypatch.setattr(*LATE)
    diverge(4)
    settings = {"weight_decay": 0.1, "clip_norm": 1.0, "warmup_steps": 2}
    kept, diverged = (small_trainer(optimizer=optimizer, **settings) for _ in range(2))
    for _ in range(3):
        kept.stepper.take()
    for _ in range(4):
        diverged.stepper.take()
    with pytest.raises(DivergedError, match=r"step 4: the loss is nan for \d+ pairs .* 'w\d+ "):
        diverged.stepper.take()
    assert diverged.state.step == 4
    exactly(kept.model.state_dict(), diverged.model.state_dict())
    for one, other in zip(kept.state.optimizers, diverged.state.optimizers, strict=True):
        exactly(one.state_dict()["state"], other.state_dict()["state"])


@pytest.mark.parametrize("optimizer", ["adam", "muon"])
def test_a_run_that_rolls_back_is_the_same_whenever_the_results_of_its_steps_are_read(
    recipe: Recipe,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    diverge: Diverge,
    optimizer: str,
) -> None:
    config = recipe(
        "training.on_divergence=roll_back",
        f"training.optimizer={optimizer}",
        "training.weight_decay=0.1",
        "training.moving_average=0.9",
        "training.log_every=3",
    )
    diverge(7)
    said: list[str] = []
    at_once = contents(train(config, tmp_path / "at-once", said.append))
    monkeypatch.setattr(*LATE)
    assert contents(train(config, tmp_path / "late", said.append)) == at_once
    one, other = (line for line in said if "step 7: the loss is nan" in line)
    assert one == other


def test_a_stop_waits_for_the_pending_step(
    recipe: Recipe, trained: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(*LATE)
    assert "after step 1;" in str(interrupted(recipe(), tmp_path / "run", 1, stop))
    train(recipe(), tmp_path / "run", quiet)
    assert_same_run(tmp_path / "run", trained())


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
        """Note the line of the toolkit that asks, or of PyTorch if there is none."""
        frames = traceback.extract_stack()[:-2]
        package = str(Path(nmt.__file__).parent)  # the project's folder may have the same name
        own = [frame for frame in frames if frame.filename.startswith(f"{package}/")]
        self.asked.add((own or frames)[-1].line or "")


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("activation_checkpointing", [False, True])
@pytest.mark.parametrize("optimizer", ["adam", "muon"])
def test_nothing_in_a_step_asks_for_the_value_of_a_tensor(
    small_trainer: MakeTrainer,
    monkeypatch: pytest.MonkeyPatch,
    optimizer: str,
    activation_checkpointing: bool,
    precision: str,
) -> None:
    monkeypatch.setattr(*LATE)
    tried = small_trainer(
        dropout=0.1,
        optimizer=optimizer,
        weight_decay=0.1,
        clip_norm=1.0,
        moving_average=0.9,
        largest_spike=5.0,
        micro_batch_tokens=100,
        activation_checkpointing=activation_checkpointing,
    )
    objective = tried.gradient_computer._objective
    objective.precision, objective.storage = precision, "padded"  # as on a GPU
    tried.stepper.take()
    monkeypatch.setattr(Stepper, "synchronize", lambda self: None)
    with ValueReads() as reads:
        for name in ("tolist", "numpy", "cpu"):
            monkeypatch.setattr(Tensor, name, lambda *arguments: reads.note())
        tried.stepper.take()
    # the loss asks a CPU alone whether it may save itself a product
    (line,) = reads.asked
    assert line.startswith("if not grad_total.is_cpu or ")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
@pytest.mark.filterwarnings("ignore")  # of what PyTorch itself imports in the first steps
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("optimizer", ["adam", "muon"])
def test_no_step_waits_for_a_gpu(
    small_trainer: MakeTrainer, optimizer: str, precision: str
) -> None:
    tried = small_trainer(device="cuda", optimizer=optimizer, clip_norm=1.0, moving_average=0.9)
    tried.gradient_computer._objective.precision = precision
    for _ in range(3):
        tried.stepper.take()
    torch.cuda.set_sync_debug_mode("error")
    try:
        for _ in range(3):
            tried.stepper.take()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    tried.stepper.synchronize()
