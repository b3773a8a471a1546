"""Matrix products of 8-bit integers, for x86 CPUs: a quarter of the bytes of float32 to read.

For a single sentence, each of the hundreds of operations of a decoder's step is then so short that
Python takes as long to call it as the processor to compute it. So the step for few hypotheses is
traced once; TorchScript calls its operations in half the time.
"""

import contextlib
import functools
import warnings
from collections.abc import Callable, Iterator
from itertools import chain

import torch
from torch import Tensor, nn

from nmt.machine.processor import processor_features
from nmt.model.attention import (
    FEW_QUERIES,
    AttentionContext,
    AttentionRecord,
    MultiHeadAttention,
    fused_attention,
    scaled_dot_product_attention,
)
from nmt.model.cache import CachedKeyValues, DecoderCache
from nmt.model.decoder import Decoder
from nmt.model.layout import PADDED, Layout

FEW_ROWS = 16
"""rows (hypotheses or source tokens) up to which FBGEMM is faster than oneDNN"""
FEW_SENTENCES = 4
"""sentences up to which keys and values stay in float32: converting so few does not pay"""
ONE_CORE_BYTES = 2 << 20
"""size in bytes below which a matrix is multiplied on one core if there are few rows: waiting for a
second core would take longer than it saves"""
TRACE_AFTER = 64
"""steps of few hypotheses before a step is traced (a few sentences take so many): tracing takes a
quarter of a second, and pays only if more sentences follow"""


@contextlib.contextmanager
def single_threaded(enabled: bool) -> Iterator[None]:
    """Compute on one core inside the block if `enabled`; after it on as many as before."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1 if enabled else threads)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


class Int8Linear(nn.Module):
    """x W^T + b, or max(0, x W^T + b) with `relu`, in products of 8-bit integers.

    Each row of W (F, D) has a scale of its own. x has one scale per batch, so the translation of a
    sentence may depend on the other sentences of its batch.

    Two libraries compute the same integer sums. FBGEMM is faster for the few rows of a single
    sentence. oneDNN is faster for many rows if the processor has instructions for such sums; then
    each matrix is kept twice, in the formats of both.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None, relu: bool = False) -> None:
        super().__init__()
        self.relu = relu
        quantized = _quantize(weight)
        self.for_few = self.for_many = _for_library("x86", quantized, bias)
        self.seven_bits = eight_bits_overflow("x86")  # whether x is quantized to 7 bits
        if processor_features() & {"amx_int8", "avx512_vnni"}:
            self.for_many = _for_library("onednn", quantized, bias)
            self.seven_bits |= eight_bits_overflow("onednn")
        self.size = quantized.numel()  # bytes of W

    def forward(self, x: Tensor) -> Tensor:
        """Apply the linear map: (..., D) -> (..., F)."""
        if x.numel() > FEW_ROWS * x.shape[-1]:  # more than FEW_ROWS rows
            return self._product(x, self.for_many)
        with single_threaded(self.size < ONE_CORE_BYTES):
            return self._product(x, self.for_few)

    def _product(self, x: Tensor, weight: object) -> Tensor:
        integers = torch.ops.quantized
        product = integers.linear_relu_dynamic if self.relu else integers.linear_dynamic
        result: Tensor = product(x, weight, self.seven_bits)
        return result


def _quantize(weight: Tensor) -> Tensor:
    """Return W in 8-bit integers; the largest number of each row decides the scale of the row."""
    weight = weight.detach()
    scales = weight.abs().amax(1).clamp(min=1e-12).double() / 127
    zeros = torch.zeros(len(weight), dtype=torch.long)
    with warnings.catch_warnings():
        # PyTorch means to move these tensors elsewhere; `is_supported` notices when it has
        warnings.simplefilter("ignore", UserWarning)
        return torch.quantize_per_channel(weight, scales, zeros, 0, torch.qint8)


def _for_library(engine: str, quantized: Tensor, bias: Tensor | None) -> object:
    """Return matrix and bias in the format of FBGEMM (x86) or oneDNN."""
    before = torch.backends.quantized.engine
    torch.backends.quantized.engine = engine
    try:
        return torch.ops.quantized.linear_prepack(quantized, bias)
    finally:
        torch.backends.quantized.engine = before


@functools.cache
def eight_bits_overflow(engine: str) -> bool:
    """Whether 8-bit products overflow in the library "x86" (FBGEMM) or "onednn" on this processor.

    Without certain instructions it adds two products in 16 bits, which clips a large sum; then x
    may have only 7 bits. To find out, the largest 8-bit integers are multiplied.
    """
    ones = torch.ones(16, 16)  # a scale makes 127 or 255 of each 1
    matrix = _for_library(engine, _quantize(ones), None)
    sums: Tensor = torch.ops.quantized.linear_dynamic(ones, matrix, False)  # 8 bits
    return bool((sums - 16).abs().amax() > 1)  # each sum should be 16 * 1 * 1


class Int8Attention(MultiHeadAttention):
    """Multi-head attention with int8 projections; for few queries, Eq. 1 is computed unfused.

    PyTorch's fused kernel takes twice as long for the hypotheses of a single sentence. The keys and
    values of many sentences do not fit into the processor's caches, so they are kept in bfloat16 if
    the processor has instructions for it.
    """

    def __init__(self, attention: MultiHeadAttention) -> None:
        nn.Module.__init__(self)
        self.heads, self.dropout = attention.heads, attention.dropout
        self._add_projections(attention)
        self.add_module("output", Int8Linear(attention.output.weight, attention.output.bias))
        self.computes_bf16 = bool(processor_features() & {"avx512_bf16", "amx_bf16"})

    def project_memory(self, memory: Tensor, layout: Layout = PADDED) -> tuple[Tensor, Tensor]:
        """Memory (B, S, D) -> keys, values (B, H, S, K); bf16 if B is large and the CPU has it."""
        key, value = super().project_memory(memory, layout)
        if self.computes_bf16 and len(memory) > FEW_SENTENCES:
            return key.bfloat16(), value.bfloat16()
        return key, value

    def _add_projections(self, attention: MultiHeadAttention) -> None:
        for name in ("query", "key", "value"):
            projection = getattr(attention, name)
            self.add_module(name, Int8Linear(projection.weight, projection.bias))

    def _attention(
        self, query: Tensor, key: Tensor, value: Tensor, context: AttentionContext
    ) -> Tensor:
        query, dtype = query.to(key.dtype), query.dtype
        few = query.shape[0] * query.shape[2] <= FEW_ROWS
        if few or (dtype != key.dtype and query.shape[2] <= FEW_QUERIES):
            return scaled_dot_product_attention(query, key, value, context.mask).to(dtype)
        return fused_attention(query, key, value, context.mask).to(dtype)


class Int8SelfAttention(Int8Attention):
    """Self-attention whose queries, keys and values are one product, x [W^Q W^K W^V].

    One product instead of three is faster for single sentences. This is done for int8 only: float
    products become no faster, and take more memory (oneDNN compiles a kernel for each shape).
    """

    def _add_projections(self, attention: MultiHeadAttention) -> None:
        projections = (attention.query, attention.key, attention.value)
        self.query_key_value = Int8Linear(
            torch.cat([projection.weight for projection in projections]),
            torch.cat([projection.bias for projection in projections]),
        )

    def project_all(self, x: Tensor, layout: Layout = PADDED) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries, keys and values of self-attention: (B, T, D) -> each (B, H, T, K)."""
        product: Tensor = self.query_key_value(x)  # (B, T, 3 * D)
        query, key, value = layout.split_heads(product, 3 * self.heads).chunk(3, dim=1)
        return query, key, value


class TracedDecoder(Decoder):
    """An int8 decoder whose step is faster for few hypotheses, with the same results.

    After `TRACE_AFTER` steps for up to `FEW_ROWS` hypotheses, such a step becomes a TorchScript
    program. If PyTorch cannot trace the step, it stays as it is.
    """

    def __init__(self, decoder: Decoder) -> None:
        nn.Module.__init__(self)
        self.layers, self.norm = decoder.layers, decoder.norm
        self._small_steps = 0
        self._program: Callable[..., Tensor] | None = None

    def step(self, x: Tensor, cache: DecoderCache, record: AttentionRecord | None = None) -> Tensor:
        """Decode the next position: (N, k, D) -> (N, k, D); a trace computes later small steps."""
        many = x.shape[0] * x.shape[1] > FEW_ROWS  # hypotheses
        is_bf16 = cache.layers[0].key.dtype != x.dtype  # the batch began with many sentences
        if record is not None or many or is_bf16:  # a trace cannot collect attention
            return super().step(x, cache, record)
        self._small_steps += 1
        if self._program is None and self._small_steps < TRACE_AFTER:  # tracing may not pay
            return super().step(x, cache, record)
        past_mask, stored = cache.advance(x.shape[1])
        # TorchScript takes tensors only: those of all layers one after another
        inputs = (x, past_mask, cache.source_mask, *chain.from_iterable(stored))
        with single_threaded(self.is_small):
            if self._program is None:
                self._program = _trace(_Step(self), inputs)
            return self._program(*inputs)

    @functools.cached_property
    def is_small(self) -> bool:
        """Whether all matrices are too small to gain from a second core (`ONE_CORE_BYTES`)."""
        return all(m.size < ONE_CORE_BYTES for m in self.modules() if isinstance(m, Int8Linear))


class _Step(nn.Module):
    """A step of the decoder as a function of tensors only."""

    def __init__(self, decoder: Decoder) -> None:
        super().__init__()
        self.decoder = decoder

    def forward(self, x: Tensor, past_mask: Tensor, source_mask: Tensor, *flat: Tensor) -> Tensor:
        size = len(CachedKeyValues._fields)
        starts = range(0, len(flat), size)
        stored = [CachedKeyValues(*flat[start : start + size]) for start in starts]
        contexts = AttentionContext(past_mask), AttentionContext(source_mask)
        return self.decoder.through_layers(x, stored, *contexts)


def _trace(step: nn.Module, inputs: tuple[Tensor, ...]) -> Callable[..., Tensor]:
    """Return the step as a TorchScript program, for any number of sentences and positions.

    The step is traced on copies of `inputs`, so they do not change. In later inputs the new
    positions are views of all positions; TorchScript allows inputs to overlap. If the step cannot
    be traced, it is returned itself.
    """
    with warnings.catch_warnings(), torch.inference_mode(False), torch.no_grad():
        # The warnings: choices in Python are fixed (they hold for few rows); tracing is deprecated.
        warnings.simplefilter("ignore")
        copies = tuple(tensor.clone() for tensor in inputs)
        try:
            program = torch.jit.trace(step, copies, check_trace=False)
        except (AttributeError, RuntimeError, ValueError):
            return step.forward
    forward: Callable[..., Tensor] = program.forward
    return forward
