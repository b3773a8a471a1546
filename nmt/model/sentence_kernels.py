"""Kernels for attention within sentences that are stored without padding, on a GPU (Triton).

Kernels of libraries cut queries and keys into blocks of 128, and most sentences are shorter. Here
one program computes a whole sentence for one head: its scores stay in registers, and the backward
pass computes them again instead of reading them from memory.
"""

import math
from collections.abc import Sequence

import torch
import triton
import triton.language as tl
from torch import Tensor

LONGEST = 128
"""tokens of a sentence that one program can hold"""
HEAD_WIDTHS = (16, 32, 64, 128)
"""values of K, the width of a head, for which the kernels work"""


@triton.jit
def _load(start, first, count, stride, head, width: tl.constexpr, block: tl.constexpr):
    """Return the rows first, …, first + count - 1 of one head; 0 below: (block, width)."""
    rows = tl.arange(0, block)[:, None]
    columns = head * width + tl.arange(0, width)[None, :]
    return tl.load(start + (first + rows) * stride + columns, mask=rows < count, other=0.0)


@triton.jit
def _store(start, first, count, stride, head, x, width: tl.constexpr, block: tl.constexpr):
    """Write x (block, width) to the place that `_load` reads."""
    rows = tl.arange(0, block)[:, None]
    columns = head * width + tl.arange(0, width)[None, :]
    place = start + (first + rows) * stride + columns
    tl.store(place, x.to(start.dtype.element_ty), mask=rows < count)


@triton.jit
def _weights(
    query, key, keys, scale, is_causal: tl.constexpr, q_block: tl.constexpr, k_block: tl.constexpr
):
    """Return softmax(query key^T * scale) of the first `keys` keys: (q_block, k_block)."""
    scores = tl.dot(query, tl.trans(key)) * scale
    column = tl.arange(0, k_block)[None, :]
    visible = column < keys
    if is_causal:
        visible = visible & (column <= tl.arange(0, q_block)[:, None])
    scores = tl.where(visible, scores, float("-inf"))
    exponentials = tl.exp(scores - tl.max(scores, 1)[:, None])
    return exponentials / tl.sum(exponentials, 1)[:, None]


@triton.jit
def _forward_kernel(
    query, key, value, output, query_offsets, key_offsets, scale, q_stride, k_stride, v_stride,
    o_stride, is_causal: tl.constexpr, width: tl.constexpr, q_block: tl.constexpr,
    k_block: tl.constexpr,
):  # fmt: skip
    """Write weights value of one sentence and one head."""
    head, sentence = tl.program_id(0), tl.program_id(1)
    first_query, first_key = tl.load(query_offsets + sentence), tl.load(key_offsets + sentence)
    queries = tl.load(query_offsets + sentence + 1) - first_query
    keys = tl.load(key_offsets + sentence + 1) - first_key
    q = _load(query, first_query, queries, q_stride, head, width, q_block)
    k = _load(key, first_key, keys, k_stride, head, width, k_block)
    v = _load(value, first_key, keys, v_stride, head, width, k_block)
    p = _weights(q, k, keys, scale, is_causal, q_block, k_block)
    _store(output, first_query, queries, o_stride, head, tl.dot(p.to(v.dtype), v), width, q_block)


@triton.jit
def _backward_kernel(
    query, key, value, gradient, query_gradient, key_gradient, value_gradient, query_offsets,
    key_offsets, scale, q_stride, k_stride, v_stride, g_stride, dq_stride, dk_stride, dv_stride,
    is_causal: tl.constexpr, width: tl.constexpr, q_block: tl.constexpr, k_block: tl.constexpr,
):  # fmt: skip
    """Write the gradients of one sentence and one head; `gradient` is that of the output.

    With weights P = softmax(S) and output P V, of which the gradient is G: the gradient of V is
    P^T G, that of P is G V^T = D, and that of S is P * (D - (P * D) 1).
    """
    head, sentence = tl.program_id(0), tl.program_id(1)
    first_query, first_key = tl.load(query_offsets + sentence), tl.load(key_offsets + sentence)
    queries = tl.load(query_offsets + sentence + 1) - first_query
    keys = tl.load(key_offsets + sentence + 1) - first_key
    q = _load(query, first_query, queries, q_stride, head, width, q_block)
    k = _load(key, first_key, keys, k_stride, head, width, k_block)
    v = _load(value, first_key, keys, v_stride, head, width, k_block)
    g = _load(gradient, first_query, queries, g_stride, head, width, q_block)
    p = _weights(q, k, keys, scale, is_causal, q_block, k_block)
    dv = tl.dot(tl.trans(p.to(g.dtype)), g)
    _store(value_gradient, first_key, keys, dv_stride, head, dv, width, k_block)
    dp = tl.dot(g, tl.trans(v))
    ds = (p * (dp - tl.sum(p * dp, 1)[:, None]) * scale).to(q.dtype)
    _store(query_gradient, first_query, queries, dq_stride, head, tl.dot(ds, k), width, q_block)
    _store(key_gradient, first_key, keys, dk_stride, head, tl.dot(tl.trans(ds), q), width, k_block)


def forward(
    inputs: Sequence[Tensor], offsets: Sequence[Tensor], longest: Sequence[int], is_causal: bool
) -> Tensor:
    """Return Eq. 1 for each sentence: queries (U, H, K), keys and values (W, H, K) -> (U, H, K).

    `inputs` are these three. `offsets` (B + 1,) and `longest` belong to queries and to keys:
    sentence i has the queries from offsets[0][i] to offsets[0][i + 1] - 1, and at most longest[0],
    which is at most `LONGEST`. With `is_causal`, a query sees the keys up to its own position.
    """
    query = inputs[0]
    output = torch.empty(query.shape, dtype=query.dtype, device=query.device)
    strides = [x.stride(0) for x in (*inputs, output)]
    _forward_kernel[_programs(query, offsets)](
        *inputs, output, *offsets, _scale(query), *strides, is_causal, **_settings(query, longest)
    )
    return output


def backward(
    gradient: Tensor,
    inputs: Sequence[Tensor],
    offsets: Sequence[Tensor],
    longest: Sequence[int],
    is_causal: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of the three `inputs` of `forward`, for the `gradient` of its result."""
    query = inputs[0]
    dq, dk, dv = (torch.empty(x.shape, dtype=x.dtype, device=x.device) for x in inputs)
    tensors = *inputs, gradient, dq, dk, dv
    strides = [x.stride(0) for x in tensors]
    _backward_kernel[_programs(query, offsets)](
        *tensors, *offsets, _scale(query), *strides, is_causal, **_settings(query, longest)
    )
    return dq, dk, dv


def _programs(query: Tensor, offsets: Sequence[Tensor]) -> tuple[int, int]:
    """Return the numbers of programs: one for each head of each sentence."""
    return query.shape[1], len(offsets[0]) - 1


def _scale(query: Tensor) -> float:
    """Return 1 / sqrt(d_k)."""
    return 1 / math.sqrt(query.shape[2])


def _settings(query: Tensor, longest: Sequence[int]) -> dict[str, int]:
    """Return what a kernel is compiled for: its blocks, which hold a sentence, and its warps."""
    q_block, k_block = (max(16, triton.next_power_of_2(tokens)) for tokens in longest)
    warps = 8 if max(q_block, k_block) > 64 else 4  # with fewer, a block does not fit in registers
    width = query.shape[2]
    return {"width": width, "q_block": q_block, "k_block": k_block, "num_warps": warps}
