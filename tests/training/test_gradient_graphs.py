"""Gradients that are replayed are those that are computed; on a CPU a tape stands in for graphs."""

import copy
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from nmt.cuda_recorder import Program, Recorder
from nmt.data.tokens.token_store import TokenStore
from nmt.training import gradient_graphs
from nmt.training.gradient_graphs import GradientGraphs
from nmt.training.loss import Objective
from tests.model.test_packed_attention import V, kernels_on_a_cpu, pairs
from tests.stand_in_models import small_transformer
from tests.tape_recorder import TapeRecorder

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
    return GradientGraphs(Objective(model, 0.1, "fp32"), recorder, BATCH_TOKENS)


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
    graphs = graphs_for(GradientTape())
    assert graphs.give_up()
    return steps(graphs, store)


def test_replayed_gradients_and_losses_are_those_of_batches_that_are_not(store: TokenStore) -> None:
    recorder = GradientTape()
    found = steps(graphs_for(recorder), store)
    assert (recorder.recorded, recorder.replayed) == (1, 4)
    torch.testing.assert_close(found, expected(store), rtol=0, atol=0)
    assert all(gradient.any() for _loss, gradients in found for gradient in gradients)


def test_further_shapes_are_computed_without_a_graph(
    store: TokenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gradient_graphs, "MAX_SHAPES", 0)
    recorder = GradientTape()
    found = steps(graphs_for(recorder), store)
    assert recorder.recorded == 0
    torch.testing.assert_close(found, expected(store), rtol=0, atol=0)


@pytest.mark.parametrize("error", [RuntimeError("no\nmore"), torch.OutOfMemoryError("no")])
def test_a_gpu_that_records_nothing_goes_on_without_and_warns_once(
    store: TokenStore, error: RuntimeError, recwarn: pytest.WarningsRecorder
) -> None:
    def failing(program: Program) -> Any:
        raise error

    graphs = graphs_for(failing)
    found = steps(graphs, store)
    (warning,) = recwarn.list
    assert "(no); training goes on without" in str(warning.message)
    assert not graphs.give_up()
    torch.testing.assert_close(found, expected(store), rtol=0, atol=0)
