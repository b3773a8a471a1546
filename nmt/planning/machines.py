"""Machines to compare with: GPUs by name, and what the paper's models took to train."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nmt import strict_yaml
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
    """A GPU as its data sheet describes it; known_figures.yaml explains the figures."""

    name: str
    teraflops: float
    gigabytes: float


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
    """A model of the paper and its training; known_figures.yaml explains the figures."""

    name: str
    parameters: int
    steps: int
    hours: float
    operations: float


def known_figures(table: str) -> list[dict[str, Any]]:
    """Return the rows of a table in known_figures.yaml: gpus, paper or corpora."""
    path = Path(__file__).with_name("known_figures.yaml")
    tables, _ = strict_yaml.parse(path.read_text("utf-8"), path.name)
    rows: list[dict[str, Any]] = tables[table]
    return rows


GPUS = tuple(GpuSpec(**row) for row in known_figures("gpus"))
PAPER = tuple(PaperModel(**row) for row in known_figures("paper"))
_SIZES = {"base": ModelConfig(), "big": ModelConfig(d_model=1024, heads=16, d_ff=4096)}


def find_paper_model(config: ModelConfig) -> PaperModel | None:
    """Return the model of the paper that has the sizes of `config`, or None."""
    sizes = ("d_model", "heads", "d_ff", "encoder_layers", "decoder_layers")
    for model in PAPER:
        if all(getattr(_SIZES[model.name], size) == getattr(config, size) for size in sizes):
            return model
    return None
