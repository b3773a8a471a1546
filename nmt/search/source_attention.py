"""What a decoder looked at in the source when it wrote each token.

Attention is a by-product of translating and no trained aligner. Garg et al., 2019 (Jointly Learning
to Align and Translate with Transformer Models) find the mean of the heads of the penultimate layer
most accurate. At the step that predicts a token, that is: Chen et al., 2020, look one step later,
where the token is the decoder's input, but which layer then serves, if any, varies with the model.
"""

from collections import deque
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from nmt.data.tokens.batch import Batch, collate
from nmt.data.tokens.token_store import TokenStore
from nmt.data.tokens.tokenizer import EOS
from nmt.model.attention import AttentionRecord
from nmt.model.transformer import Transformer
from nmt.search.ensemble import members


@torch.inference_mode()
def forced_attention(model: Transformer, batch: Batch) -> tuple[list[Tensor], Tensor]:
    """Feed the targets to a model in eval mode: each member's logits, and where it looks (B, T, S).

    The heads of a layer are averaged, and so are the models of an ensemble.
    """
    logits, weights = [], []
    for member in members(model):
        nothing: deque[Tensor] = deque(maxlen=0)
        record = AttentionRecord(encoder=nothing, decoder=nothing)
        logits.append(member(batch.source, batch.target_input, attention=record))
        weights.append(_alignment(record.cross))
    return logits, torch.stack(weights).mean(0)


def attention_of_step(model: Transformer, cross: Sequence[Tensor]) -> Tensor:
    """Where the hypotheses of a step look, as `forced_attention` says it: (N, k, S).

    `cross` are the weights of all layers, (N, H, k, S) each, those of one member after the other.
    """
    layers = iter(cross)
    of_members = [[next(layers) for _ in member.decoder.layers] for member in members(model)]
    return torch.stack([_alignment(own) for own in of_members]).mean(0)


def paired(sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> Batch:
    """A batch of source ids (with EOS) and target ids (without it), row by row."""
    ended = [[*target, EOS] for target in targets]
    return collate(TokenStore.of([list(s) for s in sources], ended), np.arange(len(ended)))


def most_attended(weights: Tensor, source: Tensor, padding: int) -> Tensor:
    """The place of the source (B, S) with most of the weights (B, T, S): (B, T).

    The end of the source is no place.
    """
    places = (source != padding) & (source != EOS)  # (B, S)
    return weights.masked_fill(~places[:, None], -1.0).argmax(2)


def _alignment(layers: Sequence[Tensor]) -> Tensor:
    """The mean of the heads of the layer that aligns best: each (B, H, T, S) -> (B, T, S)."""
    return alignment_layer(layers).float().mean(1)


def alignment_layer(layers: Sequence[Tensor]) -> Tensor:
    """The last but one: each (B, H, T, S); never the first where there are others.

    The first layer has not yet seen any of the source, and looks less at what it is about to write.
    """
    return layers[min(max(1, len(layers) - 2), len(layers) - 1)]
