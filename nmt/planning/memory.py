"""What lies in memory while a step is computed, and on disk afterwards: bytes by part."""

import math
from dataclasses import dataclass

from nmt.config import Config, ModelConfig
from nmt.model.transformer import Transformer
from nmt.planning.arithmetic import matrix_weights
from nmt.training.gradients import MICRO_BATCH_TOKENS
from nmt.training.loss import PROJECTION_ROWS, SOFTMAX_ROWS
from nmt.training.retention import ranked_checkpoints

_FP32, _BF16 = 4, 2

KEPT_ON_CPU = 2_300_000_000
"""bytes that a long training on a CPU holds besides: PyTorch, freed memory, compiled kernels
(`device.tune_memory`); 2.66 GB in all after 4,000 steps of Multi30k, whose parts add up to 0.3"""


@dataclass(frozen=True)
class Memory:
    """Bytes on one device, by part; without what PyTorch itself takes."""

    weights: int
    """float32, and the copy in bfloat16 that matrix products use"""
    gradients: int
    optimizer: int
    """its moments, and the moving average of the weights if there is one"""
    activations: int
    """what the backward pass needs of a micro-batch"""
    logits: int
    """of the positions that are projected at once, their softmax, and what they say about the
    embeddings; over all shares"""
    tokens: int
    """padded tokens of a micro-batch a side, of all shares together"""

    @property
    def total(self) -> int:
        """All of them at once."""
        return self.weights + self.gradients + self.optimizer + self.activations + self.logits


def training_memory(
    config: Config, model: Transformer, device: str, precision: str, length: float, shares: int = 1
) -> Memory:
    """Of one step on a `device` (cpu or cuda) in fp32 or bf16, sentences being of `length` tokens.

    `shares` of a step are computed side by side, each with a gradient of its own.
    """
    size, target_size = _elements(model), model.output_embedding.weight.shape[0]
    bits = _BF16 if precision == "bf16" else _FP32
    largest = micro_batch(config, device)
    copies = shares * bits * sum(matrix_weights(model)) if precision == "bf16" else 0
    # a layer is computed again from its input alone
    per_token = activation_bytes(config.model, device, precision, length)
    if config.training.activation_checkpointing:
        layers = config.model.encoder_layers + config.model.decoder_layers
        kept = bits if device == "cpu" else _FP32
        per_token = layers * kept * config.model.d_model + per_token / layers
    return Memory(
        weights=_FP32 * size + copies,
        gradients=_FP32 * size * (shares + (shares > 1)),
        optimizer=optimizer_bytes(config, model),
        activations=round(largest * per_token),
        logits=target_size
        * (
            min(largest, shares * PROJECTION_ROWS[device]) * bits
            + min(largest, shares * SOFTMAX_ROWS[device]) * _FP32
            + shares * config.model.d_model * (_FP32 + bits)
        ),
        tokens=largest,
    )


def micro_batch(config: Config, device: str) -> int:
    """Padded tokens a side that are computed at once, over all shares."""
    size = config.training.micro_batch_tokens
    allowed = MICRO_BATCH_TOKENS[device] if size == "auto" else size
    return min(allowed, config.training.batch_tokens)


def activation_bytes(config: ModelConfig, device: str, precision: str, length: float) -> float:
    """What a source and a target token leave for the backward pass, together.

    By sub-layer, D = d_model, F = d_ff, in elements of the precision p that products are in or of
    float32: attention keeps what enters its four maps, queries, keys, values and result; the
    feed-forward network what enters its two maps; both the mask of their dropout and what is
    normalised. In bf16 a GPU normalises in float32, and each map keeps a copy of its input. A CPU
    that computes Eq. 1 as it is read keeps the attention weights besides, and masks in the same
    precision where a GPU takes a byte.
    """
    p = _BF16 if precision == "bf16" else _FP32
    cpu = device == "cpu"
    copied = precision == "bf16" and not cpu
    mask = 0 if config.dropout == 0 else p if cpu else 1
    after = (mask + (p if cpu else _FP32)) * config.d_model
    inputs = (3 if copied else 1) * p * config.d_model
    weights = p * config.heads * length if cpu and precision == "bf16" else 0
    attention = inputs + 5 * p * config.d_model + weights + after
    feed_forward = p * config.d_model * copied + p * config.d_ff + after
    if config.activation_dropout:
        feed_forward += ((p if cpu else 1) + p) * config.d_ff
    encoder = config.encoder_layers * (attention + feed_forward)
    decoder = config.decoder_layers * (2 * attention + feed_forward)
    return encoder + decoder


def optimizer_bytes(config: Config, model: Transformer) -> int:
    """Adam keeps two moments of each weight, Muon one of each inner matrix."""
    size = _elements(model)
    kept = 2 * size
    if config.training.optimizer == "muon":
        kept -= sum(matrix_weights(model)) - model.output_embedding.weight.numel()
    return _FP32 * (kept + (size if config.training.moving_average else 0))


@dataclass(frozen=True)
class Disk:
    """Bytes that a run takes on disk."""

    checkpoint: int
    """weights, and what a resumed run needs beside them"""
    checkpoints: int
    """how many there are at most at once, the one that is being written included"""
    finished: int
    """weights without training state: the average, and the moving average"""

    @property
    def total(self) -> int:
        """All of them at once."""
        return self.checkpoint * self.checkpoints + self.finished


def disk_space(config: Config, model: Transformer) -> Disk:
    """What is kept, at worst: the last, the best and those to average are all different ones."""
    training, weights = config.training, _FP32 * _elements(model)
    ranked = ranked_checkpoints(training)
    regular = 0 if training.average == "best" else training.average_checkpoints
    kept = ranked + max(regular, training.keep_last)
    steps, both = training.max_steps, math.lcm(training.checkpoint_every, training.validate_every)
    possible = steps // training.checkpoint_every + steps // training.validate_every - steps // both
    return Disk(
        checkpoint=weights + optimizer_bytes(config, model),
        checkpoints=min(kept, max(1, possible)) + 1,
        finished=weights * (2 if training.moving_average else 1),
    )


def _elements(model: Transformer) -> int:
    return sum(parameter.numel() for parameter in model.parameters())
