"""The gradient of a micro-batch on a GPU, recorded once as a CUDA graph for each shape.

A step of the base model is about 1,200 kernels, and Python takes longer to launch them than a GPU
to compute 25,000 tokens. A graph launches them all at once, with two limits. It reads and writes
fixed addresses: so gradients are added up in tensors that stay, and each batch is copied into the
one that was recorded. And it has one shape: so packed batches are filled up to one of a few sizes.
"""

import math
import warnings
from dataclasses import dataclass

import torch
from torch import Tensor

from nmt.config import Config
from nmt.cuda_recorder import CudaRecorder, Program, Recorder
from nmt.data.tokens.packing import PackedBatch, pack
from nmt.data.tokens.token_store import Indices, TokenStore
from nmt.device import release_free_memory
from nmt.training.loss import Objective

SIZES = 16
"""A side is filled up to a multiple of about this fraction of a full micro-batch. The batches of
25,000 tokens of a text then have some seventy shapes, and 2.8 % of what is computed is filling;
with 8 instead of 16 forty shapes and 4.8 %."""
_ROOM = 65 / 64
"""so much more than a full micro-batch is its largest size, since filling it takes some tokens"""
MAX_SHAPES = 256
"""most graphs; batches of further shapes are computed without one, because each takes memory"""


@dataclass(frozen=True)
class _RecordedBatch:
    """A graph, and the memory that it reads and writes."""

    batch: PackedBatch
    loss: Tensor
    """scalar"""
    replay: Program
    """adds the gradients of `batch` to `Parameter.grad` and overwrites `loss`"""


class GradientGraphs:
    """Computes loss and gradients of packed batches, from the second one of a shape on by a graph.

    Graphs and the kernels that they replace compute the same. If a graph cannot be recorded, or
    memory becomes scarce, `give_up` drops all of them, and training goes on without.
    """

    def __init__(self, objective: Objective, recorder: Recorder, batch_tokens: int) -> None:
        """The objective's weights must keep their addresses; `batch_tokens` is the recipe's."""
        self._objective, self._recorder, self._batch_tokens = objective, recorder, batch_tokens
        self._parameters = [p for p in objective.parameters() if p.requires_grad]
        self._gradients = [torch.zeros_like(p) for p in self._parameters]
        """the memory of each `Parameter.grad`"""
        self._recorded: dict[tuple[int, ...], _RecordedBatch | None] = {}
        """by shape: the graph; None: the shape occurred only once so far"""
        self._may_record = True
        self._multiple = 1
        """of which the tokens of a filled side are a multiple"""

    @classmethod
    def of(cls, objective: Objective, config: Config, processes: int) -> "GradientGraphs | None":
        """Return the graphs of an objective, or None if its gradients cannot be recorded.

        Only packed batches can be filled up. Activation checkpointing, and averaging the gradients
        of several processes, are not recorded.
        """
        if not objective.packs or config.training.activation_checkpointing or processes > 1:
            return None
        recorder = CudaRecorder(objective.device)
        return cls(objective, recorder, config.training.batch_tokens)

    def begin_step(self, tokens: int) -> None:
        """Set all gradients to zero, at the addresses that graphs know.

        `tokens` is the most that a side of a micro-batch of this step may have.
        """
        self._multiple = math.ceil(min(tokens, self._batch_tokens) * _ROOM / SIZES)
        torch._foreach_zero_(self._gradients)
        for parameter, gradient in zip(self._parameters, self._gradients, strict=True):
            parameter.grad = gradient

    def add_gradients(self, store: TokenStore, rows: Indices) -> Tensor:
        """Add the gradients of the pairs at `rows` of `store` to `Parameter.grad`.

        Returns their loss: scalar, in nats.
        """
        batch = pack(store, rows, self._objective.device, self._multiple)
        recorded = self._graph(batch)
        if recorded is None:
            return self._compute(batch)
        if batch is not recorded.batch:
            torch._foreach_copy_(recorded.batch.tensors(), batch.tensors())
        recorded.replay()
        return recorded.loss.clone()  # the next batch of the shape overwrites it

    def give_up(self) -> bool:
        """Drop all graphs and record no more; return whether graphs were recorded until now."""
        was_recording, self._may_record = self._may_record, False
        self._recorded.clear()
        return was_recording

    def _graph(self, batch: PackedBatch) -> _RecordedBatch | None:
        """Return the graph of the batch's shape, if there is one; the second batch is recorded.

        The first batch of a shape is computed without, because kernels are compiled then.
        """
        shape = batch.shape
        is_second = shape in self._recorded and self._recorded[shape] is None
        if is_second and self._may_record:
            self._recorded[shape] = self._record(batch)
        elif len(self._recorded) < MAX_SHAPES:
            self._recorded.setdefault(shape, None)
        return self._recorded.get(shape)

    def _compute(self, batch: PackedBatch) -> Tensor:
        """Add the gradients kernel by kernel; return the loss."""
        loss: Tensor = self._objective(batch).total
        gradients = torch.autograd.grad(loss, self._parameters)
        torch._foreach_add_(self._gradients, gradients)  # few kernels instead of one for each
        return loss.detach()

    def _record(self, batch: PackedBatch) -> _RecordedBatch | None:
        """Return the graph of a batch, whose tensors become those that it reads; None: give up."""
        loss = torch.zeros((), device=self._objective.device)
        release_free_memory(loss.device)  # graphs have memory of their own

        def program() -> None:
            loss.copy_(self._compute(batch))

        try:
            return _RecordedBatch(batch, loss, self._recorder(program))
        except RuntimeError as error:
            self.give_up()
            reason = str(error).strip().split("\n")[0]
            warnings.warn(
                f"this GPU records no CUDA graphs ({reason}); training goes on without, slower",
                stacklevel=2,
            )
            return None
