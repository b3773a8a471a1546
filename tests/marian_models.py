"""Converts a model of nmt into Hugging Face's MarianMTModel, which must compute the same function.

Marian is the post-norm Transformer with one embedding matrix. Its position table holds first all
sines and then all cosines, while ours interleaves them as the paper does. So the dimensions of the
residual stream (B, T, D) are reordered, in every matrix that reads it or writes it.
"""

import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from nmt.model.attention import MultiHeadAttention
from nmt.model.transformer import Transformer
from nmt.recipe.config import Activation, ModelConfig

AsMarian = Callable[..., nn.Module]
PROJECT = Path(__file__).resolve().parent.parent


def permutation(width: int) -> Tensor:
    """Return Marian's order of our dimensions: the even ones, then the odd ones."""
    return torch.cat((torch.arange(0, width, 2), torch.arange(1, width, 2)))


def linear(ours: nn.Linear, name: str, reads: bool, writes: bool) -> dict[str, Tensor]:
    """Return a linear map for Marian.

    `reads` says that its input is the residual stream, `writes` that its output is.
    """
    weight, bias = ours.weight.data, ours.bias.data
    weight = weight[:, permutation(weight.shape[1])] if reads else weight
    if writes:
        order = permutation(len(bias))
        weight, bias = weight[order], bias[order]
    return {f"{name}.weight": weight, f"{name}.bias": bias}


def attention(ours: MultiHeadAttention, name: str) -> dict[str, Tensor]:
    """Return the matrices of an attention in Marian's names."""
    inputs = {"q_proj": ours.query, "k_proj": ours.key, "v_proj": ours.value}
    state = linear(ours.output, f"{name}.out_proj", reads=False, writes=True)
    for place, projection in inputs.items():
        state |= linear(projection, f"{name}.{place}", reads=True, writes=False)
    return state


def norm(ours: nn.LayerNorm, name: str) -> dict[str, Tensor]:
    """Return a layer norm of the residual stream in Marian's names."""
    order = permutation(len(ours.bias))
    return {f"{name}.weight": ours.weight.data[order], f"{name}.bias": ours.bias.data[order]}


def layer(ours: Any, name: str) -> dict[str, Tensor]:
    """Return an encoder or decoder layer in Marian's names."""
    state = {
        **attention(ours.self_attention, f"{name}.self_attn"),
        **norm(ours.self_attention_sublayer.norm, f"{name}.self_attn_layer_norm"),
        **linear(ours.feed_forward.inner, f"{name}.fc1", reads=True, writes=False),
        **linear(ours.feed_forward.outer, f"{name}.fc2", reads=False, writes=True),
        **norm(ours.feed_forward_sublayer.norm, f"{name}.final_layer_norm"),
    }
    if hasattr(ours, "cross_attention"):
        state |= attention(ours.cross_attention, f"{name}.encoder_attn")
        state |= norm(ours.cross_attention_sublayer.norm, f"{name}.encoder_attn_layer_norm")
    return state


@pytest.fixture(scope="session")
def as_marian() -> AsMarian:
    """Return a function that converts a post-norm model with shared embeddings, in eval mode."""
    benchmark = runpy.run_path(str(PROJECT / "scripts" / "benchmarks" / "marian_model.py"))

    def converted(ours: Transformer, heads: int, activation: Activation = "relu") -> nn.Module:
        shared = ours.target_embedding.weight.data
        vocabulary, width = shared.shape
        sizes = ModelConfig(
            d_model=width,
            heads=heads,
            d_ff=len(ours.decoder.layers[0].feed_forward.inner.bias),
            encoder_layers=len(ours.encoder.layers),
            decoder_layers=len(ours.decoder.layers),
            activation=activation,
        )
        state = {"model.shared.weight": shared[:, permutation(width)]}
        for name, stack in (("encoder", ours.encoder), ("decoder", ours.decoder)):
            for number, one in enumerate(stack.layers):
                state |= layer(one, f"model.{name}.layers.{number}")
        model: nn.Module = benchmark["marian_model"](sizes, vocabulary).eval()
        missing, unexpected = model.load_state_dict(state, strict=False)
        assert not unexpected
        tied_or_computed = ("embed_tokens.weight", "embed_positions.weight", "lm_head.weight")
        assert all(name.endswith((*tied_or_computed, "final_logits_bias")) for name in missing)
        model.tie_weights()  # type: ignore[operator]
        return model

    return converted
