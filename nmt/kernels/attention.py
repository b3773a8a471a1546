"""Eq. 1 for the queries, keys and values of sentences that stand side by side without padding."""

import ctypes
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from nmt.kernels.library import WIDTH_MULTIPLE, address, can_use_kernels, kernels


@dataclass(frozen=True)
class SentenceBounds:
    """Where the sentences of a batch stand among U tokens."""

    starts: Tensor
    """index of the first token of each sentence, and U: (B + 1,), int64"""
    lengths: Tensor
    """tokens of each sentence without its padding, which is at its end: (B,), int64"""


@dataclass(frozen=True)
class AttentionShape:
    """Which tokens see which, and the number of heads."""

    queries: SentenceBounds
    memory: SentenceBounds
    """where the sentences of the queries stand, and those of the keys and values"""
    heads: int
    is_causal: bool
    """whether a token sees itself and earlier ones; else it sees all but the padding"""


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


def can_attend(x: Tensor, heads: int) -> bool:
    """Return whether `attend_unpadded` computes attention with activations like x (U, D)."""
    return x.shape[-1] % (heads * WIDTH_MULTIPLE) == 0 and can_use_kernels(x)


def attend_unpadded(query: Tensor, key: Tensor, value: Tensor, shape: AttentionShape) -> Tensor:
    """Return Eq. 1 of all heads: queries (U, D), keys and values (V, D) -> (U, D)."""
    heads: Tensor = _UnpaddedAttention.apply(query, key, value, shape)  # type: ignore[no-untyped-call]
    return heads


class _UnpaddedAttention(torch.autograd.Function):
    """Eq. 1 and its gradients, for which the attention weights are computed again."""

    @staticmethod
    def forward(
        ctx: Any, query: Tensor, key: Tensor, value: Tensor, shape: AttentionShape
    ) -> Tensor:
        query, key, value = query.contiguous(), key.contiguous(), value.contiguous()
        result = torch.empty_like(query)
        ctx.save_for_backward(query, key, value)
        ctx.shape = shape
        arguments = _arguments(query, key, value, shape)
        if kernels(query).nmt_attention(ctypes.byref(arguments), address(result)):
            raise MemoryError
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        query, key, value = ctx.saved_tensors  # at other addresses if they were computed again
        arguments = _arguments(query, key, value, ctx.shape)
        gradient = gradient.contiguous()
        gradients = [torch.empty_like(x) for x in (query, key, value)]
        addresses = map(address, (gradient, *gradients))
        if kernels(query).nmt_attention_gradients(ctypes.byref(arguments), *addresses):
            raise MemoryError
        return (*gradients, None)


def _arguments(query: Tensor, key: Tensor, value: Tensor, shape: AttentionShape) -> _CAttention:
    """Return the structure that the C functions read; it does not keep the tensors alive."""
    return _CAttention(
        sentences=len(shape.memory.lengths),
        heads=shape.heads,
        width=query.shape[1] // shape.heads,
        is_causal=shape.is_causal,
        query_starts=shape.queries.starts.data_ptr(),
        memory_starts=shape.memory.starts.data_ptr(),
        memory_lengths=shape.memory.lengths.data_ptr(),
        query=query.data_ptr(),
        key=key.data_ptr(),
        value=value.data_ptr(),
    )
