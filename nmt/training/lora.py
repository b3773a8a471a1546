"""LoRA (Hu et al., 2021, arXiv 2106.09685): fine-tuning of a low-rank update of each weight matrix.

All weights of the parent are frozen. A linear map h = W x becomes h = W x + (alpha / r) B A x, and
only A and B are trained. So gradients, moments and checkpoints are those of A and B alone.

An average of checkpoints has the mean of their A and the mean of their B; the product of these two
is not the mean of the updates B A.
"""

from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nmt.errors import ConfigError, Log
from nmt.kernels.faster_modules import share_weights
from nmt.model.transformer import Transformer
from nmt.recipe.config import LoraConfig
from nmt.run.adapter import AdapterOrigin, low_rank_update
from nmt.run.checkpoint import load_into, trained_parameters, weights_digest, weights_of
from nmt.run.model import LoadedModel, load_model


class LoraLinear(nn.Linear):
    """A frozen linear map W with a trained update of rank r: h = W x + (alpha / r) B A x."""

    def __init__(self, linear: nn.Linear, rank: int, scale: float) -> None:
        """Share the weights of `linear`, and freeze them; `scale` is alpha / r.

        A is Gaussian and B zero, so that training begins with the parent (section 4.1). The
        variance of A is 1 / in, so that A x is about as large as x.
        """
        # on the device "meta" weights take no memory; they are replaced at once
        super().__init__(linear.in_features, linear.out_features, device="meta")
        self.weight, self.bias = linear.weight, linear.bias
        self.scale = scale
        self.lora_a = nn.Parameter(linear.weight.new_empty(rank, linear.in_features))
        self.lora_b = nn.Parameter(linear.weight.new_zeros(linear.out_features, rank))
        nn.init.normal_(self.lora_a, std=linear.in_features**-0.5)

    def forward(self, input: Tensor) -> Tensor:
        """Apply the adapted map: (..., in) -> (..., out)."""
        update = F.linear(F.linear(input, self.lora_a), self.lora_b)
        return F.linear(input, self.weight, self.bias) + self.scale * update

    @torch.no_grad()
    def merged(self) -> nn.Linear:
        """Return a plain linear map with the weights W + (alpha / r) B A; it shares the bias."""
        plain = nn.Linear(self.in_features, self.out_features, device="meta")
        update = low_rank_update(self.lora_a, self.lora_b, self.scale)
        plain.weight = nn.Parameter(self.weight + update, requires_grad=False)
        plain.bias = self.bias
        return plain


def add_adapters(model: Transformer, lora: LoraConfig) -> None:
    """Freeze all weights of `model`, and give an adapter to each linear map in `lora.targets`.

    Targets are names of the maps in their modules, such as `query`.
    """
    model.requires_grad_(False)
    for module in list(model.modules()):
        for name, child in list(module.named_children()):
            if name in lora.targets and isinstance(child, nn.Linear):
                module.add_module(name, LoraLinear(child, lora.rank, lora.alpha / lora.rank))


def merged(model: Transformer) -> Transformer:
    """Return a model whose adapters are merged into plain linear maps, for translation.

    It is a copy that shares all other weights; without adapters, it is `model` itself.
    """
    if not any(isinstance(module, LoraLinear) for module in model.modules()):
        return model
    plain = share_weights(model)
    for module in list(plain.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, LoraLinear):
                module.add_module(name, child.merged())
    return plain


def adapt_parent(loaded: LoadedModel, lora: LoraConfig, log: Log) -> LoadedModel:
    """Load the weights of `training.initialize_from` into the model of `loaded`, and add adapters.

    Returns `loaded` with metadata for its checkpoints: the parent of the adapter, and its scale.

    Raises:
        CheckpointError: the parent is missing or damaged, or has another shape.
        ConfigError: the parent has another tokenizer.
    """
    path = str(loaded.config.training.initialize_from)
    parent = load_model(path, next(loaded.model.parameters()).device)
    if parent.tokenizer.differs_from(loaded.tokenizer):
        raise ConfigError(
            f"training.lora: the tokenizer of {path} differs from this run's, and an adapter does "
            f"not change the embeddings; set tokenizer.model to the tokenizer in {path}"
        )
    load_into(loaded.model, weights_of(parent.model), parent.path)
    origin = AdapterOrigin(weights_digest(loaded.model), lora.alpha / lora.rank)
    add_adapters(loaded.model, lora)
    trained = sum(parameter.numel() for parameter in trained_parameters(loaded.model).values())
    log(f"LoRA: {trained:,} parameters are trained; {parent.path} is frozen")
    return replace(loaded, metadata=origin.metadata())
