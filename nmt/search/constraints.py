"""Which tokens may not follow: those that make a translation too short or repetitive."""

from collections.abc import Sequence

import torch
from torch import Tensor

from nmt.config import DecodingConfig

IMPOSSIBLE = float("-inf")


def forbid(
    log_p: Tensor, history: Tensor, settings: DecodingConfig, never: Sequence[int], eos: int
) -> None:
    """Set log P (R, V) to -inf, in place, where a token may not follow `history` (R, T).

    The tokens `never` may not occur; EOS may not come before `settings.min_length` tokens; no
    sequence of `settings.no_repeat_ngram` tokens may come twice. If no other token is left, EOS may
    come.
    """
    for token in never:  # one column at a time is faster than all at once
        log_p[:, token] = IMPOSSIBLE
    length, size = history.shape[1], settings.no_repeat_ngram
    if not size and length >= settings.min_length:
        return
    eos_log_p = log_p[:, eos].clone()
    if size:
        rows, tokens = _repetitions(history, size)
        log_p[rows, tokens] = IMPOSSIBLE
    if length < settings.min_length:
        log_p[:, eos] = IMPOSSIBLE
    stuck = log_p.amax(1) == IMPOSSIBLE
    log_p[:, eos] = torch.where(stuck, eos_log_p, log_p[:, eos])


def _repetitions(history: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Rows, and the tokens that would repeat an n-gram of each row."""
    length = history.shape[1]
    if length < size:
        nothing = history.new_empty(0)
        return nothing, nothing
    ngrams = history.unfold(1, size, 1)  # (R, W, size)
    latest = history[:, None, length - size + 1 :]  # (R, 1, size - 1)
    rows, windows = (ngrams[:, :, :-1] == latest).all(2).nonzero(as_tuple=True)
    return rows, ngrams[rows, windows, -1]
