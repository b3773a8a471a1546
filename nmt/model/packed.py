"""A model made ready to translate: weights in the precision and the layout that is fastest to read.

Training keeps its matrices as they are written down. A processor multiplies by them faster in
blocks that fit its registers, and to bring a matrix into blocks costs about as much as to multiply
a small batch by it. A translator does it once.
"""

import copy
import functools
import warnings

import torch
from torch import Tensor, nn

from nmt.errors import ConfigError
from nmt.model.attention import MultiHeadAttention
from nmt.model.decoder import DecoderLayer
from nmt.model.embedding import TokenEmbedding
from nmt.model.encoder import EncoderLayer
from nmt.model.transformer import Transformer
from nmt.processor import processor_features

FEW_ROWS = 16
"""hypotheses in a batch, up to which FBGEMM multiplies integers the fastest"""
ONE_CORE = 2 << 20
"""bytes of a matrix that few rows are multiplied by: less, and to wait for a second core costs more
than it saves"""


class PackedLinear(nn.Module):
    """x W^T + b with W in blocks (oneDNN's): for CPUs, and not to be trained."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        super().__init__()
        self.weight = torch.ops.mkldnn._reorder_linear_weight(weight.detach(), None)
        self.bias = None if bias is None else bias.detach()

    def forward(self, x: Tensor) -> Tensor:
        """(..., D) -> (..., F)."""
        product: Tensor = torch.ops.mkldnn._linear_pointwise(
            x, self.weight, self.bias, "none", [], ""
        )
        return product


class Int8Linear(nn.Module):
    """x W^T + b in products of 8-bit integers, for CPUs.

    Each row of W has a scale of its own, and x has one that is found anew for each batch: what a
    sentence becomes may depend on those beside it.

    Two libraries compute the same sums of integers. FBGEMM is the faster for the few rows of a
    single sentence; for many, on processors that multiply whole matrices of integers, oneDNN is,
    and there each matrix is kept for both.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        super().__init__()
        quantized = _quantized(weight)
        self.for_few = self.for_many = _for_library("x86", quantized, bias)
        self.seven_bits = eight_bits_overflow("x86")
        if "amx_int8" in processor_features():
            self.for_many = _for_library("onednn", quantized, bias)
            self.seven_bits |= eight_bits_overflow("onednn")
        self.is_small = quantized.numel() < ONE_CORE

    def forward(self, x: Tensor) -> Tensor:
        """(..., D) -> (..., F)."""
        if x.numel() > FEW_ROWS * x.shape[-1]:
            return self._product(x, self.for_many)
        threads = torch.get_num_threads()
        torch.set_num_threads(1 if self.is_small else threads)
        try:
            return self._product(x, self.for_few)
        finally:
            torch.set_num_threads(threads)

    def _product(self, x: Tensor, weight: object) -> Tensor:
        product: Tensor = torch.ops.quantized.linear_dynamic(x, weight, self.seven_bits)
        return product


def _quantized(weight: Tensor) -> Tensor:
    """W in 8-bit integers, each row with the scale of its largest number."""
    weight = weight.detach()
    scales = weight.abs().amax(1).clamp(min=1e-12).double() / 127
    zeros = torch.zeros(len(weight), dtype=torch.long)
    with warnings.catch_warnings():
        # PyTorch means to move these tensors elsewhere; `can_pack` notices when it has
        warnings.simplefilter("ignore", UserWarning)
        return torch.quantize_per_channel(weight, scales, zeros, 0, torch.qint8)


def _for_library(engine: str, quantized: Tensor, bias: Tensor | None) -> object:
    """The matrix in the blocks of FBGEMM (x86) or oneDNN, and the bias beside it."""
    torch.backends.quantized.engine = engine
    return torch.ops.quantized.linear_prepack(quantized, bias)


@functools.cache
def eight_bits_overflow(engine: str) -> bool:
    """Whether a library cuts sums of two products off at 16 bits, as on processors without VNNI.

    Then x may have 7 bits only. It is tried out with the largest integers there are.
    """
    ones = torch.ones(16, 16)
    matrix = _for_library(engine, _quantized(ones), None)
    sums: Tensor = torch.ops.quantized.linear_dynamic(ones, matrix, False)
    return bool((sums - 16).abs().amax() > 1)


class PackedProjection(nn.Module):
    """An embedding matrix as the pre-softmax transformation alone."""

    def __init__(self, embedding: TokenEmbedding, kind: "PackedKind") -> None:
        super().__init__()
        self.projection = kind(embedding.weight, None)

    def logits(self, x: Tensor) -> Tensor:
        """x E^T: (N, k, D) -> (N, k, V)."""
        product: Tensor = self.projection(x)
        return product


class Int8SelfAttention(MultiHeadAttention):
    """Self-attention whose queries, keys and values are one product, x [W^Q W^K W^V].

    A sentence alone is translated the sooner. oneDNN's products of floats gain nothing by it and
    take memory: their kernels are compiled for each shape.
    """

    def __init__(self, attention: MultiHeadAttention) -> None:
        nn.Module.__init__(self)
        self.heads, self.dropout = attention.heads, attention.dropout
        projections = (attention.query, attention.key, attention.value)
        self.query_key_value = Int8Linear(
            torch.cat([projection.weight for projection in projections]),
            torch.cat([projection.bias for projection in projections]),
        )
        self.add_module("output", Int8Linear(attention.output.weight, attention.output.bias))

    def project_all(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Query, key and value of what attends to itself: (B, T, D) -> three (B, H, T, K)."""
        product: Tensor = self.query_key_value(x)  # (B, T, 3 * D)
        parts = product.unflatten(2, (3, self.heads, -1)).transpose(1, 3).unbind(2)
        return parts[0], parts[1], parts[2]


PackedKind = type[PackedLinear] | type[Int8Linear]


def packed(model: Transformer, precision: str) -> Transformer:
    """A copy of a Transformer, or of an ensemble, for translating; the model stays as it is.

    `precision` bf16 computes everything in bf16, where training keeps weights and sums in float32.
    int8 is for the products of activations and weights; all else is then float32.

    Raises:
        ConfigError: int8 elsewhere than on a CPU, or with a PyTorch that has it not.
    """
    ready = _copied(model, torch.bfloat16 if precision == "bf16" else torch.float32)
    kind: PackedKind = Int8Linear if precision == "int8" else PackedLinear
    weight = next(ready.parameters())
    if weight.device.type == "cpu" and can_pack(kind, weight.dtype):
        _pack(ready, kind)
    elif kind is Int8Linear:
        raise ConfigError(
            f"precision: int8 was asked for, which works on x86 CPUs alone, and this is "
            f"{weight.device.type} with PyTorch {torch.__version__}; use bf16 or fp32"
        )
    return ready


def _copied(model: Transformer, dtype: torch.dtype) -> Transformer:
    """The model in this type: each weight is converted as it is copied, which saves memory."""
    copies: dict[int, object] = {
        id(weight): nn.Parameter(weight.detach().to(dtype, copy=True), requires_grad=False)
        for weight in model.parameters()
    }
    return copy.deepcopy(model, copies).eval().to(dtype)


def _pack(model: nn.Module, kind: PackedKind) -> None:
    """Replace each matrix by a packed one, and so let it go before the next is packed."""
    for module in model.modules():  # no list of them: it would hold all that are replaced
        if kind is Int8Linear and isinstance(module, EncoderLayer | DecoderLayer):
            module.add_module("self_attention", Int8SelfAttention(module.self_attention))
        for name, child in module.named_children():
            if isinstance(child, nn.Linear):
                module.add_module(name, kind(child.weight, child.bias))
        if isinstance(module, Transformer):
            projection = PackedProjection(module.output_embedding, kind)
            module.add_module("output_embedding", projection)


def can_pack(kind: PackedKind, dtype: torch.dtype) -> bool:
    """Whether this PyTorch has the operators, which it does not promise to keep."""
    one = torch.ones(1, 1, dtype=dtype)
    try:
        return bool((kind(one, one[0])(one) - 2).abs().item() < 0.1)
    except (AttributeError, RuntimeError):
        return False
