"""Our weights as a model of CTranslate2, through its public specification classes."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from ctranslate2.specs import common_spec, transformer_spec

from nmt.config import ModelConfig
from nmt.data.tokens.tokenizer import BOS, EOS, UNK
from nmt.model.attention import MultiHeadAttention
from nmt.model.feed_forward import FeedForward
from nmt.model.positional_encoding import sinusoids
from nmt.model.transformer import Transformer

LONGEST = 1024


def convert(
    model: Transformer, config: ModelConfig, pieces: list[str], folder: Path, quantization: str
) -> None:
    """Write the model with one vocabulary of `pieces`; `quantization` float32 or int8."""
    layers = (config.encoder_layers, config.decoder_layers)
    spec = transformer_spec.TransformerSpec.from_config(
        layers,
        config.heads,
        pre_norm=config.norm == "pre",
        activation=common_spec.Activation.RELU,
    )
    spec.encoder.embeddings[0].weight = _array(model.source_embedding.weight)
    spec.decoder.embeddings.weight = _array(model.target_embedding.weight)
    spec.decoder.projection.weight = _array(model.output_embedding.weight)
    for side in (spec.encoder, spec.decoder):
        side.scale_embeddings = True
        side.position_encodings.encodings = _array(sinusoids(LONGEST, config.d_model))
    for side, stack in ((spec.encoder, model.encoder), (spec.decoder, model.decoder)):
        if config.norm == "pre":
            _norm(side.layer_norm, stack.norm)
        for theirs, ours in zip(side.layer, stack.layers, strict=True):
            _layer(theirs, ours)
    spec.register_source_vocabulary(pieces)
    spec.register_target_vocabulary(pieces)
    spec.config.bos_token, spec.config.eos_token = pieces[BOS], pieces[EOS]
    spec.config.unk_token, spec.config.decoder_start_token = pieces[UNK], pieces[BOS]
    spec.config.add_source_eos = False  # our ids end with it
    spec.config.layer_norm_epsilon = config.layer_norm_epsilon
    spec.validate()
    spec.optimize(quantization=None if quantization == "float32" else quantization)
    folder.mkdir(parents=True, exist_ok=True)
    spec.save(str(folder))


def _layer(theirs: Any, ours: Any) -> None:
    _self_attention(theirs.self_attention, ours.self_attention)
    _norm(theirs.self_attention.layer_norm, ours.self_attention_sublayer.norm)
    if hasattr(ours, "cross_attention"):
        cross: MultiHeadAttention = ours.cross_attention
        _linear(theirs.attention.linear[0], cross.query)
        _linear(theirs.attention.linear[1], cross.key, cross.value)
        _linear(theirs.attention.linear[2], cross.output)
        _norm(theirs.attention.layer_norm, ours.cross_attention_sublayer.norm)
    feed_forward: FeedForward = ours.feed_forward
    _linear(theirs.ffn.linear_0, feed_forward.inner)
    _linear(theirs.ffn.linear_1, feed_forward.outer)
    _norm(theirs.ffn.layer_norm, ours.feed_forward_sublayer.norm)


def _self_attention(theirs: Any, ours: MultiHeadAttention) -> None:
    _linear(theirs.linear[0], ours.query, ours.key, ours.value)
    _linear(theirs.linear[1], ours.output)


def _linear(theirs: Any, *ours: torch.nn.Linear) -> None:
    theirs.weight = np.concatenate([_array(linear.weight) for linear in ours])
    theirs.bias = np.concatenate([_array(linear.bias) for linear in ours])


def _norm(theirs: Any, ours: Any) -> None:
    theirs.gamma, theirs.beta = _array(ours.weight), _array(ours.bias)


def _array(tensor: torch.Tensor) -> Any:
    """A copy: its quantisation writes into what it is given."""
    return tensor.detach().float().numpy().copy()
