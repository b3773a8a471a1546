"""What the tests of inference share: a small model and ids of its vocabulary."""

from typing import Any

import torch
from torch import Tensor

from nmt.model.transformer import Transformer
from nmt.recipe.config import ModelConfig

CONFIG = ModelConfig(d_model=32, heads=4, d_ff=48, encoder_layers=2, decoder_layers=2)


def small_transformer(seed: int = 1, **changes: Any) -> Transformer:
    torch.manual_seed(seed)
    return Transformer(CONFIG.model_copy(update=changes), 50, 50).eval()


def sentences(count: int, length: int = 6) -> Tensor:
    random = torch.Generator().manual_seed(count + length)
    return torch.randint(4, 50, (count, length), generator=random)
