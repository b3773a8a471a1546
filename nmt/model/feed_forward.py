"""Section 3.3: the position-wise feed-forward network."""

from collections.abc import Callable

import torch.nn.functional as F
from torch import Tensor, nn

from nmt.recipe.config import Activation

ACTIVATIONS: dict[Activation, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,  # max(0, x), the paper
    "gelu": F.gelu,  # x Phi(x) with the exact normal distribution, not its tanh approximation
    "swish": F.silu,  # x sigmoid(x)
}


class FeedForward(nn.Module):
    """FFN(x) = max(0, x W1 + b1) W2 + b2 (Eq. 2), or with another activation than max(0, x)."""

    def __init__(
        self, d_model: int, d_ff: int, dropout: float = 0.0, activation: Activation = "relu"
    ) -> None:
        super().__init__()
        self.inner = nn.Linear(d_model, d_ff)
        self.outer = nn.Linear(d_ff, d_model)
        self.dropout = nn.Dropout(dropout)
        self.activation = ACTIVATIONS[activation]

    def forward(self, x: Tensor) -> Tensor:
        """Transform each position on its own: (B, T, D) -> (B, T, D)."""
        return self.outer(self.dropout(self.activation(self.inner(x))))
