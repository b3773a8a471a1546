"""What a decoder attends to in the source when it predicts each token.

Attention is a by-product of translation, not a trained aligner. Garg et al., 2019 (Jointly Learning
to Align and Translate with Transformer Models) find the mean over the heads of the penultimate
layer most accurate, at the step that predicts the token. Chen et al., 2020, take the next step,
where the token is the decoder's input; but the layer that works best then varies with the model.
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
def teacher_forced_attention(model: Transformer, batch: Batch) -> tuple[list[Tensor], Tensor]:
    """Feed the targets to a model in eval mode: logits of each member, mean attention (B, T, S).

    The attention is averaged over the heads of one layer and the members of an ensemble.
    """
    logits, weights = [], []
    for member in members(model):
        nothing: deque[Tensor] = deque(maxlen=0)
        record = AttentionRecord(encoder=nothing, decoder=nothing)
        logits.append(member(batch.source, batch.target_input, attention=record))
        weights.append(_alignment(record.cross))
    return logits, torch.stack(weights).mean(0)


def attention_of_step(model: Transformer, cross: Sequence[Tensor]) -> Tensor:
    """The attention of the hypotheses of one step, as `teacher_forced_attention`: (N, k, S).

    `cross` holds the weights of all layers, (N, H, k, S) each, member after member.
    """
    layers = iter(cross)
    of_members = [[next(layers) for _ in member.decoder.layers] for member in members(model)]
    return torch.stack([_alignment(own) for own in of_members]).mean(0)


def paired(sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> Batch:
    """A batch of source ids (with EOS) and target ids (without it), row by row."""
    ended = [[*target, EOS] for target in targets]
    return collate(TokenStore.of([list(s) for s in sources], ended), np.arange(len(ended)))


def most_attended(weights: Tensor, source: Tensor, padding: int) -> Tensor:
    """The source position (B, S) with the largest of the weights (B, T, S): (B, T).

    EOS and padding of the source do not count.
    """
    places = (source != padding) & (source != EOS)  # (B, S)
    return weights.masked_fill(~places[:, None], -1.0).argmax(2)


def _alignment(layers: Sequence[Tensor]) -> Tensor:
    """The mean of the heads of the layer that aligns best: each (B, H, T, S) -> (B, T, S)."""
    return alignment_layer(layers).float().mean(1)


def alignment_layer(layers: Sequence[Tensor]) -> Tensor:
    """The last layer but one: each (B, H, T, S); never the first if there are others.

    The first layer has not yet seen the source, so it attends less to what it is about to write.
    """
    return layers[min(max(1, len(layers) - 2), len(layers) - 1)]
