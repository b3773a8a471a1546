"""Gradients that are replayed are those that are computed; on a CPU a tape stands in for graphs."""

import copy
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from nmt.data.tokens.token_store import TokenStore
from nmt.machine.cuda_recorder import Program, Recorder
from nmt.training import gradient_graphs, prepare
from nmt.training.gradient_graphs import GradientGraphs
from nmt.training.trainer import Trainer
from tests.kernels.test_packed_attention import V, kernels_on_a_cpu, pairs
from tests.stand_in_models import packing_objective, small_transformer
from tests.tape_recorder import TapeRecorder
from tests.training.runs import MakeTrainer
from tests.training.test_gradients import no_room_above

__all__ = ["kernels_on_a_cpu"]
pytestmark = pytest.mark.usefixtures("kernels_on_a_cpu")

BATCH_TOKENS = 256
ROWS = [[0, 1], [2, 3], [0, 3], [4], [1, 2], [0, 1]]
"""pairs of micro-batches: all but that of the fourth have the same shape"""


@pytest.fixture
def store() -> TokenStore:
    return pairs([9, 3, 9, 5, 20], [5, 6, 8, 4, 7])


class GradientTape(TapeRecorder):
    """As `CudaRecorder`, it computes nothing while it records."""

    parameters: list[torch.nn.Parameter]

    def __call__(self, program: Program) -> Program:
        random_state = torch.get_rng_state()
        before = [p.grad.clone() for p in self.parameters if p.grad is not None]
        replay = super().__call__(program)
        torch.set_rng_state(random_state)
        for parameter, gradient in zip(self.parameters, before, strict=True):
            assert parameter.grad is not None
            parameter.grad.copy_(gradient)
        return replay


def graphs_for(recorder: Recorder) -> GradientGraphs:
    torch.manual_seed(1)
    model = small_transformer(V, dropout=0.2).double().train()
    if isinstance(recorder, GradientTape):
        recorder.parameters = list(model.parameters())
    return GradientGraphs(packing_objective(model), recorder, BATCH_TOKENS)


def steps(graphs: GradientGraphs, store: TokenStore) -> list[tuple[Tensor, list[Tensor]]]:
    """The loss and the gradients of each step, of two micro-batches."""
    found = []
    for i in range(0, len(ROWS), 2):
        torch.manual_seed(i)
        graphs.begin_step(BATCH_TOKENS)
        losses = [graphs.add_gradients(store, np.array(rows)) for rows in ROWS[i : i + 2]]
        parameters = graphs._objective.parameters()
        found.append(
            (torch.stack(losses), [copy.deepcopy(p.grad) for p in parameters if p.grad is not None])
        )
        for parameter in graphs._objective.parameters():
            parameter.grad = None  # as the optimizer does
    return found


def expected(store: TokenStore) -> list[tuple[Tensor, list[Tensor]]]:
    """What is found without graphs."""

    def failing(program: Program) -> Any:
        raise RuntimeError("no")

    with pytest.warns(match="training goes on without CUDA graphs"):
        return steps(graphs_for(failing), store)


def test_replayed_gradients_and_losses_are_those_of_batches_that_are_not(store: TokenStore) -> None:
    recorder = GradientTape()
    found = steps(graphs_for(recorder), store)
    assert (recorder.recorded, recorder.replayed) == (1, 4)
    torch.testing.assert_close(found, expected(store), rtol=0, atol=0)
    assert all(gradient.any() for _loss, gradients in found for gradient in gradients)


def test_more_shapes_than_graphs_are_computed_without(
    store: TokenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gradient_graphs, "MAX_GRAPHS", 1)
    recorder = GradientTape()
    graphs = graphs_for(recorder)
    graphs.begin_step(BATCH_TOKENS)
    for rows in [[4], [0, 1], [0, 1], [4], [0, 1], [4]]:  # [4] is the first, but not the second
        graphs.add_gradients(store, np.array(rows))
    assert (recorder.recorded, recorder.replayed) == (1, 2)


def test_a_gpu_that_records_nothing_goes_on_without_and_warns_once(
    store: TokenStore, recwarn: pytest.WarningsRecorder
) -> None:
    def failing(program: Program) -> Any:
        raise torch.OutOfMemoryError("no\nmore")

    graphs = graphs_for(failing)
    steps(graphs, store)
    (warning,) = recwarn.list
    assert str(warning.message) == "training goes on without CUDA graphs, slower: no"
    assert not graphs.drop_all("")


def test_a_graph_keeps_the_table_of_positions_when_the_model_needs_a_longer_one(
    store: TokenStore,
) -> None:
    graphs = graphs_for(lambda program: lambda: None)  # as a graph, it holds no tensors
    graphs.begin_step(BATCH_TOKENS)
    for _ in range(2):
        graphs.add_gradients(store, np.array([0, 1]))
    positions = graphs._objective.model.positions
    recorded = weakref.ref(positions.table)
    positions(torch.zeros(1, 600, positions.table.shape[1]))
    assert recorded() is not None and len(positions.table) > 600


@pytest.fixture
def make_trainer(
    small_trainer: MakeTrainer, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[Recorder], Trainer]]:
    """A function of the recorder that gives a trainer with graphs, in float64."""

    def made(recorder: Recorder) -> Trainer:
        monkeypatch.setattr(prepare, "ON_CPU", prepare.PACKED)
        trainer = small_trainer(dropout=0.1, micro_batch_tokens=600)
        computer = trainer.gradient_computer
        objective = computer._objective
        objective.storage = "packed"
        if isinstance(recorder, GradientTape):
            recorder.parameters = list(objective.parameters())
        tokens = trainer.config.training.batch_tokens
        computer._graphs = GradientGraphs(objective, recorder, tokens)
        return trainer

    torch.set_default_dtype(torch.float64)
    yield made
    torch.set_default_dtype(torch.float32)


def weights_after(trainer: Trainer, count: int = 12) -> list[Tensor]:
    """All weights after so many steps."""
    for _ in range(count):
        trainer.stepper.take()
    return [parameter.detach().clone() for parameter in trainer.model.parameters()]


def never(program: Program) -> Any:
    raise RuntimeError("not now")


@pytest.mark.filterwarnings("ignore:training goes on without")
def test_a_run_by_graphs_is_that_without_also_when_memory_runs_out(
    make_trainer: Callable[[Recorder], Trainer],
) -> None:
    wanted = weights_after(make_trainer(never))
    recorder = GradientTape()
    found = weights_after(make_trainer(recorder))
    assert recorder.replayed > 5
    torch.testing.assert_close(found, wanted, rtol=0, atol=0)

    class FailsAtReplay(GradientTape):
        def __call__(self, program: Program) -> Program:
            replay = super().__call__(program)

            def failing() -> None:
                if self.replayed == 3:
                    raise torch.OutOfMemoryError("CUDA out of memory")
                replay()

            return failing

    failing = FailsAtReplay()
    trainer = make_trainer(failing)
    torch.testing.assert_close(weights_after(trainer), wanted, rtol=0, atol=0)
    assert failing.replayed == 3
    assert not trainer.gradient_computer.micro_batch_size.halved


def test_memory_that_runs_out_before_there_is_a_graph_halves_the_micro_batches(
    make_trainer: Callable[[Recorder], Trainer], monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = GradientTape()
    trainer = make_trainer(recorder)
    no_room_above(200, monkeypatch)
    weights_after(trainer)
    assert trainer.gradient_computer.micro_batch_size.halved
    assert recorder.replayed > 5
