"""The weights of a Transformer in the layout that the C code reads (see products.h, layers.h)."""

import copy
import ctypes
import math
import threading
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from nmt.data.tokens.tokenizer import BOS, EOS
from nmt.errors import NonFiniteScoresError
from nmt.recipe.config import ModelConfig

ACTIVATIONS = ("relu", "gelu", "swish")
POSITIONS = ("interleaved", "sines_first", "tensor2tensor")
"""both in the order of layers.h"""
IMPOSSIBLE = float("-inf")
"""the logit of an output that is no entry of the vocabulary but fills up the last panel"""
LARGEST_INT8 = 127
ALIGNMENT = 64
"""bytes: the width of a line of a cache; reading across the border of two lines takes longer"""
MIN_SCALE = 1e-12
"""of a row of zeros, which has no scale"""
Array = NDArray[Any]


class CLinear(ctypes.Structure):
    """`Linear` of products.h."""

    _fields_ = (
        ("panels", ctypes.c_void_p),
        ("bias", ctypes.c_void_p),
        ("scales", ctypes.c_void_p),
        ("sums", ctypes.c_void_p),
        ("inputs", ctypes.c_int32),
        ("outputs", ctypes.c_int32),
        ("padded", ctypes.c_int32),
    )


class CNorm(ctypes.Structure):
    """`Norm` of layers.h."""

    _fields_ = (("gain", ctypes.c_void_p), ("bias", ctypes.c_void_p))


class CLayer(ctypes.Structure):
    """`Layer` of layers.h."""

    _fields_ = (
        ("query_key_value", CLinear),
        ("output", CLinear),
        ("cross_query", CLinear),
        ("cross_key_value", CLinear),
        ("cross_output", CLinear),
        ("inner", CLinear),
        ("outer", CLinear),
        ("self_norm", CNorm),
        ("cross_norm", CNorm),
        ("feed_forward_norm", CNorm),
    )


class CModel(ctypes.Structure):
    """`Model` of layers.h."""

    _fields_ = (
        ("encoder", ctypes.POINTER(CLayer)),
        ("decoder", ctypes.POINTER(CLayer)),
        ("encoder_layers", ctypes.c_int32),
        ("decoder_layers", ctypes.c_int32),
        ("d_model", ctypes.c_int32),
        ("heads", ctypes.c_int32),
        ("d_ff", ctypes.c_int32),
        ("is_pre_norm", ctypes.c_int32),
        ("activation", ctypes.c_int32),
        ("zero", ctypes.c_int32),
        ("epsilon", ctypes.c_float),
        ("embedding_scale", ctypes.c_float),
        ("source_embedding", ctypes.c_void_p),
        ("target_embedding", ctypes.c_void_p),
        ("positions", ctypes.c_void_p),
        ("encoder_norm", CNorm),
        ("decoder_norm", CNorm),
        ("projection", CLinear),
    )


class UnexpectedWeightsError(ValueError):
    """The weights are not those of a model of the given sizes."""


class NativeWeights:
    """Copies of a model's matrices in panels, and the C structure `model` that points to them.

    Weights that are no matrices, and the embeddings, are not copied: the arrays that are given must
    not change afterwards.
    """

    def __init__(
        self, config: ModelConfig, arrays: Mapping[str, Array], library: ctypes.CDLL, int8: bool
    ) -> None:
        """Pack the weights, given by their names in `nmt.model`.

        Raises:
            UnexpectedWeightsError: a weight is missing, has another shape, or is one too many.
            NonFiniteScoresError: int8 of a matrix that holds NaN or infinity, which has no scale.
        """
        self._library, self._config, self._arrays = library, config, arrays
        self._int8 = int8
        self._panel: int = library.nmt_panel()
        self._used: set[str] = set()
        self._kept: list[object] = []  # kept alive, because the structures only point to them
        self._longest = 0  # positions in the table
        self._lock = threading.Lock()
        embeddings = config.embeddings
        source = "target" if embeddings == "shared" else "source"
        self._output_side = "output" if embeddings == "separate" else "target"
        self.source_rows = len(self._embedding(source))
        self.target_rows = len(self._embedding("target"))
        """ids of a text are below `source_rows`, those of a translation below this number"""
        outputs = len(self._embedding(self._output_side))
        if outputs != self.target_rows or min(self.source_rows, outputs) <= EOS:
            raise UnexpectedWeightsError(self.source_rows, self.target_rows, outputs)
        encoder = self._layers("encoder", config.encoder_layers)
        decoder = self._layers("decoder", config.decoder_layers)
        self.model = CModel(
            encoder=encoder,
            decoder=decoder,
            encoder_layers=len(encoder),
            decoder_layers=len(decoder),
            d_model=config.d_model,
            heads=config.heads,
            d_ff=config.d_ff,
            is_pre_norm=config.norm == "pre",
            activation=ACTIVATIONS.index(config.activation),
            zero=BOS if config.start_embedding == "zero" else -1,
            epsilon=config.layer_norm_epsilon,
            embedding_scale=math.sqrt(config.d_model),
            source_embedding=self._pointer(self._embedding(source)),
            target_embedding=self._pointer(self._embedding("target")),
            projection=self._projection(self._embedding(self._output_side), self._output_bias()),
        )
        if config.norm == "pre":
            self.model.encoder_norm = self._norm("encoder.norm")
            self.model.decoder_norm = self._norm("decoder.norm")
        if self._used != set(arrays):
            raise UnexpectedWeightsError(*sorted(set(arrays) - self._used))

    def extend_positions(self, length: int) -> None:
        """Make the table of positional encodings at least `length` positions long.

        Other threads may translate meanwhile: the model gets the new table when it is complete.
        """
        with self._lock:
            if length <= self._longest:
                return
            longest = 2 * length  # twice, so that it rarely grows
            table = np.empty((longest, self._config.d_model), np.float32)
            # a second structure, the same but for its table, which the C function fills
            with_new_table = CModel.from_buffer_copy(self.model)
            with_new_table.positions = self._pointer(table)
            kind = POSITIONS.index(self._config.positions)
            self._library.nmt_positions(ctypes.byref(with_new_table), longest, kind)
            self.model.positions = with_new_table.positions
            self._longest = longest

    def restrict_vocabulary(self, ids: Array) -> Self:
        """Return the same weights with only the entries `ids` (V') as the target vocabulary.

        A target id of the result is an index into `ids`, which begin with the special ids.
        """
        restricted = copy.copy(self)
        restricted._kept = list(self._kept)
        restricted.model = CModel.from_buffer_copy(self.model)
        restricted.target_rows = len(ids)
        bias = self._output_bias()
        restricted.model.target_embedding = restricted._pointer(self._embedding("target")[ids])
        restricted.model.projection = restricted._projection(
            self._embedding(self._output_side)[ids], None if bias is None else bias[ids]
        )
        return restricted

    def _array(self, name: str, *shape: int | None) -> Array:
        """Return a weight after a check of its shape; None: any size."""
        array = self._arrays.get(name)
        sizes = () if array is None else array.shape
        differs = any(size not in (None, found) for size, found in zip(shape, sizes, strict=False))
        if array is None or len(sizes) != len(shape) or differs:
            raise UnexpectedWeightsError(name, sizes, shape)
        self._used.add(name)
        return np.ascontiguousarray(array, np.float32)

    def _embedding(self, side: str) -> Array:
        return self._array(f"{side}_embedding.weight", None, self._config.d_model)

    def _output_bias(self) -> Array | None:
        if not self._config.output_bias:
            return None
        entries = len(self._embedding(self._output_side))
        return self._array(f"{self._output_side}_embedding.bias", entries)

    def _pointer(self, array: Array) -> int:
        """Return the address of the numbers of `array`, or of a contiguous copy of them."""
        contiguous = np.ascontiguousarray(array)
        self._kept.append(contiguous)
        return int(contiguous.ctypes.data)

    def _copy_aligned(self, array: Array) -> int:
        """Return the address of a contiguous copy, a multiple of `ALIGNMENT`."""
        memory = np.empty(array.nbytes + ALIGNMENT, np.uint8)
        start = -memory.ctypes.data % ALIGNMENT
        copied = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
        copied[...] = array
        return self._pointer(copied)

    def _norm(self, name: str) -> CNorm:
        weight = self._array(f"{name}.weight", self._config.d_model)
        bias = self._array(f"{name}.bias", self._config.d_model)
        return CNorm(self._pointer(weight), self._pointer(bias))

    def _layers(self, side: str, count: int) -> "ctypes.Array[CLayer]":
        layers = [self._layer(f"{side}.layers.{i}", side == "decoder") for i in range(count)]
        array = (CLayer * count)(*layers)
        self._kept.append(array)
        return array

    def _layer(self, name: str, is_decoder: bool) -> CLayer:
        width, inner = self._config.d_model, self._config.d_ff
        attention, cross = f"{name}.self_attention", f"{name}.cross_attention"
        query, key, value = (f"{attention}.{part}" for part in ("query", "key", "value"))
        network = f"{name}.feed_forward"
        result = CLayer(
            query_key_value=self._linear([query, key, value], width, width),
            output=self._linear([f"{attention}.output"], width, width),
            inner=self._linear([f"{network}.inner"], inner, width),
            outer=self._linear([f"{network}.outer"], width, inner),
            self_norm=self._norm(f"{attention}_sublayer.norm"),
            feed_forward_norm=self._norm(f"{network}_sublayer.norm"),
        )
        if is_decoder:
            keys_values = [f"{cross}.key", f"{cross}.value"]
            result.cross_query = self._linear([f"{cross}.query"], width, width)
            result.cross_key_value = self._linear(keys_values, width, width)
            result.cross_output = self._linear([f"{cross}.output"], width, width)
            result.cross_norm = self._norm(f"{cross}_sublayer.norm")
        return result

    def _linear(self, names: Sequence[str], outputs: int, inputs: int) -> CLinear:
        """Return linear maps of one input as one: their outputs stand side by side."""
        weights = [self._array(f"{name}.weight", outputs, inputs) for name in names]
        biases = [self._array(f"{name}.bias", outputs) for name in names]
        return self._pack(np.concatenate(weights), np.concatenate(biases), fill=0.0)

    def _projection(self, weight: Array, bias: Array | None) -> CLinear:
        """Return the map to the logits of the vocabulary entries with these rows of weights."""
        bias = np.zeros(len(weight), np.float32) if bias is None else bias
        return self._pack(weight, bias, fill=IMPOSSIBLE)

    def _pack(self, weight: Array, bias: Array, fill: float) -> CLinear:
        """Store x W^T + b in panels; the last one is filled up with outputs that are `fill`."""
        outputs, inputs = weight.shape
        missing = -outputs % self._panel
        weight = np.pad(weight, ((0, missing), (0, 0)))  # (F, D)
        result = CLinear(
            bias=self._pointer(np.pad(bias, (0, missing), constant_values=fill)),
            inputs=inputs,
            outputs=outputs,
            padded=outputs + missing,
        )
        blocks = weight.reshape(-1, self._panel, inputs)
        if self._int8:
            largest = np.maximum(weight.max(1), -weight.min(1))  # (F), of the absolute values
            if not np.isfinite(largest).all():
                raise NonFiniteScoresError()
            scales = np.maximum(largest, MIN_SCALE) / np.float32(LARGEST_INT8)
            quantized = np.rint(weight / scales[:, None]).astype(np.int8)
            result.scales = self._pointer(scales)
            result.sums = self._pointer(quantized.sum(1, dtype=np.int32))
            # four inputs of an output stand side by side, as one number of 32 bits
            blocks = quantized.view(np.int32).reshape(-1, self._panel, inputs // 4)
        result.panels = self._copy_aligned(blocks.transpose(0, 2, 1))
        return result
