"""What a model.bin of CTranslate2 computes, in our settings and names of weights."""

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from nmt.errors import ExchangeError
from nmt.exchange.ctranslate2 import LAYER
from nmt.exchange.ctranslate2_binary import Array, BinaryModel
from nmt.model.anatomy import Part, output_bias, parts_of, weight_shapes
from nmt.model.positional_encoding import sinusoids
from nmt.recipe.config import ModelConfig, Positions
from nmt.recipe.config_file import replace_settings

STACKS = ("encoder", "decoder")
SPECIFICATION, REVISIONS = "TransformerSpec", range(3, 8)
ACTIVATIONS = {0: "relu", 2: "swish", 3: "gelu"}
"""{their number: our name}"""
PATHS = {path: path.replace("linear.", "linear_").replace(".", "/") for path in LAYER}
"""{path in a layer of the specification: the same in the names of variables}"""
CHECKED_POSITIONS, POSITION_ERROR = 512, 0.01
"""rows of a table of positions that are compared, and how far its numbers may be from ours, which
those of bfloat16 are"""
REFUSED = {
    "relative_position": "relative positions",
    "relative_attention_bias": "relative positions",
    "layernorm_embedding": "a norm after the embeddings",
    "embeddings_1": "factors (several embeddings of a token)",
    "weight_zero": "weights quantised in less than 8 bits",
    "scale_outputs": "scaled logits",
}
"""{part of the name of a variable: what it is}, which nmt does not have"""
_WEIGHT = re.compile(
    rf"(en|de)coder/(layer_\d+/({'|'.join(PATHS.values())})|layer_norm|projection|embeddings(_0)?)"
    r"/(weight|bias|gamma|beta)"
)
_SETTING = re.compile(
    r"((en|de)coder/)?(num_heads|pre_norm|activation|alignment_layer|alignment_heads|"
    r"embeddings_merge|scale_embeddings|start_from_zero_embedding|multi_query_attention|alibi\w*|scale_alibi|"
    r"position_encodings/encodings|embeddings\w*/multiply_by_sqrt_depth)"
    r"|(en|de)coder/layer_\d+/self_attention/rotary_(dim|interleave|base)"
    r"|\w+_token|with_(source_bos|source_eos|target_bos)|user_decoder_start_tokens"
)
"""the names of variables that are no weights"""


def check_variables(binary: BinaryModel, where: str) -> None:
    """Check that each variable is a weight or a setting that nmt knows.

    Raises:
        ExchangeError: one is not; or the file holds no model that translates.
    """
    if binary.specification != SPECIFICATION or binary.revision not in REVISIONS:
        raise ExchangeError(
            f"{where}: a model of the kind {binary.specification[:40] or 'of version 1'}, revision "
            f"{binary.revision}; nmt reads {SPECIFICATION} of the revisions 3 to 7"
        )
    for name in binary.variables:
        if not _WEIGHT.fullmatch(name) and not _SETTING.fullmatch(name):
            reason = next((what for part, what in REFUSED.items() if part in name), "")
            raise ExchangeError(
                f"{where}: it has {name[:80]}, {reason or 'a part'} that nmt does not compute"
            )
    if binary.number("decoder/alibi"):
        raise ExchangeError(f"{where}: it has biases for positions (ALiBi), which nmt has not")


def embeddings_of(binary: BinaryModel, stack: str, where: str) -> Array:
    """Return the embeddings (V, D) of the encoder or decoder.

    Raises:
        ExchangeError: there are none.
    """
    for name in ("embeddings_0", "embeddings"):
        found = binary.variables.get(f"{stack}/{name}/weight")
        if found is not None and found.ndim == 2:
            return found
    raise ExchangeError(f"{where}: damaged: it has no matrix {stack}/embeddings/weight")


def read_config(
    binary: BinaryModel, settings: Mapping[str, Any], one_table: bool, where: str
) -> ModelConfig:
    """Return the architecture.

    `settings` are those of config.json; `one_table`: source and target have one vocabulary.

    Raises:
        ExchangeError: nmt has no such model; the message says what it lacks.
    """

    def both(name: str, default: int) -> int:
        """Return a number of encoder and decoder, which older files store once for both."""
        values = {binary.number(f"{stack}/{name}", name, default=default) for stack in STACKS}
        if len(values) > 1:
            raise ExchangeError(f"{where}: {name} of encoder and decoder differ: {sorted(values)}")
        return int(values.pop())

    width = embeddings_of(binary, "decoder", where).shape[1]
    _check_scale(binary, width, where)
    activation = both("activation", 0)
    if activation not in ACTIVATIONS:
        known = ", ".join(f"{number} ({name})" for number, name in ACTIVATIONS.items())
        raise ExchangeError(f"{where}: it has the activation {activation}; nmt reads {known}")
    first = "encoder/layer_0"
    is_layer_norm = f"{first}/self_attention/layer_norm/beta" in binary.variables
    is_gated = f"{first}/ffn/linear_0_noact/weight" in binary.variables
    inner = binary.variables.get(f"{first}/ffn/linear_0/weight", np.zeros((0, 0)))
    epsilon = settings.get("layer_norm_epsilon")
    ours = {
        "d_model": width,
        "heads": both("num_heads", 8),
        "d_ff": inner.shape[0] if inner.ndim else 0,
        "encoder_layers": _depth(binary, "encoder"),
        "decoder_layers": _depth(binary, "decoder"),
        "activation": ACTIVATIONS[activation],
        "feed_forward": "gated" if is_gated else "plain",
        "norm": "pre" if both("pre_norm", 1) else "post",
        "norm_kind": "layer" if is_layer_norm else "rms",
        "embeddings": _sharing(binary, one_table, where),
        "output_bias": True,
        "positions": _positions(binary, width, where),
        "source_eos": bool(settings["add_source_eos"]),
        "layer_norm_epsilon": (1e-5 if is_layer_norm else 1e-6) if epsilon is None else epsilon,
    }
    if binary.number("decoder/start_from_zero_embedding"):
        ours["start_embedding"] = "zero"
    return replace_settings(ModelConfig(), ours, where, ExchangeError)


def _check_scale(binary: BinaryModel, width: int, where: str) -> None:
    """Check that embeddings are multiplied by the root of their width, as ours always are."""
    for stack in STACKS:
        for name in ("scale_embeddings", "embeddings/multiply_by_sqrt_depth"):
            scale = binary.variables.get(f"{stack}/{name}", np.ones(1, np.int8))
            expected = 1 if scale.dtype == np.int8 else np.float32(width**0.5)  # a flag or a factor
            if not np.allclose(scale, expected):
                raise ExchangeError(
                    f"{where}: it does not multiply the embeddings by the root of their width "
                    f"({stack}/{name}), which nmt always does"
                )


def _depth(binary: BinaryModel, stack: str) -> int:
    """Return the number of layers."""
    layers = {name.split("/")[1] for name in binary.variables if name.startswith(f"{stack}/layer_")}
    return len(layers - {"layer_norm"})


def _sharing(binary: BinaryModel, one_table: bool, where: str) -> str:
    """Return which matrices are one: `model.embeddings`."""
    source, target = (embeddings_of(binary, stack, where) for stack in STACKS)
    if not np.array_equal(binary.variables.get("decoder/projection/weight", target), target):
        return "separate"
    return "shared" if one_table and np.array_equal(source, target) else "target"


def _positions(binary: BinaryModel, width: int, where: str) -> Positions:
    """Return which positional encoding a model has, by the tables of it that the file holds."""
    rotary = "encoder/layer_0/self_attention/rotary_"
    if f"{rotary}dim" in binary.variables:
        defaults = {"dim": 0, "interleave": 1, "base": 10_000}  # of a whole head, pair by pair
        if any(binary.number(rotary + name, default=n) != n for name, n in defaults.items()):
            raise ExchangeError(f"{where}: it rotates positions in another way than nmt (RoPE)")
        return "rotary"
    names = [f"{stack}/position_encodings/encodings" for stack in STACKS]
    tables = [binary.variables.get(name) for name in names]
    if tables[0] is None or tables[1] is None:
        raise ExchangeError(
            f"{where}: its positions are those of OpenNMT-tf, which count from 1; nmt has those of "
            "OpenNMT-py, Marian and Hugging Face"
        )
    kinds: tuple[Positions, ...] = ("interleaved", "sines_first", "tensor2tensor")
    for kind in kinds:
        if all(_is_table_of(kind, table, width) for table in tables if table is not None):
            return kind
    raise ExchangeError(f"{where}: its positions are learnt, or others that nmt does not have")


def _is_table_of(kind: Positions, table: Array, width: int) -> bool:
    """Return whether a table (N, D) holds a positional encoding."""
    if table.ndim != 2 or table.shape[1] != width or width % 2 or not len(table):
        return False
    first = table[:CHECKED_POSITIONS]
    difference = sinusoids(len(first), width, kind).numpy() - first
    return bool(np.abs(difference).max() < POSITION_ERROR)


def read_weights(
    binary: BinaryModel, config: ModelConfig, rows: tuple[int, int], where: str
) -> dict[str, Tensor]:
    """Return {our name: weight}, with an output bias; `rows` are those of both embeddings.

    Raises:
        ExchangeError: a weight is missing, or has another shape.
    """
    found = {"target_embedding.weight": embeddings_of(binary, "decoder", where)}
    if config.embeddings != "shared":
        found["source_embedding.weight"] = embeddings_of(binary, "encoder", where)
    if config.embeddings == "separate":
        found["output_embedding.weight"] = binary.variables["decoder/projection/weight"]
    bias = binary.variables.get("decoder/projection/bias", np.zeros(rows[1], np.float32))
    found[output_bias(config)] = bias
    for part in parts_of(config):
        for kind in part.weights:
            found[f"{part.path}.{kind}"] = _weight(binary, part, kind, where)
    for name, shape in weight_shapes(config, rows).items():
        if found[name].shape != shape:
            raise ExchangeError(
                f"{where}: {name} has the shape {found[name].shape}, expected {shape}"
            )
        if found[name].dtype != np.float32:
            raise ExchangeError(
                f"{where}: damaged: {name} is of {found[name].dtype}, and the factors are missing"
            )
    return {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in found.items()}


def _weight(binary: BinaryModel, part: Part, kind: str, where: str) -> Array:
    """Return the weight or bias of a part, which may be stored with others in one matrix."""
    path, names = next(
        ((path, names) for path, names in LAYER.items() if part.name in names),
        ("layer_norm", (part.name,)),  # behind the last layer
    )
    layer = "" if part.layer is None else f"layer_{part.layer}/"
    theirs = {"weight": "gamma", "bias": "beta"}[kind] if part.is_norm else kind
    name = f"{part.stack}/{layer}{PATHS.get(path, path)}/{theirs}"
    shape = len(names) * part.shape[0], *part.weights[kind][1:]
    found = binary.variables.get(name)
    if found is None and theirs == "bias":
        found = np.zeros(shape, np.float32)
    if found is None or found.shape != shape:
        problem = "is missing" if found is None else f"has the shape {found.shape}"
        raise ExchangeError(f"{where}: damaged: {name} {problem}, expected the shape {shape}")
    start = names.index(part.name) * part.shape[0]
    return found[start : start + part.shape[0]]
