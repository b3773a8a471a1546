"""Section 3.2: scaled dot-product attention (Eq. 1) and multi-head attention."""

import math
from collections.abc import Callable, MutableSequence
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nmt.model.dropout import Dropout
from nmt.model.layout import PADDED, Layout

FEW_QUERIES = 8
"""of a sentence, such as its hypotheses"""


def attention_weights(query: Tensor, key: Tensor, mask: Tensor | None) -> Tensor:
    """softmax(Q K^T / sqrt(d_k)): (B, H, T, K), (B, H, S, K) -> (B, H, T, S).

    `mask` broadcasts to (B, H, T, S); True = may attend. Minus infinity, of which a row of nothing
    but padding would make NaN, is the lowest number that there is.
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
    """Attention(Q, K, V) = softmax(Q K^T / sqrt(d_k)) V (Eq. 1) -> (B, H, T, K).

    The equation as it is read; `dropout` acts on the weights.
    """
    weights = attention_weights(query, key, mask)
    if dropout is not None:
        weights = dropout(weights)
    return weights @ value


def rows_are_adjacent(key: Tensor) -> bool:
    """Whether the keys of each head (B, H, S, K) stand one after the other in memory."""
    return key.stride()[2:] == (key.shape[3], 1)


def fused_attention(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropout: float = 0.0
) -> Tensor:
    """Eq. 1 by PyTorch's fused kernel, which never stores the weights -> (B, H, T, K).

    Under autocast on a CPU, which is how a model is validated there, in float32.
    """
    if query.device.type == "cpu" and torch.is_autocast_enabled("cpu"):
        with torch.autocast("cpu", enabled=False):
            query, key, value = query.float(), key.float(), value.float()
            return F.scaled_dot_product_attention(query, key, value, mask, dropout_p=dropout)
    return F.scaled_dot_product_attention(query, key, value, mask, dropout_p=dropout)


@dataclass
class AttentionRecord:
    """Collects the attention weights of one forward pass, one (B, H, T, S) tensor a layer."""

    encoder: MutableSequence[Tensor] = field(default_factory=list)
    decoder: MutableSequence[Tensor] = field(default_factory=list)
    cross: MutableSequence[Tensor] = field(default_factory=list)


class MultiHeadAttention(nn.Module):
    """MultiHead(Q, K, V) = Concat(head_1, …, head_h) W^O (section 3.2.2).

    head_i = Attention(Q W^Q_i, K W^K_i, V W^V_i); the matrices of all heads stand side by side.
    """

    def __init__(self, d_model: int, heads: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.heads = heads
        self.dropout = Dropout(dropout)
        self.query = nn.Linear(d_model, d_model)
        self.key = nn.Linear(d_model, d_model)
        self.value = nn.Linear(d_model, d_model)
        self.output = nn.Linear(d_model, d_model)

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        mask: Tensor | None,
        record: MutableSequence[Tensor] | None = None,
        layouts: tuple[Layout, Layout] = (PADDED, PADDED),
    ) -> Tensor:
        """Positions of x (B, T, D) attend to positions of memory (B, S, D) -> (B, T, D).

        `layouts` are those of x and of memory.
        """
        of_x, of_memory = layouts
        if memory is x:
            return self.attend(*self.project_all(x, of_x), mask, record, of_x)
        key, value = self.project_memory(memory, of_memory)
        return self.attend(self.project_query(x, of_x), key, value, mask, record, of_x)

    def attend(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None,
        record: MutableSequence[Tensor] | None = None,
        layout: Layout = PADDED,
    ) -> Tensor:
        """Projected queries (B, H, T, K) attend to keys and values (B, H, S, K) -> (B, T, D)."""
        if record is not None:
            record.append(attention_weights(query.to(key.dtype), key, mask))
        heads = self._attention(query, key, value, mask)
        return self.output(layout.join_heads(heads))  # (B, T, D)

    def _attention(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
        """Eq. 1 by the fused kernel; on a CPU as it is read, where that is faster in bf16.

        That is in training, and for few queries of keys that lie side by side. It is also needed
        for `dropout`, which has masks of each thread's own.
        """
        p = self.dropout.p if self.training else 0.0
        if query.device.type == "cpu":
            in_bf16 = query.dtype == torch.bfloat16
            if self.training:
                as_read = in_bf16 or p > 0
            else:
                as_read = in_bf16 and query.shape[2] <= FEW_QUERIES and rows_are_adjacent(key)
            if as_read:
                return scaled_dot_product_attention(query, key, value, mask, self.dropout)
        return fused_attention(query, key, value, mask, p)

    def project_query(self, x: Tensor, layout: Layout = PADDED) -> Tensor:
        """Q W^Q for all heads: (B, T, D) -> (B, H, T, K)."""
        return layout.split_heads(self.query(x), self.heads)

    def project_memory(self, memory: Tensor, layout: Layout = PADDED) -> tuple[Tensor, Tensor]:
        """K W^K and V W^V for all heads: (B, S, D) -> twice (B, H, S, K)."""
        key, value = self.key(memory), self.value(memory)
        return layout.split_heads(key, self.heads), layout.split_heads(value, self.heads)

    def project_all(self, x: Tensor, layout: Layout = PADDED) -> tuple[Tensor, Tensor, Tensor]:
        """Query, key and value of what attends to itself: (B, T, D) -> three (B, H, T, K)."""
        key, value = self.project_memory(x, layout)
        return self.project_query(x, layout), key, value
