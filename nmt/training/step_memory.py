"""What lies in memory while a step is computed: bytes by part; how much of it fits at once."""

from dataclasses import dataclass

from torch import nn

from nmt.config import Config, ModelConfig
from nmt.model.transformer import Transformer
from nmt.training.loss import PROJECTION_ROWS, SOFTMAX_ROWS

FP32, BF16 = 4, 2
"""bytes of a number"""

LARGEST_MICRO_BATCH = {"cpu": 8192, "cuda": 32_768}
"""padded tokens a side: beyond them products become no faster"""
_SMALLEST = 512
_USABLE = {"cpu": 0.5, "cuda": 0.8}
"""share of a device's memory that is filled on purpose: the rest is PyTorch's own, lost between
tensors and, on a CPU, other programs'"""
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


@dataclass(frozen=True)
class Hardware:
    """What a step is computed on, and how."""

    device: str
    """cpu or cuda"""
    precision: str
    """fp32 or bf16"""
    memory: float | None = None
    """bytes that this process may use of the device, in use or not; None: enough"""
    shares: int = 1
    """of a step that are computed side by side, each with a gradient of its own"""
    processes: int = 1
    """that train together; each keeps a second gradient, in which they are added up"""


def training_memory(
    config: Config, model: Transformer, hardware: Hardware, length: float
) -> Memory:
    """Of a usual step, sentences being of `length` tokens."""
    most = micro_batch_tokens(config, model, hardware, length)
    return _memory(config, model, hardware, length, min(most, config.training.batch_tokens))


def micro_batch_tokens(
    config: Config, model: Transformer, hardware: Hardware, length: float
) -> int:
    """Padded tokens a side that are computed at once at most, over all shares.

    Where the recipe leaves it open, as many as are of use, halved until they fit in memory: in all
    that there is of it, not in what is free at the moment, which would be another size each time.
    """
    wanted = config.training.micro_batch_tokens
    if wanted != "auto":
        return wanted
    tokens = LARGEST_MICRO_BATCH[hardware.device]
    if hardware.memory is not None:
        usable = _USABLE[hardware.device] * hardware.memory
        while tokens > _SMALLEST and (
            _memory(config, model, hardware, length, tokens).total > usable
        ):
            tokens //= 2
    return tokens


def _memory(
    config: Config, model: Transformer, hardware: Hardware, length: float, tokens: int
) -> Memory:
    """With so many padded tokens at once."""
    device, precision, shares = hardware.device, hardware.precision, hardware.shares
    size, target_size = parameter_count(model), model.output_embedding.weight.shape[0]
    bits = BF16 if precision == "bf16" else FP32
    multiplied = _linear_weights(model) + model.output_embedding.weight.numel()
    copies = shares * bits * multiplied if precision == "bf16" else 0
    per_token = activation_bytes(config.model, device, precision, length)
    # a layer is computed again from its input alone
    if config.training.activation_checkpointing:
        layers = config.model.encoder_layers + config.model.decoder_layers
        kept = bits if device == "cpu" else FP32
        per_token = layers * kept * config.model.d_model + per_token / layers
    return Memory(
        weights=FP32 * size + copies,
        gradients=FP32 * size * _gradients(hardware, tokens, config.training.batch_tokens),
        optimizer=optimizer_bytes(config, model),
        activations=round(tokens * per_token),
        logits=target_size
        * (
            min(tokens, shares * PROJECTION_ROWS[device]) * bits
            + min(tokens, shares * SOFTMAX_ROWS[device]) * FP32
            + shares * config.model.d_model * (FP32 + bits)
        ),
        tokens=tokens,
    )


def _gradients(hardware: Hardware, tokens: int, batch_tokens: int) -> int:
    """How many there are at once: one of a step that is computed in turn, by one process.

    Each of several shares has one of its own, and a second one while it adds up micro-batches; what
    the output projection says about the embeddings comes on top.
    """
    if hardware.shares == 1:
        return 1 if hardware.processes == 1 else 2
    return hardware.shares * (2 if batch_tokens > tokens else 1) + 1


def activation_bytes(config: ModelConfig, device: str, precision: str, length: float) -> float:
    """What a source and a target token leave for the backward pass, together.

    By sub-layer, D = d_model, F = d_ff, in elements of the precision p that products are in or of
    float32: attention keeps what enters its four maps, queries, keys, values and result; the
    feed-forward network what enters its two maps; both the mask of their dropout and what is
    normalised. In bf16 a GPU normalises in float32, and each map keeps a copy of its input. A CPU
    that computes Eq. 1 as it is read keeps the attention weights besides, and masks in the same
    precision where a GPU takes a byte.
    """
    p = BF16 if precision == "bf16" else FP32
    cpu = device == "cpu"
    copied = precision == "bf16" and not cpu
    mask = 0 if config.dropout == 0 else p if cpu else 1
    after = (mask + (p if cpu else FP32)) * config.d_model
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
    size = parameter_count(model)
    kept = 2 * size
    if config.training.optimizer == "muon":
        kept -= _linear_weights(model)
    return FP32 * (kept + (size if config.training.moving_average else 0))


def parameter_count(module: nn.Module) -> int:
    """All weights of a model, or of a part of it."""
    return sum(parameter.numel() for parameter in module.parameters())


def _linear_weights(model: Transformer) -> int:
    """Weights of the matrices inside the layers."""
    linear = (module for module in model.modules() if isinstance(module, nn.Linear))
    return sum(module.weight.numel() for module in linear)
