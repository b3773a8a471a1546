"""Products of 8-bit integers, for x86 CPUs: a quarter of the bytes to read."""

import contextlib
import functools
import warnings
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from nmt.model.attention import (
    FEW_QUERIES,
    MultiHeadAttention,
    fused_attention,
    scaled_dot_product_attention,
)
from nmt.model.layout import PADDED, Layout
from nmt.processor import processor_features

FEW_ROWS = 16
"""hypotheses in a batch, or words of a source, up to which FBGEMM multiplies the fastest"""
FEW_SENTENCES = 4
"""whose keys and values stay in float32; so few are not worth the conversions"""
ONE_CORE = 2 << 20
"""bytes of a matrix that few rows are multiplied by: less, and to wait for a second core costs more
than it saves"""


@contextlib.contextmanager
def single_threaded(only: bool) -> Iterator[None]:
    """Compute on one core, if `only` that, and on all again afterwards."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1 if only else threads)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


class Int8Linear(nn.Module):
    """x W^T + b in products of 8-bit integers, or with `relu` max(0, x W^T + b).

    Each row of W has a scale of its own, and x has one that is found anew for each batch: what a
    sentence becomes may depend on those beside it.

    Two libraries compute the same sums of integers. FBGEMM is the faster for the few rows of a
    single sentence; for many oneDNN is, on processors with instructions for such sums, and there
    each matrix is kept for both.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None, relu: bool = False) -> None:
        super().__init__()
        self.relu = relu
        quantized = _quantized(weight)
        self.for_few = self.for_many = _for_library("x86", quantized, bias)
        self.seven_bits = eight_bits_overflow("x86")
        if processor_features() & {"amx_int8", "avx512_vnni"}:
            self.for_many = _for_library("onednn", quantized, bias)
            self.seven_bits |= eight_bits_overflow("onednn")
        self.size = quantized.numel()

    def forward(self, x: Tensor) -> Tensor:
        """(..., D) -> (..., F)."""
        if x.numel() > FEW_ROWS * x.shape[-1]:
            return self._product(x, self.for_many)
        with single_threaded(self.size < ONE_CORE):
            return self._product(x, self.for_few)

    def _product(self, x: Tensor, weight: object) -> Tensor:
        integers = torch.ops.quantized
        product = integers.linear_relu_dynamic if self.relu else integers.linear_dynamic
        result: Tensor = product(x, weight, self.seven_bits)
        return result


def _quantized(weight: Tensor) -> Tensor:
    """W in 8-bit integers, each row with the scale of its largest number."""
    weight = weight.detach()
    scales = weight.abs().amax(1).clamp(min=1e-12).double() / 127
    zeros = torch.zeros(len(weight), dtype=torch.long)
    with warnings.catch_warnings():
        # PyTorch means to move these tensors elsewhere; `is_supported` notices when it has
        warnings.simplefilter("ignore", UserWarning)
        return torch.quantize_per_channel(weight, scales, zeros, 0, torch.qint8)


def _for_library(engine: str, quantized: Tensor, bias: Tensor | None) -> object:
    """The matrix in the blocks of FBGEMM (x86) or oneDNN, and the bias beside it."""
    before = torch.backends.quantized.engine
    torch.backends.quantized.engine = engine
    try:
        return torch.ops.quantized.linear_prepack(quantized, bias)
    finally:
        torch.backends.quantized.engine = before


@functools.cache
def eight_bits_overflow(engine: str) -> bool:
    """Whether a library cuts sums of two products off at 16 bits, as on processors without VNNI.

    Then x may have 7 bits only. It is tried out with the largest integers there are.
    """
    ones = torch.ones(16, 16)
    matrix = _for_library(engine, _quantized(ones), None)
    sums: Tensor = torch.ops.quantized.linear_dynamic(ones, matrix, False)
    return bool((sums - 16).abs().amax() > 1)


class Int8Attention(MultiHeadAttention):
    """Multi-head attention with matrices of integers; few queries attend as Eq. 1 is read.

    The fused kernel takes twice as long for the hypotheses of a single sentence. Of many sentences
    keys and values are more than the caches hold: there they are kept in bfloat16, where the
    processor computes with it.
    """

    def __init__(self, attention: MultiHeadAttention) -> None:
        nn.Module.__init__(self)
        self.heads, self.dropout = attention.heads, attention.dropout
        self._add_projections(attention)
        self.add_module("output", Int8Linear(attention.output.weight, attention.output.bias))
        self.computes_bf16 = bool(processor_features() & {"avx512_bf16", "amx_bf16"})

    def project_memory(self, memory: Tensor, layout: Layout = PADDED) -> tuple[Tensor, Tensor]:
        """K W^K and V W^V for all heads: (B, S, D) -> twice (B, H, S, K)."""
        key, value = super().project_memory(memory, layout)
        if self.computes_bf16 and len(memory) > FEW_SENTENCES:
            return key.bfloat16(), value.bfloat16()
        return key, value

    def _add_projections(self, attention: MultiHeadAttention) -> None:
        for name in ("query", "key", "value"):
            projection = getattr(attention, name)
            self.add_module(name, Int8Linear(projection.weight, projection.bias))

    def _attention(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
        query, kind = query.to(key.dtype), query.dtype
        few = query.shape[0] * query.shape[2] <= FEW_ROWS
        if few or (kind != key.dtype and query.shape[2] <= FEW_QUERIES):
            return scaled_dot_product_attention(query, key, value, mask).to(kind)
        return fused_attention(query, key, value, mask).to(kind)


class Int8SelfAttention(Int8Attention):
    """Self-attention whose queries, keys and values are one product, x [W^Q W^K W^V].

    A sentence alone is translated the sooner. oneDNN's products of floats gain nothing by it and
    take memory: their kernels are compiled for each shape.
    """

    def _add_projections(self, attention: MultiHeadAttention) -> None:
        projections = (attention.query, attention.key, attention.value)
        self.query_key_value = Int8Linear(
            torch.cat([projection.weight for projection in projections]),
            torch.cat([projection.bias for projection in projections]),
        )

    def project_all(self, x: Tensor, layout: Layout = PADDED) -> tuple[Tensor, Tensor, Tensor]:
        """Query, key and value of what attends to itself: (B, T, D) -> three (B, H, T, K)."""
        product: Tensor = self.query_key_value(x)  # (B, T, 3 * D)
        query, key, value = layout.split_heads(product, 3 * self.heads).chunk(3, dim=1)
        return query, key, value
