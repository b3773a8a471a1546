"""Guided alignment: one attention head learns which words translate each other.

Chen et al., 2016 (Guided Alignment Training for Topic-Aware Neural Machine Translation), add the
cross-entropy between given links and the attention to the loss; Garg et al., 2019 (Jointly Learning
to Align and Translate with Transformer Models), let one head of one layer learn them. With the
attention weights A of that head and the shares G of the links, which are 1 / n for each of the n
links of a target token, a batch adds

    -weight * sum over links (t, s) of G_ts log A_ts

The weights that align target token t are those of the next position, which reads the token itself
(Chen et al., 2020, Accurate Word Alignment Induction from Neural Machine Translation); the position
that predicts it would have to guess it first. Marian has those of that position all the same, and
so have its students for browsers: `position: predicts`.

The kernels for training give no attention weights. So the queries and keys of this head are
computed once more, beside them.
"""

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nmt.data.tokens.batch import Batch, PackedBatch, TokenLinks
from nmt.kernels.rows import in_rows, lengths_of, watch_inputs
from nmt.machine.device import autocast
from nmt.model.attention import AttentionRecord, MultiHeadAttention
from nmt.model.transformer import Transformer
from nmt.recipe.config import GuidedAlignmentConfig

_SMALLEST = 1e-9
"""attention weights count as at least this much: log(0) is not finite"""
Inputs = Sequence[tuple[Tensor, Tensor]]
"""what `nmt.kernels.rows.watch_inputs` has kept: x and memory of the guided attention"""


class GuidedHead:
    """The first head of the cross-attention of one decoder layer, which learns links."""

    def __init__(self, model: Transformer, settings: GuidedAlignmentConfig) -> None:
        """Watch the attention of `model`, a copy that is trained."""
        self.weight = settings.weight
        self.layer = settings.layer_index(len(model.decoder.layers))
        """index of the layer, from 0"""
        self._later = settings.steps_later
        watch_inputs(model.decoder.layers[self.layer].cross_attention)

    def loss_of_rows(self, batch: Batch, attention: AttentionRecord) -> Tensor:
        """Return the loss of a batch in rows, whose attention was recorded, in nats: scalar."""
        weights = attention.cross[self.layer][:, 0].float()  # (B, T, S)
        assert batch.links is not None
        return self._loss(weights.clamp(min=_SMALLEST).log(), batch.links)

    def loss(
        self, model: Transformer, batch: PackedBatch, inputs: Inputs, precision: str
    ) -> Tensor:
        """Return the loss of a batch without padding, in nats: scalar."""
        attention = model.decoder.layers[self.layer].cross_attention
        ((x, memory),) = inputs
        with autocast(x.device, precision):
            query = in_rows(_first_head(attention, attention.query, x), batch.target_side)
            key = in_rows(_first_head(attention, attention.key, memory), batch.source_side)
        scores = query.float() @ key.float().mT / math.sqrt(query.shape[-1])  # (B, T, S)
        lengths = lengths_of(batch.source_side)
        is_padding = torch.arange(key.shape[1], device=x.device) >= lengths[:, None]  # (B, S)
        scores = scores.masked_fill(is_padding[:, None], float("-inf"))
        assert batch.links is not None
        return self._loss(F.log_softmax(scores, dim=-1), batch.links)

    def _loss(self, log_weights: Tensor, links: TokenLinks) -> Tensor:
        """Return -sum of G_ts log A_ts of the links: log A (B, T, S) -> scalar."""
        # EOS has no links, so that there is a position after each token that has some
        log_shares = log_weights[links.pair, links.target + self._later, links.source]  # (L,)
        return -(links.share * log_shares).sum()


def _first_head(attention: MultiHeadAttention, linear: nn.Module, x: Tensor) -> Tensor:
    """Return the queries or the keys of the first head: (U, D) -> (U, K)."""
    width = attention.query.out_features // attention.heads
    if type(linear) is not nn.Linear:  # such as an adapter of LoRA
        return linear(x)[:, :width]
    return F.linear(x, linear.weight[:width], linear.bias[:width])
