"""Section 3.5: sinusoidal positional encoding, sine and cosine interleaved; and Marian's."""

import torch
from torch import Tensor, nn

from nmt.recipe.config import Positions


def sinusoids(length: int, d_model: int, positions: Positions = "interleaved") -> Tensor:
    """Return the table of section 3.5, (length, D) float32, computed in float64.

    PE(pos, 2i)   = sin(pos / 10000^(2i / d_model))
    PE(pos, 2i+1) = cos(pos / 10000^(2i / d_model))

    With "sines_first", all even columns stand before the odd ones (MarianMTModel of transformers).
    "tensor2tensor" has this order too, but the exponent i / (d_model / 2 - 1), so that the last
    wavelength is 10000 * 2 pi (Marian: marian-dev, src/graph/node_initializers.cpp).
    """
    position = torch.arange(length, dtype=torch.float64)[:, None]
    pairs = d_model // 2
    intervals = max(1, pairs - 1) if positions == "tensor2tensor" else pairs
    frequency = 10000.0 ** -(torch.arange(pairs, dtype=torch.float64) / intervals)
    table = torch.empty(length, d_model, dtype=torch.float64)
    table[:, 0::2] = torch.sin(position * frequency)
    table[:, 1::2] = torch.cos(position * frequency)
    if positions != "interleaved":
        table = torch.cat((table[:, 0::2], table[:, 1::2]), 1)
    return table.float()


class PositionalEncoding(nn.Module):
    """x + PE. The table has `initial_length` positions at first, and grows for longer sentences."""

    table: Tensor

    def __init__(
        self, d_model: int, initial_length: int = 512, positions: Positions = "interleaved"
    ) -> None:
        super().__init__()
        self.positions: Positions = positions
        table = sinusoids(initial_length, d_model, positions)
        self.register_buffer("table", table, persistent=False)

    def forward(self, x: Tensor, start: int = 0) -> Tensor:
        """Add the encodings of positions start (from 0), start + 1, …: (B, T, D) -> (B, T, D)."""
        end = start + x.shape[1]
        return x + self.up_to(end)[start:]

    def up_to(self, end: int) -> Tensor:
        """Return the encodings of the positions 0 to end - 1: (end, D)."""
        if end > len(self.table):
            d_model = self.table.shape[1]
            with torch.inference_mode(False):  # training cannot use a tensor made in inference mode
                longer = sinusoids(2 * end, d_model, self.positions)  # 2: so it rarely grows
                self.table = longer.to(self.table)
        return self.table[:end]
