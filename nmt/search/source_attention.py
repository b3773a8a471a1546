"""The decoder's attention to the source for each target token, and the coverage penalty.

Attention is a by-product of translation, not a trained aligner, unless training.guided_alignment
has trained a head of it (`nmt.training.guided_alignment`). Garg et al., 2019 (Jointly Learning to
Align and Translate with Transformer Models) find the mean over the heads of the penultimate layer
most accurate, at the step that predicts the token.

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

from nmt.data.tokens.batch import Batch, collate
from nmt.data.tokens.token_store import TokenStore
from nmt.data.tokens.tokenizer import EOS, PAD
from nmt.model.attention import AttentionRecord
from nmt.model.transformer import Transformer
from nmt.recipe.config import DecodingConfig, GuidedAlignmentConfig, alignment_layer
from nmt.search.ensemble import members
from nmt.search.hypothesis import Hypothesis
from nmt.search.windows import cut_into_batches

UNSEEN = 1e-6
"""the sum of attention to a source position is at least this, because log(0) is not finite"""


@torch.inference_mode()
def teacher_forced_attention(
    model: Transformer, batch: Batch, guided: GuidedAlignmentConfig | None = None
) -> tuple[list[Tensor], Tensor]:
    """Feed the targets to a model in eval mode, and return logits and attention (B, T, S).

    The logits are a list: (B, T, V) of each model of an ensemble, or of one model. The attention
    is the mean over the heads of one layer (`of_alignment_layer`) and over the models; with
    `guided`, it is that of the head that learnt alignments, of the first model.
    """
    logits, weights = [], []
    for member in members(model):
        unused: deque[Tensor] = deque(maxlen=0)  # drops all weights that are appended to it
        record = AttentionRecord(encoder=unused, decoder=unused)
        logits.append(member(batch.source, batch.target_input, attention=record))
        if guided is None:
            weights.append(of_alignment_layer(record.cross).float().mean(1))
        elif not weights:
            weights.append(_of_guided_head(record.cross, guided))
    return logits, torch.stack(weights).mean(0)


def _of_guided_head(layers: Sequence[Tensor], guided: GuidedAlignmentConfig) -> Tensor:
    """Return the attention (B, T, S) of the head that learnt alignments, for each target token.

    EOS, which no position reads, has that of the last one.
    """
    weights, later = layers[guided.layer_index(len(layers))][:, 0].float(), guided.steps_later
    return torch.cat((weights[:, later:], weights[:, -1:]), 1)[:, : weights.shape[1]]


def attention_of_step(model: Transformer, cross: Sequence[Tensor]) -> Tensor:
    """Return a step's attention (N, k, S): the mean over one layer's heads, and over the models.

    `cross` lists the weights (N, H, k, S) of all layers of the first model, then of the second, ….
    """
    of_models, first = [], 0  # `first`: the index of the first layer of the next model
    for member in members(model):
        end = first + len(member.decoder.layers)
        of_models.append(of_alignment_layer(cross[first:end]).float().mean(1))  # (N, k, S)
        first = end
    return torch.stack(of_models).mean(0)


def batch_of_pairs(sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> Batch:
    """Return sentence pairs as one batch; `sources` end with EOS, `targets` get it here."""
    ended = [[*target, EOS] for target in targets]
    return collate(TokenStore.of([list(s) for s in sources], ended), np.arange(len(ended)))


def most_attended(weights: Tensor, source: Tensor, padding: int) -> Tensor:
    """Find the source position of the largest weight: (B, T, S), source ids (B, S) -> (B, T).

    EOS and padding of the source do not count.
    """
    is_word = (source != padding) & (source != EOS)  # (B, S)
    return weights.masked_fill(~is_word[:, None], -1.0).argmax(2)  # all weights are above -1


def of_alignment_layer(layers: Sequence[Tensor]) -> Tensor:
    """Return the weights (B, H, T, S) of the layer that aligns words best."""
    return layers[alignment_layer(len(layers))]


def coverage(weights: Tensor, source: Tensor, target: Tensor) -> Tensor:
    """Return cp / beta (Eq. 15), at most 0: attention (B, T, S), ids (B, S) and (B, T) -> (B,).

    The EOS of the source does not count; the EOS of the target does.
    """
    is_token = (target != PAD)[:, :, None]
    seen = (weights * is_token).sum(1).clamp(UNSEEN, 1.0)  # (B, S)
    is_word = (source != PAD) & (source != EOS)
    return (seen.log() * is_word).sum(1)


def rank_by_coverage(
    model: Transformer,
    sources: Sequence[Sequence[int]],
    hypotheses: Sequence[Sequence[Hypothesis]],
    settings: DecodingConfig,
) -> list[list[Hypothesis]]:
    """Return each source's hypotheses with the coverage penalty in their scores, best first."""
    # all hypotheses in one list, each with the index of its source
    rows = [(i, h) for i, of_source in enumerate(hypotheses) for h in of_source]
    lengths = [max(len(sources[i]), len(h.tokens) + 1) for i, h in rows]  # + 1: EOS
    ranked: list[list[Hypothesis]] = [[] for _ in sources]
    for indices in cut_into_batches(range(len(rows)), lengths, settings.batch_tokens):
        pairs = [rows[index] for index in indices]
        batch = batch_of_pairs([sources[i] for i, _ in pairs], [h.tokens for _, h in pairs])
        batch = batch.to(next(model.parameters()).device)
        _logits, weights = teacher_forced_attention(model, batch)
        values = coverage(weights, batch.source, batch.target_output).tolist()
        for (i, h), value in zip(pairs, values, strict=True):
            ranked[i].append(replace(h, score=h.score + settings.coverage_penalty * value))
    return [sorted(of_source, key=lambda h: -h.score) for of_source in ranked]
