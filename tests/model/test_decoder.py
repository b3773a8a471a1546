"""The decoder is Figure 1, right, in one pass and step by step."""

from collections.abc import Callable
from functools import partial
from typing import Literal

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from nmt.config import ModelConfig
from nmt.model.attention import AttentionContext
from nmt.model.decoder import Decoder, DecoderLayer
from nmt.model.masks import causal_mask, padding_mask

B, S, T, D = 2, 5, 4, 16
CAUSAL = AttentionContext(causal_mask(T))


def decoder(norm: Literal["post", "pre"]) -> Decoder:
    torch.manual_seed(1)
    return Decoder(ModelConfig(d_model=D, heads=2, d_ff=20, decoder_layers=3, norm=norm)).eval()


def source_mask() -> Tensor:
    return padding_mask(torch.tensor([[5, 6, 7, 8, 9], [5, 6, 0, 0, 0]]), padding=0)


def of_source() -> AttentionContext:
    return AttentionContext(source_mask())


def by_hand(x: Tensor, memory: Tensor, layer: DecoderLayer, pre: bool) -> Tensor:
    functions: list[Callable[[Tensor], Tensor]] = [
        lambda x: layer.self_attention(x, x, CAUSAL),
        lambda x: layer.cross_attention(x, memory, of_source()),
        layer.feed_forward,
    ]
    norms = [
        layer.self_attention_sublayer.norm,
        layer.cross_attention_sublayer.norm,
        layer.feed_forward_sublayer.norm,
    ]
    for f, module in zip(functions, norms, strict=True):
        normed = partial(
            F.layer_norm, normalized_shape=(D,), weight=module.weight, bias=module.bias
        )
        x = x + f(normed(x, eps=module.eps)) if pre else normed(x + f(x), eps=module.eps)
    return x


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_decoder_is_its_layers_in_turn(norm: Literal["post", "pre"]) -> None:
    stack, x, memory = decoder(norm), torch.randn(B, T, D), torch.randn(B, S, D)
    expected = x
    for layer in stack.layers:
        expected = by_hand(expected, memory, layer, pre=norm == "pre")
    torch.testing.assert_close(stack(x, memory, CAUSAL, of_source()), stack.norm(expected))


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_steps_equal_one_pass(norm: Literal["post", "pre"]) -> None:
    stack, x, memory = decoder(norm), torch.randn(B, T, D), torch.randn(B, S, D)
    cache = stack.start(memory, source_mask())
    with torch.inference_mode():
        steps = [stack.step(x[:, t : t + 1], cache) for t in range(T)]
        expected = stack(x, memory, CAUSAL, of_source())
    torch.testing.assert_close(torch.cat(steps, dim=1), expected)
    assert cache.length == T
    assert cache.stored == T
