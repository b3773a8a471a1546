"""How the tokens of a batch are stored: in rows with padding, or side by side without padding.

Only attention relates positions to each other and needs them in rows. All other modules compute
each position on its own. A CPU saves time if they receive the real tokens only.

The docstrings of other modules give the shapes of `PADDED`, (B, L, D). Without padding they are
(N, D), for N tokens in the batch. L is S or T.
"""

import torch
from torch import Tensor

TOKENS_MULTIPLE = 128
"""N is rounded up to this, because a CPU compiles a matrix product for each number of rows."""


class Layout:
    """The layout with padding: activations x are (B, L, D)."""

    def tokens(self, ids: Tensor) -> Tensor:
        """Return the ids (B, L) that are computed: all of them."""
        return ids

    def length(self, x: Tensor) -> int:
        """Return the number of positions of the longest sentence."""
        return x.shape[1]

    def at_positions(self, table: Tensor) -> Tensor:
        """Return the rows of a position table (L, D), which broadcast to activations (B, L, D)."""
        return table

    def split_heads(self, x: Tensor, heads: int) -> Tensor:
        """Split the width into heads: (B, L, D) -> (B, H, L, K)."""
        return x.unflatten(2, (heads, -1)).transpose(1, 2)

    def join_heads(self, x: Tensor) -> Tensor:
        """Concatenate the heads: (B, H, L, K) -> (B, L, D)."""
        return x.transpose(1, 2).flatten(2)


PADDED = Layout()


def token_positions(ids: Tensor, padding: int) -> Tensor:
    """Return the indices into the flattened ids (B, L) of the tokens to compute: (N,), ascending.

    These are all real tokens, and enough padding to make N a multiple of `TOKENS_MULTIPLE` (less
    if the batch has less).
    """
    is_real = (ids != padding).flatten()
    filling = -int(is_real.sum()) % TOKENS_MULTIPLE
    is_filling = ~is_real & ((~is_real).cumsum(0) <= filling)
    return (is_real | is_filling).nonzero()[:, 0]


class UnpaddedLayout(Layout):
    """The layout without padding: activations x are (N, D), in the order of `token_positions`."""

    def __init__(self, ids: Tensor, padding: int) -> None:
        rows, length = ids.shape
        places = token_positions(ids, padding)
        self.row, self.position = places // length, places % length
        """row and position of each token in the batch: (N,)"""
        token_at = torch.full((rows * length,), len(places), device=ids.device)
        token_at[places] = torch.arange(len(places), device=ids.device)
        self.token_at = token_at.view(rows, length)
        """index of the token at each place of the batch, N where there is none: (B, L)"""
        self._places = places
        self._of_heads: dict[int, tuple[Tensor, Tensor]] = {}

    def tokens(self, ids: Tensor) -> Tensor:
        """Return the ids (N,) of the tokens that are computed, taken from ids (B, L)."""
        return ids.flatten()[self._places]

    def length(self, x: Tensor) -> int:
        """Return the number of positions of the longest sentence."""
        return self.token_at.shape[1]

    def at_positions(self, table: Tensor) -> Tensor:
        """Return the row of a position table (L, D) for each token: (N, D)."""
        return table[self.position]

    def split_heads(self, x: Tensor, heads: int) -> Tensor:
        """Split the width into heads and put the tokens into rows: (N, D) -> (B, H, L, K).

        A place without a token holds the values of another token. This is harmless: the mask hides
        it as a key, and `join_heads` drops its result as a query.
        """
        of_tokens, of_places = self._order(heads)
        parts: Tensor = _TakeRows.apply(x.reshape(len(of_tokens), -1), of_places, of_tokens)  # type: ignore[no-untyped-call]
        rows, length = self.token_at.shape
        return parts.view(rows, heads, length, -1)

    def join_heads(self, x: Tensor) -> Tensor:
        """Concatenate the heads and drop the places without a token: (B, H, L, K) -> (N, D)."""
        of_tokens, of_places = self._order(x.shape[1])
        parts: Tensor = _TakeRows.apply(x.reshape(len(of_places), -1), of_tokens, of_places)  # type: ignore[no-untyped-call]
        return parts.view(len(self.row), -1)

    def _order(self, heads: int) -> tuple[Tensor, Tensor]:
        """Return the index in (B * H * L,) of each head of each token (N * H,), and its inverse."""
        if heads not in self._of_heads:
            length, count = self.token_at.shape[1], len(self.row)
            head = torch.arange(heads, device=self.row.device)
            of_tokens = (self.row[:, None] * heads + head) * length + self.position[:, None]
            of_places = self.token_at[:, None] * heads + head[:, None]  # (B, H, L)
            no_token = count * heads
            self._of_heads[heads] = of_tokens.flatten(), of_places.clamp(max=no_token).flatten()
        return self._of_heads[heads]


class _TakeRows(torch.autograd.Function):
    """Returns the rows `index` of x; an index behind the last row stands for any row.

    The gradient of x is made of the rows `inverse` of the gradient, where an index behind the last
    row stands for zeros. The backward pass of `index_select` would add up rows, which takes longer.
    """

    @staticmethod
    def forward(ctx, x, index, inverse):  # type: ignore
        ctx.save_for_backward(inverse)
        return x.index_select(0, index.clamp(max=len(x) - 1))

    @staticmethod
    def backward(ctx, gradient):  # type: ignore
        (inverse,) = ctx.saved_tensors
        if len(inverse) > len(gradient):  # a row of zeros is needed
            gradient = torch.cat((gradient, gradient.new_zeros(1, gradient.shape[1])))
        return gradient.index_select(0, inverse), None, None
