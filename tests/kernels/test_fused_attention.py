"""PyTorch's fused kernel computes Eq. 1, and which way is taken is invisible in the result."""

import pytest
import torch
from torch import Tensor

from nmt.kernels.fused_attention import FusedAttention, fused_attention
from nmt.model.attention import AttentionContext, MultiHeadAttention, scaled_dot_product_attention
from nmt.model.masks import causal_mask
from tests.model.test_attention import B, H, K, S, T, random_heads, source_mask


@pytest.fixture(autouse=True)
def processor() -> None:
    """Let the tests run once: nothing here is in C."""


@pytest.mark.parametrize("mask", [None, source_mask(), causal_mask(torch.empty(B, T))])
def test_fused_attention_equals_equation_1(mask: Tensor | None) -> None:
    query, key, value = random_heads()
    if mask is not None and mask.shape[-1] == T:
        key, value = key[:, :, :T], value[:, :, :T]
    expected = scaled_dot_product_attention(query, key, value, mask)
    fused = fused_attention(query, key, value, mask)
    assert (fused - expected).abs().max() < 2e-6 * expected.abs().max()


def test_fused_attention_stays_in_float32_on_a_cpu_under_autocast() -> None:
    query, key, value = random_heads()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        fused = fused_attention(query, key, value, None)
    assert fused.dtype == torch.float32
    torch.testing.assert_close(fused, scaled_dot_product_attention(query, key, value, None))


def test_training_in_bfloat16_is_equation_1_on_a_cpu_and_near_the_fused_kernel() -> None:
    torch.manual_seed(5)
    attention = MultiHeadAttention(H * K, H)
    attention.__class__ = FusedAttention
    x, memory = torch.randn(B, T, H * K), torch.randn(B, S, H * K)
    results = {}
    for training in (True, False):
        attention.train(training)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            results[training] = attention(x, memory, AttentionContext(source_mask()))
    assert not torch.equal(results[True], results[False])
    torch.testing.assert_close(results[True], results[False], rtol=0.05, atol=0.02)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_heads_output_and_recorded_weights_are_those_of_the_paper(
    training: bool, dropout: float
) -> None:
    torch.manual_seed(1)
    paper = MultiHeadAttention(H * K, H, dropout).train(training)
    x, memory = torch.randn(B, T, H * K), torch.randn(B, S, H * K)
    found: dict[type, list[Tensor]] = {}
    for kind in (MultiHeadAttention, FusedAttention):
        paper.__class__ = kind
        torch.manual_seed(2)
        record: list[Tensor] = []
        found[kind] = [paper(x, memory, AttentionContext(source_mask(), record=record)), *record]
    torch.testing.assert_close(found[FusedAttention], found[MultiHeadAttention])
