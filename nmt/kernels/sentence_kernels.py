"""Kernels for attention within sentences that are stored without padding, on a GPU (Triton).

Kernels of libraries cut queries and keys into blocks of 128, and most sentences are shorter. Here
one program computes a whole sentence for one head: its scores stay in registers, and the backward
pass computes them again instead of reading them from memory.
"""

import math
from collections.abc import Sequence
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor


@triton.jit
def _rows_of(sentence, offsets):
    """Return the first row of a sentence, and the number of its rows."""
    first = tl.load(offsets + sentence)
    return first.to(tl.int64), tl.load(offsets + sentence + 1) - first


@triton.jit
def _place(start, first, count, stride, head, width: tl.constexpr, block: tl.constexpr):
    """Return the addresses of `count` rows of one head from the row `first` on, and a mask.

    Both are (block, width rounded up to a power of two). The mask is False beyond the last row, and
    beyond the last column.
    """
    rows = tl.arange(0, block)[:, None]
    columns = tl.arange(0, triton.next_power_of_2(width))[None, :]
    mask = (rows < count) & (columns < width)
    return start + (first + rows) * stride + head * width + columns, mask


@triton.jit
def _load(start, first, count, stride, head, width: tl.constexpr, block: tl.constexpr):
    """Return `count` rows of one head from the row `first` on, with zeros around them."""
    place, mask = _place(start, first, count, stride, head, width, block)
    return tl.load(place, mask=mask, other=0.0)


@triton.jit
def _store(start, first, count, stride, head, x, width: tl.constexpr, block: tl.constexpr):
    """Write `count` rows of x to the place that `_load` reads."""
    place, mask = _place(start, first, count, stride, head, width, block)
    tl.store(place, x.to(start.dtype.element_ty), mask=mask)


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
    query, key, value, output, query_offsets, key_offsets, heads, scale, q_stride, k_stride,
    v_stride, o_stride, is_causal: tl.constexpr, width: tl.constexpr, q_block: tl.constexpr,
    k_block: tl.constexpr,
):  # fmt: skip
    """Write softmax(q k^T * scale) v of one sentence and one head."""
    sentence, head = tl.program_id(0) // heads, tl.program_id(0) % heads
    first_query, queries = _rows_of(sentence, query_offsets)
    first_key, keys = _rows_of(sentence, key_offsets)
    if keys == 0:  # an empty sentence, which has no queries either
        return
    q = _load(query, first_query, queries, q_stride, head, width, q_block)
    k = _load(key, first_key, keys, k_stride, head, width, k_block)
    v = _load(value, first_key, keys, v_stride, head, width, k_block)
    p = _weights(q, k, keys, scale, is_causal, q_block, k_block)
    _store(output, first_query, queries, o_stride, head, tl.dot(p.to(v.dtype), v), width, q_block)


@triton.jit
def _backward_kernel(
    query, key, value, gradient, query_gradient, key_gradient, value_gradient, query_offsets,
    key_offsets, heads, scale, q_stride, k_stride, v_stride, g_stride, dq_stride, dk_stride,
    dv_stride, is_causal: tl.constexpr, width: tl.constexpr, q_block: tl.constexpr,
    k_block: tl.constexpr,
):  # fmt: skip
    """Write the gradients dQ, dK and dV of one sentence and one head, given G, the output's.

    With P = softmax(S) and S = scale * Q K^T:

        dV = P^T G    dP = G V^T    dS = P * (dP - sum of each row of P * dP)
        dQ = scale * dS K    dK = scale * dS^T Q
    """
    sentence, head = tl.program_id(0) // heads, tl.program_id(0) % heads
    first_query, queries = _rows_of(sentence, query_offsets)
    first_key, keys = _rows_of(sentence, key_offsets)
    if keys == 0:  # an empty sentence, which has no queries either
        return
    q = _load(query, first_query, queries, q_stride, head, width, q_block)
    k = _load(key, first_key, keys, k_stride, head, width, k_block)
    v = _load(value, first_key, keys, v_stride, head, width, k_block)
    g = _load(gradient, first_query, queries, g_stride, head, width, q_block)
    p = _weights(q, k, keys, scale, is_causal, q_block, k_block)
    dv = tl.dot(tl.trans(p.to(g.dtype)), g)
    _store(value_gradient, first_key, keys, dv_stride, head, dv, width, k_block)
    dp = tl.dot(g, tl.trans(v))
    ds = (p * (dp - tl.sum(p * dp, 1)[:, None]) * scale).to(q.dtype)  # scale * dS
    _store(query_gradient, first_query, queries, dq_stride, head, tl.dot(ds, k), width, q_block)
    _store(key_gradient, first_key, keys, dk_stride, head, tl.dot(tl.trans(ds), q), width, k_block)


def forward(
    inputs: Sequence[Tensor], offsets: Sequence[Tensor], longest: Sequence[int], is_causal: bool
) -> Tensor:
    """Return Eq. 1 for the sentences of queries (Q, H, K), keys and values (M, H, K): (Q, H, K).

    `inputs` are these three; the H * K numbers of a row are contiguous. `offsets` (B + 1,) and
    `longest` belong to queries and to keys: sentence i has the queries from offsets[0][i] to
    offsets[0][i + 1] - 1, and no sentence more than longest[0], which is at most 128. A
    sentence with queries has keys. With `is_causal`, a query sees the keys up to its own position.
    """
    query = inputs[0]
    output = torch.empty(query.shape, dtype=query.dtype, device=query.device)
    tensors = *inputs, output
    _launch(_forward_kernel, tensors, offsets, longest, is_causal)
    return output


def backward(
    gradient: Tensor,
    inputs: Sequence[Tensor],
    offsets: Sequence[Tensor],
    longest: Sequence[int],
    is_causal: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of the three `inputs` of `forward`, for the `gradient` of its result."""
    dq, dk, dv = (torch.empty(x.shape, dtype=x.dtype, device=x.device) for x in inputs)
    _launch(_backward_kernel, (*inputs, gradient, dq, dk, dv), offsets, longest, is_causal)
    return dq, dk, dv


def _launch(
    kernel: Any,
    tensors: Sequence[Tensor],
    offsets: Sequence[Tensor],
    longest: Sequence[int],
    is_causal: bool,
) -> None:
    """Launch a kernel for `tensors` (Q or M, H, K): one program for each sentence and head."""
    _rows, heads, width = tensors[0].shape
    q_block, k_block = (max(16, triton.next_power_of_2(tokens)) for tokens in longest)
    kernel[(heads * (len(offsets[0]) - 1),)](
        *tensors,
        *offsets,
        heads,
        1 / math.sqrt(width),
        *(x.stride(0) for x in tensors),
        is_causal=is_causal,
        width=width,
        q_block=q_block,
        k_block=k_block,
        num_warps=8 if max(q_block, k_block) > 64 else 4,  # else a block is more than the registers
    )
