"""Section 3.4: embeddings times sqrt(d_model); their matrix is also the output projection."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class TokenEmbedding(nn.Module):
    """E[ids] * sqrt(d_model), and the linear map back to the vocabulary with the same matrix E.

    "In our model, we share the same weight matrix between the two embedding layers and the
    pre-softmax linear transformation" (section 3.4): one `TokenEmbedding` serves all three.

    Models of Marian differ in two ways: with `bias`, a learned number is added to each logit; and
    the embedding of the id `zero`, their begin symbol, is all zeros, whatever its row in E holds.
    With `same` (a, b), as in models of fairseq, the embedding of the id a is that of b.
    """

    def __init__(
        self,
        vocabulary_size: int,
        d_model: int,
        bias: bool = False,
        zero: int | None = None,
        same: tuple[int, int] | None = None,
    ) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(vocabulary_size, d_model))
        self.bias = nn.Parameter(torch.zeros(vocabulary_size)) if bias else None
        self.scale = math.sqrt(d_model)
        self.zero, self.same = zero, same
        nn.init.normal_(self.weight, std=d_model**-0.5)

    def forward(self, ids: Tensor) -> Tensor:
        """Return the embeddings of ids times sqrt(d_model): (B, T) -> (B, T, D)."""
        if self.same is not None:
            ids = ids.masked_fill(ids == self.same[0], self.same[1])
        x = F.embedding(ids, self.weight) * self.scale
        return x if self.zero is None else x.masked_fill((ids == self.zero)[..., None], 0.0)

    def logits(self, x: Tensor) -> Tensor:
        """Return x E^T (+ bias), the pre-softmax linear transformation: (B, T, D) -> (B, T, V).

        Training computes the same in `_SmoothedCrossEntropy` (`nmt.training.loss`), part by part.
        """
        return F.linear(x, self.weight, self.bias)
