"""Attention is Eq. 1, head by head."""

import numpy as np
import torch
from torch import Tensor

from nmt.model.attention import (
    AttentionContext,
    MultiHeadAttention,
    scaled_dot_product_attention,
)
from nmt.model.masks import padding_mask

B, H, T, S, K = 2, 3, 5, 7, 4


def random_heads(dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor, Tensor]:
    """Query (B, H, T, K), key and value (B, H, S, K)."""
    torch.manual_seed(1)
    shapes = ((B, H, T, K), (B, H, S, K), (B, H, S, K))
    query, key, value = (3 * torch.randn(shape, dtype=dtype) for shape in shapes)
    return query, key, value


def source_mask() -> Tensor:
    ids = torch.ones(B, S, dtype=torch.int64)
    ids[0, 4:] = 0
    return padding_mask(ids, padding=0)


def equation_1(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Attention(Q, K, V) = softmax(Q K^T / sqrt(d_k)) V of one head, written out."""
    exponentials = np.exp(q @ k.T / np.sqrt(q.shape[1]))
    return exponentials / exponentials.sum(axis=1, keepdims=True) @ v


def test_attention_is_equation_1() -> None:
    query, key, value = random_heads(torch.float64)
    attended = scaled_dot_product_attention(query, key, value, None).numpy()
    for b in range(B):
        for h in range(H):
            expected = equation_1(query[b, h].numpy(), key[b, h].numpy(), value[b, h].numpy())
            np.testing.assert_allclose(attended[b, h], expected, rtol=1e-12)


def test_masked_attention_is_equation_1_over_the_allowed_positions() -> None:
    query, key, value = random_heads(torch.float64)
    attended = scaled_dot_product_attention(query, key, value, source_mask())
    short = scaled_dot_product_attention(query[:1], key[:1, :, :4], value[:1, :, :4], None)
    torch.testing.assert_close(attended[:1], short)


def test_multi_head_attention_is_attention_in_slices_of_the_width() -> None:
    torch.manual_seed(2)
    width = H * K
    attention = MultiHeadAttention(width, H).double()
    x = torch.randn(B, T, width, dtype=torch.float64)
    memory = torch.randn(B, S, width, dtype=torch.float64)
    mask = source_mask()
    maps = ((x, attention.query), (memory, attention.key), (memory, attention.value))
    heads = []
    for h in range(H):
        rows = slice(h * K, (h + 1) * K)
        parts = [inputs @ linear.weight[rows].T + linear.bias[rows] for inputs, linear in maps]
        heads.append(scaled_dot_product_attention(parts[0], parts[1], parts[2], mask[:, 0]))
    expected = attention.output(torch.cat(heads, dim=2))
    torch.testing.assert_close(attention(x, memory, AttentionContext(mask)), expected)


def test_recorded_weights_are_those_of_each_head() -> None:
    torch.manual_seed(3)
    attention = MultiHeadAttention(H * K, H)
    x, memory = torch.randn(B, T, H * K), torch.randn(B, S, H * K)
    record: list[Tensor] = []
    silent = attention(x, memory, AttentionContext(source_mask()))
    recorded = attention(x, memory, AttentionContext(source_mask(), record=record))
    assert torch.equal(silent, recorded)
    assert [weights.shape for weights in record] == [(B, H, T, S)]
    _, value = attention.project_memory(memory)
    expected = attention.output((record[0] @ value).transpose(1, 2).reshape(B, T, H * K))
    torch.testing.assert_close(recorded, expected)


def test_a_row_of_padding_alone_does_no_harm() -> None:
    """Its weights are finite, and so are all gradients in training."""
    torch.manual_seed(1)
    attention = MultiHeadAttention(8, 2, dropout=0.5).train()
    mask = torch.tensor([[True, True], [False, False]])[:, None, None]
    record: list[Tensor] = []
    x = torch.randn(2, 2, 8)
    attention(x, x, AttentionContext(mask, record=record))[0].sum().backward()
    assert record[0].isfinite().all()
    gradients = [weight.grad for weight in attention.parameters()]
    assert all(grad is not None and grad.isfinite().all() for grad in gradients)
