"""Machines to compare with: GPUs by name, and what the paper's authors spent."""

from dataclasses import dataclass

from nmt.config import ModelConfig

# Share of a GPU's dense peak that training in PyTorch without fused layers reaches at d_model 1024:
# fairseq had 23 % on an A100 (Transformer big, LightSeq's comparison), NVIDIA's own example 33 %.
# Narrower models are bound by memory, in proportion to their width. Assumed here, not measured.
_UTILIZATION, _WIDTH = 0.25, 1024
# A GPU waits for every kernel to be launched: about 8 µs each from Python, 100 kernels for the
# forward and backward passes of an encoder layer, 160 for those of a decoder layer.
_LAUNCH_SECONDS, _ENCODER_KERNELS, _DECODER_KERNELS = 8e-6, 100, 160


@dataclass(frozen=True)
class Gpu:
    """A GPU as its data sheet describes it."""

    name: str
    teraflops: float
    """peak of bf16 matrix products, dense, summed in float32"""
    gigabytes: float


GPUS = (
    # data sheets and architecture white papers of NVIDIA; sparse figures halved
    Gpu("GeForce RTX 3090", 71, 24),
    Gpu("GeForce RTX 4090", 165, 24),
    Gpu("L4", 121, 24),
    Gpu("L40S", 362, 48),
    Gpu("A100", 312, 80),
    Gpu("H100 SXM", 989, 80),
    Gpu("H200", 989, 141),
)


def utilization(config: ModelConfig) -> float:
    """The share of its peak that a GPU is assumed to reach."""
    return _UTILIZATION * min(1.0, config.d_model / _WIDTH)


def step_seconds(gpu: Gpu, config: ModelConfig, operations: float, micro_batches: int) -> float:
    """How long a step of so many operations is assumed to take."""
    kernels = _ENCODER_KERNELS * config.encoder_layers + _DECODER_KERNELS * config.decoder_layers
    launching = _LAUNCH_SECONDS * kernels * micro_batches
    return max(operations / (gpu.teraflops * 1e12 * utilization(config)), launching)


@dataclass(frozen=True)
class Spent:
    """What a model of the paper took its authors, on 8 P100 GPUs (table 2, sections 5.2, 6.1)."""

    name: str
    parameters: int
    """as table 3 states them"""
    steps: int
    hours: float
    operations: float
    """the authors' count: GPU time times 9.5 TFLOP/s that a P100 sustains"""


PAPER = (
    Spent("base", 65_000_000, 100_000, 12.0, 3.3e18),
    Spent("big", 213_000_000, 300_000, 84.0, 2.3e19),
)
_SIZES = {
    "base": ModelConfig(),
    "big": ModelConfig(d_model=1024, heads=16, d_ff=4096),
}


def counterpart(config: ModelConfig) -> Spent | None:
    """The model of the paper that has these sizes, if one has."""
    sizes = ("d_model", "heads", "d_ff", "encoder_layers", "decoder_layers")
    for spent in PAPER:
        if all(getattr(_SIZES[spent.name], size) == getattr(config, size) for size in sizes):
            return spent
    return None
