"""The gradient of a micro-batch on a GPU, recorded once as a CUDA graph for each shape.

A step of the base model is about 1,200 kernels, and Python takes longer to launch them than a GPU
to compute 25,000 tokens. A graph launches them all at once, with two limits. It reads and writes
fixed addresses: so gradients are added up in tensors that stay, and each batch is copied into the
one that was recorded. And it has one shape: so packed batches are filled up to one of a few sizes.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from nmt.data.tokens.batch import PackedBatch, pack
from nmt.data.tokens.token_store import Indices, TokenStore
from nmt.machine.cuda_recorder import Program, Recorder, warn_without_graphs
from nmt.machine.device import release_free_memory
from nmt.run.checkpoint import trained_parameters
from nmt.training.loss import Objective

SIZES = 16
"""Each side of a batch is filled up to a multiple of 1/16 of a full micro-batch. Filling is then
2.8 % of what is computed, and the batches of 25,000 tokens of a text have some seventy shapes; with
8 instead of 16 it is 4.8 %, and forty."""
_LARGEST_SIZE = 65 / 64
"""of a side, in full micro-batches: more than 1, because filling a target needs source tokens"""
MAX_GRAPHS = 256
"""batches of further shapes are computed without a graph, because each graph takes memory"""


@dataclass(frozen=True)
class _GradientGraph:
    """A graph, and the memory that it reads and writes."""

    batch: PackedBatch
    buffers: list[Tensor]
    """the buffers of the model: kept, because the table of positions is replaced when it grows"""
    loss: Tensor
    """scalar"""
    replay: Program
    """adds the gradients of `batch` to those of `GradientGraphs` and overwrites `loss`"""


class GradientGraphs:
    """Computes loss and gradients of packed batches, from the second one of a shape on by a graph.

    Graphs and the kernels that they replace compute the same. If a graph cannot be recorded, or
    memory runs out, there are no graphs any more, and training goes on without.
    """

    def __init__(self, objective: Objective, recorder: Recorder, step_tokens: int) -> None:
        """The weights of `objective`, which packs, keep their addresses.

        `step_tokens` is training.batch_tokens of the recipe.
        """
        self._objective, self._recorder, self._step_tokens = objective, recorder, step_tokens
        self._parameters = list(trained_parameters(objective.model).values())
        self._gradients = [torch.zeros_like(p) for p in self._parameters]
        """the sums of a step, which are each `Parameter.grad` until the optimizer deletes these"""
        self._graphs: dict[tuple[int, ...], _GradientGraph] = {}
        """by the shape of the batch"""
        self._seen: set[tuple[int, ...]] = set()
        """shapes that have occurred"""
        self._may_record = True
        self._multiple = 1
        """the tokens of each side are filled up to a multiple of this"""

    def begin_step(self, tokens: int) -> None:
        """Set all gradients to zero, and make them `Parameter.grad`.

        `tokens` is the most that a side of a micro-batch of this step may have.
        """
        full = min(tokens, self._step_tokens)
        self._multiple = math.ceil(full * _LARGEST_SIZE / SIZES)
        torch._foreach_zero_(self._gradients)
        for parameter, gradient in zip(self._parameters, self._gradients, strict=True):
            parameter.grad = gradient

    def add_gradients(self, store: TokenStore, rows: Indices) -> Tensor:
        """Add the gradients of the pairs at `rows` of `store` to `Parameter.grad`.

        Returns their loss: scalar, in nats.
        """
        # filled up even if nothing is recorded: dropout masks depend on the shape
        batch = pack(store, rows, self._objective.device, self._multiple)
        graph = self._graph(batch)
        if graph is None:
            return self._compute(batch)
        if batch is not graph.batch:
            torch._foreach_copy_(graph.batch.tensors(), batch.tensors())
        graph.replay()
        return graph.loss.clone()  # the next batch of the shape overwrites it

    def drop_all(self, reason: str) -> bool:
        """Drop all graphs, record no more and warn; return False if there were none to drop."""
        if not self._graphs:
            return False
        self._give_up(reason)
        return True

    def _give_up(self, reason: str) -> None:
        """Drop all graphs, record no more, and warn with the reason."""
        self._may_record = False
        self._graphs.clear()
        warn_without_graphs("training", reason)

    def _graph(self, batch: PackedBatch) -> _GradientGraph | None:
        """Return the graph of the batch's shape, recorded now if it is the second batch; or None.

        The first batch of a shape is computed without, because kernels are compiled then.
        """
        shape = batch.shape
        if shape in self._graphs:
            return self._graphs[shape]
        is_first = shape not in self._seen
        self._seen.add(shape)
        if is_first or not self._may_record or len(self._graphs) >= MAX_GRAPHS:
            return None
        return self._record(batch)

    def _compute(self, batch: PackedBatch) -> Tensor:
        """Add the gradients kernel by kernel; return the loss."""
        loss: Tensor = self._objective(batch).total
        # the weights of the model itself, which the objective shares
        gradients = torch.autograd.grad(loss, self._parameters)
        torch._foreach_add_(self._gradients, gradients)  # few kernels instead of one for each
        return loss.detach()

    def _record(self, batch: PackedBatch) -> _GradientGraph | None:
        """Return the graph of a batch, whose tensors become those that it reads; None: give up."""
        loss = torch.zeros((), device=self._objective.device)
        release_free_memory(loss.device)  # graphs have memory of their own

        def program() -> None:
            loss.copy_(self._compute(batch))

        try:
            replay = self._recorder(program)
        except RuntimeError as error:
            self._give_up(str(error))
            return None
        graph = _GradientGraph(batch, list(self._objective.buffers()), loss, replay)
        self._graphs[batch.shape] = graph
        return graph
