"""A model that writes some entries of its target vocabulary alone: the others are not computed.

The projection onto 37,000 entries is two fifths of a decoding step of `base`. Where it is known
which few a batch may need, the rest can be left out.
"""

import copy

import torch.nn.functional as F
from torch import Tensor, nn

from nmt.model.embedding import TokenEmbedding
from nmt.model.transformer import Transformer


def restrict_vocabulary(model: Transformer, ids: Tensor) -> Transformer:
    """The model with the entries `ids` (V') for its target vocabulary.

    Target ids are places among these, and logits (…, V'): what searches by the ids of padding, BOS
    and EOS wants these to keep their places. It shares all weights but the rows of the output
    matrix, which are copied.
    """
    narrow = copy.copy(model)
    narrow._modules = dict(model._modules)
    output: nn.Module = model.output_embedding
    if isinstance(output, TokenEmbedding):
        output = _Projection(output.weight[ids])
    else:  # prepared for inference: it knows how its rows are stored
        output = output.restrict_vocabulary(ids)  # type: ignore[operator]
    narrow.add_module("output_embedding", output)
    narrow.add_module("target_embedding", _Renumbered(model.target_embedding, ids))
    return narrow


class _Projection(nn.Module):
    """The pre-softmax linear transformation with these rows of the matrix."""

    def __init__(self, weight: Tensor) -> None:
        super().__init__()
        self.weight = nn.Parameter(weight, requires_grad=False)

    def logits(self, x: Tensor) -> Tensor:
        """(N, k, D) -> (N, k, V')."""
        return F.linear(x, self.weight)


class _Renumbered(nn.Module):
    """An embedding of some entries, counted anew from 0."""

    def __init__(self, embedding: TokenEmbedding, ids: Tensor) -> None:
        super().__init__()
        self.embedding, self.ids = embedding, ids

    def forward(self, places: Tensor) -> Tensor:
        """(B, T) places among the ids -> (B, T, D)."""
        x: Tensor = self.embedding(self.ids[places])
        return x
