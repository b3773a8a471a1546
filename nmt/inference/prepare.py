"""A model made ready to translate: weights in the precision and the layout that is fastest to read.

Training keeps its matrices as they are written down. A processor multiplies by them faster in
blocks that fit its registers, and to bring a matrix into blocks costs about as much as to multiply
a small batch by it. A translator does it once.
"""

import copy

import torch
from torch import Tensor, nn

from nmt.errors import ConfigError, NonFiniteScoresError
from nmt.inference.cuda_graphs import CudaGraphDecoder, CudaRecorder, Recorder
from nmt.inference.int8 import Int8Attention, Int8Linear, Int8SelfAttention
from nmt.inference.traced import TracedDecoder
from nmt.model.decoder import DecoderLayer
from nmt.model.encoder import EncoderLayer
from nmt.model.feed_forward import FeedForward
from nmt.model.transformer import Transformer


class PrepackedLinear(nn.Module):
    """x W^T + b, or with `relu` max(0, x W^T + b), with W in blocks (oneDNN's).

    For CPUs, and not to be trained.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None, relu: bool = False) -> None:
        super().__init__()
        self.weight = torch.ops.mkldnn._reorder_linear_weight(weight.detach(), None)
        self.bias = None if bias is None else bias.detach()
        self.activation = "relu" if relu else "none"

    def forward(self, x: Tensor) -> Tensor:
        """(..., D) -> (..., F)."""
        product: Tensor = torch.ops.mkldnn._linear_pointwise(
            x, self.weight, self.bias, self.activation, [], ""
        )
        return product


LinearKind = type[PrepackedLinear] | type[Int8Linear]


class PreparedFeedForward(nn.Module):
    """FFN(x) = max(0, x W1 + b1) W2 + b2 (Eq. 2), the maximum taken as the product is written."""

    def __init__(self, network: FeedForward, kind: LinearKind) -> None:
        super().__init__()
        self.inner = kind(network.inner.weight, network.inner.bias, relu=True)
        self.outer = kind(network.outer.weight, network.outer.bias)

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, D) -> (B, T, D), each position on its own."""
        product: Tensor = self.outer(self.inner(x))
        return product


class PreparedProjection(nn.Module):
    """An embedding matrix as the pre-softmax transformation alone."""

    def __init__(self, weight: Tensor, kind: LinearKind) -> None:
        super().__init__()
        self.kind, self.rows = kind, (weight.detach(),)  # no parameter, which others may have
        self.projection = kind(weight, None)

    def restrict_vocabulary(self, ids: Tensor) -> "PreparedProjection":
        """The projection onto the entries `ids` (V') of the vocabulary alone."""
        return PreparedProjection(self.rows[0][ids], self.kind)

    def logits(self, x: Tensor) -> Tensor:
        """x E^T: (N, k, D) -> (N, k, V)."""
        product: Tensor = self.projection(x)
        return product


def prepare_for_inference(model: Transformer, precision: str, graphs: bool = True) -> Transformer:
    """A copy of a Transformer, or of an ensemble, for translating; the model stays as it is.

    `precision` bf16 computes everything in bf16, where training keeps the weights in float32.
    int8 is for the products of activations and weights; all else is then float32. On a GPU steps
    are replayed as `graphs`.

    Raises:
        ConfigError: int8 elsewhere than on a CPU, or with a PyTorch that has it not.
        NonFiniteScoresError: int8 of weights that are not numbers, which have no largest one.
    """
    ready = _copied(model, torch.bfloat16 if precision == "bf16" else torch.float32)
    kind: LinearKind = Int8Linear if precision == "int8" else PrepackedLinear
    weight = next(ready.parameters())
    can = weight.device.type == "cpu" and is_supported(kind, weight.dtype)
    if kind is Int8Linear and not can:
        raise ConfigError(
            f"precision: int8 was asked for, which works on x86 CPUs alone, and this is "
            f"{weight.device.type} with PyTorch {torch.__version__}; use bf16 or fp32"
        )
    if kind is Int8Linear and not all(weight.isfinite().all() for weight in ready.parameters()):
        raise NonFiniteScoresError()
    if can:
        _prepack(ready, kind)
    if weight.device.type == "cuda" and graphs:
        use_cuda_graphs(ready, CudaRecorder())
    return ready.eval()


def use_cuda_graphs(model: nn.Module, recorder: Recorder) -> None:
    """Let each decoder in the model do its steps in one launch."""
    for module in model.modules():
        if isinstance(module, Transformer):
            module.add_module("decoder", CudaGraphDecoder(module.decoder, recorder))


def _copied(model: Transformer, dtype: torch.dtype) -> Transformer:
    """The model in this type: each weight is converted as it is copied, which saves memory."""
    copies: dict[int, object] = {
        id(weight): nn.Parameter(weight.detach().to(dtype, copy=True), requires_grad=False)
        for weight in model.parameters()
    }
    return copy.deepcopy(model, copies).to(dtype)


def _prepack(model: nn.Module, kind: LinearKind) -> None:
    """Replace each matrix, and free it before the next one is converted."""
    for module in model.modules():  # no list of them: it would hold all that are replaced
        if isinstance(module, EncoderLayer | DecoderLayer):
            module.add_module("feed_forward", PreparedFeedForward(module.feed_forward, kind))
            if kind is Int8Linear:
                _quantize_attention(module)
        for name, child in module.named_children():
            if isinstance(child, nn.Linear):
                module.add_module(name, kind(child.weight, child.bias))
        if isinstance(module, Transformer):
            projection = PreparedProjection(module.output_embedding.weight, kind)
            module.add_module("output_embedding", projection)
            if kind is Int8Linear:
                module.add_module("decoder", TracedDecoder(module.decoder))


def _quantize_attention(layer: EncoderLayer | DecoderLayer) -> None:
    layer.add_module("self_attention", Int8SelfAttention(layer.self_attention))
    if isinstance(layer, DecoderLayer):
        layer.add_module("cross_attention", Int8Attention(layer.cross_attention))


def is_supported(kind: LinearKind, dtype: torch.dtype) -> bool:
    """Whether this PyTorch has the operators, which it does not promise to keep."""
    one = torch.ones(1, 1, dtype=dtype)
    try:
        return bool((kind(one, one[0], relu=True)(one) - 2).abs().item() < 0.1)
    except (AttributeError, RuntimeError):
        return False
