"""The weights of a Transformer in the layout that the C code reads (see products.h, layers.h)."""

import copy
import ctypes
import math
import threading
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from nmt.data.tokens.tokenizer import BOS, EOS
from nmt.errors import NonFiniteScoresError
from nmt.model.anatomy import Part, output_bias, parts_of, weight_shapes
from nmt.recipe.config import ModelConfig, alignment_layer

ACTIVATIONS = ("relu", "gelu", "swish")
POSITIONS = ("interleaved", "sines_first", "tensor2tensor", "fairseq", "rotary")
"""both in the order of layers.h"""
SETTINGS = {
    "activation": ACTIVATIONS,
    "positions": POSITIONS,
    "norm": ("post", "pre"),
    "norm_kind": ("layer", "rms"),
    "feed_forward": ("plain", "gated"),
    "decoder": ("attention", "ssru"),
    "source_eos": (True,),
}
"""{setting of `ModelConfig`: the values that the library knows}; of the others it knows all"""
IMPOSSIBLE = float("-inf")
"""the logit of an output that is no entry of the vocabulary but fills up the last panel"""
LARGEST_INT8 = 127
ALIGNMENT = 64
"""bytes: the width of a line of a cache; reading across the border of two lines takes longer"""
ALL_HEADS = -1
"""in place of the number of one head: the attention of all is recorded"""
MIN_SCALE = 1e-12
"""of a row of zeros, which has no scale"""
INTEGER_TOLERANCE = 1e-4
"""how far a number divided by its scale may be from an integer that it stands for"""
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


D, F = "d_model", "d_ff"
SELF, CROSS, NETWORK = "self_attention", "cross_attention", "feed_forward"
RECURRENCE = "recurrence"
LAYER: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "query_key_value": ((f"{SELF}.query", f"{SELF}.key", f"{SELF}.value"), (D, D)),
    "output": ((f"{SELF}.output",), (D, D)),
    "candidate_forget": ((f"{RECURRENCE}.candidate", f"{RECURRENCE}.forget"), (D, D)),
    "cross_query": ((f"{CROSS}.query",), (D, D)),
    "cross_key_value": ((f"{CROSS}.key", f"{CROSS}.value"), (D, D)),
    "cross_output": ((f"{CROSS}.output",), (D, D)),
    "inner": ((f"{NETWORK}.inner",), (F, D)),
    "outer": ((f"{NETWORK}.outer",), (D, F)),
    "gate": ((f"{NETWORK}.gate",), (F, D)),
    "self_norm": ((f"{SELF}_sublayer.norm",), (D,)),
    "recurrence_norm": ((f"{RECURRENCE}_sublayer.norm",), (D,)),
    "cross_norm": ((f"{CROSS}_sublayer.norm",), (D,)),
    "feed_forward_norm": ((f"{NETWORK}_sublayer.norm",), (D,)),
}
"""{field of `Layer`: our names of the `Part`s that stand side by side there, shape of each}"""


class CLayer(ctypes.Structure):
    """`Layer` of layers.h."""

    _fields_ = tuple((k, CNorm if shape == (D,) else CLinear) for k, (_, shape) in LAYER.items())


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
        ("is_rms_norm", ctypes.c_int32),
        ("is_rotary", ctypes.c_int32),
        ("activation", ctypes.c_int32),
        ("zero", ctypes.c_int32),
        ("alignment_layer", ctypes.c_int32),
        ("alignment_head", ctypes.c_int32),
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


def unknown_part(config: ModelConfig) -> Part | None:
    """Return the first part of a model that `Layer` has no field for; None: it has all."""
    shapes = {name: shape for names, shape in LAYER.values() for name in names}
    shapes["norm"] = (D,)  # after the last layer
    for part in parts_of(config):
        if part.shape != tuple(getattr(config, size) for size in shapes.get(part.name, ())):
            return part
    return None


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
        self._kept: list[object] = []  # kept alive, because the structures only point to them
        self._scales: dict[str, Array] = {}  # of the rows of matrices in int8, by name
        self._longest = 0  # positions in the table
        self._lock = threading.Lock()
        source = "target" if config.embeddings == "shared" else "source"
        self._output_side = "output" if config.embeddings == "separate" else "target"
        shapes = {name: array.shape for name, array in arrays.items()}
        rows = [sum(shapes.get(f"{side}_embedding.weight", ())[:1]) for side in (source, "target")]
        self.source_rows, self.target_rows = rows
        """ids of a text are below `source_rows`, those of a translation below this number"""
        if shapes != weight_shapes(config, (rows[0], rows[1])) or min(rows) <= EOS:
            raise UnexpectedWeightsError(rows)
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
            is_rms_norm=config.norm_kind == "rms",
            is_rotary=config.positions == "rotary",
            activation=ACTIVATIONS.index(config.activation),
            zero=BOS if config.start_embedding == "zero" else -1,
            alignment_layer=alignment_layer(len(decoder)),
            alignment_head=ALL_HEADS,
            epsilon=config.layer_norm_epsilon,
            embedding_scale=math.sqrt(config.d_model),
            source_embedding=self._pointer(self._array(f"{source}_embedding.weight")),
            target_embedding=self._pointer(self._array("target_embedding.weight")),
            projection=self._projection(),
        )
        if config.norm == "pre":
            self.model.encoder_norm = self._norm("encoder.norm")
            self.model.decoder_norm = self._norm("decoder.norm")

    @property
    def start(self) -> int:
        """The id that the decoder reads before the first token."""
        return EOS if self._config.start_embedding == "eos" else BOS

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
        embedding = self._array("target_embedding.weight")[ids]
        restricted.model.target_embedding = restricted._pointer(embedding)
        restricted.model.projection = restricted._projection(ids)
        return restricted

    def with_projection(self, weight: Array) -> Self:
        """Return the same weights with another output projection (V, D); embeddings stay."""
        other = copy.copy(self)
        other._kept = list(self._kept)
        other._arrays = {**self._arrays, "output_embedding.weight": weight}
        other._scales = {}
        other._output_side = "output"
        other.model = CModel.from_buffer_copy(self.model)
        other.model.projection = other._projection()
        return other

    def _array(self, name: str) -> Array:
        return np.ascontiguousarray(self._arrays[name], np.float32)

    def _pointer(self, array: Array) -> int:
        """Return the address of the numbers of `array`, or of a contiguous copy of them."""
        contiguous = np.ascontiguousarray(array)
        self._kept.append(contiguous)
        return int(contiguous.ctypes.data)

    def _norm(self, name: str) -> CNorm:
        return CNorm(self._pointer(self._array(f"{name}.weight")), self._pointer(self._bias(name)))

    def _bias(self, path: str) -> Array:
        """Return the bias of a linear map or a norm, zeros where it has none."""
        if f"{path}.bias" in self._arrays:
            return self._array(f"{path}.bias")
        return np.zeros(len(self._array(f"{path}.weight")), np.float32)

    def _layers(self, side: str, count: int) -> "ctypes.Array[CLayer]":
        array = (CLayer * count)()
        for i, layer in enumerate(array):
            for field, (names, shape) in LAYER.items():
                paths = [f"{side}.layers.{i}.{name}" for name in names]
                if f"{paths[0]}.weight" not in self._arrays:  # the layer has no such part
                    continue
                if shape == (D,):
                    setattr(layer, field, self._norm(paths[0]))
                    continue
                # linear maps of one input become one: their outputs stand side by side
                weight = np.concatenate([self._array(f"{path}.weight") for path in paths])
                bias = np.concatenate([self._bias(path) for path in paths])
                scales = np.concatenate([self._row_scales(f"{path}.weight") for path in paths])
                setattr(layer, field, self._pack(weight, bias, scales, fill=0.0))
        self._kept.append(array)
        return array

    def _projection(self, ids: Array | None = None) -> CLinear:
        """Return the map to the logits of the vocabulary entries `ids` (V'); None: of all."""
        name = f"{self._output_side}_embedding.weight"
        weight, scales = self._array(name), self._row_scales(name)
        bias = np.zeros(len(weight), np.float32)
        if self._config.output_bias:
            bias = self._array(output_bias(self._config))
        if ids is not None:
            weight, bias, scales = weight[ids], bias[ids], scales[ids]
        return self._pack(weight, bias, scales, fill=IMPOSSIBLE)

    def _row_scales(self, name: str) -> Array:
        """Return the scales of the rows of a matrix (F, D), which one in float32 has no use for."""
        if not self._int8:
            return np.ones(len(self._arrays[name]), np.float32)
        if name not in self._scales:
            self._scales[name] = row_scales(self._array(name))
        return self._scales[name]

    def _pack(self, weight: Array, bias: Array, scales: Array, fill: float) -> CLinear:
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
            scales = np.pad(scales, (0, missing), constant_values=1.0)
            quantized = np.rint(weight / scales[:, None]).astype(np.int8)
            result.scales = self._pointer(scales)
            result.sums = self._pointer(quantized.sum(1, dtype=np.int32))
            # four inputs of an output stand side by side, as one number of 32 bits
            blocks = quantized.view(np.int32).reshape(-1, self._panel, inputs // 4)
        panels = blocks.transpose(0, 2, 1)
        memory = np.empty(panels.nbytes + ALIGNMENT, np.uint8)
        start = -memory.ctypes.data % ALIGNMENT
        aligned = memory[start : start + panels.nbytes].view(panels.dtype).reshape(panels.shape)
        aligned[...] = panels
        result.panels = self._pointer(aligned)
        return result


def row_scales(weight: Array) -> Array:
    """Return what one unit of int8 stands for in each row of a matrix: (F, D) -> (F).

    The largest number of a row becomes 127. A matrix that was imported in int8 holds multiples of
    one number: that is the scale of all its rows, by which its integers are those of the original.

    Raises:
        NonFiniteScoresError: the matrix holds NaN or infinity, which have no scale.
    """
    largest = np.maximum(weight.max(1), -weight.min(1))  # of the absolute values
    if not np.isfinite(largest).all():
        raise NonFiniteScoresError()
    scales: Array = np.maximum(largest, MIN_SCALE) / np.float32(LARGEST_INT8)
    unit = scales.max()
    for rows in (weight[[scales.argmax()]], weight):  # one row of almost every other matrix tells
        units = rows / unit
        if np.abs(units - np.rint(units)).max() > INTEGER_TOLERANCE:
            return scales
    return np.full_like(scales, unit)
