"""What a translation must not be: too short, or saying the same over and over."""

from collections.abc import Sequence

import torch
from torch import Tensor

from nmt.config import DecodingConfig

IMPOSSIBLE = float("-inf")


def forbid(
    logits: Tensor, history: Tensor, settings: DecodingConfig, never: Sequence[int], eos: int
) -> None:
    """Make impossible, in place, what may not follow: logits (R, V), tokens so far (R, T).

    Nothing may be one of the tokens `never`; EOS may not come before `settings.min_length` tokens;
    no sequence of `settings.no_repeat_ngram` tokens may come twice. Where nothing else is left, EOS
    may come all the same.
    """
    logits[:, list(never)] = IMPOSSIBLE
    length, size = history.shape[1], settings.no_repeat_ngram
    if not size and length >= settings.min_length:
        return
    eos_logit = logits[:, eos].clone()
    if size:
        rows, tokens = _repetitions(history, size)
        logits[rows, tokens] = IMPOSSIBLE
    if length < settings.min_length:
        logits[:, eos] = IMPOSSIBLE
    stuck = logits.amax(1) == IMPOSSIBLE
    logits[:, eos] = torch.where(stuck, eos_logit, logits[:, eos])


def _repetitions(history: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Rows and the tokens by which an earlier n-gram of theirs would come again."""
    length = history.shape[1]
    if length < size:
        nothing = history.new_empty(0)
        return nothing, nothing
    ngrams = history.unfold(1, size, 1)  # (R, W, size)
    latest = history[:, None, length - size + 1 :]  # (R, 1, size - 1)
    rows, windows = (ngrams[:, :, :-1] == latest).all(2).nonzero(as_tuple=True)
    return rows, ngrams[rows, windows, -1]
