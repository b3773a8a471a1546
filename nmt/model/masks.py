"""Who may attend to whom (section 3.2.3). Masks are boolean: True = may attend."""

import torch
from torch import Tensor


def padding_mask(ids: Tensor, padding: int) -> Tensor:
    """Every position may attend to the real tokens of its sentence: (B, S) -> (B, 1, 1, S)."""
    return (ids != padding)[:, None, None, :]


def causal_mask(length: int, device: torch.device | None = None) -> Tensor:
    """Position t may attend to positions up to t, never to the future: -> (1, 1, T, T)."""
    return torch.ones(1, 1, length, length, dtype=torch.bool, device=device).tril()
