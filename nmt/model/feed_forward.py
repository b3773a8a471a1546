"""Section 3.3: the position-wise feed-forward network."""

import torch.nn.functional as F
from torch import Tensor, nn

from nmt.model.dropout import Dropout


class FeedForward(nn.Module):
    """FFN(x) = max(0, x W1 + b1) W2 + b2 (Eq. 2)."""

    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.inner = nn.Linear(d_model, d_ff)
        self.outer = nn.Linear(d_ff, d_model)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, D) -> (B, T, D), each position on its own."""
        hidden = F.relu(self.inner(x))  # (B, T, F)
        return self.outer(self.dropout(hidden))
