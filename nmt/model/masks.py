"""Masks: which position may attend to which (section 3.2.3). They are boolean: True = may."""

import torch
from torch import Tensor


def padding_mask(ids: Tensor, padding: int) -> Tensor:
    """Return the mask that hides the id `padding` in each sentence: ids (B, S) -> (B, 1, 1, S)."""
    return (ids != padding)[:, None, None, :]


def causal_mask(length: int, device: torch.device | None = None) -> Tensor:
    """Return the mask (1, 1, T, T), T = `length`, that hides from each position all later ones."""
    return torch.ones(1, 1, length, length, dtype=torch.bool, device=device).tril()
