"""A small run for the tests of ONNX, with random weights."""

from pathlib import Path
from typing import Any

import torch
from torch import nn

from nmt.data.tokens.tokenizer import Tokenizer
from nmt.recipe.config import Config, ModelConfig
from nmt.run.model import LoadedModel, build_model


def run_of(tokenizer: Tokenizer, **settings: Any) -> LoadedModel:
    """A run with random weights, biases and gains; neutral ones would hide mistakes."""
    sizes = {"d_model": 16, "heads": 4, "d_ff": 24, "encoder_layers": 2, "decoder_layers": 3}
    config = Config(model=ModelConfig(**sizes | settings))
    torch.manual_seed(1)
    model = build_model(config, tokenizer).eval()
    for name, parameter in model.named_parameters():
        if parameter.dim() == 1:
            nn.init.normal_(parameter, mean=float(name.endswith("norm.weight")), std=0.3)
    return LoadedModel(config, tokenizer, model, Path("run"))
