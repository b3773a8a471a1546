"""Section 3.5: sinusoidal positional encoding; that of Marian; and rotations of self-attention."""

import torch
from torch import Tensor, nn

from nmt.recipe.config import Positions

FAIRSEQ_OFFSET = 2
"""the position of a first token in fairseq, whose padding has the id and the position 1"""


def sinusoids(length: int, d_model: int, positions: Positions = "interleaved") -> Tensor:
    """Return the table of section 3.5, (length, D) float32, computed in float64.

    PE(pos, 2i)   = sin(pos / 10000^(2i / d_model))
    PE(pos, 2i+1) = cos(pos / 10000^(2i / d_model))

    With "sines_first", all even columns stand before the odd ones (MarianMTModel of transformers).
    "tensor2tensor" has this order too, but the exponent i / (d_model / 2 - 1), so that the last
    wavelength is 10000 * 2 pi (Marian: marian-dev, src/graph/node_initializers.cpp). "fairseq" is
    this table from its third row on (fairseq/modules/sinusoidal_positional_embedding.py).
    """
    first = FAIRSEQ_OFFSET if positions == "fairseq" else 0
    position = torch.arange(first, first + length, dtype=torch.float64)[:, None]
    pairs = d_model // 2
    intervals = max(1, pairs - 1) if positions in ("tensor2tensor", "fairseq") else pairs
    frequency = 10000.0 ** -(torch.arange(pairs, dtype=torch.float64) / intervals)
    table = torch.empty(length, d_model, dtype=torch.float64)
    table[:, 0::2] = torch.sin(position * frequency)
    table[:, 1::2] = torch.cos(position * frequency)
    if positions != "interleaved":
        table = torch.cat((table[:, 0::2], table[:, 1::2]), 1)
    return table.float()


def rotate(x: Tensor, rotation: Tensor | None) -> Tensor:
    """Return queries or keys x (..., T, D) rotated by their positions; None: x itself.

    Each pair of numbers (a, b) at position t is turned by the angle t * theta_i, where i is the
    index of the pair in its head and theta_i = 10000^(-2i / d_k):

        (a cos - b sin, a sin + b cos)

    So the product of a query and a key depends on the distance of their positions alone (Su et al.,
    2021, RoFormer, Eq. 14 and 15). `rotation` (T, D) has the sine and the cosine of each pair.
    """
    if rotation is None:
        return x
    sine, cosine = rotation[..., 0::2], rotation[..., 1::2]
    a, b = x[..., 0::2], x[..., 1::2]
    pairs = torch.stack((a * cosine - b * sine, a * sine + b * cosine), -1)
    return pairs.flatten(-2).to(x.dtype)


class PositionalEncoding(nn.Module):
    """x + PE, or x itself where positions are `rotary`.

    The table has `initial_length` positions at first, and grows for longer sentences.
    """

    table: Tensor

    def __init__(
        self,
        d_model: int,
        initial_length: int = 512,
        positions: Positions = "interleaved",
        heads: int = 1,
    ) -> None:
        super().__init__()
        self.d_model, self.heads = d_model, heads
        self.positions: Positions = positions
        self.register_buffer("table", self._table(initial_length), persistent=False)

    def forward(self, x: Tensor, start: int = 0) -> Tensor:
        """Add the encodings of positions start (from 0), start + 1, …: (B, T, D) -> (B, T, D)."""
        if self.positions == "rotary":
            return x
        end = start + x.shape[1]
        return x + self.up_to(end)[start:]

    def rotation(self, length: int, start: int = 0) -> Tensor | None:
        """Return what `rotate` needs for positions from `start` on: (T, D); None: no rotation."""
        return self.up_to(start + length)[start:] if self.positions == "rotary" else None

    def up_to(self, end: int) -> Tensor:
        """Return the encodings of the positions 0 to end - 1: (end, D)."""
        if end > len(self.table):
            with torch.inference_mode(False):  # training cannot use a tensor made in inference mode
                self.table = self._table(2 * end).to(self.table)  # 2: so it rarely grows
        return self.table[:end]

    def _table(self, length: int) -> Tensor:
        """Return what is added to positions, or by what they are rotated: (length, D)."""
        if self.positions == "rotary":  # the angles of a head, for each head
            return sinusoids(length, self.d_model // self.heads).repeat(1, self.heads)
        return sinusoids(length, self.d_model, self.positions)
