"""Eq. 1 for sentences that are stored without padding: one operation of PyTorch, on a GPU.

Short sentences have kernels of their own (`sentence_kernels`). Sentences of more than 128 tokens,
and dropout of attention weights, are left to PyTorch's FlashAttention. Both are hidden in one
operation, so that a compiled layer does not depend on which of them a batch needs. FlashAttention
is called by PyTorch's private names: the public `torch.nn.attention.varlen` has no dropout, its
parameters differ between versions, and its backward pass cannot be part of another operation.

Triton, the language of the kernels, takes a moment to import and is not imported before it is used.
"""

from typing import Any

import torch
from torch import Tensor

from nmt.kernels.fused_attention import FusedAttention
from nmt.kernels.rows import RowContext
from nmt.machine.device import can_compile
from nmt.model.attention import AttentionContext

LONGEST = 128
"""tokens of a sentence that one program of `sentence_kernels` can hold"""
HEAD_WIDTHS = range(16, 65, 8)
"""values of K, the width of a head, for which all kernels work on all GPUs"""


def can_attend_packed(device: torch.device, head_width: int) -> bool:
    """Return whether `packed_attention` works in bf16: on NVIDIA GPUs from 8.0 on (Ampere).

    Its kernels must be compiled there (`can_compile`).
    """
    if head_width not in HEAD_WIDTHS or torch.version.cuda is None or not can_compile(device):
        return False
    return torch.cuda.get_device_capability(device) >= (8, 0)


class PackedAttention(FusedAttention):
    """Multi-head attention in training on a GPU, for sentences one behind the other.

    Queries are (Q, H, K), keys and values (M, H, K), for Q and M tokens of all sentences.
    """

    def forward(self, x: Tensor, memory: Tensor, context: AttentionContext) -> Tensor:
        """Let each token of x (Q, D) attend to the memory (M, D) of its sentence: (Q, D)."""
        if not isinstance(context, RowContext):
            return super().forward(x, memory, context)  # in rows with padding: validation
        projected = self.project(x, memory, context.rotation)
        query, key, value = (each.unflatten(1, (self.heads, -1)) for each in projected)
        offsets = context.queries.offsets, context.memory.offsets
        longest = context.queries.longest, context.memory.longest
        p = self.dropout.p if self.training else 0.0
        heads = packed_attention(query, key, value, offsets, longest, context.is_causal, p)
        result: Tensor = self.output(heads.flatten(1))
        return result


def packed_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    offsets: tuple[Tensor, Tensor],
    longest: tuple[int, int],
    is_causal: bool = False,
    dropout: float = 0.0,
) -> Tensor:
    """Return Eq. 1 for each sentence: queries (Q, H, K), keys and values (M, H, K): (Q, H, K).

    `offsets`, those of queries and of keys, are (B + 1,) int32: sentence i has the rows from
    offsets[i] to offsets[i + 1] - 1. `longest` are the most queries and the most keys of a
    sentence. With `is_causal`, a query sees the keys up to its own position. `dropout` is the
    probability to drop a weight.
    """
    result: Tensor = _attend(query, key, value, [*offsets], [*longest], is_causal, dropout)[0]
    return result


def _uses_flash_attention(longest: list[int], dropout: float) -> bool:
    """Return whether FlashAttention computes this, and not the kernels of `sentence_kernels`."""
    return dropout > 0 or max(longest) > LONGEST


@torch.library.custom_op("nmt::packed_attention", mutates_args=())
def _attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    offsets: list[Tensor],
    longest: list[int],
    is_causal: bool,
    dropout: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the result and, for FlashAttention's backward pass, its logsumexp and rng_state."""
    inputs = query, key, value
    if _uses_flash_attention(longest, dropout):
        flash = torch.ops.aten._flash_attention_forward
        outputs = flash(*inputs, *offsets, *longest, dropout, is_causal, False)
        result, logsumexp, rng_state = outputs[:3]
        return result, logsumexp, rng_state
    from nmt.kernels import sentence_kernels

    return (sentence_kernels.forward(inputs, offsets, longest, is_causal), *_empty_state(query))


@_attend.register_fake
def _(query: Tensor, *others: Any) -> tuple[Tensor, Tensor, Tensor]:
    return (_like(query), *_empty_state(query))


def _like(x: Tensor) -> Tensor:
    """Return an empty tensor of the shape of x, contiguous whatever the strides of x are."""
    return torch.empty(x.shape, dtype=x.dtype, device=x.device)


def _empty_state(query: Tensor) -> tuple[Tensor, Tensor]:
    """Return uninitialised tensors in place of FlashAttention's logsumexp and rng_state."""
    tokens, heads, _width = query.shape
    logsumexp = torch.empty(heads, tokens, dtype=torch.float32, device=query.device)
    return logsumexp, torch.empty(2, dtype=torch.uint64, device=query.device)


@torch.library.custom_op("nmt::packed_attention_backward", mutates_args=())
def _attend_backward(
    gradient: Tensor,
    inputs: list[Tensor],
    offsets: list[Tensor],
    outputs: list[Tensor],
    longest: list[int],
    is_causal: bool,
    dropout: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of `inputs` (query, key, value) for the `gradient` of the result.

    `outputs` are those of `_attend`.
    """
    if _uses_flash_attention(longest, dropout):
        result, logsumexp, rng_state = outputs
        unused = torch.empty((), dtype=torch.uint64, device=gradient.device)
        saved = result, logsumexp, *offsets, *longest, dropout, is_causal, rng_state, unused
        dq, dk, dv = torch.ops.aten._flash_attention_backward(gradient, *inputs, *saved)
        return dq, dk, dv
    from nmt.kernels import sentence_kernels

    return sentence_kernels.backward(gradient, inputs, offsets, longest, is_causal)


@_attend_backward.register_fake
def _(gradient: Tensor, inputs: list[Tensor], *others: Any) -> tuple[Tensor, Tensor, Tensor]:
    query, key, value = inputs
    return _like(query), _like(key), _like(value)


def _setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    query, key, value, offsets, *ctx.settings = inputs
    ctx.save_for_backward(query, key, value, *offsets, *output)


def _gradients(ctx: Any, gradient: Tensor, *others: Any) -> tuple[Any, ...]:
    saved = list(ctx.saved_tensors)
    inputs, offsets, outputs = saved[:3], saved[3:5], saved[5:]
    gradients = _attend_backward(gradient.contiguous(), inputs, offsets, outputs, *ctx.settings)
    return (*gradients, [None, None], None, None, None)  # [of each offsets], of the rest


_attend.register_autograd(_gradients, setup_context=_setup_context)
