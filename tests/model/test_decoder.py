"""The decoder is Figure 1, right, in one pass and step by step."""

from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from nmt.config import ModelConfig
from nmt.model.decoder import Decoder, DecoderLayer
from nmt.model.masks import causal_mask, padding_mask

B, S, T, D = 2, 5, 4, 16


def decoder(norm: str) -> Decoder:
    torch.manual_seed(1)
    return Decoder(ModelConfig(d_model=D, heads=2, d_ff=20, decoder_layers=3, norm=norm)).eval()


def source_mask() -> Tensor:
    return padding_mask(torch.tensor([[5, 6, 7, 8, 9], [5, 6, 0, 0, 0]]), padding=0)


def by_hand(x: Tensor, memory: Tensor, layer: DecoderLayer, pre: bool) -> Tensor:
    functions = [
        lambda x: layer.self_attention(x, x, causal_mask(T)),
        lambda x: layer.cross_attention(x, memory, source_mask()),
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
def test_decoder_is_its_layers_in_turn(norm: str) -> None:
    stack, x, memory = decoder(norm), torch.randn(B, T, D), torch.randn(B, S, D)
    expected = x
    for layer in stack.layers:
        expected = by_hand(expected, memory, layer, pre=norm == "pre")
    torch.testing.assert_close(stack(x, memory, source_mask()), stack.norm(expected))


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_steps_equal_one_pass(norm: str) -> None:
    stack, x, memory = decoder(norm), torch.randn(B, T, D), torch.randn(B, S, D)
    cache = stack.start(memory, source_mask())
    with torch.inference_mode():
        steps = [stack.step(x[:, t : t + 1], cache) for t in range(T)]
        expected = stack(x, memory, source_mask())
    torch.testing.assert_close(torch.cat(steps, dim=1), expected)
    assert cache.length == T
    assert cache.stored == T
