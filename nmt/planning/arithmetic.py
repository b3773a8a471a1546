"""How much there is to compute: weights by part, and operations of one training step.

Operations are counted as published figures count them: a multiplication and an addition are two,
the backward pass costs twice the forward pass, and padding, norms, softmax and the optimiser are
left out. So each weight of a matrix costs 6 for each token that passes through it (Kaplan et al.,
2020, section 2.1), and attention 12 times d_model for each position attended to, in each layer.
"""

from dataclasses import dataclass

import torch
from torch import nn

from nmt.config import ModelConfig
from nmt.model.transformer import Transformer
from nmt.training.step_memory import parameter_count

_OVER_SOURCE = ("cross_attention.key", "cross_attention.value")


@dataclass(frozen=True)
class Parameters:
    """Weights by part; a matrix with several uses counts once."""

    embeddings: int
    """the output projection included, which is one of them"""
    encoder: int
    decoder: int

    @property
    def total(self) -> int:
        """All of them."""
        return self.embeddings + self.encoder + self.decoder


def blank_model(config: ModelConfig, source_size: int, target_size: int) -> Transformer:
    """A model of which only the shapes are there, for vocabularies of these sizes."""
    with torch.device("meta"):
        return Transformer(config, source_size, target_size)


def count_parameters(model: Transformer) -> Parameters:
    """What the model as it is built consists of."""
    encoder, decoder = parameter_count(model.encoder), parameter_count(model.decoder)
    return Parameters(parameter_count(model) - encoder - decoder, encoder, decoder)


def matrix_weights(model: Transformer) -> tuple[int, int]:
    """Weights of matrices that a source token passes through, and those that a target token does.

    The embeddings are looked up, but the output projection is multiplied by; keys and values of the
    cross-attention are made from the source.
    """
    sizes = {
        name: module.weight.numel()
        for name, module in model.named_modules()
        if isinstance(module, nn.Linear)
    }
    of_source = sum(
        size
        for name, size in sizes.items()
        if name.startswith("encoder.") or name.endswith(_OVER_SOURCE)
    )
    return of_source, sum(sizes.values()) - of_source + model.output_embedding.weight.numel()


def training_operations(
    model: Transformer,
    config: ModelConfig,
    source_tokens: float,
    target_tokens: float,
    source_length: float = 0,
    target_length: float = 0,
) -> float:
    """Operations of training on so many tokens, forward and backward.

    The lengths are those of the sentences they stand in; 0 leaves the attention between positions
    out, about a hundredth of the whole for sentences.
    """
    of_source, of_target = matrix_weights(model)
    attended = config.encoder_layers * source_tokens * source_length
    attended += config.decoder_layers * target_tokens * (source_length + target_length)
    matrices = 6.0 * (of_source * source_tokens + of_target * target_tokens)
    return matrices + 12.0 * config.d_model * attended
