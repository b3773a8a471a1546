"""How the layers of a model compute while it is trained: what they keep, and who writes the code.

Neither changes what they compute, nor the names of their weights.
"""

import os
import shutil
from functools import partial
from importlib.util import find_spec
from itertools import chain

import torch
from torch.utils.checkpoint import checkpoint

from nmt.config import TrainingConfig
from nmt.model.transformer import Transformer


def prepare_layers(model: Transformer, training: TrainingConfig) -> None:
    """Let the layers compute as the recipe says, on the device where the model is.

    `training.compile` is for GPUs: there most of a small layer's time goes into reading and writing
    what one fused kernel would keep.
    """
    if training.compile and can_compile(next(model.parameters()).device):
        compile_layers(model)
    if training.activation_checkpointing:
        enable_activation_checkpointing(model)


def can_compile(device: torch.device) -> bool:
    """Whether PyTorch can compile for a GPU: one that Triton knows, with Triton and a C compiler.

    Triton comes with PyTorch for CUDA on Linux, a compiler does not, and many a container has none.
    """
    if device.type != "cuda" or not find_spec("triton"):
        return False
    compilers = ("cc", "gcc", "clang")
    has_compiler = bool(os.environ.get("CC")) or any(map(shutil.which, compilers))
    return has_compiler and torch.cuda.get_device_capability(device) >= (7, 0)


def compile_layers(model: Transformer) -> None:
    """Let PyTorch compile each kind of layer once, for batches of any shape.

    Sizes stay symbols in the compiled code. It is compiled once more for sides that were equal
    when it was compiled first and no longer are, for a side of length 1, and for validation.
    """
    for layer in chain(model.encoder.layers, model.decoder.layers):
        layer.compile(dynamic=True)


def enable_activation_checkpointing(model: Transformer) -> None:
    """Let a model keep only what enters each layer, and recompute the rest for the gradient.

    Layers that are compiled stay so: their code is run twice, which PyTorch's compiler could not
    see through if it were to compile both.
    """
    for layer in chain(model.encoder.layers, model.decoder.layers):
        # where `compile` puts its code, which is called instead of `forward` and never copied
        call = layer._compiled_call_impl or layer._call_impl
        layer._compiled_call_impl = partial(checkpoint, call, use_reentrant=False)
