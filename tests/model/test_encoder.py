"""The encoder is Figure 1, left: its layers written out with functions of PyTorch."""

from typing import Literal

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from nmt.config import ModelConfig
from nmt.model.attention import AttentionContext
from nmt.model.encoder import Encoder, EncoderLayer
from nmt.model.masks import padding_mask

D, S = 16, 6


def by_hand(x: Tensor, layer: EncoderLayer, context: AttentionContext, pre: bool) -> Tensor:
    def norm(x: Tensor, module: torch.nn.LayerNorm) -> Tensor:
        return F.layer_norm(x, (D,), module.weight, module.bias, module.eps)

    def attend(x: Tensor) -> Tensor:
        return layer.self_attention(x, x, context)

    first, second = layer.self_attention_sublayer.norm, layer.feed_forward_sublayer.norm
    if pre:
        x = x + attend(norm(x, first))
        return x + layer.feed_forward(norm(x, second))
    x = norm(x + attend(x), first)
    return norm(x + layer.feed_forward(x), second)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_encoder_is_its_layers_in_turn(norm: Literal["post", "pre"]) -> None:
    torch.manual_seed(1)
    encoder = Encoder(ModelConfig(d_model=D, heads=2, d_ff=20, encoder_layers=3, norm=norm)).eval()
    ids = torch.tensor([[5, 6, 7, 8, 9, 4], [5, 6, 7, 0, 0, 0]])
    context = AttentionContext(padding_mask(ids, padding=0))
    x = torch.randn(2, S, D)
    expected = x
    for layer in encoder.layers:
        assert isinstance(layer, EncoderLayer)
        expected = by_hand(expected, layer, context, pre=norm == "pre")
    torch.testing.assert_close(encoder(x, context), encoder.norm(expected))


def test_without_positions_the_order_of_tokens_is_invisible() -> None:
    """Self-attention treats a sentence as a set: permuted in, permuted out."""
    torch.manual_seed(2)
    encoder = Encoder(ModelConfig(d_model=D, heads=2, d_ff=20, encoder_layers=2)).eval()
    context = AttentionContext(None)
    x, order = torch.randn(1, S, D), torch.randperm(S)
    torch.testing.assert_close(encoder(x[:, order], context), encoder(x, context)[:, order])
