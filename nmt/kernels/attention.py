"""Eq. 1 for the queries, keys and values of sentences that stand side by side without padding."""

import ctypes
from typing import Any, cast

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from nmt.kernels.fused_attention import FusedAttention
from nmt.kernels.library import WIDTH_MULTIPLE, address, can_use_kernels, kernels
from nmt.kernels.linear import linear
from nmt.kernels.rows import RowContext, UnpaddedSide
from nmt.model.attention import AttentionContext
from nmt.model.positional_encoding import rotate


class UnpaddedAttention(FusedAttention):
    """Multi-head attention in training on a CPU: in C, if it can, and there without padding.

    C draws no dropout. Else attention is that of `FusedAttention`, in rows with padding.
    """

    def forward(self, x: Tensor, memory: Tensor, context: AttentionContext) -> Tensor:
        """Let each token of x (U, D) attend to the memory (V, D) of its sentence: (U, D).

        U and V are the numbers of tokens, of all sentences together.
        """
        if not isinstance(context, RowContext):  # x and memory are padded, a row a sentence
            return super().forward(x, memory, context)
        of_x, of_memory = context.queries, context.memory
        assert isinstance(of_x, UnpaddedSide) and isinstance(of_memory, UnpaddedSide)
        is_in_c = fits_heads(x.shape[1], self.heads) and can_use_kernels(x)
        if is_in_c and self.training and self.dropout.p == 0:
            query = rotate(linear(self.query, x), context.rotation)
            key, value = linear(self.key, memory), linear(self.value, memory)
            key = rotate(key, context.rotation)
            heads = attend_unpadded(query, key, value, context, self.heads)
            return linear(self.output, heads)
        query, key, value = self.project(x, memory, context.rotation)
        in_rows = AttentionContext(of_memory.mask(context.is_causal), is_causal=context.is_causal)
        heads = self.attention(
            of_x.split_heads(query, self.heads),
            of_memory.split_heads(key, self.heads),
            of_memory.split_heads(value, self.heads),
            in_rows,
        )
        result: Tensor = self.output(of_x.join_heads(heads))
        return result


class _CAttention(ctypes.Structure):
    """`Attention` of attention.h."""

    _fields_ = (
        ("sentences", ctypes.c_int32),
        ("heads", ctypes.c_int32),
        ("width", ctypes.c_int32),
        ("is_causal", ctypes.c_int32),
        ("query_starts", ctypes.c_void_p),
        ("memory_starts", ctypes.c_void_p),
        ("memory_lengths", ctypes.c_void_p),
        ("query", ctypes.c_void_p),
        ("key", ctypes.c_void_p),
        ("value", ctypes.c_void_p),
    )


def fits_heads(width: int, heads: int) -> bool:
    """Return whether C computes so many heads that are together so wide."""
    return width % (heads * WIDTH_MULTIPLE) == 0


def attend_unpadded(
    query: Tensor, key: Tensor, value: Tensor, context: RowContext, heads: int
) -> Tensor:
    """Return Eq. 1 of all heads: queries (U, D), keys and values (V, D) -> (U, D).

    If `context` is causal, a token sees itself and earlier ones, else all but the padding.
    """
    result: Tensor = _UnpaddedAttention.apply(query, key, value, context, heads)  # type: ignore[no-untyped-call]
    return result


class _UnpaddedAttention(torch.autograd.Function):
    """Eq. 1 and its gradients, for which the attention weights are computed again."""

    @staticmethod
    def forward(
        ctx: Any, query: Tensor, key: Tensor, value: Tensor, context: RowContext, heads: int
    ) -> Tensor:
        query, key, value = query.contiguous(), key.contiguous(), value.contiguous()
        result = torch.empty_like(query)
        ctx.save_for_backward(query, key, value)
        ctx.context, ctx.heads = context, heads
        arguments = _arguments(query, key, value, context, heads)
        if kernels(query).nmt_attention(ctypes.byref(arguments), address(result)):
            raise MemoryError
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        query, key, value = ctx.saved_tensors  # at other addresses if they were computed again
        arguments = _arguments(query, key, value, ctx.context, ctx.heads)
        gradient = gradient.contiguous()
        gradients = [torch.empty_like(x) for x in (query, key, value)]
        addresses = map(address, (gradient, *gradients))
        if kernels(query).nmt_attention_gradients(ctypes.byref(arguments), *addresses):
            raise MemoryError
        return (*gradients, None, None)


def _arguments(
    query: Tensor, key: Tensor, value: Tensor, context: RowContext, heads: int
) -> _CAttention:
    """Return the structure that the C functions read; it does not keep the tensors alive."""
    memory = cast(UnpaddedSide, context.memory)
    return _CAttention(
        sentences=len(memory.lengths),
        heads=heads,
        width=query.shape[1] // heads,
        is_causal=context.is_causal,
        query_starts=context.queries.offsets.data_ptr(),
        memory_starts=memory.offsets.data_ptr(),
        memory_lengths=memory.lengths.data_ptr(),
        query=query.data_ptr(),
        key=key.data_ptr(),
        value=value.data_ptr(),
    )
