"""The recurrence of a decoder for sentences without padding, and in few operations on a GPU."""

import torch.nn.functional as F
from torch import Tensor

from nmt.kernels.rows import RowContext, UnpaddedSide
from nmt.model.attention import AttentionContext
from nmt.model.recurrence import SimpleRecurrence


class RowRecurrence(SimpleRecurrence):
    """`SimpleRecurrence` in training, also for the tokens of all sentences side by side (U, D).

    A CPU is fastest step by step, in rows. A GPU would wait for the kernels of each step, so there
    all states are computed at once.
    """

    def forward(self, x: Tensor, context: AttentionContext) -> Tensor:
        """Return h of all positions: (U, D) -> (U, D), or with padding (B, T, D) -> (B, T, D)."""
        forget, candidate = self.gate(x)
        if not isinstance(context, RowContext):
            if x.is_cpu:
                return self.run(forget, candidate).to(x.dtype)
            return scan(forget, (1 - forget) * candidate).to(x.dtype)
        side = context.queries
        if isinstance(side, UnpaddedSide):
            in_rows = [side.split_heads(each, heads=1)[:, 0] for each in (forget, candidate)]
            return side.join_heads(self.run(*in_rows)[:, None]).to(x.dtype)
        is_first = (side.positions == 0)[:, None]
        kept = forget.masked_fill(is_first, 0.0)  # nothing of the sentence before
        return scan(kept, (1 - forget) * candidate, side.longest).to(x.dtype)


def scan(forget: Tensor, update: Tensor, longest: int | None = None) -> Tensor:
    """Return h for gates f and updates (1 - f) W x of all positions: (..., T, D) -> (..., T, D).

    Each pass doubles the span s of positions up to t that are in the state of t (Hillis and Steele,
    1986): c_t becomes c_t + f_t c_(t-s), and f_t becomes f_t f_(t-s). `longest` is the number of
    positions after which a gate is 0 at the latest; None: T.
    """
    state, span = update, 1
    while span < (longest or update.shape[-2]):
        earlier = (0, 0, span, -span)  # moved by `span` positions; zeros come before the first
        state = state + forget * F.pad(state, earlier)
        forget = forget * F.pad(forget, earlier)
        span *= 2
    return state.relu()
