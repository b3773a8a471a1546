"""How the tokens of a batch are stored: in rows with padding, or side by side without padding.

Only attention relates positions to each other. All other modules compute each position on its own,
and save time if they receive the real tokens only. With `UnpaddedLayout`, attention still has rows
with padding; with `PackedLayout` it has none either.

The docstrings of other modules give shapes with padding, (B, L, D), where L is S or T. Without
padding they are (U, D), for the U positions that are computed.
"""

import torch
from torch import Tensor

from nmt.kernels.attention import SentenceBounds
from nmt.model.masks import causal_mask, padding_mask

TOKENS_MULTIPLE = 128
"""U is a multiple of this, because a CPU compiles a matrix product for each number of rows."""


class Layout:
    """The layout with padding: activations x are (B, L, D)."""

    sentences: SentenceBounds | None = None
    """where sentences begin and end if they stand side by side"""

    def tokens(self, ids: Tensor) -> Tensor:
        """Return the ids of the positions that the model computes: here all, (B, L)."""
        return ids

    def length(self, x: Tensor) -> int:
        """Return L, the number of positions of the longest sentence, for activations x."""
        return x.shape[1]

    def at_positions(self, table: Tensor) -> Tensor:
        """Return what is added to the activations, of a position table (L, D): here all of it."""
        return table

    def padding_mask(self, ids: Tensor, padding: int) -> Tensor | None:
        """Return the mask (B, 1, 1, L) that hides padding as keys, None if none is needed."""
        return padding_mask(ids, padding)

    def causal_mask(self, ids: Tensor) -> Tensor | None:
        """Return the mask (1, 1, L, L) that hides later positions, None if none is needed."""
        return causal_mask(ids.shape[1], ids.device)

    def split_heads(self, x: Tensor, heads: int) -> Tensor:
        """Split the width into heads: (B, L, D) -> (B, H, L, K)."""
        return x.unflatten(2, (heads, -1)).transpose(1, 2)

    def join_heads(self, x: Tensor) -> Tensor:
        """Concatenate the heads: (B, H, L, K) -> (B, L, D)."""
        return x.transpose(1, 2).flatten(2)


PADDED = Layout()


def token_positions(ids: Tensor, padding: int) -> Tensor:
    """Return the indices (U,) of the tokens to compute, in the flattened ids (B, L), ascending.

    These are all real tokens, and the first tokens with the id `padding`, as many as make U a
    multiple of `TOKENS_MULTIPLE`. If there are too few of them, all are taken.
    """
    is_real = (ids != padding).flatten()
    is_padding = ~is_real
    missing = -int(is_real.sum()) % TOKENS_MULTIPLE  # to the next multiple
    is_computed_padding = is_padding & (is_padding.cumsum(0) <= missing)  # the first `missing`
    return (is_real | is_computed_padding).nonzero()[:, 0]


class UnpaddedLayout(Layout):
    """The layout without padding: activations x are (U, D), in the order of `token_positions`.

    Two sentences, a b c and d, with padding "-" that is not computed: B = 2, L = 3, U = 4:

        ids   a b c     token_at  0 1 2     row       0 0 0 1
              d - -               3 4 4     position  0 1 2 0
    """

    def __init__(self, ids: Tensor, padding: int) -> None:
        rows, length = ids.shape
        computed = token_positions(ids, padding)
        self.row, self.position = computed // length, computed % length
        """row and position of each computed token in the ids (B, L): (U,)"""
        token_at = torch.full((rows * length,), len(computed), device=ids.device)
        token_at[computed] = torch.arange(len(computed), device=ids.device)
        self.token_at = token_at.view(rows, length)
        """index in (U,) of each token of the batch, U where none is computed: (B, L)"""
        starts = torch.searchsorted(computed, torch.arange(rows + 1, device=ids.device) * length)
        self.sentences = SentenceBounds(starts, (ids != padding).sum(1))
        self._computed = computed
        self._indices: dict[int, tuple[Tensor, Tensor]] = {}

    def tokens(self, ids: Tensor) -> Tensor:
        """Return the ids (U,) of the positions that the model computes, taken from ids (B, L)."""
        return ids.flatten()[self._computed]

    def length(self, x: Tensor) -> int:
        """Return L, the number of positions of the longest sentence; x does not matter."""
        return self.token_at.shape[1]

    def at_positions(self, table: Tensor) -> Tensor:
        """Return the row of a position table (L, D) for each computed token: (U, D)."""
        return table[self.position]

    def split_heads(self, x: Tensor, heads: int) -> Tensor:
        """Split the width into heads and add the padding again: (U, D) -> (B, H, L, K).

        A padded position holds the values of another token. This is harmless: the mask hides it
        as a key, and `join_heads` drops its result as a query.
        """
        from_padded, from_unpadded = self._row_indices(heads)
        rows = x.reshape(len(from_padded), -1)  # (U * H, K)
        # the second index is for the gradient, which goes from the padded rows back
        padded: Tensor = _TakeRows.apply(rows, from_unpadded, from_padded)  # type: ignore[no-untyped-call]
        return padded.view(len(self.token_at), heads, self.length(x), -1)

    def join_heads(self, x: Tensor) -> Tensor:
        """Concatenate the heads and drop the padding: (B, H, L, K) -> (U, D)."""
        from_padded, from_unpadded = self._row_indices(x.shape[1])
        rows = x.reshape(len(from_unpadded), -1)  # (B * H * L, K)
        unpadded: Tensor = _TakeRows.apply(rows, from_padded, from_unpadded)  # type: ignore[no-untyped-call]
        return unpadded.view(len(self.row), -1)

    def _row_indices(self, heads: int) -> tuple[Tensor, Tensor]:
        """Return which rows of width K to take: one index removes the padding, the other adds it.

        The first (U * H,) has for each unpadded row the padded row that it is taken from. The
        second (B * H * L,) has the reverse, and U * H where there is no token.
        """
        if heads not in self._indices:
            length, count = self.token_at.shape[1], len(self.row)
            head = torch.arange(heads, device=self.row.device)
            from_padded = (self.row[:, None] * heads + head) * length + self.position[:, None]
            from_unpadded = self.token_at[:, None] * heads + head[:, None]  # (B, H, L)
            from_unpadded = from_unpadded.clamp(max=count * heads)
            self._indices[heads] = from_padded.flatten(), from_unpadded.flatten()
        return self._indices[heads]


class PackedLayout(Layout):
    """The layout of training on a GPU in bf16: ids (U,), activations (U, D), and no padding.

    Sentences stand one behind the other, in attention too: queries, keys and values are (U, H, K),
    and `packed_attention` computes each sentence on its own. Attention weights are not recorded.
    """

    def __init__(self, positions: Tensor, offsets: Tensor, longest: int) -> None:
        """Sentence i has the tokens offsets[i] to offsets[i + 1] - 1; offsets are (B + 1,) int32.

        `positions` (U,) are those of the tokens in their sentences, all below `longest`.
        """
        self.positions, self.offsets, self.longest = positions, offsets, longest

    def length(self, x: Tensor) -> int:
        """Return an upper limit of the tokens of a sentence; x does not matter."""
        return self.longest

    def at_positions(self, table: Tensor) -> Tensor:
        """Return the row of a position table (L, D) for each token: (U, D)."""
        return table[self.positions]

    def padding_mask(self, ids: Tensor, padding: int) -> None:
        """There is no padding to hide."""

    def causal_mask(self, ids: Tensor) -> None:
        """`packed_attention` hides later positions by itself."""

    def split_heads(self, x: Tensor, heads: int) -> Tensor:
        """Split the width into heads: (U, D) -> (U, H, K)."""
        return x.unflatten(1, (heads, -1))

    def join_heads(self, x: Tensor) -> Tensor:
        """Concatenate the heads: (U, H, K) -> (U, D)."""
        return x.flatten(1)


class _TakeRows(torch.autograd.Function):
    """Returns the rows `index` of x; for an index after the last row it returns any row.

    The gradient of x holds the rows `inverse` of the gradient, and zeros for an index after its
    last row. The backward pass of `index_select` would add up rows, which takes longer.
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
