"""Compilation of the layers, and activation checkpointing, which saves memory in training.

Neither changes the results of the layers nor the names of their weights.
"""

from functools import partial
from itertools import chain

import torch
from torch.utils.checkpoint import checkpoint

from nmt.machine.device import can_compile
from nmt.model.transformer import Transformer
from nmt.recipe.config import TrainingConfig


def prepare_layers(model: Transformer, training: TrainingConfig) -> None:
    """Change the layers as the recipe says: compiled, with activation checkpointing, or both.

    With `training.compile`, on a GPU, fused kernels write no intermediate values to memory: such
    writes take most of the time in a small layer.

    With `training.activation_checkpointing` each layer stores only its input and computes the rest
    again in the backward pass.
    """
    compiles = is_compiled(training, next(model.parameters()).device)
    options = _compiler_options() if compiles else {}
    for layer in chain(model.encoder.layers, model.decoder.layers):
        if compiles:
            layer.compile(dynamic=True, options=options)
        if training.activation_checkpointing:
            # A module calls what is in this attribute, where `compile` puts its code, if anything.
            # No public one is left out of a copy of the module, as this one is.
            call = layer._compiled_call_impl or layer._call_impl
            layer._compiled_call_impl = partial(checkpoint, call, use_reentrant=False)


def _compiler_options() -> dict[str, bool]:
    """Return the options of PyTorch's compiler that differ from its own choice, if it knows them.

    `mix_order_reduction` is off: with it, the compiler sums the gradients of a norm in the kernel
    of the backward pass, which takes longer (base on an H200: 33.9 ms of kernels a step instead of
    31.8), and it compiles again for fewer than 10,240 rows.
    """
    wanted = {"triton.mix_order_reduction": False}
    return {name: value for name, value in wanted.items() if name in torch._inductor.list_options()}


def is_compiled(training: TrainingConfig, device: torch.device) -> bool:
    """Return whether layers and loss are compiled: the recipe asks for it and it is possible."""
    return training.compile and can_compile(device)
