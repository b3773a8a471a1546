"""Machines to compare with: GPUs by name, and what the paper's models took to train."""

from dataclasses import dataclass

from nmt.config import ModelConfig

# Share of a GPU's dense peak that training in PyTorch without fused layers reaches at d_model 1024:
# fairseq reached 23 % on an A100 (Transformer big, LightSeq's comparison), NVIDIA's example 33 %.
# Narrower models are limited by memory, in proportion to their width. Assumed, not measured.
_UTILIZATION, _WIDTH = 0.25, 1024
# Launching a kernel from Python takes about 8 µs. The forward and backward passes launch about 100
# kernels for an encoder layer and 160 for a decoder layer.
_LAUNCH_SECONDS, _ENCODER_KERNELS, _DECODER_KERNELS = 8e-6, 100, 160


@dataclass(frozen=True)
class GpuSpec:
    """A GPU as its data sheet describes it."""

    name: str
    teraflops: float
    """peak of dense bf16 matrix products that are summed in float32"""
    gigabytes: float


GPUS = (
    # data sheets and architecture white papers of NVIDIA; sparse figures halved
    GpuSpec("GeForce RTX 3090", 71, 24),
    GpuSpec("GeForce RTX 4090", 165, 24),
    GpuSpec("L4", 121, 24),
    GpuSpec("L40S", 362, 48),
    GpuSpec("A100", 312, 80),
    GpuSpec("H100 SXM", 989, 80),
    GpuSpec("H200", 989, 141),
)


def utilization(config: ModelConfig) -> float:
    """Return the share of its peak that a GPU is assumed to reach."""
    return _UTILIZATION * min(1.0, config.d_model / _WIDTH)


def step_seconds(gpu: GpuSpec, config: ModelConfig, operations: float, micro_batches: int) -> float:
    """Return the assumed seconds of a step: its operations or its kernel launches, if longer."""
    kernels = _ENCODER_KERNELS * config.encoder_layers + _DECODER_KERNELS * config.decoder_layers
    launching = _LAUNCH_SECONDS * kernels * micro_batches
    return max(operations / (gpu.teraflops * 1e12 * utilization(config)), launching)


@dataclass(frozen=True)
class PaperModel:
    """A model of the paper and its training on 8 P100 GPUs (table 2, sections 5.2 and 6.1)."""

    name: str
    parameters: int
    """as stated in table 3"""
    steps: int
    hours: float
    operations: float
    """as the authors count them: GPU time * 9.5 TFLOP/s, the sustained speed of a P100"""


PAPER = (
    PaperModel("base", 65_000_000, 100_000, 12.0, 3.3e18),
    PaperModel("big", 213_000_000, 300_000, 84.0, 2.3e19),
)
_SIZES = {
    "base": ModelConfig(),
    "big": ModelConfig(d_model=1024, heads=16, d_ff=4096),
}


def find_paper_model(config: ModelConfig) -> PaperModel | None:
    """Return the model of the paper that has the sizes of `config`, or None."""
    sizes = ("d_model", "heads", "d_ff", "encoder_layers", "decoder_layers")
    for model in PAPER:
        if all(getattr(_SIZES[model.name], size) == getattr(config, size) for size in sizes):
            return model
    return None
