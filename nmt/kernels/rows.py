"""Training without padding: the real tokens of a batch alone, side by side.

Only attention relates tokens to each other. All other modules compute each token on its own, and
save time if they receive the real tokens only. Their docstrings give shapes with padding, (B, L, D)
where L is S or T; without padding these are (U, D) for U tokens.
"""

from collections.abc import MutableSequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from nmt.data.tokens.batch import Batch, PackedBatch, PackedSide
from nmt.kernels.fused_attention import AutocastPositions
from nmt.model.attention import AttentionContext, MultiHeadAttention
from nmt.model.embedding import TokenEmbedding
from nmt.model.masks import causal_mask, padding_mask
from nmt.model.transformer import Transformer

TOKENS_MULTIPLE = 128
"""U is a multiple of this, because a CPU compiles a matrix product for each number of rows."""


@dataclass(frozen=True, kw_only=True)
class RowContext(AttentionContext):
    """Which sentences tokens are of: each attends to its own sentence. Nothing is recorded."""

    mask: Tensor | None = None
    """None: code that needs a mask takes that of `memory`"""
    queries: PackedSide
    memory: PackedSide
    """where the sentences of the queries stand, and those of the keys and values"""
    inputs: MutableSequence[tuple[Tensor, Tensor]] | None = None
    """if given, an attention that is watched (`watch_inputs`) appends its x and memory to it"""


def decoder_output(
    model: Transformer,
    batch: PackedBatch,
    inputs: MutableSequence[tuple[Tensor, Tensor]] | None = None,
) -> Tensor:
    """Return the output of the decoder for the W target tokens of a batch: (W, D).

    `inputs` is `RowContext.inputs` of the attention to the source. The result is that of
    `Transformer.decoder_output`. A sentence with target tokens has source tokens. The positions of
    the model are `AutocastPositions`, and its attention knows a `RowContext`.
    """
    source, target = batch.source_side, batch.target_side
    x = _embed(model, model.source_embedding, batch.source, source)
    rotations = [_rotation(model, side) for side in (source, target)]
    memory = model.encoder(x, RowContext(queries=source, memory=source, rotation=rotations[0]))
    x = _embed(model, model.target_embedding, batch.target_input, target)
    to_past = RowContext(queries=target, memory=target, is_causal=True, rotation=rotations[1])
    to_source = RowContext(queries=target, memory=source, inputs=inputs)
    return model.decoder(x, memory, to_past, to_source)


def watch_inputs(attention: MultiHeadAttention) -> None:
    """Let a module append what it attends from and to, as `RowContext.inputs` says."""

    def append(module: nn.Module, arguments: tuple[Tensor, Tensor, AttentionContext]) -> None:
        x, memory, context = arguments
        if isinstance(context, RowContext) and context.inputs is not None:
            context.inputs.append((x, memory))

    attention.register_forward_pre_hook(append)


def in_rows(x: Tensor, side: PackedSide) -> Tensor:
    """Return values (U, K) of the tokens of a side in rows with padding: (B, L, K).

    A padded position holds the values of another token.
    """
    if isinstance(side, UnpaddedSide):
        return side.split_heads(x, heads=1)[:, 0]
    positions = torch.arange(side.longest, device=x.device)
    rows = side.offsets[:-1, None] + positions  # (B, L)
    return x[rows.clamp(max=len(x) - 1)]


def lengths_of(side: PackedSide) -> Tensor:
    """Return the number of tokens of each sentence, without padding: (B,)."""
    return side.lengths if isinstance(side, UnpaddedSide) else side.offsets.diff()


def _embed(model: Transformer, embedding: TokenEmbedding, ids: Tensor, side: PackedSide) -> Tensor:
    """Embed ids (U,), add their positions and apply dropout: (U, D)."""
    assert isinstance(model.positions, AutocastPositions)
    x = model.positions.add_to_rows(embedding(ids), side.positions, side.longest)
    result: Tensor = model.dropout(x)
    return result


def _rotation(model: Transformer, side: PackedSide) -> Tensor | None:
    assert isinstance(model.positions, AutocastPositions)
    return model.positions.rotation_of_rows(side.positions, side.longest)


def without_padding(batch: Batch, padding: int) -> PackedBatch:
    """Return a batch of rows, whose ids of padding are `padding`, with the tokens to compute alone.

    A CPU trains on these: the sentences stand as in rows, so that attention can have its rows back.
    """
    source = UnpaddedSide(batch.source, padding)
    target = UnpaddedSide(batch.target_input, padding)
    return PackedBatch(
        source=batch.source.flatten()[source.computed],
        target_input=batch.target_input.flatten()[target.computed],
        target_output=batch.target_output.flatten()[target.computed],
        source_side=source,
        target_side=target,
        links=batch.links,
    )


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


class UnpaddedSide(PackedSide):
    """Where the tokens (U,) of one side stood in its rows (B, L); their order: `token_positions`.

    `row` and `token_at` are those of `_row_indices`. Two sentences, a b c and d, with padding "-"
    that is not computed: B = 2, L = 3, U = 4:

        ids   a b c     token_at  0 1 2     row        0 0 0 1
              d - -               3 4 4     positions  0 1 2 0
    """

    def __init__(self, ids: Tensor, padding: int) -> None:
        self._ids, self._padding = ids, padding
        rows, length = ids.shape
        self.computed = token_positions(ids, padding)
        """index of each token in the flattened ids (B, L): (U,)"""
        starts = torch.arange(rows + 1, device=ids.device) * length
        offsets = torch.searchsorted(self.computed, starts)  # int64
        super().__init__(positions=self.computed % length, offsets=offsets, longest=length)
        self.lengths = (ids != padding).sum(1)
        """tokens of each sentence without its padding, which is at its end: (B,), int64"""
        self._indices: dict[int, tuple[Tensor, Tensor]] = {}
        """what `_row_indices` has returned, by the number of heads"""

    def mask(self, is_causal: bool) -> Tensor:
        """Return the mask for attention in rows to this side: (1, 1, L, L), or (B, 1, 1, L)."""
        return causal_mask(self._ids) if is_causal else padding_mask(self._ids, self._padding)

    def split_heads(self, x: Tensor, heads: int) -> Tensor:
        """Split the width into heads and add the padding again: (U, D) -> (B, H, L, K).

        A padded position holds the values of another token. This is harmless: the mask hides it
        as a key, and `join_heads` drops its result as a query.
        """
        from_padded, from_unpadded = self._row_indices(heads)
        rows = x.reshape(len(from_padded), -1)  # (U * H, K)
        # the second index is for the gradient, which goes from the padded rows back
        padded: Tensor = _TakeRows.apply(rows, from_unpadded, from_padded)  # type: ignore[no-untyped-call]
        return padded.view(len(self.lengths), heads, self.longest, -1)

    def join_heads(self, x: Tensor) -> Tensor:
        """Concatenate the heads and drop the padding: (B, H, L, K) -> (U, D)."""
        from_padded, from_unpadded = self._row_indices(x.shape[1])
        rows = x.reshape(len(from_unpadded), -1)  # (B * H * L, K)
        unpadded: Tensor = _TakeRows.apply(rows, from_padded, from_unpadded)  # type: ignore[no-untyped-call]
        return unpadded.view(len(self.computed), -1)

    def _row_indices(self, heads: int) -> tuple[Tensor, Tensor]:
        """Return which rows of width K to take: one index removes the padding, the other adds it.

        The first (U * H,) has for each unpadded row the padded row that it is taken from. The
        second (B * H * L,) has the reverse, and U * H where there is no token.
        """
        if heads not in self._indices:
            length, count, device = self.longest, len(self.computed), self.computed.device
            row = self.computed // length  # (U,)
            # index in (U,) of each token of the batch, U where none is computed: (B, L)
            token_at = torch.full((len(self.lengths), length), count, device=device)
            token_at.view(-1)[self.computed] = torch.arange(count, device=device)
            head = torch.arange(heads, device=device)
            from_padded = (row[:, None] * heads + head) * length + self.positions[:, None]
            from_unpadded = token_at[:, None] * heads + head[:, None]  # (B, H, L)
            from_unpadded = from_unpadded.clamp(max=count * heads)
            self._indices[heads] = from_padded.flatten(), from_unpadded.flatten()
        return self._indices[heads]


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
