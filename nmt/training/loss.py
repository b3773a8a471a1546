"""Section 5.4: cross-entropy with label smoothing, summed over the tokens of a batch."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from nmt.data.tokens.batch import Batch, PackedBatch, collate, pack
from nmt.data.tokens.token_store import Indices, TokenStore
from nmt.data.tokens.tokenizer import PAD
from nmt.kernels.cross_entropy import replace_logits_by_gradient
from nmt.kernels.library import can_use_kernels
from nmt.kernels.linear import weight_gradient
from nmt.kernels.packed_attention import can_attend_packed
from nmt.kernels.python_code import is_code_unchanged
from nmt.machine.device import autocast, hardware_kind
from nmt.model.layout import PADDED, Layout, PackedLayout, UnpaddedLayout
from nmt.model.transformer import Transformer

SOFTMAX_ROWS = {"cpu": 64, "cuda": 2048}
"""positions whose softmax is computed at once: on a CPU they fit into the level-2 cache for common
sizes of the vocabulary, on a GPU they use all of its cores"""
PAD_MULTIPLE = {"cpu": 1, "cuda": 8}
"""rows are padded to multiples of this: a GPU is fastest on multiples of 8 and on few shapes"""
PROJECTION_ROWS = {"cpu": 1024, "cuda": 4096}
"""positions whose logits are in memory at once: enough for a fast matrix product"""


@dataclass(frozen=True)
class Loss:
    """Loss in nats: the sum, not the mean, over the real target tokens of a batch."""

    total: Tensor
    """the smoothed cross-entropy that training minimises: scalar, differentiable"""
    cross_entropy: Tensor
    """-log p of the target tokens, without smoothing: scalar, not differentiable"""


class Objective(nn.Module):
    """The label-smoothed loss of a model: a module, so that DistributedDataParallel can wrap it."""

    def __init__(
        self, model: Transformer, smoothing: float, precision: str, compiles: bool = False
    ) -> None:
        """`smoothing` is epsilon of section 5.4, 0 for none; `precision` is fp32 or bf16.

        With `compiles`, PyTorch compiles the loss; the layers are compiled by `prepare_layers`.
        """
        super().__init__()
        self.model, self.smoothing, self.precision = model, smoothing, precision
        self.compiles = compiles and is_code_unchanged(model)
        self.device = next(model.parameters()).device
        attention = model.decoder.layers[0].self_attention
        head_width = attention.query.out_features // attention.heads
        self.packs = precision == "bf16" and can_attend_packed(self.device, head_width)
        """whether batches are packed"""
        self.pad_multiple = 1 if self.packs else PAD_MULTIPLE[hardware_kind(self.device)]
        """the lengths of the rows of a batch are multiples of this"""

    def build_batch(self, store: TokenStore, rows: Indices) -> Batch | PackedBatch:
        """Return the pairs at `rows` as a batch on the device of the model, packed if it can be."""
        if self.packs:
            return pack(store, rows, self.device)
        return collate(store, rows, self.pad_multiple).to(self.device)

    def forward(self, batch: Batch | PackedBatch) -> Loss:
        """Run the model; return the loss, summed over the target tokens."""
        layouts = _layouts(batch)
        with autocast(self.device, self.precision, once=True):  # uses each weight once
            x = self.model.decoder_output(batch.source, batch.target_input, layouts=layouts)
        target = layouts[1].tokens(batch.target_output)  # an id for each row of x
        output = self.model.output_embedding
        return label_smoothed_cross_entropy(
            x,
            output.weight,
            target,
            padding=PAD,
            smoothing=self.smoothing,
            bias=output.bias,
            compiles=self.compiles,
        )


def _layouts(batch: Batch | PackedBatch) -> tuple[Layout, Layout]:
    """Return how the tokens of source and target are computed: without padding, if possible.

    An accelerator computes the padding of a `Batch` too: to remove it, Python would have to wait
    until the device tells where the real tokens are.
    """
    if isinstance(batch, PackedBatch):
        sides = batch.source_side, batch.target_side
        source, target = (PackedLayout(s.positions, s.offsets, s.longest) for s in sides)
        return source, target
    if batch.source.device.type == "cpu":
        return UnpaddedLayout(batch.source, PAD), UnpaddedLayout(batch.target_input, PAD)
    return PADDED, PADDED


def label_smoothed_cross_entropy(
    x: Tensor,
    embedding: Tensor,
    target: Tensor,
    padding: int,
    smoothing: float,
    bias: Tensor | None = None,
    compiles: bool = False,
) -> Loss:
    """Return the summed loss of the logits x E^T + bias for the ids `target`; E is `embedding`.

    Its formula stands in `_loss_and_gradient`.

    Shapes: x (..., D), E (V, D), `target` (...), bias (V,) or None: no bias. Where `target` is the
    id `padding`, nothing is added. Matrix products have the precision of x, all else is float32.
    With `compiles`, PyTorch compiles the softmax, which makes the loss much faster on a GPU.
    """
    real = (target != padding).flatten()
    softmax = _compiled_softmax() if compiles else _loss_and_gradient
    loss_and_gradient = functools.partial(softmax, smoothing=smoothing)
    total, cross_entropy = _SmoothedCrossEntropy.apply(  # type: ignore[no-untyped-call]
        x.flatten(0, -2), embedding, bias, target.flatten(), real, loss_and_gradient
    )
    return Loss(total, cross_entropy)


class _SmoothedCrossEntropy(torch.autograd.Function):
    """The loss of the logits x E^T + b, x (U, D), E (V, D); `forward` computes the gradients too.

    It takes `PROJECTION_ROWS` positions at a time, and overwrites their logits by their gradient
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
        loss_and_gradient: Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]],
    ) -> tuple[Tensor, Tensor]:
        matrix = embedding.to(x.dtype)  # E
        rows = PROJECTION_ROWS[hardware_kind(x.device)]
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
            total, cross_entropy = loss_and_gradient(logits, ids, is_real)
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


def _loss_and_gradient(
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
    if can_use_kernels(logits):
        return replace_logits_by_gradient(logits, target, real, q_target, q_other)
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


def _loss_and_gradient_at_once(
    logits: Tensor, target: Tensor, real: Tensor, smoothing: float
) -> tuple[Tensor, Tensor]:
    """Do the same as `_loss_and_gradient`, written for a compiler.

    Compiled, its operations become two kernels, which write no float32 tensor of (U, V) to memory.
    """
    entries = logits.shape[1]
    q_target, q_other = 1.0 - smoothing, smoothing / (entries - 1)
    scores = logits.float()
    log_z = torch.logsumexp(scores, 1)
    target_logit = scores.gather(1, target[:, None])[:, 0]
    smoothed = log_z - q_target * target_logit - q_other * (scores.sum(1) - target_logit)
    is_target = torch.arange(entries, device=logits.device) == target[:, None]
    q = torch.where(is_target, q_target, q_other)
    logits.copy_((torch.exp(scores - log_z[:, None]) - q) * real[:, None])
    return (smoothed * real).sum(), ((log_z - target_logit) * real).sum()


@functools.cache
def _compiled_softmax() -> Callable[..., tuple[Tensor, Tensor]]:
    """Return `_loss_and_gradient_at_once`, to be compiled at its first call.

    PyTorch's compiler takes a second to import, so this is not done before it is needed.
    """
    return torch.compile(_loss_and_gradient_at_once)
