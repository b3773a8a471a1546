"""Restricts a model to a part of its target vocabulary; the logits of the rest are not computed.

The projection onto 37,000 entries takes two fifths of a decoding step of `base`. A shortlist tells
which few entries a batch may need.
"""

import copy

import torch.nn.functional as F
from torch import Tensor, nn

from nmt.model.embedding import TokenEmbedding
from nmt.model.transformer import Transformer


def restrict_vocabulary(model: Transformer, ids: Tensor) -> Transformer:
    """Return the model with only the entries `ids` (V') as its target vocabulary.

    A target id of the new model is an index into `ids`, and its logits are (…, V'). A search needs
    PAD, BOS and EOS to keep their ids, so `ids` must begin with these. All weights are shared,
    except the rows of the output matrix, which are copied.
    """
    narrow = copy.copy(model)
    narrow._modules = dict(model._modules)
    output: nn.Module = model.output_embedding
    if isinstance(output, TokenEmbedding):
        output = _Projection(output.weight[ids])
    else:  # a prepared model: its projection knows how its rows are stored
        output = output.restrict_vocabulary(ids)  # type: ignore[operator]
    narrow.add_module("output_embedding", output)
    narrow.add_module("target_embedding", _Renumbered(model.target_embedding, ids))
    return narrow


class _Projection(nn.Module):
    """The output projection with some rows of the matrix."""

    def __init__(self, weight: Tensor) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight, requires_grad=False)

    def logits(self, x: Tensor) -> Tensor:
        """Return the logits of the subset: (N, k, D) -> (N, k, V')."""
        return F.linear(x, self.weight)


class _Renumbered(nn.Module):
    """The embedding of the subset, whose ids count from 0."""

    def __init__(self, embedding: TokenEmbedding, ids: Tensor) -> None:
        super().__init__()
        self.embedding, self.ids = embedding, ids

    def forward(self, places: Tensor) -> Tensor:
        """Return the embeddings of ids of the subset: (B, T) -> (B, T, D)."""
        x: Tensor = self.embedding(self.ids[places])
        return x
