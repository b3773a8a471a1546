"""The weights of a Transformer in the layout that the C code reads (see products.h, layers.h)."""

import copy
import ctypes
from collections.abc import Sequence
from typing import Any, Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nmt.model.attention import MultiHeadAttention
from nmt.model.decoder import DecoderLayer
from nmt.model.embedding import TokenEmbedding
from nmt.model.feed_forward import ACTIVATIONS
from nmt.model.positional_encoding import sinusoids
from nmt.model.transformer import Transformer

IMPOSSIBLE = float("-inf")
"""the logit of an output that is no entry of the vocabulary but fills up the last panel"""
LARGEST_INT8 = 127
SMALLEST_SCALE = 1e-12
"""of a row of zeros, which has no scale"""


class CLinear(ctypes.Structure):
    """`Linear` of products.h."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("panels", "bias", "scales", "sums")),
        *((name, ctypes.c_int32) for name in ("inputs", "outputs", "padded")),
    )


class CNorm(ctypes.Structure):
    """`Norm` of layers.h."""

    _fields_ = (("gain", ctypes.c_void_p), ("bias", ctypes.c_void_p))


class CLayer(ctypes.Structure):
    """`Layer` of layers.h."""

    _fields_ = (
        *((name, CLinear) for name in ("query_key_value", "output")),
        *((name, CLinear) for name in ("cross_query", "cross_key_value", "cross_output")),
        *((name, CLinear) for name in ("inner", "outer")),
        *((name, CNorm) for name in ("self_norm", "cross_norm", "feed_forward_norm")),
    )


class CModel(ctypes.Structure):
    """`Model` of layers.h."""

    _fields_ = (
        *((name, ctypes.POINTER(CLayer)) for name in ("encoder", "decoder")),
        *((name, ctypes.c_int32) for name in ("encoder_layers", "decoder_layers")),
        *((name, ctypes.c_int32) for name in ("d_model", "heads", "d_ff")),
        *((name, ctypes.c_int32) for name in ("is_pre_norm", "activation", "zero")),
        *((name, ctypes.c_float) for name in ("epsilon", "embedding_scale")),
        *((name, ctypes.c_void_p) for name in ("source_embedding", "target_embedding")),
        ("positions", ctypes.c_void_p),
        *((name, CNorm) for name in ("encoder_norm", "decoder_norm")),
        ("projection", CLinear),
    )


class NativeWeights:
    """Copies of a model's matrices in panels, and the C structure `model` that points to them.

    A panel holds as many outputs as `nmt_panel` of the library says. Weights that are no matrices,
    and the embeddings, are not copied: the model that is given must not change afterwards.
    """

    def __init__(self, model: Transformer, panel: int, int8: bool) -> None:
        self._panel, self._int8 = panel, int8
        self._tensors: list[Tensor] = []  # kept alive, because the structures only point to them
        self._transformer = model
        self._longest = 0  # positions in the table
        encoder = _array([self._layer(layer) for layer in model.encoder.layers])
        decoder = _array([self._layer(layer) for layer in model.decoder.layers])
        self._layers = (encoder, decoder)  # kept alive too
        first: DecoderLayer = model.decoder.layers[0]
        sublayer = first.self_attention_sublayer
        target: TokenEmbedding = model.target_embedding
        output: TokenEmbedding = model.output_embedding
        self.model = CModel(
            encoder=encoder,
            decoder=decoder,
            encoder_layers=len(encoder),
            decoder_layers=len(decoder),
            d_model=first.feed_forward.inner.in_features,
            heads=first.self_attention.heads,
            d_ff=first.feed_forward.inner.out_features,
            is_pre_norm=sublayer.pre,
            activation=list(ACTIVATIONS.values()).index(first.feed_forward.activation),
            zero=-1 if target.zero is None else target.zero,
            epsilon=sublayer.norm.eps,
            embedding_scale=target.scale,
            source_embedding=self._pointer(model.source_embedding.weight),
            target_embedding=self._pointer(target.weight),
            encoder_norm=self._norm(model.encoder.norm),
            decoder_norm=self._norm(model.decoder.norm),
            projection=self._linear([output.weight], [output.bias], IMPOSSIBLE),
        )

    def extend_positions(self, length: int) -> None:
        """Make the table of positional encodings at least `length` positions long."""
        if length > self._longest:
            self._longest = 2 * length  # twice, so that it rarely grows
            positions = self._transformer.positions.positions
            table = sinusoids(self._longest, self.model.d_model, positions)
            self.model.positions = self._pointer(table)

    def restrict_vocabulary(self, ids: Tensor) -> Self:
        """Return the same weights with only the entries `ids` (V') as the target vocabulary.

        A target id of the result is an index into `ids`, which begin with the special ids.
        """
        narrow = copy.copy(self)
        narrow._tensors = list(self._tensors)
        narrow.model = CModel.from_buffer_copy(self.model)
        target, output = self._transformer.target_embedding, self._transformer.output_embedding
        bias = None if output.bias is None else output.bias[ids]
        narrow.model.target_embedding = narrow._pointer(target.weight[ids])
        narrow.model.projection = narrow._linear([output.weight[ids]], [bias], IMPOSSIBLE)
        return narrow

    def _pointer(self, x: Tensor) -> int:
        """Return the address of the numbers of `x`, or of a contiguous copy of them."""
        x = x.detach().contiguous()
        self._tensors.append(x)
        return x.data_ptr()

    def _norm(self, norm: nn.Module) -> CNorm:
        if not isinstance(norm, nn.LayerNorm):  # nn.Identity: this model has no such norm
            return CNorm()
        return CNorm(self._pointer(norm.weight), self._pointer(norm.bias))

    def _layer(self, layer: Any) -> CLayer:  # EncoderLayer or DecoderLayer
        attention, network = layer.self_attention, layer.feed_forward
        result = CLayer(
            query_key_value=self._joined(attention.query, attention.key, attention.value),
            output=self._joined(attention.output),
            inner=self._joined(network.inner),
            outer=self._joined(network.outer),
            self_norm=self._norm(layer.self_attention_sublayer.norm),
            feed_forward_norm=self._norm(layer.feed_forward_sublayer.norm),
        )
        if isinstance(layer, DecoderLayer):
            cross: MultiHeadAttention = layer.cross_attention
            result.cross_query = self._joined(cross.query)
            result.cross_key_value = self._joined(cross.key, cross.value)
            result.cross_output = self._joined(cross.output)
            result.cross_norm = self._norm(layer.cross_attention_sublayer.norm)
        return result

    def _joined(self, *maps: nn.Linear) -> CLinear:
        """Return several linear maps of one input as one: their outputs stand side by side."""
        return self._linear([m.weight for m in maps], [m.bias for m in maps])

    def _linear(
        self, weights: Sequence[Tensor], biases: Sequence[Tensor | None], fill: float = 0.0
    ) -> CLinear:
        """Store x W^T + b in panels; the last one is filled up with outputs that are `fill`."""
        weight = torch.cat([w.detach() for w in weights])  # (F, D)
        outputs, inputs = weight.shape
        missing = -outputs % self._panel
        weight = F.pad(weight, (0, 0, 0, missing))
        pairs = zip(weights, biases, strict=True)
        known = [w.new_zeros(len(w)) if b is None else b.detach() for w, b in pairs]
        bias = F.pad(torch.cat(known), (0, missing), value=fill)
        result = CLinear(
            bias=self._pointer(bias), inputs=inputs, outputs=outputs, padded=outputs + missing
        )
        if self._int8:
            scales = weight.abs().amax(1).clamp(min=SMALLEST_SCALE) / LARGEST_INT8  # (F)
            quantized = (weight / scales[:, None]).round_()
            result.scales = self._pointer(scales)
            result.sums = self._pointer(quantized.sum(1).int())
            # four inputs of an output stand side by side: (panels, D / 4, PANEL, 4)
            blocks = quantized.to(torch.int8).view(-1, self._panel, inputs // 4, 4)
        else:
            blocks = weight.view(-1, self._panel, inputs)
        result.panels = self._pointer(blocks.transpose(1, 2))
        return result


def _array(layers: list[CLayer]) -> ctypes.Array[CLayer]:
    return (CLayer * len(layers))(*layers)
