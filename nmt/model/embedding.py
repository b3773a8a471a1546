"""Section 3.4: embeddings times sqrt(d_model); their matrix is also the output projection."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class TokenEmbedding(nn.Module):
    """E[ids] * sqrt(d_model), and the linear map back to the vocabulary with the same matrix E.

    "In our model, we share the same weight matrix between the two embedding layers and the
    pre-softmax linear transformation" (section 3.4): one `TokenEmbedding` serves all three.
    """

    def __init__(self, vocabulary_size: int, d_model: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(vocabulary_size, d_model))
        self.scale = math.sqrt(d_model)
        nn.init.normal_(self.weight, std=d_model**-0.5)

    def forward(self, ids: Tensor) -> Tensor:
        """Return the embeddings of ids times sqrt(d_model): (B, T) -> (B, T, D)."""
        return F.embedding(ids, self.weight) * self.scale

    def logits(self, x: Tensor) -> Tensor:
        """Return x E^T, the pre-softmax linear transformation: (B, T, D) -> (B, T, V)."""
        return F.linear(x, self.weight)
