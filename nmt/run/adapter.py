"""Adapters (LoRA; Hu et al., 2021, arXiv 2106.09685): small changes of a model in own files.

An adapter holds two thin matrices, A (r, in) and B (out, r), for some linear maps W (out, in) of
its parent. The adapted model has W + scale B A in place of W, so it translates as fast as the
parent. The safetensors file of an adapter also holds the scale and the digest of its parent.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from nmt.errors import CheckpointError
from nmt.model.anatomy import Shape, parts_of
from nmt.recipe.config import LoraConfig, ModelConfig
from nmt.run.checkpoint import load_with_metadata, weights_digest
from nmt.run.checkpoint_files import check_finite

A, B = "lora_a", "lora_b"
"""the last part of the names of A and B; W is `weight` of the same module"""
_PARENT, _SCALE = "parent", "scale"


@dataclass(frozen=True)
class AdapterOrigin:
    """What an adapter is for; it stands beside the tensors in the file."""

    parent: str
    """`weights_digest` of the model that it changes"""
    scale: float
    """alpha / r in the paper (section 4.1)"""

    def metadata(self) -> dict[str, str]:
        """Return what is written into the file of the adapter."""
        return {_PARENT: self.parent, _SCALE: repr(self.scale)}

    @classmethod
    def read(cls, metadata: Mapping[str, str], path: Path) -> "AdapterOrigin":
        """Return the origin in the metadata of an adapter's file; the inverse of `metadata()`.

        Raises:
            CheckpointError: They name no parent, so `path`, the file, is no adapter.
        """
        try:
            return cls(metadata[_PARENT], float(metadata[_SCALE]))
        except (KeyError, ValueError) as error:
            raise CheckpointError(
                f"{path}: not an adapter: it does not name its parent; give the run directory, a "
                "checkpoint or the .safetensors file of a training with training.lora"
            ) from error

    def check_parent(self, digest: str, path: Path) -> None:
        """Check that the adapter in `path` belongs to the model with the weights `digest`.

        Raises:
            CheckpointError: The adapter belongs to another model.
        """
        if self.parent != digest:
            raise CheckpointError(
                f"{path}: an adapter of another model: its parent has the digest "
                f"{self.parent[:16]}, this model {digest[:16]}; give the model that it was trained "
                "from, with the same weights as then"
            )


def adapter_shapes(config: ModelConfig, lora: LoraConfig) -> dict[str, Shape]:
    """Return {name: shape} of the weights of an adapter for the maps that `lora` names."""
    shapes: dict[str, Shape] = {}
    for part in parts_of(config):
        if part.name.rpartition(".")[2] in lora.targets:
            outputs, inputs = part.shape
            shapes[f"{part.path}.{A}"] = (lora.rank, inputs)
            shapes[f"{part.path}.{B}"] = (outputs, lora.rank)
    return shapes


def low_rank_update(a: Tensor, b: Tensor, scale: float) -> Tensor:
    """Return scale B A (out, in), the change of a weight matrix; A is (r, in), B (out, r)."""
    return scale * (b @ a)


def merge_adapter(model: nn.Module, path: Path) -> None:
    """Add the adapter in `path`, a checkpoint folder or a file, to the weights of its parent.

    Raises:
        CheckpointError: `path` is no adapter, is damaged, or `model` is not its parent. Then the
            model has not changed.
    """
    tensors, metadata = load_with_metadata(path)
    origin = AdapterOrigin.read(metadata, path)
    origin.check_parent(weights_digest(model), path)
    check_finite({name: tensor.numpy() for name, tensor in tensors.items()}, path)
    parameters = dict(model.named_parameters())
    updates = {}  # all of them are computed before the first weight changes
    modules = {name.rpartition(".")[0] for name in tensors}  # without ".lora_a" and ".lora_b"
    for module in sorted(modules):
        weight = parameters.get(f"{module}.weight")
        a, b = tensors.get(f"{module}.{A}"), tensors.get(f"{module}.{B}")
        if weight is None or a is None or b is None or not _fit(weight, a, b):
            raise CheckpointError(f"{path}: damaged: its tensors for {module} do not fit the model")
        updates[weight] = low_rank_update(a, b, origin.scale).to(weight.device)
    with torch.no_grad():
        for weight, update in updates.items():
            weight.add_(update)


def _fit(weight: Tensor, a: Tensor, b: Tensor) -> bool:
    """Return whether the shapes are those of W (out, in), A (r, in) and B (out, r)."""
    if a.dim() != 2 or b.dim() != 2:
        return False
    return b.shape[1] == a.shape[0] and weight.shape == (b.shape[0], a.shape[1])
