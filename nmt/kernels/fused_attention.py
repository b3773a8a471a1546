"""Eq. 1 by PyTorch's fused kernel, and activations in the type in which autocast multiplies."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nmt.model.attention import AttentionContext, MultiHeadAttention
from nmt.model.positional_encoding import PositionalEncoding, rotate

FEW_QUERIES = 8
"""queries per sentence (one per hypothesis) up to which a CPU is faster without the fused kernel"""


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
    if query.is_cpu and torch.is_autocast_enabled("cpu"):
        with torch.autocast("cpu", enabled=False):
            return fused_attention(query.float(), key.float(), value.float(), mask, dropout)
    if is_causal and query.is_cuda:
        return F.scaled_dot_product_attention(query, key, value, dropout_p=dropout, is_causal=True)
    return F.scaled_dot_product_attention(query, key, value, mask, dropout_p=dropout)


class FusedAttention(MultiHeadAttention):
    """Multi-head attention by PyTorch's fused kernel, where that is faster than Eq. 1 as written.

    As written it is faster on a CPU in bfloat16 for few queries, if their keys are contiguous; and
    in training on a CPU, in bfloat16 or with dropout of the weights.
    """

    def forward(self, x: Tensor, memory: Tensor, context: AttentionContext) -> Tensor:
        """Let each position of x (B, T, D) attend to the memory (B, S, D); return (B, T, D)."""
        query, key, value = map(self.split_heads, self.project(x, memory, context.rotation))
        return self.attend(query, key, value, context)

    def project(self, x: Tensor, memory: Tensor, rotation: Tensor | None) -> Sequence[Tensor]:
        """Return x W^Q, memory W^K and memory W^V: x (..., D) and memory (..., D) -> the same.

        The first two are rotated.
        """
        if memory is x:
            query, key, value = self._products(x, self.query, self.key, self.value)
        else:
            query, (key, value) = self.query(x), self._products(memory, self.key, self.value)
        return rotate(query, rotation), rotate(key, rotation), value

    def _products(self, x: Tensor, *maps: nn.Linear) -> Sequence[Tensor]:
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

    def attention(
        self, query: Tensor, key: Tensor, value: Tensor, context: AttentionContext
    ) -> Tensor:
        """Return Eq. 1 of all heads (B, H, T, K), and record its weights if they are wanted.

        Dropout on a CPU needs the weights, because each thread draws masks from its own generator.
        """
        p = self.dropout.p if self.training else 0.0
        if query.is_cpu:
            as_written = query.dtype == torch.bfloat16
            if self.training:
                as_written |= p > 0
            else:
                contiguous = key.stride()[2:] == (key.shape[3], 1)  # within each head
                as_written &= contiguous and query.shape[2] <= FEW_QUERIES
            if as_written:
                return super().attention(query, key, value, context)
        context.record_weights(query, key)
        return fused_attention(query, key, value, context.mask, p, context.is_causal)


class AutocastPositions(PositionalEncoding):
    """x + PE in the type in which autocast multiplies matrices, if it is on.

    All layers add to these sums and normalise them, so they keep the type as well. Cores wait for
    memory most of the time, and float32 takes twice as much as bfloat16.
    """

    def forward(self, x: Tensor, start: int = 0) -> Tensor:
        """Add the encodings of positions start (from 0), start + 1, …: (B, T, D) -> (B, T, D)."""
        return _in_type_of_products(super().forward(x, start))

    def add_to_rows(self, x: Tensor, positions: Tensor, length: int) -> Tensor:
        """Add the encodings of the positions (U,), all below `length`: (U, D) -> (U, D)."""
        is_rotary = self.positions == "rotary"
        return _in_type_of_products(x if is_rotary else x + self.up_to(length)[positions])

    def rotation_of_rows(self, positions: Tensor, length: int) -> Tensor | None:
        """Return what `rotate` needs for the positions (U,), all below `length`: (U, D)."""
        return self.up_to(length)[positions] if self.positions == "rotary" else None


class AutocastNorm(nn.LayerNorm):
    """PyTorch's layer normalisation with a result in the type of x.

    Autocast would return float32 on a GPU, which takes twice the memory traffic of bfloat16.
    """

    def forward(self, input: Tensor) -> Tensor:
        """Normalise the last dimension of the input: (B, T, D) -> (B, T, D)."""
        return super().forward(input).to(input.dtype)


def _in_type_of_products(x: Tensor) -> Tensor:
    device = x.device.type
    return x.to(torch.get_autocast_dtype(device)) if torch.is_autocast_enabled(device) else x


FUSED_MODULES: dict[type, type] = {
    MultiHeadAttention: FusedAttention,
    PositionalEncoding: AutocastPositions,
    nn.LayerNorm: AutocastNorm,
}
"""modules of the paper, and what computes the same faster on every device"""
