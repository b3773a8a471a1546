"""Encoder and decoder are the two halves of Figure 1: sub-layers in their order, layer by layer."""

import functools
from collections.abc import Callable
from typing import Any, get_args

import pytest
import torch
from torch import Tensor

from nmt.model.attention import AttentionContext
from nmt.model.decoder import Decoder
from nmt.model.encoder import Encoder
from nmt.model.masks import causal_mask, padding_mask
from nmt.recipe.config import ModelConfig, Norm

B, S, T, D = 2, 5, 4, 16
SOURCE = AttentionContext(padding_mask(torch.tensor([[5, 6, 7, 8, 9], [5, 6, 0, 0, 0]]), padding=0))
CAUSAL = AttentionContext(causal_mask(torch.empty(1, T)))


def of_layer(layer: Any, x: Tensor, **functions: Callable[[Tensor], Tensor]) -> Tensor:
    """Each function inside its residual connection, and inside or before its norm."""
    for name, f in functions.items():
        sublayer = getattr(layer, f"{name}_sublayer")
        x = x + f(sublayer.norm(x)) if sublayer.pre else sublayer.norm(x + f(x))
    return x


@pytest.mark.parametrize("norm", get_args(Norm))
def test_encoder_and_decoder_are_their_layers_in_turn(norm: Norm) -> None:
    torch.manual_seed(1)
    config = ModelConfig(
        d_model=D, heads=2, d_ff=20, encoder_layers=3, decoder_layers=3, norm=norm, dropout=0.0
    )
    encoder, decoder = Encoder(config), Decoder(config)
    source, target = torch.randn(B, S, D), torch.randn(B, T, D)

    def encode(x: Tensor, layer: Any) -> Tensor:
        return of_layer(
            layer,
            x,
            self_attention=lambda x: layer.self_attention(x, x, SOURCE),
            feed_forward=layer.feed_forward,
        )

    def decode(x: Tensor, layer: Any) -> Tensor:
        return of_layer(
            layer,
            x,
            self_attention=lambda x: layer.self_attention(x, x, CAUSAL),
            cross_attention=lambda x: layer.cross_attention(x, memory, SOURCE),
            feed_forward=layer.feed_forward,
        )

    memory = encoder.norm(functools.reduce(encode, encoder.layers, source))
    torch.testing.assert_close(encoder(source, SOURCE), memory)
    expected = decoder.norm(functools.reduce(decode, decoder.layers, target))
    torch.testing.assert_close(decoder(target, memory, CAUSAL, SOURCE), expected)
