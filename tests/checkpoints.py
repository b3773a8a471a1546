"""Small checkpoints of known weights and state."""

from pathlib import Path

import torch
from torch import Tensor

from nmt.checkpoint import save_checkpoint

STATE_CONTENT = {"step": 3, "moments": torch.arange(5.0), "best": {"bleu": None}, "names": ["a"]}


def weights(seed: int = 1) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return {
        "layer.weight": torch.randn(3, 4, generator=generator),
        "layer.bias": torch.randn(3, generator=generator),
    }


def saved(path: Path, seed: int = 1) -> Path:
    save_checkpoint(path, weights(seed), STATE_CONTENT)
    return path
