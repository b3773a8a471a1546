"""Section 3.1: the residual connection and layer normalisation around every sub-layer."""

from collections.abc import Callable

from torch import Tensor, nn

from nmt.model.norm import build_norm
from nmt.recipe.config import ModelConfig


class Sublayer(nn.Module):
    """Post-norm, the paper: LayerNorm(x + Dropout(f(x))). Pre-norm: x + Dropout(f(LayerNorm(x))).

    Dropout acts on the output of the sub-layer, before it is added and normalised (section 5.4).
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.norm = build_norm(config)
        self.dropout = nn.Dropout(config.dropout)
        self.pre = config.norm == "pre"

    def forward(self, x: Tensor, f: Callable[[Tensor], Tensor]) -> Tensor:
        """Apply the sub-layer f, dropout, the residual sum and the norm: (B, T, D) -> (B, T, D)."""
        if self.pre:
            return x + self.dropout(f(self.norm(x)))
        normalized: Tensor = self.norm(x + self.dropout(f(x)))
        return normalized


def final_norm(config: ModelConfig) -> nn.Module:
    """Return the module after the last layer: a norm after pre-norm layers, else the identity."""
    return build_norm(config) if config.norm == "pre" else nn.Identity()
