"""The weights and options of Marian's Transformer, and what they are called here.

One table of names serves both directions. A matrix of a linear map is (in, out) in Marian, and
`nn.Linear` has (out, in); vectors are rows (1, n).
"""

import re
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from nmt.config import ModelConfig
from nmt.config_file import replace_settings
from nmt.errors import ConfigError, ExchangeError
from nmt.exchange.imported import bias_name

READABLE: dict[str, list[Any]] = {
    "type": ["transformer"],
    "transformer-decoder-autoreg": ["self-attention"],
    "transformer-ffn-depth": [2],
    "transformer-decoder-ffn-depth": [0, 2],
    "transformer-tied-layers": [[]],
    "transformer-no-projection": [False],
    "transformer-no-bias": [False],
    "transformer-no-affine": [False],
    "transformer-pool": [False],
    "transformer-attention-mask": ["default"],
    "transformer-train-position-embeddings": [False],
    "transformer-disable-position-embeddings": [False],
    "transformer-ffn-activation": ["swish", "relu", "gelu"],
    "right-left": [False],
    "ulr": [False],
    "input-types": [[]],
    "lemma-dependency": [""],
    "lemma-dim-emb": [0],
    "factors-dim-emb": [0],
}
"""the values that nmt can read of the options that change what a model computes; the first is
Marian's default"""
_OPERATIONS = {
    "transformer-preprocess": "",
    "transformer-postprocess": "dan",
    "transformer-postprocess-emb": "d",
    "transformer-postprocess-top": "",
}
"""what happens before a sub-layer, after it, to embeddings and after the last layer: d is dropout,
a adds the residual, n normalises. This is post-norm, the default. The pre-norm of Marian is not one
function: version 1.12 normalises the keys of self-attention in the encoder and in the first step of
decoding, but not in the later ones (measured)"""
_SIZES = {
    "d_model": "dim-emb",
    "heads": "transformer-heads",
    "d_ff": "transformer-dim-ffn",
    "encoder_layers": "enc-depth",
    "decoder_layers": "dec-depth",
}
"""{our name: Marian's} of the sizes"""
_PROJECTIONS = {"q": "query", "k": "key", "v": "value", "o": "output"}
_SUBLAYERS = {"self": "self_attention", "context": "cross_attention"}
_BIAS = "decoder_ff_logit_out_b"
_MATRIX = re.compile("_W[qkvo12]$")


def read_config(options: Mapping[str, Any], where: str) -> ModelConfig:
    """Return the architecture that Marian's options describe.

    Raises:
        ExchangeError: nmt cannot compute such a model; the message names the option.
    """
    for name, values in READABLE.items():
        found = options.get(name, values[0])
        if found not in values:
            _raise_unreadable(where, name, found, values)
    for name, expected in _OPERATIONS.items():
        found = options.get(name, expected)
        if str(found).replace("d", "") != expected.replace("d", ""):
            _raise_unreadable(where, name, found, [expected])
    width, name = options.get("transformer-dim-ffn"), "transformer-decoder-dim-ffn"
    if options.get(name, 0) not in (0, width):
        _raise_unreadable(where, name, options[name], [0, width])
    settings = {
        **{ours: options.get(theirs) for ours, theirs in _SIZES.items()},
        "activation": options.get("transformer-ffn-activation", "swish"),
        "embeddings": _embeddings(options, where),
        "layer_norm_epsilon": 1e-6,
        "output_bias": True,
        "positions": "tensor2tensor",
        "start_embedding": "zero",
    }
    try:
        return replace_settings(ModelConfig(), settings, where)
    except ConfigError as error:
        raise ExchangeError(f"{error}; {where} has no sizes of a Transformer") from error


def options_of(config: ModelConfig, rows: tuple[int, int]) -> dict[str, Any]:
    """Return the options of a model of this architecture, with a bias; `read_config` reads them.

    `rows` are the sizes of the vocabularies of source and target.
    """
    return {
        **{name: values[0] for name, values in READABLE.items()},
        **{theirs: getattr(config, ours) for ours, theirs in _SIZES.items()},
        **_OPERATIONS,
        "transformer-ffn-activation": config.activation,
        "tied-embeddings-all": config.embeddings == "shared",
        "tied-embeddings": config.embeddings == "target",
        "tied-embeddings-src": False,
        "output-omit-bias": False,
        "dim-vocabs": list(rows),
    }


def _raise_unreadable(where: str, name: str, found: object, values: list[Any]) -> None:
    known = " or ".join(repr(value) for value in values)
    raise ExchangeError(f"{where}: the model has {name}: {found!r}; nmt reads only {known}")


def _embedding_names(options: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return Marian's names of the matrices of source, target and output."""
    every = bool(options.get("tied-embeddings-all"))
    source, target = "encoder_Wemb", "decoder_Wemb"
    if every or options.get("tied-embeddings-src"):
        source = target = "Wemb"
    tied = every or options.get("tied-embeddings")
    return source, target, target if tied else "decoder_ff_logit_out_Wt"


def _embeddings(options: Mapping[str, Any], where: str) -> str:
    """Return `ModelConfig.embeddings`."""
    source, target, output = _embedding_names(options)
    if target != output and source == target:
        _raise_unreadable(where, "tied-embeddings-src without tied-embeddings", True, [False])
    return "shared" if source == output else "target" if target == output else "separate"


def to_ours(
    weights: Mapping[str, Tensor], options: Mapping[str, Any], config: ModelConfig, where: str
) -> dict[str, Tensor]:
    """Return Marian's weights by our names and in our shapes; rows of vocabularies stay in order.

    Raises:
        ExchangeError: a weight is missing, unknown, or has another shape than the options say.
    """
    depth = max(config.encoder_layers, config.decoder_layers)
    if depth > len(weights):
        raise ExchangeError(
            f"{where}: the options speak of {depth:,} layers, but there are {len(weights)} weights"
        )
    names = names_of(options, config)
    for name in sorted(names.keys() ^ weights.keys()):
        problem = "is missing" if name in names else "is none that nmt knows"
        raise ExchangeError(f"{where}: the weight {name} {problem}: the model is of another kind")
    rows = vocabulary_sizes(options, where)
    for name, weight in weights.items():
        expected = shape_of(name, names[name], config, rows)
        if tuple(weight.shape) != expected:
            raise ExchangeError(
                f"{where}: the weight {name} has the shape {tuple(weight.shape)}, but the options "
                f"say {expected}"
            )
    bias = {bias_name(config): torch.zeros(rows[1])}  # of a model without one
    return bias | {names[name]: _transposed(name, weight) for name, weight in weights.items()}


def to_marian(
    weights: Mapping[str, Tensor], options: Mapping[str, Any], config: ModelConfig
) -> dict[str, Tensor]:
    """Return weights by Marian's names and in its shapes: the reverse of `to_ours`."""
    names = names_of(options, config)
    return {theirs: _transposed(theirs, weights[ours]) for theirs, ours in names.items()}


def _transposed(name: str, weight: Tensor) -> Tensor:
    """Return a weight in the other program's orientation, by its name in Marian."""
    if _MATRIX.search(name):
        return weight.T.contiguous()
    if name.endswith(("Wemb", "_Wt")):
        return weight
    return weight[0] if weight.ndim == 2 else weight[None]


def vocabulary_sizes(options: Mapping[str, Any], where: str) -> tuple[int, int]:
    """Return the rows of source and target that the options state."""
    sizes = options.get("dim-vocabs")
    if not isinstance(sizes, list) or [type(size) for size in sizes] != [int, int]:
        raise ExchangeError(f"{where}: dim-vocabs is {sizes!r}, expected two sizes")
    return sizes[0], sizes[1]


def shape_of(theirs: str, ours: str, config: ModelConfig, rows: tuple[int, int]) -> tuple[int, int]:
    """Return the shape of a weight in Marian; `rows` are those of source and target."""
    width, inner = config.d_model, config.d_ff
    if "_embedding." in ours:
        count = rows[0] if ours.startswith("source") else rows[1]
        return (1, count) if ours.endswith("bias") else (count, width)
    shapes = {"_ffn_W1": (width, inner), "_ffn_W2": (inner, width), "_ffn_b1": (1, inner)}
    return shapes.get(theirs[-7:], (width, width) if _MATRIX.search(theirs) else (1, width))


def names_of(options: Mapping[str, Any], config: ModelConfig) -> dict[str, str]:
    """Return {Marian's name: our name} of all weights."""
    source, target, output = _embedding_names(options)
    names = {target: "target_embedding.weight"}
    if source != target:
        names[source] = "source_embedding.weight"
    if output != target:
        names[output] = "output_embedding.weight"
    if not options.get("output-omit-bias"):
        names[_BIAS] = bias_name(config)
    for stack, depth in (("encoder", config.encoder_layers), ("decoder", config.decoder_layers)):
        for number in range(depth):
            names |= _names_of_layer(f"{stack}_l{number + 1}", f"{stack}.layers.{number}")
    return names


def _names_of_layer(theirs: str, ours: str) -> dict[str, str]:
    names = {}
    for short, attention in _SUBLAYERS.items():
        if short == "context" and theirs.startswith("encoder"):
            continue
        for letter, projection in _PROJECTIONS.items():
            names[f"{theirs}_{short}_W{letter}"] = f"{ours}.{attention}.{projection}.weight"
            names[f"{theirs}_{short}_b{letter}"] = f"{ours}.{attention}.{projection}.bias"
        norm = f"{ours}.{attention}_sublayer.norm"
        names |= _names_of_norm(f"{theirs}_{short}_Wo", norm)
    for number, linear in ((1, "inner"), (2, "outer")):
        names[f"{theirs}_ffn_W{number}"] = f"{ours}.feed_forward.{linear}.weight"
        names[f"{theirs}_ffn_b{number}"] = f"{ours}.feed_forward.{linear}.bias"
    return names | _names_of_norm(f"{theirs}_ffn_ffn", f"{ours}.feed_forward_sublayer.norm")


def _names_of_norm(theirs: str, ours: str) -> dict[str, str]:
    return {
        f"{theirs}_ln_scale": f"{ours}.weight",
        f"{theirs}_ln_bias": f"{ours}.bias",
    }
