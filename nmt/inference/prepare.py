"""Prepares a model for inference: weights in the precision and the layout that are read fastest.

A trained model has matrices row by row. A processor multiplies by them faster in blocks that fit
its registers, and converting a matrix into blocks costs about as much as multiplying a small batch
by it. So each matrix is converted once, before the first translation.

A prepared model has the modules of `nmt.model`, with other linear maps inside them. All other
arithmetic stays that of the modules. A module that has been changed might use its matrices in
another way, so such a model is copied as it is.

A model can also be restricted to a part of its target vocabulary; the logits of the rest are not
computed. The projection onto 37,000 entries takes two fifths of a decoding step of `base`, and a
shortlist tells which few entries a batch may need.
"""

import copy

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nmt.inference.cuda_graphs import CudaGraphDecoder
from nmt.kernels.faster_modules import share_weights, use_faster_modules
from nmt.kernels.fused_attention import FUSED_MODULES
from nmt.kernels.python_code import is_code_unchanged
from nmt.machine.cuda_recorder import CudaRecorder, Recorder
from nmt.model.embedding import TokenEmbedding
from nmt.model.feed_forward import FeedForward
from nmt.model.transformer import Transformer


class PrepackedLinear(nn.Module):
    """x W^T + b, or with `relu` max(0, x W^T + b), with W in oneDNN's blocked layout.

    It runs on CPUs only and cannot be trained. PyTorch has no public function that multiplies by a
    matrix in such a layout.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None, relu: bool = False) -> None:
        super().__init__()
        self.weight = torch.ops.mkldnn._reorder_linear_weight(weight.detach(), None)
        self.bias = None if bias is None else bias.detach()
        self.fused = "relu" if relu else "none"  # the function that follows the linear map

    def forward(self, x: Tensor) -> Tensor:
        """Apply the linear map: (..., D) -> (..., F)."""
        # [] and "" are parameters that other functions than ReLU need
        product: Tensor = torch.ops.mkldnn._linear_pointwise(
            x, self.weight, self.bias, self.fused, [], ""
        )
        return product


class OutputProjection(nn.Module):
    """The output projection by the embedding matrix E (V, D), as a `PrepackedLinear`."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        super().__init__()
        # in a tuple, so that they are no parameters of this module
        self.rows = (weight.detach(), None if bias is None else bias.detach())
        self.projection = PrepackedLinear(weight, bias)

    def restrict_vocabulary(self, ids: Tensor) -> "OutputProjection":
        """Return a new projection with logits only of the vocabulary entries `ids` (V')."""
        weight, bias = self.rows
        return OutputProjection(weight[ids], None if bias is None else bias[ids])

    def logits(self, x: Tensor) -> Tensor:
        """Return the logits x E^T, with the bias if there is one: (N, k, D) -> (N, k, V)."""
        product: Tensor = self.projection(x)
        return product


def prepare_for_inference(model: Transformer, precision: str, graphs: bool = True) -> Transformer:
    """Copy a Transformer, or an ensemble; the copy is faster, but cannot be trained.

    If the Python code or a module of the model has been changed (`is_code_unchanged`), the copy has
    the same modules, in the type that the precision says: faster ones would compute what the code
    was before.

    Args:
        model: The model, which does not change.
        precision: bf16 for everything, also the weights (training keeps them in float32); any
            other name, such as int8, which only the C library computes, means fp32.
        graphs: Whether the decoder's steps become CUDA graphs; without a GPU they never do.
    """
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    if not is_code_unchanged(model):
        return _copy_as(model, dtype).eval()
    ready = _copy_as(model, dtype)
    use_faster_modules(ready, FUSED_MODULES)
    device = next(ready.parameters()).device
    if device.type == "cpu" and can_prepack(dtype):
        _prepack(ready)
    if device.type == "cuda" and graphs:
        use_cuda_graphs(ready, CudaRecorder(device))
    return ready.eval()


def prepare_for_scoring(model: Transformer) -> Transformer:
    """Copy a Transformer, or an ensemble, to compute whole translations under autocast, faster.

    The copy has the weights of `model` itself, so it takes no memory.
    """
    ready = share_weights(model)
    if is_code_unchanged(model):
        use_faster_modules(ready, FUSED_MODULES)
    return ready


class _SubsetEmbedding(nn.Module):
    """The embedding of a part of the vocabulary; an id of the part is an index into `ids`."""

    def __init__(self, embedding: TokenEmbedding, ids: Tensor) -> None:
        super().__init__()
        self.embedding, self.ids = embedding, ids

    def forward(self, indices: Tensor) -> Tensor:
        """Return the embeddings of ids of the part: (B, T) -> (B, T, D)."""
        x: Tensor = self.embedding(self.ids[indices])
        return x


def restrict_vocabulary(model: Transformer, ids: Tensor) -> Transformer:
    """Return the model with only the entries `ids` (V') as its target vocabulary.

    A target id of the new model is an index into `ids`; logits are (…, V'). A search needs PAD, BOS
    and EOS to keep their ids, so `ids` must begin with the special ids. The weights are shared with
    `model`, but the needed rows of the output matrix are copied.
    """
    restricted = copy.copy(model)
    # a dict of its own, so that `add_module` leaves `model` alone
    restricted._modules = dict(model._modules)
    whole: TokenEmbedding | OutputProjection = model.output_embedding
    if isinstance(whole, OutputProjection):
        output: nn.Module = whole.restrict_vocabulary(ids)
    else:
        output = copy.copy(whole)
        # only the rows `ids` of matrix and bias; `whole` keeps its own parameters
        output._parameters = {
            name: None if weight is None else nn.Parameter(weight[ids], requires_grad=False)
            for name, weight in whole._parameters.items()
        }
    restricted.add_module("output_embedding", output)
    restricted.add_module("target_embedding", _SubsetEmbedding(model.target_embedding, ids))
    return restricted


def use_cuda_graphs(model: nn.Module, recorder: Recorder) -> None:
    """Change `model`: each decoder in it now records its steps as CUDA graphs and replays them."""
    for module in model.modules():
        # a recurrence has no keys and values at fixed addresses
        if isinstance(module, Transformer) and not module.decoder.layers[0].recurrence:
            module.add_module("decoder", CudaGraphDecoder(module.decoder, recorder))


def _copy_as(model: Transformer, dtype: torch.dtype) -> Transformer:
    """Return a copy of the model in this type; weights are converted one by one to save memory."""
    copies: dict[int, object] = {
        id(weight): nn.Parameter(weight.detach().to(dtype, copy=True), requires_grad=False)
        for weight in model.parameters()
    }
    return copy.deepcopy(model, copies).to(dtype)


def _prepack(model: nn.Module) -> None:
    """Replace each linear map in place by a prepacked one; free it before the next conversion."""
    for module in model.modules():  # a list of them would hold all matrices that are replaced
        if isinstance(module, FeedForward) and module.activation is F.relu:
            # the linear map includes ReLU; other activations are computed after it
            inner = PrepackedLinear(module.inner.weight, module.inner.bias, relu=True)
            module.add_module("inner", inner)
            module.activation = _identity
        for name, child in module.named_children():
            if isinstance(child, nn.Linear):
                module.add_module(name, PrepackedLinear(child.weight, child.bias))
        if isinstance(module, Transformer):
            output = module.output_embedding
            module.add_module("output_embedding", OutputProjection(output.weight, output.bias))


def _identity(x: Tensor) -> Tensor:
    return x


def can_prepack(dtype: torch.dtype) -> bool:
    """Whether `PrepackedLinear` works here; later PyTorch versions may lack its operators."""
    one = torch.ones(1, 1, dtype=dtype)
    try:
        two = PrepackedLinear(one, one[0], relu=True)(one)  # 1 * 1 + 1
    except (AttributeError, RuntimeError):
        return False
    return bool((two - 2).abs().item() < 0.1)
