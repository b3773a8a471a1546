"""Where the positions of a batch stand: in rows with padding, or side by side without it.

All but attention computes each position on its own. On a CPU, which computes what it is given one
after the other, a batch is therefore best trained on as its tokens alone; only attention, which
relates the positions of a sentence, has them in rows.

Shapes elsewhere, (B, L, D), are those of `PADDED`; without padding they are (N, D).
"""

import torch
from torch import Tensor

TOKENS_MULTIPLE = 128
"""A CPU's products are compiled for each number of rows; there are then few of them."""


class Layout:
    """Rows of one length, padding included: x is (B, L, D)."""

    def tokens(self, ids: Tensor) -> Tensor:
        """What is computed of ids (B, L): all of them."""
        return ids

    def length(self, x: Tensor) -> int:
        """Positions of the longest sentence."""
        return x.shape[1]

    def at_positions(self, table: Tensor) -> Tensor:
        """The row of a table (L, D) that belongs to each position, broadcastable to x."""
        return table

    def split_heads(self, x: Tensor, heads: int) -> Tensor:
        """(B, L, D) -> (B, H, L, K)."""
        return x.unflatten(2, (heads, -1)).transpose(1, 2)

    def join_heads(self, x: Tensor) -> Tensor:
        """(B, H, L, K) -> (B, L, D)."""
        return x.transpose(1, 2).flatten(2)


PADDED = Layout()


def token_positions(ids: Tensor, padding: int) -> Tensor:
    """Which places of ids (B, L), counted row by row, are computed -> (N,), ascending.

    The real tokens, and as much padding as makes N a multiple of `TOKENS_MULTIPLE`, if there is.
    """
    is_real = (ids != padding).flatten()
    filling = -int(is_real.sum()) % TOKENS_MULTIPLE
    is_filling = ~is_real & ((~is_real).cumsum(0) <= filling)
    return (is_real | is_filling).nonzero()[:, 0]


class UnpaddedLayout(Layout):
    """The tokens of ids (B, L) side by side: x is (N, D), in the order of `token_positions`."""

    def __init__(self, ids: Tensor, padding: int) -> None:
        rows, length = ids.shape
        places = token_positions(ids, padding)
        self.row, self.position = places // length, places % length
        """of each token in the batch: (N,)"""
        token_at = torch.full((rows * length,), len(places), device=ids.device)
        token_at[places] = torch.arange(len(places), device=ids.device)
        self.token_at = token_at.view(rows, length)
        """the number of the token at each place, N where there is none: (B, L)"""
        self._places = places
        self._of_heads: dict[int, tuple[Tensor, Tensor]] = {}

    def tokens(self, ids: Tensor) -> Tensor:
        """Those of ids (B, L) that are computed: (N,)."""
        return ids.flatten()[self._places]

    def length(self, x: Tensor) -> int:
        """Positions of the longest sentence."""
        return self.token_at.shape[1]

    def at_positions(self, table: Tensor) -> Tensor:
        """The row of a table (L, D) that belongs to each token: (N, D)."""
        return table[self.position]

    def split_heads(self, x: Tensor, heads: int) -> Tensor:
        """(N, D) -> (B, H, L, K); where no token stands another is read.

        As a key masks hide it, and as a query `join_heads` leaves it out.
        """
        of_tokens, of_places = self._order(heads)
        parts: Tensor = _ToPlaces.apply(x.reshape(len(of_tokens), -1), of_tokens, of_places)  # type: ignore[no-untyped-call]
        rows, length = self.token_at.shape
        return parts.view(rows, heads, length, -1)

    def join_heads(self, x: Tensor) -> Tensor:
        """(B, H, L, K) -> (N, D)."""
        of_tokens, of_places = self._order(x.shape[1])
        parts: Tensor = _ToTokens.apply(x.reshape(len(of_places), -1), of_tokens, of_places)  # type: ignore[no-untyped-call]
        return parts.view(len(self.row), -1)

    def _order(self, heads: int) -> tuple[Tensor, Tensor]:
        """Of each token and head (N * H,) its place in (B * H * L,), and the other way round."""
        if heads not in self._of_heads:
            length, count = self.token_at.shape[1], len(self.row)
            head = torch.arange(heads, device=self.row.device)
            of_tokens = (self.row[:, None] * heads + head) * length + self.position[:, None]
            of_places = self.token_at[:, None] * heads + head[:, None]  # (B, H, L)
            no_token = count * heads
            self._of_heads[heads] = of_tokens.flatten(), of_places.clamp(max=no_token).flatten()
        return self._of_heads[heads]


class _ToPlaces(torch.autograd.Function):
    """Each token's part to its place; the gradient back, where PyTorch's own would add up rows."""

    @staticmethod
    def forward(ctx, x, of_tokens, of_places):  # type: ignore
        ctx.save_for_backward(of_tokens)
        return x.index_select(0, of_places.clamp(max=len(x) - 1))

    @staticmethod
    def backward(ctx, gradient):  # type: ignore
        (of_tokens,) = ctx.saved_tensors
        return gradient.index_select(0, of_tokens), None, None


class _ToTokens(torch.autograd.Function):
    """Each place's part to its token; the gradient of the places without one is zero."""

    @staticmethod
    def forward(ctx, x, of_tokens, of_places):  # type: ignore
        ctx.save_for_backward(of_places)
        return x.index_select(0, of_tokens)

    @staticmethod
    def backward(ctx, gradient):  # type: ignore
        (of_places,) = ctx.saved_tensors
        with_zeros = torch.cat((gradient, gradient.new_zeros(1, gradient.shape[1])))
        return with_zeros.index_select(0, of_places), None, None
