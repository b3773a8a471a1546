"""Section 3.1: layer normalisation, or the same without its mean and its bias (RMSNorm)."""

import torch
from torch import Tensor, nn

from nmt.recipe.config import ModelConfig


class RMSNorm(nn.Module):
    """x / RMS(x) * gain, with RMS(x) = sqrt(mean of x^2 + epsilon).

    Zhang and Sennrich, 2019 (Root Mean Square Layer Normalization), Eq. 4.
    """

    def __init__(self, d_model: int, epsilon: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d_model))
        self.eps = epsilon

    def forward(self, x: Tensor) -> Tensor:
        """Normalise each position on its own, in float32 at least: (B, T, D) -> (B, T, D)."""
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        inverse = torch.rsqrt(wide.square().mean(-1, keepdim=True) + self.eps)  # (B, T, 1)
        return (wide * inverse * self.weight).to(x.dtype)


def build_norm(config: ModelConfig) -> nn.LayerNorm | RMSNorm:
    """Return a new norm of the kind that the recipe names."""
    kind = RMSNorm if config.norm_kind == "rms" else nn.LayerNorm
    return kind(config.d_model, config.layer_norm_epsilon)
