"""Section 3.2: scaled dot-product attention (Eq. 1) and multi-head attention.

Eq. 1 is computed as it stands here, or by what is faster and, as tests show, computes the same:

- training on a CPU, without dropout of weights: the C library of `nmt.kernels.attention`, if it can
- training on a CPU otherwise: as it stands here in bf16 or with dropout, else PyTorch's kernel
- training on an NVIDIA GPU in bf16: `nmt.kernels.packed_attention`, if it can
- translating on a CPU in bf16, few queries: as it stands here
- all else: PyTorch's fused kernel (`fused_attention`)

If this file or another one of `nmt.model` has been changed, Eq. 1 is computed as it stands here
everywhere (`nmt.kernels.python_code`).
"""

import math
from collections.abc import Callable, MutableSequence, Sequence
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nmt.kernels.attention import AttentionShape, attend_unpadded, can_attend
from nmt.kernels.linear import linear
from nmt.kernels.packed_attention import packed_attention
from nmt.kernels.python_code import is_code_unchanged
from nmt.model.dropout import Dropout
from nmt.model.layout import PADDED, Layout, PackedLayout

FEW_QUERIES = 8
"""queries per sentence (one per hypothesis) up to which a CPU is faster without the fused kernel"""


def attention_weights(query: Tensor, key: Tensor, mask: Tensor | None) -> Tensor:
    """Return the attention weights (B, H, T, S) of queries (B, H, T, K) for keys (B, H, S, K).

    They are softmax(query key^T / sqrt(d_k)). `mask` broadcasts to (B, H, T, S): True = may attend.
    Masked scores are the smallest finite value, not -inf, so that a fully masked row is not NaN.
    """
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    return torch.softmax(scores, dim=-1)


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    dropout: Callable[[Tensor], Tensor] | None = None,
) -> Tensor:
    """Return softmax(query key^T / sqrt(d_k)) value (Eq. 1), in separate PyTorch operations.

    `query` and the result are (B, H, T, K), `key` and `value` (B, H, S, K). `mask` broadcasts to
    (B, H, T, S): True = may attend. `dropout`, if given, is applied to the attention weights.
    """
    weights = attention_weights(query, key, mask)
    if dropout is not None:
        weights = dropout(weights)
    return weights @ value


def fused_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    dropout: float = 0.0,
    is_causal: bool = False,
) -> Tensor:
    """Return Eq. 1, computed by PyTorch's fused kernel, which stores no attention weights.

    `query` and the result are (B, H, T, K), `key` and `value` (B, H, S, K). In `mask`, True = may
    attend. `dropout` is a probability. On a CPU, autocast is ignored and float32 is used. With
    `is_causal`, the mask must be exactly that of `causal_mask`, which the kernel of a GPU does not
    read.
    """
    if query.device.type == "cpu" and torch.is_autocast_enabled("cpu"):
        with torch.autocast("cpu", enabled=False):
            return fused_attention(query.float(), key.float(), value.float(), mask, dropout)
    if is_causal and query.device.type == "cuda":
        return F.scaled_dot_product_attention(query, key, value, dropout_p=dropout, is_causal=True)
    return F.scaled_dot_product_attention(query, key, value, mask, dropout_p=dropout)


@dataclass
class AttentionRecord:
    """Collects the attention weights of one forward pass, a (B, H, T, S) tensor per layer."""

    encoder: MutableSequence[Tensor] = field(default_factory=list)
    decoder: MutableSequence[Tensor] = field(default_factory=list)
    cross: MutableSequence[Tensor] = field(default_factory=list)


@dataclass(frozen=True)
class AttentionContext:
    """Which positions may attend to which, how they are stored, and where weights are recorded."""

    mask: Tensor | None
    """broadcasts to (B, H, T, S); True = may attend, None = all may"""
    query_layout: Layout = PADDED
    memory_layout: Layout = PADDED
    """how queries, and the positions that they attend to, are stored: with padding or without"""
    record: MutableSequence[Tensor] | None = None
    """if given, the weights (B, H, T, S) are appended to it"""
    is_causal: bool = False
    """whether the mask is that of `causal_mask`"""


class MultiHeadAttention(nn.Module):
    """MultiHead(Q, K, V) = Concat(head_1, …, head_h) W^O (section 3.2.2).

    head_i = Attention(Q W^Q_i, K W^K_i, V W^V_i); the matrices of all heads are concatenated.
    """

    def __init__(self, d_model: int, heads: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.heads = heads
        self.dropout = Dropout(dropout)
        self.may_fuse = is_code_unchanged()
        """whether something faster than `scaled_dot_product_attention` may compute Eq. 1"""
        self.query = nn.Linear(d_model, d_model)
        self.key = nn.Linear(d_model, d_model)
        self.value = nn.Linear(d_model, d_model)
        self.output = nn.Linear(d_model, d_model)

    def forward(self, x: Tensor, memory: Tensor, context: AttentionContext) -> Tensor:
        """Let each position of x (B, T, D) attend to the memory (B, S, D); return (B, T, D).

        For self-attention, pass the same tensor as x and as memory. Without padding
        (`UnpaddedLayout`, `PackedLayout`), x, memory and result are (U, D), each with its own U.
        """
        if (heads := self._attend_unpadded(x, memory, context)) is not None:
            return linear(self.output, heads)
        if memory is x:
            query, key, value = self.project_all(x, context.query_layout)
        else:
            query = self.project_query(x, context.query_layout)
            key, value = self.project_memory(memory, context.memory_layout)
        return self.attend(query, key, value, context)

    def _attend_unpadded(
        self, x: Tensor, memory: Tensor, context: AttentionContext
    ) -> Tensor | None:
        """Return the concatenated heads (U, D) by the C library, or None where it cannot do that.

        It moves no rows into tensors with padding. It draws no dropout and records no weights.
        """
        queries, keys = context.query_layout.sentences, context.memory_layout.sentences
        if not self.training or self.dropout.p > 0 or context.record is not None:
            return None
        if queries is None or keys is None or not can_attend(x, self.heads):
            return None
        query = linear(self.query, x)
        key, value = linear(self.key, memory), linear(self.value, memory)
        shape = AttentionShape(queries, keys, self.heads, context.is_causal)
        return attend_unpadded(query, key, value, shape)

    def attend(
        self, query: Tensor, key: Tensor, value: Tensor, context: AttentionContext
    ) -> Tensor:
        """Return the output (B, T, D) for queries (B, H, T, K), keys and values (B, H, S, K).

        With a `PackedLayout`, they are (U, H, K), the output is (U, D), and nothing is recorded.
        """
        if context.record is not None:
            query_like_key = query.to(key.dtype)  # a cache may hold keys of lower precision
            context.record.append(attention_weights(query_like_key, key, context.mask))
        heads = self._attention(query, key, value, context)
        return self.output(context.query_layout.join_heads(heads))  # (B, T, D)

    def _attention(
        self, query: Tensor, key: Tensor, value: Tensor, context: AttentionContext
    ) -> Tensor:
        """Return Eq. 1 by the fastest of the ways that the head of this file lists.

        Few queries are faster as it stands only if their keys are contiguous. Dropout on a CPU
        needs that too, because each thread draws masks from its own generator.
        """
        if not self.may_fuse:
            return scaled_dot_product_attention(query, key, value, context.mask, self.dropout)
        p = self.dropout.p if self.training else 0.0
        of_query, of_memory = context.query_layout, context.memory_layout
        if isinstance(of_query, PackedLayout) and isinstance(of_memory, PackedLayout):
            offsets = of_query.offsets, of_memory.offsets
            longest = of_query.longest, of_memory.longest
            return packed_attention(query, key, value, offsets, longest, context.is_causal, p)
        if query.device.type == "cpu":
            in_bf16 = query.dtype == torch.bfloat16
            if self.training:
                unfused = in_bf16 or p > 0
            else:
                contiguous = key.stride()[2:] == (key.shape[3], 1)  # within each head
                unfused = in_bf16 and contiguous and query.shape[2] <= FEW_QUERIES
            if unfused:
                return scaled_dot_product_attention(query, key, value, context.mask, self.dropout)
        return fused_attention(query, key, value, context.mask, p, context.is_causal)

    def _project(self, x: Tensor, *maps: nn.Module) -> Sequence[Tensor]:
        """Return the result of each of several linear maps of x.

        In training on an accelerator they are one product: fewer kernels, which are launched faster
        than many. LoRA's maps, which have other weights besides, stay on their own.
        """
        plain = [each for each in maps if type(each) is nn.Linear]
        if x.is_cpu or not self.training or len(plain) < len(maps):
            return [each(x) for each in maps]
        weight = torch.cat([each.weight for each in plain])
        bias = torch.cat([each.bias for each in plain])
        return F.linear(x, weight, bias).chunk(len(maps), dim=-1)

    def project_query(self, x: Tensor, layout: Layout = PADDED) -> Tensor:
        """Return the queries x W^Q of all heads: (B, T, D) -> (B, H, T, K)."""
        return layout.split_heads(self.query(x), self.heads)

    def project_memory(self, memory: Tensor, layout: Layout = PADDED) -> tuple[Tensor, Tensor]:
        """Return the keys and the values of all heads: (B, S, D) -> two of (B, H, S, K)."""
        key, value = self._project(memory, self.key, self.value)
        return layout.split_heads(key, self.heads), layout.split_heads(value, self.heads)

    def project_all(self, x: Tensor, layout: Layout = PADDED) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries, keys and values for self-attention: (B, T, D) -> three (B, H, T, K)."""
        query, key, value = (
            layout.split_heads(each, self.heads)
            for each in self._project(x, self.query, self.key, self.value)
        )
        return query, key, value
