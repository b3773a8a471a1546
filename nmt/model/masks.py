"""Masks: which position may attend to which (section 3.2.3). They are boolean: True = may."""

import torch
from torch import Tensor


def padding_mask(ids: Tensor, padding: int) -> Tensor:
    """Return the mask (B, 1, 1, S) of ids (B, S): False, which hides, where the id is `padding`."""
    return (ids != padding)[:, None, None, :]


def causal_mask(length: int, device: torch.device | None = None) -> Tensor:
    """Return the mask (1, 1, T, T), T = `length`: each position sees itself and earlier ones."""
    return torch.ones(1, 1, length, length, dtype=torch.bool, device=device).tril()
