"""What a decoder attends to in the source when it predicts each token, and what it leaves out.

Attention is a by-product of translation, not a trained aligner. Garg et al., 2019 (Jointly Learning
to Align and Translate with Transformer Models) find the mean over the heads of the penultimate
layer most accurate, at the step that predicts the token. Chen et al., 2020, take the next step,
where the token is the decoder's input; but the layer that works best then varies with the model.

The coverage penalty lowers the score of translations that leave out a part of the source. Wu et
al., 2016 (Google's Neural Machine Translation System), Eq. 14 and 15: s(Y, X) = log P(Y|X) / lp(Y)
+ cp(X; Y), where cp = beta * sum over source positions i of log(min(sum over target positions j of
p_ij, 1)) and p_ij is the attention that target position j pays to source position i. It chooses
among the translations that beam search has ended; it does not steer the search.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from nmt.config import DecodingConfig
from nmt.data.tokens.batch import Batch, collate
from nmt.data.tokens.token_store import TokenStore
from nmt.data.tokens.tokenizer import EOS, PAD
from nmt.model.attention import AttentionRecord
from nmt.model.transformer import Transformer
from nmt.search.decoding import Hypothesis
from nmt.search.ensemble import members
from nmt.search.windows import cut_into_batches

UNSEEN = 1e-6
"""the smallest attention of a position: log(0) is not finite"""


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
        weights.append(alignment_layer(record.cross).float().mean(1))
    return logits, torch.stack(weights).mean(0)


def attention_of_step(model: Transformer, cross: Sequence[Tensor]) -> Tensor:
    """The attention of the hypotheses of one step, as `teacher_forced_attention`: (N, k, S).

    `cross` holds the weights of all layers, (N, H, k, S) each, member after member.
    """
    layers = iter(cross)
    of_members = [[next(layers) for _ in member.decoder.layers] for member in members(model)]
    return torch.stack([alignment_layer(own).float().mean(1) for own in of_members]).mean(0)


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


def alignment_layer(layers: Sequence[Tensor]) -> Tensor:
    """The last layer but one: each (B, H, T, S); never the first if there are others.

    The first layer has not yet seen the source, so it attends less to what it is about to write.
    """
    return layers[min(max(1, len(layers) - 2), len(layers) - 1)]


def coverage(weights: Tensor, source: Tensor, target: Tensor) -> Tensor:
    """Eq. 15 without beta: attention (B, T, S), ids (B, S) and (B, T) -> (B,), at most 0.

    EOS of the source does not count.
    """
    written = (target != PAD)[:, :, None]
    seen = (weights * written).sum(1).clamp(UNSEEN, 1.0)  # (B, S)
    wanted = (source != PAD) & (source != EOS)
    return (seen.log() * wanted).sum(1)


def rank_by_coverage(
    model: Transformer,
    sources: Sequence[Sequence[int]],
    found: Sequence[Sequence[Hypothesis]],
    settings: DecodingConfig,
) -> list[list[Hypothesis]]:
    """Sort the hypotheses of each source by Eq. 14, the best first, and give them this score."""
    rows = [(i, h) for i, hypotheses in enumerate(found) for h in hypotheses]
    lengths = [max(len(sources[i]), len(h.tokens) + 1) for i, h in rows]
    ranked: list[list[Hypothesis]] = [[] for _ in sources]
    for part in cut_into_batches(range(len(rows)), lengths, settings.batch_tokens):
        pairs = [rows[place] for place in part]
        batch = paired([sources[i] for i, _ in pairs], [h.tokens for _, h in pairs])
        batch = batch.to(next(model.parameters()).device)
        _, weights = teacher_forced_attention(model, batch)
        values = coverage(weights, batch.source, batch.target_output).tolist()
        for (i, h), value in zip(pairs, values, strict=True):
            ranked[i].append(replace(h, score=h.score + settings.coverage_penalty * value))
    return [sorted(hypotheses, key=lambda h: -h.score) for hypotheses in ranked]
