"""Section 3.1: the residual connection and layer normalisation around every sub-layer."""

from collections.abc import Callable

from torch import Tensor, nn

from nmt.kernels.library import can_use_kernels
from nmt.kernels.norm import add_and_normalize
from nmt.model.dropout import Dropout
from nmt.recipe.config import ModelConfig


class LayerNorm(nn.LayerNorm):
    """PyTorch's layer normalisation with a result in the type of x.

    Autocast would return float32 on a GPU, which takes twice the memory traffic of bfloat16.
    """

    def forward(self, x: Tensor) -> Tensor:
        """Normalise the last dimension of x: (B, T, D) -> (B, T, D)."""
        return super().forward(x).to(x.dtype)


class Sublayer(nn.Module):
    """Post-norm, the paper: LayerNorm(x + Dropout(f(x))). Pre-norm: x + Dropout(f(LayerNorm(x))).

    Dropout acts on the output of the sub-layer, before it is added and normalised (section 5.4).
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.norm = LayerNorm(config.d_model, eps=config.layer_norm_epsilon)
        self.dropout = Dropout(config.dropout)
        self.pre = config.norm == "pre"

    def forward(self, x: Tensor, f: Callable[[Tensor], Tensor]) -> Tensor:
        """Apply the sub-layer f, dropout, the residual sum and the norm: (B, T, D) -> (B, T, D)."""
        if self.pre:
            return self.dropout.add(x, f(self.norm(x)))
        result = f(x)
        if self.training and can_use_kernels(x, self.norm.weight, self.norm.bias):
            draws = self.dropout.draw(result) if self.dropout.p > 0 else None
            return add_and_normalize(x, result, draws, self.norm)
        return self.norm(self.dropout.add(x, result))


def final_norm(config: ModelConfig) -> nn.Module:
    """Return the module after the last layer: a norm after pre-norm layers, else the identity."""
    if config.norm == "pre":
        return LayerNorm(config.d_model, eps=config.layer_norm_epsilon)
    return nn.Identity()
