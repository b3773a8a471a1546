"""Masks: which position may attend to which (section 3.2.3). They are boolean: True = may."""

import torch
from torch import Tensor


def padding_mask(ids: Tensor, padding: int) -> Tensor:
    """Return the mask (B, 1, 1, S) of ids (B, S): False, which hides, where the id is `padding`."""
    return (ids != padding)[:, None, None, :]


def causal_mask(ids: Tensor) -> Tensor:
    """Return the mask (1, 1, T, T) of ids (B, T): each position sees itself and earlier ones."""
    length = ids.shape[1]
    return torch.ones(1, 1, length, length, dtype=torch.bool, device=ids.device).tril()
