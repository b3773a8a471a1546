"""Prepares a model, not the data, for training: puts what is faster in the place of its parts.

`nmt.model` is the paper. Here, and nowhere else, it is decided what computes Eq. 1, the other parts
of a layer and the loss in training: libraries in C on a CPU, kernels in Triton and PyTorch's
compiler on a GPU, without the padding of batches on both. `what_runs` says it in a line.
"""

from functools import partial
from itertools import chain

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from nmt.kernels.attention import UnpaddedAttention, fits_heads
from nmt.kernels.cross_entropy import compiled_softmax, replace_logits_by_gradient
from nmt.kernels.dropout import FastDropout
from nmt.kernels.faster_modules import share_weights, use_faster_modules
from nmt.kernels.fused_attention import FUSED_MODULES, FusedAttention
from nmt.kernels.library import WIDTH_MULTIPLE, can_use_kernels, kernel_library
from nmt.kernels.norm import FusedSublayer, is_known
from nmt.kernels.packed_attention import PackedAttention, can_attend_packed
from nmt.kernels.python_code import is_code_unchanged
from nmt.kernels.recurrence import RowRecurrence
from nmt.kernels.relu import FusedFeedForward
from nmt.machine.device import can_compile
from nmt.model.attention import MultiHeadAttention
from nmt.model.feed_forward import FeedForward
from nmt.model.recurrence import SimpleRecurrence
from nmt.model.sublayer import Sublayer
from nmt.model.transformer import Transformer
from nmt.recipe.config import TrainingConfig
from nmt.training.callbacks import OwnObjective
from nmt.training.guided_alignment import GuidedHead
from nmt.training.loss import Objective, loss_and_gradient

ANYWHERE = {**FUSED_MODULES, SimpleRecurrence: RowRecurrence}
ON_CPU = {
    **ANYWHERE,
    MultiHeadAttention: UnpaddedAttention,
    FeedForward: FusedFeedForward,
    Sublayer: FusedSublayer,
}
PACKED = {**ANYWHERE, MultiHeadAttention: PackedAttention}
"""modules of the paper, and what computes the same faster; `ANYWHERE` on other devices"""


def prepare_for_training(
    model: Transformer, training: TrainingConfig, precision: str, own: OwnObjective | None = None
) -> Objective:
    """Return the loss of a copy of `model` that is faster; both have the same weights.

    If the Python code of the model has been changed, or a module of it, the copy has that. Batches
    keep their padding then, because it may relate positions to each other.

    With `training.compile`, on a GPU, fused kernels write no intermediate values to memory: such
    writes take most of the time in a small layer. With `training.activation_checkpointing` each
    layer stores only its input and computes the rest again in the backward pass.

    Args:
        model: The model, which does not change; a recipe with LoRA has given it adapters already.
        training: Its smoothing, compilation and checkpointing.
        precision: fp32, or bf16 for the matrix products and the values between layers.
        own: Computes the loss of batches in rows, in place of the label-smoothed one.
    """
    objective = Objective(share_weights(model), training.label_smoothing, precision)
    objective.own = own
    if training.guided_alignment and own is None:
        objective.guided_head = GuidedHead(objective.model, training.guided_alignment)
    device, on_cpu = objective.device, objective.device.type == "cpu"
    compiles = training.compile and can_compile(device)
    if on_cpu:  # always, because each thread draws masks from a generator of its own
        use_faster_modules(objective.model, {nn.Dropout: FastDropout})
    # true unless somebody has changed the model; faster code reads each source to its end
    if is_code_unchanged(model) and model.source_eos:
        attention = model.decoder.layers[0].cross_attention
        head_width = attention.query.out_features // attention.heads
        packs = own is None and precision == "bf16" and can_attend_packed(device, head_width)
        faster = ON_CPU if on_cpu and own is None else PACKED if packs else ANYWHERE
        use_faster_modules(objective.model, faster)
        # another device would have to tell first where the real tokens are
        if packs or (on_cpu and own is None):
            objective.storage = "packed" if packs else "unpadded"
        if on_cpu:
            objective.loss_function = _loss_in_c
        elif compiles:
            objective.loss_function = compiled_softmax()
    options = _compiler_options() if compiles else {}
    for layer in chain(objective.model.encoder.layers, objective.model.decoder.layers):
        if compiles:
            layer.compile(dynamic=True, options=options)
        if training.activation_checkpointing:
            # A module calls what is in this attribute, where `compile` puts its code, if anything;
            # PyTorch has no public way to wrap both.
            call = layer._compiled_call_impl or layer._call_impl
            layer._compiled_call_impl = partial(checkpoint, call, use_reentrant=False)
    return objective.train()


def what_runs(objective: Objective, threads: int) -> str:
    """Return in a line what computes attention and the other parts of a model in training.

    Such as "attention: C, unpadded; linear maps: PyTorch; feed-forward: C; norm: C; dropout: C;
    loss: C". `threads` is how many cores compute an operation together. All layers are alike, so
    one stands for all. The conditions are those of the modules in `nmt.kernels`.
    """
    layer, in_bf16 = objective.model.decoder.layers[-1], objective.precision == "bf16"
    if not isinstance(layer.cross_attention, FusedAttention):  # it may have any attributes
        return f"the Python code of the model as it is written, {objective.storage}"
    network, sublayer = layer.feed_forward, layer.feed_forward_sublayer
    library, fits_inner = None, False
    if isinstance(layer.cross_attention, UnpaddedAttention):
        library = kernel_library(torch.bfloat16 if in_bf16 else torch.float32)
    in_c = library is not None and threads == 1
    fits = in_c and layer.cross_attention.query.out_features % WIDTH_MULTIPLE == 0
    if fits and isinstance(network, FusedFeedForward) and type(network.inner) is nn.Linear:
        fits_inner = network.inner.out_features % WIDTH_MULTIPLE == 0
    in_c_by_part = {
        # only the tiles of AMX are faster than PyTorch
        "linear maps": fits and in_bf16 and bool(library and library.nmt_can_use_tiles()),
        "feed-forward": fits_inner and network.activation is F.relu,
        # the kernel adds x + Sublayer(x) before the norm
        "norm": fits and not sublayer.pre and is_known(sublayer.norm),
        # random numbers alone are drawn in C, with any number of threads
        "dropout": isinstance(sublayer.dropout, FastDropout) and library is not None,
        "loss": in_c,
    }
    parts = {part: "C" if is_in_c else "PyTorch" for part, is_in_c in in_c_by_part.items()}
    if objective.loss_function not in (loss_and_gradient, _loss_in_c):
        parts["loss"] = "compiled"
    if objective.own:
        parts["loss"] = "your objective"
    if layer._compiled_call_impl:
        parts["layers"] = "compiled"
    ways = [f"{part}: {way}" for part, way in parts.items()]
    attention = _way(layer.cross_attention, in_bf16, in_c)
    if head := objective.guided_head:
        ways.append(f"guided alignment: PyTorch, layer {head.layer + 1}")
    return "; ".join([f"attention: {attention}, {objective.storage}", *ways])


def _way(attention: nn.Module, in_bf16: bool, in_c: bool) -> str:
    """Return what computes Eq. 1 in training; `in_c`: there is a library for one core."""
    if isinstance(attention, PackedAttention):
        return "kernels of a GPU"
    if not isinstance(attention, FusedAttention):
        return "Eq. 1 as written"
    if isinstance(attention, UnpaddedAttention):
        has_dropout = attention.dropout.p > 0
        if in_c and not has_dropout and fits_heads(attention.query.out_features, attention.heads):
            return "C"
        if in_bf16 or has_dropout:
            return "Eq. 1 as written"
    return "PyTorch's fused kernel"


def _loss_in_c(
    logits: Tensor, target: Tensor, real: Tensor, smoothing: float
) -> tuple[Tensor, Tensor]:
    """Do the same as `loss_and_gradient`, by the library in C if it can."""
    if not can_use_kernels(logits):
        return loss_and_gradient(logits, target, real, smoothing)
    q_other = smoothing / (logits.shape[1] - 1)
    return replace_logits_by_gradient(logits, target, real, 1.0 - smoothing, q_other)


def _compiler_options() -> dict[str, bool]:
    """Return the options of PyTorch's compiler that differ from its own choice, if it knows them.

    `mix_order_reduction` is off: with it, the compiler sums the gradients of a norm in the kernel
    of the backward pass, which takes longer (base on an H200: 33.9 ms of kernels a step instead of
    31.8), and it compiles again for fewer than 10,240 rows.
    """
    wanted = {"triton.mix_order_reduction": False}
    return {name: value for name, value in wanted.items() if name in torch._inductor.list_options()}
