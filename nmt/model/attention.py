"""Section 3.2: scaled dot-product attention (Eq. 1) and multi-head attention."""

import math
from collections.abc import Callable, MutableSequence
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from nmt.model.positional_encoding import rotate


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
    record: MutableSequence[Tensor] | None = None,
) -> Tensor:
    """Return softmax(query key^T / sqrt(d_k)) value (Eq. 1).

    `query` and the result are (B, H, T, K), `key` and `value` (B, H, S, K). `mask` broadcasts to
    (B, H, T, S): True = may attend. `dropout`, if given, is applied to the attention weights.
    `record`, if given, gets the weights (B, H, T, S) before dropout.
    """
    weights = attention_weights(query, key, mask)
    if record is not None:
        record.append(weights)
    if dropout is not None:
        weights = dropout(weights)
    return weights @ value


@dataclass
class AttentionRecord:
    """Collects the attention weights of one forward pass, a (B, H, T, S) tensor per layer.

    They are the tensors of the pass itself, so `torch.autograd.grad` gives gradients for them; only
    the faster modules that training and search put in place compute them once more beside it.
    """

    encoder: MutableSequence[Tensor] = field(default_factory=list)
    decoder: MutableSequence[Tensor] = field(default_factory=list)
    cross: MutableSequence[Tensor] = field(default_factory=list)


@dataclass
class StateRecord:
    """Collects the hidden states of one forward pass, of both stacks.

    Each list has what the first layer gets, the embeddings with positions, and then the output of
    each layer, before the last norm of a pre-norm stack: one more than there are layers. They are
    the tensors of the pass itself, so `torch.autograd.grad` gives gradients for them.
    """

    encoder: MutableSequence[Tensor] = field(default_factory=list)
    """(B, S, D) each"""
    decoder: MutableSequence[Tensor] = field(default_factory=list)
    """(B, T, D) each"""


@dataclass(frozen=True)
class AttentionContext:
    """Which positions may attend to which, and where the attention weights are recorded."""

    mask: Tensor | None
    """broadcasts to (B, H, T, S); True = may attend, None = all may"""
    record: MutableSequence[Tensor] | None = None
    """if given, the weights (B, H, T, S) are appended to it"""
    is_causal: bool = False
    """whether the mask is that of `causal_mask`"""
    rotation: Tensor | None = None
    """(T, D): by what queries and keys are rotated, see `rotate`; None: they are not"""

    def record_weights(self, query: Tensor, key: Tensor) -> None:
        """Append the weights of queries (B, H, T, K) for keys (B, H, S, K), if they are wanted."""
        if self.record is not None:
            self.record.append(attention_weights(query, key, self.mask))


class MultiHeadAttention(nn.Module):
    """MultiHead(Q, K, V) = Concat(head_1, …, head_h) W^O (section 3.2.2).

    head_i = Attention(Q W^Q_i, K W^K_i, V W^V_i); the matrices of all heads are concatenated.
    """

    def __init__(self, d_model: int, heads: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.heads = heads
        self.dropout = nn.Dropout(dropout)
        self.query = nn.Linear(d_model, d_model)
        self.key = nn.Linear(d_model, d_model)
        self.value = nn.Linear(d_model, d_model)
        self.output = nn.Linear(d_model, d_model)

    def forward(self, x: Tensor, memory: Tensor, context: AttentionContext) -> Tensor:
        """Let each position of x (B, T, D) attend to the memory (B, S, D); return (B, T, D).

        For self-attention, pass the same tensor as x and as memory.
        """
        query = self.project_query(x, context.rotation)
        key, value = self.project_memory(memory, context.rotation)
        return self.attend(query, key, value, context)

    def project_query(self, x: Tensor, rotation: Tensor | None = None) -> Tensor:
        """Return the queries x W^Q of all heads, rotated: (B, T, D) -> (B, H, T, K)."""
        return self.split_heads(rotate(self.query(x), rotation))

    def project_memory(
        self, memory: Tensor, rotation: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return keys, rotated, and values of all heads: (B, S, D) -> two of (B, H, S, K)."""
        key = rotate(self.key(memory), rotation)
        return self.split_heads(key), self.split_heads(self.value(memory))

    def split_heads(self, x: Tensor) -> Tensor:
        """Split the width into heads: (B, T, D) -> (B, H, T, K)."""
        return x.unflatten(2, (self.heads, -1)).transpose(1, 2)

    def attend(
        self, query: Tensor, key: Tensor, value: Tensor, context: AttentionContext
    ) -> Tensor:
        """Return the output (B, T, D) for queries (B, H, T, K), keys and values (B, H, S, K)."""
        heads = self.attention(query, key, value, context)
        return self.output(heads.transpose(1, 2).flatten(2))  # concatenated: (B, T, D)

    def attention(
        self, query: Tensor, key: Tensor, value: Tensor, context: AttentionContext
    ) -> Tensor:
        """Return Eq. 1 of all heads (B, H, T, K), and record its weights if they are wanted."""
        mask, record = context.mask, context.record
        return scaled_dot_product_attention(query, key, value, mask, self.dropout, record)
