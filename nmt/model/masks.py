"""Masks: which position may attend to which (section 3.2.3). They are boolean: True = may."""

import torch
from torch import Tensor


def padding_mask(ids: Tensor, padding: int) -> Tensor:
    """Return the mask (B, 1, 1, S) of ids (B, S): False, which hides, where the id is `padding`."""
    return (ids != padding)[:, None, None, :]


def source_mask(ids: Tensor, padding: int, reads_end: bool) -> Tensor:
    """Return the `padding_mask` of sources; without `reads_end`, it hides their last tokens too.

    The first token is always seen, as a source may have no other.
    """
    mask = padding_mask(ids, padding)
    if reads_end or ids.shape[1] == 1:
        return mask
    has_next = torch.cat([mask[..., 1:], torch.zeros_like(mask[..., :1])], -1)
    return torch.cat([mask[..., :1], has_next[..., 1:]], -1)


def causal_mask(ids: Tensor) -> Tensor:
    """Return the mask (1, 1, T, T) of ids (B, T): each position sees itself and earlier ones."""
    length = ids.shape[1]
    return torch.ones(1, 1, length, length, dtype=torch.bool, device=ids.device).tril()
