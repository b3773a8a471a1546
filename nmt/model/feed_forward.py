"""Section 3.3: the position-wise feed-forward network."""

from collections.abc import Callable

import torch.nn.functional as F
from torch import Tensor, nn

from nmt.recipe.config import Activation, ModelConfig

ACTIVATIONS: dict[Activation, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,  # max(0, x), the paper
    "gelu": F.gelu,  # x Phi(x) with the exact normal distribution, not its tanh approximation
    "swish": F.silu,  # x sigmoid(x)
}


class FeedForward(nn.Module):
    """FFN(x) = max(0, x W1 + b1) W2 + b2 (Eq. 2), or with another activation f than max(0, x).

    Gated: FFN(x) = (f(x W1 + b1) * (x V + c)) W2 + b2, where * is element by element; SwiGLU for
    f = swish (Shazeer, 2020, GLU Variants Improve Transformer, Eq. 5 and 6, without biases there).
    """

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        dropout: float = 0.0,
        activation: Activation = "relu",
        gated: bool = False,
    ) -> None:
        super().__init__()
        self.inner = nn.Linear(d_model, d_ff)
        self.gate = nn.Linear(d_model, d_ff) if gated else None
        self.outer = nn.Linear(d_ff, d_model)
        self.dropout = nn.Dropout(dropout)
        self.activation = ACTIVATIONS[activation]

    def forward(self, x: Tensor) -> Tensor:
        """Transform each position on its own: (B, T, D) -> (B, T, D)."""
        hidden = self.activation(self.inner(x))  # (B, T, F)
        if self.gate is not None:
            hidden = hidden * self.gate(x)
        return self.outer(self.dropout(hidden))


def build_feed_forward(config: ModelConfig) -> FeedForward:
    """Return a new feed-forward network of the kind that the recipe names."""
    gated = config.feed_forward == "gated"
    sizes = config.d_model, config.d_ff
    return FeedForward(*sizes, config.activation_dropout, config.activation, gated)
