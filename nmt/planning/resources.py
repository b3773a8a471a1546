"""What a model costs: weights by part, operations, disk space, and seconds on well-known GPUs.

Operations are counted as in published figures: a multiplication and an addition are two operations,
the backward pass costs twice the forward pass, and padding, norms, softmax and the optimiser are
ignored. Each weight of a matrix therefore costs 6 operations per token (Kaplan et al., 2020,
section 2.1), and attention costs 12 * d_model for each attended position in each layer.
"""

import math
from collections import Counter
from pathlib import Path
from typing import Any

from nmt.model.anatomy import parts_of
from nmt.recipe import strict_yaml
from nmt.recipe.config import Config, ModelConfig
from nmt.training.retention import ranking_size
from nmt.training.schedule import steps_before_cooldown
from nmt.training.step_memory import FP32, Rows, optimizer_bytes, shapes_in_memory, trained_weights

_SOURCE_SIDE_OF_DECODER = ("cross_attention.key", "cross_attention.value")
"""maps of the decoder that are applied to the tokens of the source"""
# Share of a GPU's dense peak that training with compiled layers reaches at d_model 1024: one H200
# reached 41.6 % there, and 27.5 % at d_model 512 (scripts/benchmarks/README.md). Narrower models
# are limited by memory: the share grows with d_model ** 0.6. Other GPUs are assumed to do the same.
_UTILIZATION, _WIDE_MODEL, _WIDTH_EXPONENT = 0.42, 1024, 0.6
# A step of the base model launched 1,203 kernels there: about 75 for an encoder layer and 120 for
# a decoder layer. Python took 40 to 70 ms for it, of which this is the middle.
_LAUNCH_SECONDS, _ENCODER_KERNELS, _DECODER_KERNELS = 47e-6, 75, 120


def count_parameters(config: Config, rows: Rows) -> dict[str, int]:
    """Count the weights of a model: embeddings, encoder, decoder and total.

    A shared matrix counts once, and the output projection counts as an embedding. `rows` are the
    sizes of the vocabularies.
    """
    counts: Counter[str] = Counter()
    for name, shape in shapes_in_memory(config, rows).items():
        counts[name.partition(".")[0]] += math.prod(shape)
    total, encoder, decoder = counts.total(), counts["encoder"], counts["decoder"]
    embeddings = total - encoder - decoder
    return {"embeddings": embeddings, "encoder": encoder, "decoder": decoder, "total": total}


def _matrix_weights(config: ModelConfig, rows: Rows) -> tuple[int, int]:
    """Count the matrix weights that each source token and each target token is multiplied by.

    Embeddings are looked up and cost nothing; the output projection is a product. Keys and values
    of the cross-attention are computed from the source.
    """
    source, target = 0, rows[1] * config.d_model
    for part in parts_of(config):
        if part.is_norm:
            continue
        if part.stack == "encoder" or part.name in _SOURCE_SIDE_OF_DECODER:
            source += math.prod(part.shape)
        else:
            target += math.prod(part.shape)
    return source, target


def training_operations(
    config: ModelConfig,
    rows: Rows,
    source_tokens: float,
    target_tokens: float,
    source_length: float = 0,
    target_length: float = 0,
) -> float:
    """Return the floating-point operations of one forward and backward pass over these tokens.

    The lengths are mean sentence lengths in tokens. If they are 0, the products of attention are
    left out (about 1 % of the total). The module's docstring explains the factors 6 and 12.
    """
    source_weights, target_weights = _matrix_weights(config, rows)
    matrices = 6.0 * (source_weights * source_tokens + target_weights * target_tokens)
    # positions that are attended to, over all tokens and layers
    in_encoder = config.encoder_layers * source_tokens * source_length
    past = target_length if config.decoder == "attention" else 0
    in_decoder = config.decoder_layers * target_tokens * (source_length + past)
    return matrices + 12.0 * config.d_model * (in_encoder + in_decoder)


def disk_usage(config: Config, rows: Rows) -> dict[str, int]:
    """Return the disk space of a run at its largest, when no checkpoint is both best and last.

    In bytes: one `checkpoint` (the weights and the state that a resumed run needs), what a
    `finished` run adds (the average of checkpoints, and the moving average), and the `total`.
    `checkpoints` is their largest number, including the one that is being written.
    """
    training = config.training
    weights = FP32 * trained_weights(config, rows)  # bytes
    checkpoint_bytes = weights + optimizer_bytes(config, rows)
    # the last checkpoints are kept to be averaged, unless the recipe averages the best ones
    averaged = 0 if training.average == "best" else training.average_checkpoints
    kept_last = max(averaged, training.keep_last)  # numbers of checkpoints
    kept_best = ranking_size(training)
    # a run saves a checkpoint at every multiple of these two numbers; common multiples count once
    steps, every = training.max_steps, training.checkpoint_every
    validate_every = training.validate_every
    saved = steps // every + steps // validate_every - steps // math.lcm(every, validate_every)
    kept = kept_best + kept_last
    if 0 < steps_before_cooldown(training) < steps:
        kept += 1  # the last one from before the cooldown
    count = min(kept, max(1, saved)) + 1  # one more is being written
    finished_bytes = weights * (2 if training.moving_average else 1)
    return {
        "checkpoint": checkpoint_bytes,
        "checkpoints": count,
        "finished": finished_bytes,
        "total": checkpoint_bytes * count + finished_bytes,
    }


def utilization(config: ModelConfig) -> float:
    """Return the share of its peak speed that a GPU is assumed to reach in training this model."""
    return _UTILIZATION * min(1.0, config.d_model / _WIDE_MODEL) ** _WIDTH_EXPONENT


def step_seconds(
    teraflops: float, config: ModelConfig, operations: float, micro_batches: int
) -> float:
    """Estimate the seconds of a step: its operations or its kernel launches, the longer of both.

    `teraflops` is the peak speed of the GPU.
    """
    kernels = _ENCODER_KERNELS * config.encoder_layers + _DECODER_KERNELS * config.decoder_layers
    launching = _LAUNCH_SECONDS * kernels * micro_batches  # each micro-batch launches all kernels
    computing = operations / (teraflops * 1e12 * utilization(config))
    return max(computing, launching)


def known_figures(table: str) -> list[dict[str, Any]]:
    """Return the rows of one table of known_figures.yaml, such as gpus, paper or sizes."""
    path = Path(__file__).with_name("known_figures.yaml")
    tables, _line_numbers = strict_yaml.parse(path.read_text("utf-8"), path.name)
    rows: list[dict[str, Any]] = tables[table]
    return rows


def find_paper_model(config: ModelConfig) -> dict[str, Any] | None:
    """Return the row of the model of the paper that has the sizes of `config`, or None."""
    sizes = config.d_model, config.heads, config.d_ff, config.encoder_layers, config.decoder_layers
    for row in known_figures("sizes"):
        if (row["d_model"], row["heads"], row["d_ff"], row["layers"], row["layers"]) == sizes:
            # tiny and small are no models of the paper
            return next((r for r in known_figures("paper") if r["name"] == row["name"]), None)
    return None
