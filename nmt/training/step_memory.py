"""Estimate of the memory that a training step takes, and of how many tokens fit at once."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import nn

from nmt.data.tokens.token_store import TokenStore
from nmt.machine.device import hardware_kind, memory_of
from nmt.machine.memory import check_memory_left
from nmt.model.anatomy import Shape, parts_of, weight_shapes
from nmt.model.transformer import Transformer
from nmt.recipe.config import Config, ModelConfig
from nmt.run.adapter import adapter_shapes
from nmt.run.model import LoadedModel
from nmt.training.loss import SOFTMAX_ROWS, projection_rows

Rows = tuple[int, int]
"""the sizes of the vocabularies of source and target"""
FP32, BF16 = 4, 2
"""bytes of one number"""

MAX_MICRO_BATCH = {"cpu": 8192, "cuda": 131_072}
"""padded tokens per side; larger micro-batches are no faster on a CPU, and untried on a GPU"""
_MIN_MICRO_BATCH = 512
_USABLE = {"cpu": 0.5, "cuda": 0.8}
"""fraction of the memory of a device that is used: the rest is for PyTorch itself, for gaps between
tensors and, on a CPU, for other programs"""
KEPT_ON_CPU = 900_000_000
"""bytes that a long training on a CPU takes in addition: PyTorch, freed memory, compiled kernels
(`memory.tune_memory`, `memory.limit_kernel_caches`). In 250 steps of Multi30k on two cores the
process had 1.22 GB at most, of which the parts below explain 0.39."""


@dataclass(frozen=True)
class StepMemory:
    """Bytes that a training step takes on one device, by purpose, without PyTorch itself."""

    weights: int
    """the weights in float32, and in bf16 training their bfloat16 copies for matrix products"""
    gradients: int
    """one per weight, times the copies for shards and for the all-reduce"""
    optimizer: int
    """moments, and the moving average of the weights if there is one"""
    activations: int
    """what PyTorch stores for the backward pass of a micro-batch"""
    logits: int
    """logits of the positions that are projected at once, their softmax, and the gradient of the
    embeddings, of all shards together"""
    tokens: int
    """not bytes: padded tokens per side of a micro-batch, of all shards together"""

    @property
    def total(self) -> int:
        """The sum of all bytes."""
        return self.weights + self.gradients + self.optimizer + self.activations + self.logits


@dataclass(frozen=True)
class Hardware:
    """The device of a step, and how the step is divided."""

    device: str
    """cpu or cuda, see `device.hardware_kind`"""
    precision: str
    """fp32 or bf16"""
    memory: float | None = None
    """bytes of the device that this process may use, free or not; None if unlimited"""
    cpu_shards: int = 1
    """parts of a step that threads compute at the same time, each with its own gradient"""
    processes: int = 1
    """processes that train together; each stores a second gradient, for the all-reduce"""


def training_memory(
    config: Config, rows: Rows, hardware: Hardware, length: float, tokens: int
) -> StepMemory:
    """Return the memory, in bytes, that a step takes.

    `length` is the mean number of tokens of a sentence. `tokens` is how many padded tokens per side
    are computed at once, in all shards together.
    """
    device, shards = hardware.device, hardware.cpu_shards
    in_bf16 = hardware.precision == "bf16"
    p = BF16 if in_bf16 else FP32  # bytes per element of a matrix product
    in_memory = sum(map(math.prod, shapes_in_memory(config, rows).values()))
    projection = rows[1] * config.model.d_model  # weights; rows[1] is the target vocabulary
    copied_to_bf16 = _linear_weights(config) + projection if in_bf16 else 0
    bytes_per_token = activation_bytes(config.model, device, hardware.precision, length)
    if config.training.activation_checkpointing:
        # each layer stores its input only, and one layer at a time is computed again
        layers = config.model.encoder_layers + config.model.decoder_layers
        bytes_per_token = layers * p * config.model.d_model + bytes_per_token / layers
    if config.training.guided_alignment:
        bytes_per_token += guided_alignment_bytes(config.model, length)
    # for each entry of the vocabulary: a logit and a probability of each position computed at once,
    # and a row of the embedding's gradient, once in float32 and once as the result of a product
    logit_bytes = min(tokens, shards * projection_rows(device, rows[1])) * p
    softmax_bytes = min(tokens, shards * SOFTMAX_ROWS[device]) * FP32
    is_trained = not config.training.lora  # which leaves the embeddings as they are
    embedding_gradient_bytes = shards * config.model.d_model * (FP32 + p) * is_trained
    bytes_per_entry = logit_bytes + softmax_bytes + embedding_gradient_bytes
    return StepMemory(
        weights=FP32 * in_memory + shards * BF16 * copied_to_bf16,
        gradients=FP32 * trained_weights(config, rows) * _gradient_copies(config, hardware, tokens),
        optimizer=optimizer_bytes(config, rows),
        activations=round(tokens * bytes_per_token),
        logits=rows[1] * bytes_per_entry,
        tokens=tokens,
    )


def _gradient_copies(config: Config, hardware: Hardware, tokens: int) -> int:
    """Return how many gradients of the whole model are in memory; `tokens` are computed at once."""
    if hardware.cpu_shards == 1:
        # the second one is for the all-reduce; or that of a micro-batch which a CUDA graph adds
        adds_by_graph = hardware.device == "cuda" and hardware.precision == "bf16"
        return 2 if hardware.processes > 1 or adds_by_graph else 1
    # each shard has its own, and a second one while it adds up micro-batches; the gradient of
    # the output projection comes on top
    per_shard = 2 if config.training.batch_tokens > tokens else 1
    return hardware.cpu_shards * per_shard + 1


def micro_batch_tokens(config: Config, rows: Rows, hardware: Hardware, length: float) -> int:
    """Return the most padded tokens per side that are computed at once, in all shards together.

    With `micro_batch_tokens: auto`, the largest useful number is halved until a step fits into the
    memory of the device, free or not: so the number is the same in each run. `length` is the mean
    number of tokens of a sentence.
    """
    configured = config.training.micro_batch_tokens
    if configured != "auto":
        return configured
    tokens = MAX_MICRO_BATCH[hardware.device]
    memory = math.inf if hardware.memory is None else hardware.memory
    usable = _USABLE[hardware.device] * memory
    while tokens > _MIN_MICRO_BATCH and (
        training_memory(config, rows, hardware, length, tokens).total > usable
    ):
        tokens //= 2
    return tokens


def activation_bytes(config: ModelConfig, device: str, precision: str, length: float) -> float:
    """Return the bytes that PyTorch stores for the backward pass of one source and target token.

    `length` is the mean of the sentences. With p bytes per element of a matrix product, it stores

    - for attention: the inputs of its linear maps, queries, keys, values and its result;
    - for the feed-forward network: the inputs of its two linear maps, for an activation other than
      ReLU also its input, and for ReLU with dropout also its result; for a gate both factors;
    - for a recurrence: the inputs of its linear maps, and in float32 the products, the gate, the
      states and what they are computed from;
    - for all of these: the dropout mask (p bytes per element on a CPU, one byte on a GPU) and the
      input of the norm;
    - on a CPU in bf16: the attention weights, because Eq. 1 is computed unfused.

    The kernels in C store no attention weights, and two bytes per element of a mask. With them the
    estimate is too high.
    """
    p = BF16 if precision == "bf16" else FP32
    on_cpu = device == "cpu"
    mask_bytes = p if on_cpu else 1
    mask_and_norm = ((mask_bytes if config.dropout else 0) + p) * config.d_model
    weights = p * config.heads * length if on_cpu and precision == "bf16" else 0
    stored = 0.0
    for part in parts_of(config):
        if part.layer is None:
            continue
        if part.is_norm:  # each sub-layer has one
            stored += mask_and_norm
        elif part.name == "feed_forward.outer":
            # its input, and what was dropped from it
            stored += (p + (mask_bytes if config.activation_dropout else 0)) * part.shape[1]
        elif part.name == "feed_forward.gate":
            stored += 2 * p * part.shape[0]  # both factors of the product
        elif part.name.startswith("feed_forward."):
            # the result, unless the activation or dropout follow in its place
            in_place = config.activation == "relu" and not config.activation_dropout
            stored += 0 if in_place else p * part.shape[0]
        elif part.name.startswith("recurrence."):
            stored += (p / 2 + 3 * FP32) * config.d_model
        elif part.name.endswith(".output"):
            # the input of attention, its result, and the input of this map
            stored += 3 * p * config.d_model + weights
        else:  # queries, keys or values
            stored += p * part.shape[0]
    return stored


def guided_alignment_bytes(config: ModelConfig, length: float) -> float:
    """Return the bytes that the head of guided alignment takes for one source and target token.

    These are its queries and keys, in tokens, in rows and in float32, and as wide as the mean
    sentence its scores, their gradients, the log-softmax and that of the links.
    """
    return FP32 * (6 * config.d_model / config.heads + 4 * length)


def optimizer_bytes(config: Config, rows: Rows) -> int:
    """Return the bytes of moments (Adam: two per weight, Muon: one) and of the moving average."""
    weights, training = trained_weights(config, rows), config.training
    weights_of_muon = _linear_weights(config) if training.optimizer == "muon" else 0
    average = weights if training.moving_average else 0
    return FP32 * (2 * weights - weights_of_muon + average)


def parameter_count(module: nn.Module) -> int:
    """Return the number of weights of a model, or of one of its modules."""
    return sum(parameter.numel() for parameter in module.parameters())


def shapes_in_memory(config: Config, rows: Rows) -> dict[str, Shape]:
    """Return {name: shape} of all weights of a training, frozen ones and adapters too."""
    return weight_shapes(config.model, rows) | _adapter_shapes(config)


def _adapter_shapes(config: Config) -> dict[str, Shape]:
    """Return {name: shape} of the weights of the adapters; empty without training.lora."""
    lora = config.training.lora
    return adapter_shapes(config.model, lora) if lora else {}


def trained_weights(config: Config, rows: Rows) -> int:
    """Return the number of weights that are not frozen: all, or those of the adapters."""
    trained = _adapter_shapes(config) or weight_shapes(config.model, rows)
    return sum(map(math.prod, trained.values()))


def _linear_weights(config: Config) -> int:
    """Return the number of weights in the matrices of the layers."""
    return sum(math.prod(part.shape) for part in parts_of(config.model) if not part.is_norm)


def vocabulary_rows(model: Transformer) -> Rows:
    """Return the sizes of the vocabularies of source and target."""
    return len(model.source_embedding.weight), len(model.target_embedding.weight)


class MicroBatchSize:
    """How many tokens are computed at once: from the recipe or estimated, and halved at need."""

    def __init__(
        self, loaded: LoadedModel, store: TokenStore, precision: str, processes: int
    ) -> None:
        """`store` gives the mean length; `processes` is how many compute each step together."""
        self._loaded, self._precision, self._processes = loaded, precision, processes
        self._auto = loaded.config.training.micro_batch_tokens == "auto"
        self._length = max(float(side.lengths.mean()) for side in (store.source, store.target))
        self._hardware: Hardware | None = None
        self.tokens = 0
        """padded tokens per side (sentences times the longest one), of all shards together"""
        self.halved = False
        """whether a larger size was tried and memory ran out"""

    def fit(self, cpu_shards: int) -> None:
        """Set `tokens` so that `cpu_shards` together fit in memory; never raise a halved size."""
        model, device = self._loaded.model, next(self._loaded.model.parameters()).device
        hardware = Hardware(
            hardware_kind(device),
            self._precision,
            memory=memory_of(device),
            cpu_shards=cpu_shards,
            processes=self._processes,
        )
        self._hardware, rows = hardware, vocabulary_rows(model)
        tokens = micro_batch_tokens(self._loaded.config, rows, hardware, self._length)
        self.tokens = min(tokens, self.tokens) if self.halved else tokens

    def check_memory(self) -> None:
        """Check that limits of memory leave what one micro-batch takes beside weights and moments.

        Raises:
            MemoryError: they leave less.
        """
        if self._hardware and self._hardware.device == "cpu":
            rows = vocabulary_rows(self._loaded.model)
            config, length = self._loaded.config, self._length
            memory = training_memory(config, rows, self._hardware, length, self.tokens)
            check_memory_left(memory.gradients + memory.activations + memory.logits)

    def halve(self, smallest: int) -> bool:
        """Halve `tokens`, but not below `smallest`; return False if it cannot become smaller."""
        if self.tokens <= smallest:
            return False
        self.tokens = max(self.tokens // 2, smallest)
        self.halved = True
        return True

    def state(self) -> dict[str, Any]:
        """Return the size and where it is from, for `load_state`."""
        return {"tokens": self.tokens, "auto": self._auto, "halved": self.halved}

    def load_state(self, saved: Mapping[str, Any]) -> None:
        """Use the saved size if it is smaller and both are estimated; else keep the present size.

        If memory ran out in an earlier session, use the smaller one in any case.
        """
        if saved["halved"] or (saved["auto"] and self._auto):
            self.tokens = min(self.tokens, saved["tokens"])
        self.halved = self.halved or saved["halved"]
