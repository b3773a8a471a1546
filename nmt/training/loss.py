"""Section 5.4: cross-entropy with label smoothing, summed over the tokens of a batch."""

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from nmt.data.tokens.batch import Batch, PackedBatch, collate, pack
from nmt.data.tokens.token_store import Indices, TokenStore
from nmt.data.tokens.tokenizer import PAD
from nmt.errors import ConfigError
from nmt.kernels.linear import weight_gradient
from nmt.kernels.rows import decoder_output, without_padding
from nmt.machine.device import autocast, hardware_kind
from nmt.model.attention import AttentionRecord
from nmt.model.transformer import Transformer
from nmt.training.guided_alignment import GuidedHead

SOFTMAX_ROWS = {"cpu": 64, "cuda": 2048}
"""positions whose softmax is computed at once: on a CPU they fit into the level-2 cache for common
sizes of the vocabulary, on a GPU they use all of its cores"""
PAD_MULTIPLE = {"cpu": 1, "cuda": 8}
"""rows are padded to multiples of this: a GPU is fastest on multiples of 8 and on few shapes"""
PROJECTION_ROWS = {"cpu": 1024, "cuda": 4096}
"""positions whose logits are in memory at once: enough for a fast matrix product"""
MAX_LOGITS = {"cpu": 1 << 26, "cuda": 1 << 30}
"""logits that are in memory at once, so fewer positions with a vocabulary of many languages"""

LossFunction = Callable[..., tuple[Tensor, Tensor]]
"""a function with the arguments and results of `loss_and_gradient`"""


@dataclass(frozen=True)
class Loss:
    """Loss in nats: the sum, not the mean, over the real target tokens of a batch."""

    total: Tensor
    """what training minimises, the smoothed cross-entropy, and with guided alignment that of its
    head: scalar, differentiable"""
    cross_entropy: Tensor
    """-log p of the target tokens, without smoothing: scalar, not differentiable"""
    terms: Mapping[str, Tensor] = field(default_factory=dict)
    """what `plus` has added to `total`, by name, without its weight: scalars, not differentiable;
    metrics.jsonl has each, per target token"""

    @classmethod
    def of_logits(cls, logits: Tensor, target: Tensor, smoothing: float = 0.0) -> Self:
        """Return the label-smoothed loss of logits (B, T, V) for ids (B, T); PAD adds nothing.

        It is that of `loss_and_gradient`, which training computes faster, without all logits in
        memory at once.
        """
        log_p = torch.log_softmax(logits.float(), -1)
        log_p_target = log_p.gather(-1, target[..., None])[..., 0]  # (B, T)
        q_other = smoothing / (logits.shape[-1] - 1)
        others = log_p.sum(-1) - log_p_target
        smoothed = -(1 - smoothing) * log_p_target - q_other * others
        real = target != PAD
        return cls((smoothed * real).sum(), -(log_p_target.detach() * real).sum())

    def plus(self, name: str, term: Tensor, weight: float = 1.0) -> Self:
        """Return the loss with weight * term, a scalar summed over the tokens too, in `total`."""
        total = self.total + weight * term
        return replace(self, total=total, terms={**self.terms, name: term.detach()})


Storage = Literal["padded", "unpadded", "packed"]
"""how the activations of a batch are stored: in rows with padding; without; without, and also not
in rows inside attention, as a GPU trains"""


class Objective(nn.Module):
    """The label-smoothed loss of a model: a module, so that DistributedDataParallel can wrap it."""

    def __init__(self, model: Transformer, smoothing: float, precision: str) -> None:
        """`smoothing` is epsilon of section 5.4, 0 for none; `precision` is fp32 or bf16.

        This computes the model as it is; `prepare_for_training` returns one that is faster.
        """
        super().__init__()
        self.model, self.smoothing, self.precision = model, smoothing, precision
        self.device = next(model.parameters()).device
        self.storage: Storage = "padded"
        self.loss_function: LossFunction = loss_and_gradient
        self.guided_head: GuidedHead | None = None
        """the attention head that learns the links of batches"""
        self.own: Callable[[Transformer, Batch], Loss] | None = None
        """computes the loss in place of all of this; batches are in rows then"""

    @property
    def pad_multiple(self) -> int:
        """The lengths of the rows of a batch are multiples of this."""
        return 1 if self.storage == "packed" else PAD_MULTIPLE[hardware_kind(self.device)]

    def build_batch(self, store: TokenStore, rows: Indices) -> Batch | PackedBatch:
        """Return the pairs at `rows` as a batch on the device of the model.

        A packed one is without padding. Others are in rows, also if `storage` is unpadded:
        `forward` takes the padding out.
        """
        if self.storage == "packed":
            return pack(store, rows, self.device)
        return collate(store, rows, self.pad_multiple).to(self.device)

    def forward(self, batch: Batch | PackedBatch) -> Loss:
        """Run the model; return the loss, summed over the target tokens."""
        if self.own is not None:
            assert isinstance(batch, Batch)
            return self._own_loss(self.own, batch)
        if isinstance(batch, Batch) and self.storage == "unpadded":
            batch = without_padding(batch, PAD)
        guided_head = self.guided_head if batch.links is not None else None
        attention = AttentionRecord() if guided_head else None
        inputs = list[tuple[Tensor, Tensor]]()
        with autocast(self.device, self.precision, once=True):  # uses each weight once
            if isinstance(batch, PackedBatch):
                x = decoder_output(self.model, batch, inputs)
            else:
                x = self.model.decoder_output(batch.source, batch.target_input, attention)
        output = self.model.output_embedding
        loss = label_smoothed_cross_entropy(
            x,
            output.weight,
            batch.target_output,
            padding=PAD,
            smoothing=self.smoothing,
            bias=output.bias,
            loss_function=self.loss_function,
        )
        if guided_head is None:
            return loss
        if isinstance(batch, PackedBatch):
            guided = guided_head.loss(self.model, batch, inputs, self.precision)
        else:
            guided = guided_head.loss_of_rows(batch, attention or AttentionRecord())
        return loss.plus("guided_alignment", guided, guided_head.weight)

    def _own_loss(self, own: Callable[[Transformer, Batch], Loss], batch: Batch) -> Loss:
        """Return the loss of an objective of one's own, after a check."""
        with autocast(self.device, self.precision):
            loss: object = own(self.model, batch)
        if isinstance(loss, Loss) and loss.total.shape == ():
            return loss
        got = f"a tensor {tuple(loss.shape)}" if isinstance(loss, Tensor) else type(loss).__name__
        raise ConfigError(
            f"the objective returned {got}; expected nmt.Loss, whose total is one number, summed "
            "over the target tokens, such as nmt.Loss.of_logits(logits, batch.target_output)"
        )


def label_smoothed_cross_entropy(
    x: Tensor,
    embedding: Tensor,
    target: Tensor,
    padding: int,
    smoothing: float,
    bias: Tensor | None = None,
    loss_function: LossFunction | None = None,
) -> Loss:
    """Return the summed loss of the logits x E^T + bias for the ids `target`; E is `embedding`.

    Its formula stands in `loss_and_gradient`; `loss_function` is a faster one that does
    the same.

    Shapes: x (..., D), E (V, D), `target` (...), bias (V,) or None: no bias. Where `target` is the
    id `padding`, nothing is added. Matrix products have the precision of x, all else is float32.
    """
    real = (target != padding).flatten()
    smoothed = functools.partial(loss_function or loss_and_gradient, smoothing=smoothing)
    total, cross_entropy = _SmoothedCrossEntropy.apply(  # type: ignore[no-untyped-call]
        x.flatten(0, -2), embedding, bias, target.flatten(), real, smoothed
    )
    return Loss(total, cross_entropy)


def projection_rows(hardware: str, entries: int) -> int:
    """Return of how many positions the logits are in memory at once, for a vocabulary's size."""
    return max(1, min(PROJECTION_ROWS[hardware], MAX_LOGITS[hardware] // entries))


class _SmoothedCrossEntropy(torch.autograd.Function):
    """The loss of the logits x E^T + b, x (U, D), E (V, D); `forward` computes the gradients too.

    It takes `projection_rows` positions at a time, and overwrites their logits by their gradient
    G. The gradient of x is G E, that of E is G^T x, that of the bias b (V,), which may be None, is
    the sum of G over the positions. Frozen weights get none. So the logits of all positions, the
    largest tensor of a step, are never in memory together.
    """

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        embedding: Tensor,
        bias: Tensor | None,
        target: Tensor,
        real: Tensor,
        loss_function: Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]],
    ) -> tuple[Tensor, Tensor]:
        matrix = embedding.to(x.dtype)  # E
        rows = projection_rows(hardware_kind(x.device), len(matrix))
        buffer = x.new_empty(min(rows, len(x)), len(matrix))
        x_gradient = torch.empty_like(x)
        _, embedding_is_trained, bias_is_trained = ctx.needs_input_grad[:3]
        embedding_gradient = torch.zeros_like(embedding) if embedding_is_trained else None
        bias_gradient = torch.zeros_like(bias) if bias is not None and bias_is_trained else None
        totals, cross_entropies = [], []
        chunks = zip(*(t.split(rows) for t in (x, x_gradient, target, real)), strict=True)
        for x_chunk, x_chunk_gradient, ids, is_real in chunks:
            logits = torch.mm(x_chunk, matrix.t(), out=buffer[: len(x_chunk)])
            if bias is not None:
                logits += bias.to(logits.dtype)
            total, cross_entropy = loss_function(logits, ids, is_real)
            gradient = logits  # G, by which they have been overwritten
            totals.append(total)
            cross_entropies.append(cross_entropy)
            if any(ctx.needs_input_grad):
                torch.mm(gradient, matrix, out=x_chunk_gradient)
            if embedding_gradient is not None:
                weight_gradient(gradient, x_chunk, embedding_gradient)
            if bias_gradient is not None:
                bias_gradient += gradient.sum(0)
        cross_entropy = torch.stack(cross_entropies).sum()
        ctx.save_for_backward(x_gradient, embedding_gradient, bias_gradient)
        ctx.mark_non_differentiable(cross_entropy)
        return torch.stack(totals).sum(), cross_entropy

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, grad_total: Tensor, grad_cross_entropy: Tensor
    ) -> tuple[Tensor | None, ...]:
        gradients = ctx.saved_tensors  # of x, the embedding and the bias
        # Almost always `grad_total` is 1. On an accelerator, `item` would wait for it.
        if not grad_total.is_cpu or grad_total.item() != 1.0:
            gradients = [None if g is None else g * grad_total for g in gradients]
        return (*gradients, None, None, None)  # the other arguments have none


def loss_and_gradient(
    logits: Tensor, target: Tensor, real: Tensor, smoothing: float
) -> tuple[Tensor, Tensor]:
    """Return the loss of logits (U, V), smoothed and plain; overwrite them by its gradient.

    `target` (U,) holds ids, `real` (U,) is the mask of positions that count, e is `smoothing`.
    With q_v = 1 - e for the target v, and q_v = e / (V - 1) for every other entry,

        loss = -sum_v q_v log p_v    and    d loss / d logit_v = p_v - q_v

    A softmax costs more than the layers of a small model. So it is computed once for both, in
    float32, `SOFTMAX_ROWS` positions at a time.
    """
    q_target, q_other = 1.0 - smoothing, smoothing / (logits.shape[1] - 1)
    rows = SOFTMAX_ROWS[hardware_kind(logits.device)]
    buffer = logits.new_empty((min(rows, len(logits)), logits.shape[1]), dtype=torch.float32)
    total = buffer.new_zeros(())
    cross_entropy = buffer.new_zeros(())
    chunks = zip(logits.split(rows), target[:, None].split(rows), real.split(rows), strict=True)
    for chunk, ids, is_real in chunks:
        p = buffer[: len(chunk)].copy_(chunk)  # the logits, until the softmax replaces them
        target_logit, largest_logit, logit_sum = p.gather(1, ids)[:, 0], p.amax(1), p.sum(1)
        torch.softmax(p, 1, out=p)
        # log p_v = logit_v - log_z, here for the largest logit, whose p is at least 1 / V
        log_z = largest_logit - p.amax(1).log()
        smoothed = log_z - q_target * target_logit - q_other * (logit_sum - target_logit)
        total += (smoothed * is_real).sum()
        cross_entropy += ((log_z - target_logit) * is_real).sum()
        p.sub_(q_other).scatter_add_(1, ids, p.new_full(ids.shape, q_other - q_target))  # p - q
        chunk.copy_(p.mul_(is_real[:, None]))
    return total, cross_entropy
