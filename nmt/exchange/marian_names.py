"""The weights and options of Marian's Transformer, and what they are called here.

The tables serve both directions. A matrix of a linear map is (in, out) in Marian, and (out, in) in
`nn.Linear`; a vector (n,) of ours is (1, n) there; embeddings have the same shape.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from nmt.errors import ExchangeError
from nmt.exchange.engine import Program
from nmt.model.anatomy import output_bias, parts_of, weight_shapes
from nmt.recipe.config import GuidedAlignmentConfig, ModelConfig
from nmt.recipe.config_file import replace_settings

ACTIVATIONS = ("swish", "relu", "gelu")
"""those that Marian and nmt have, by the same names; the first is Marian's default"""

READABLE: dict[str, list[Any]] = {
    "type": ["transformer"],
    "transformer-decoder-autoreg": ["self-attention", "rnn"],
    "transformer-rnn-projection": [False],
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
    "transformer-ffn-activation": [*ACTIVATIONS],
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
_SSRU: dict[str, Any] = {
    "transformer-decoder-autoreg": "rnn",
    "dec-cell": "ssru",
    "layer-normalization": False,
}
"""what the options of a model with an SSRU decoder say; the last two mean nothing in others"""
_SIZES = {
    "d_model": "dim-emb",
    "heads": "transformer-heads",
    "d_ff": "transformer-dim-ffn",
    "encoder_layers": "enc-depth",
    "decoder_layers": "dec-depth",
}
"""{our name: Marian's} of the sizes"""
GUIDED_LAYER = "transformer-guided-alignment-layer"
"""`last`, or the number of a decoder layer, from 1"""
PARTS = {
    "self_attention.query": ("self_Wq", "self_bq"),
    "self_attention.key": ("self_Wk", "self_bk"),
    "self_attention.value": ("self_Wv", "self_bv"),
    "self_attention.output": ("self_Wo", "self_bo"),
    "self_attention_sublayer.norm": ("self_Wo_ln_scale", "self_Wo_ln_bias"),
    "recurrence.candidate": ("rnn_W", ""),
    "recurrence.forget": ("rnn_Wf", "rnn_bf"),
    "recurrence_sublayer.norm": ("rnn_ffn_ln_scale", "rnn_ffn_ln_bias"),
    "cross_attention.query": ("context_Wq", "context_bq"),
    "cross_attention.key": ("context_Wk", "context_bk"),
    "cross_attention.value": ("context_Wv", "context_bv"),
    "cross_attention.output": ("context_Wo", "context_bo"),
    "cross_attention_sublayer.norm": ("context_Wo_ln_scale", "context_Wo_ln_bias"),
    "feed_forward.inner": ("ffn_W1", "ffn_b1"),
    "feed_forward.outer": ("ffn_W2", "ffn_b2"),
    "feed_forward_sublayer.norm": ("ffn_ffn_ln_scale", "ffn_ffn_ln_bias"),
}
"""{our name of a `Part`: Marian's weight and bias of it}; all models of Marian that nmt
reads are post-norm"""
PROGRAM = Program(
    "Marian",
    {
        "norm": ["post"],
        "positions": ["tensor2tensor"],
        "start_embedding": ["zero"],
        "layer_norm_epsilon": [1e-6],
        "activation": ACTIVATIONS,
        "norm_kind": ["layer"],
        "feed_forward": ["plain"],
        "decoder": ["attention", "ssru"],
        "source_eos": [True],
    },
    PARTS,
)


def read_guided_alignment(options: Mapping[str, Any], layers: int) -> GuidedAlignmentConfig:
    """Return the head by which Bergamot aligns words: the first one of the layer that is named.

    `layers` are those of the decoder. A layer that does not exist counts as the last one.
    """
    named = str(options.get(GUIDED_LAYER, "last"))
    layer = int(named) if named in map(str, range(1, layers + 1)) else layers
    return GuidedAlignmentConfig(layer=layer, position="predicts")


def read_config(options: Mapping[str, Any], where: str) -> ModelConfig:
    """Return the architecture that Marian's options describe.

    Raises:
        ExchangeError: nmt cannot compute such a model; the message names the option.
    """
    for name, readable in READABLE.items():
        default = readable[0]
        value = options.get(name, default)
        if value not in readable:
            _raise_unreadable(where, name, value, readable)
    for name, expected in _OPERATIONS.items():
        value = options.get(name, expected)  # such as "dan"
        # without "d", dropout, which only training has
        if str(value).replace("d", "") != expected.replace("d", ""):
            _raise_unreadable(where, name, value, [expected])
    is_recurrent = options.get("transformer-decoder-autoreg", "self-attention") == "rnn"
    for name, expected in _SSRU.items():
        if is_recurrent and options.get(name) != expected:
            _raise_unreadable(where, name, options.get(name), [expected])
    d_ff = options.get("transformer-dim-ffn")
    decoder_d_ff = options.get("transformer-decoder-dim-ffn", 0)
    if decoder_d_ff not in (0, d_ff):  # 0: that of the encoder
        _raise_unreadable(where, "transformer-decoder-dim-ffn", decoder_d_ff, [0, d_ff])
    settings = {
        **{ours: options.get(theirs) for ours, theirs in _SIZES.items()},
        "decoder": "ssru" if is_recurrent else "attention",
        "activation": options.get("transformer-ffn-activation", "swish"),
        "embeddings": _embeddings(options, where),
        # what Marian computes always, without an option
        "layer_norm_epsilon": 1e-6,
        "output_bias": True,
        "positions": "tensor2tensor",
        "start_embedding": "zero",
    }
    return replace_settings(ModelConfig(), settings, where, ExchangeError)


def _raise_unreadable(where: str, name: str, value: object, readable: list[Any]) -> None:
    values = " or ".join(map(repr, readable))
    raise ExchangeError(f"{where}: the model has {name}: {value!r}; nmt reads only {values}")


def _embeddings(options: Mapping[str, Any], where: str) -> str:
    """Return `ModelConfig.embeddings`: which of the three matrices are one."""
    source, target, output = _embedding_names(options)
    if source == target != output:
        _raise_unreadable(where, "tied-embeddings-src without tied-embeddings", True, [False])
    return "shared" if source == output else "target" if target == output else "separate"


def _embedding_names(options: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return Marian's names of the matrices of source, target and output; tied ones are equal."""
    all_tied = bool(options.get("tied-embeddings-all"))
    source, target, output = "encoder_Wemb", "decoder_Wemb", "decoder_ff_logit_out_Wt"
    if all_tied or options.get("tied-embeddings-src"):
        source = target = "Wemb"
    if all_tied or options.get("tied-embeddings"):
        output = target
    return source, target, output


def options_of(config: ModelConfig, rows: tuple[int, int]) -> dict[str, Any]:
    """Return the options of a model of this architecture, with a bias; `read_config` reads them.

    `rows` are the sizes of the vocabularies of source and target.
    """
    return {
        **{name: readable[0] for name, readable in READABLE.items()},
        **{theirs: getattr(config, ours) for ours, theirs in _SIZES.items()},
        **_OPERATIONS,
        **(_SSRU if config.decoder == "ssru" else {}),
        "transformer-ffn-activation": config.activation,
        "tied-embeddings-all": config.embeddings == "shared",
        "tied-embeddings": config.embeddings == "target",
        "tied-embeddings-src": False,
        "output-omit-bias": False,
        "dim-vocabs": list(rows),
    }


def to_ours(
    weights: Mapping[str, Tensor], options: Mapping[str, Any], config: ModelConfig, where: str
) -> dict[str, Tensor]:
    """Return Marian's weights by our names and in our shapes, with an output bias.

    The rows of vocabularies stay in Marian's order.

    Raises:
        ExchangeError: a weight is missing, unknown, or has another shape than the options say.
    """
    depth = max(config.encoder_layers, config.decoder_layers)
    if depth > len(weights):
        raise ExchangeError(
            f"{where}: the options speak of {depth:,} layers, but there are {len(weights)} weights"
        )
    names = weight_names(options, config)
    wrong = sorted(weights.keys() ^ {*names.values()})  # names on one side only
    if wrong:
        problem = "is none that nmt knows" if wrong[0] in weights else "is missing"
        raise ExchangeError(
            f"{where}: the weight {wrong[0]} {problem}: the model is of another kind"
        )
    rows = vocabulary_sizes(options, where)
    shapes = marian_shapes(config, rows)
    ours = {}
    for name, theirs in names.items():
        weight, expected = weights[theirs], shapes[name]
        if weight.shape != expected:
            raise ExchangeError(
                f"{where}: the weight {theirs} has the shape {tuple(weight.shape)}, but the "
                f"options say {expected}"
            )
        ours[name] = _convert(name, weight)
    ours.setdefault(output_bias(config), torch.zeros(rows[1]))
    return ours


def to_marian(
    weights: Mapping[str, Tensor], options: Mapping[str, Any], config: ModelConfig
) -> dict[str, Tensor]:
    """Return our weights by Marian's names and in its shapes: the reverse of `to_ours`."""
    names = weight_names(options, config)
    return {theirs: _convert(name, weights[name]) for name, theirs in names.items()}


def weight_names(options: Mapping[str, Any], config: ModelConfig) -> dict[str, str]:
    """Return {our name: Marian's name} of the embeddings and of each linear map and norm."""
    source, target, output = _embedding_names(options)
    names = {"target_embedding.weight": target}
    if source != target:
        names["source_embedding.weight"] = source
    if output != target:
        names["output_embedding.weight"] = output
    if not options.get("output-omit-bias"):
        names[output_bias(config)] = "decoder_ff_logit_out_b"
    for part in parts_of(config):
        assert part.layer is not None  # only pre-norm has norms after the last layer
        weight, bias = PARTS[part.name]
        names[f"{part.path}.weight"] = f"{part.stack}_l{part.layer + 1}_{weight}"
        if part.has_bias:
            names[f"{part.path}.bias"] = f"{part.stack}_l{part.layer + 1}_{bias}"
    return names


def vocabulary_sizes(options: Mapping[str, Any], where: str) -> tuple[int, int]:
    """Return the rows of source and target that the options state.

    Raises:
        ExchangeError: the options do not state two numbers.
    """
    sizes = options.get("dim-vocabs")
    if not isinstance(sizes, list) or [type(size) for size in sizes] != [int, int]:
        raise ExchangeError(f"{where}: dim-vocabs is {sizes!r}, expected two sizes")
    return sizes[0], sizes[1]


def marian_shapes(config: ModelConfig, rows: tuple[int, int]) -> dict[str, tuple[int, ...]]:
    """Return {our name: shape in Marian} of all weights.

    `rows` are the sizes of the vocabularies of source and target.
    """
    return {
        name: (1, *shape) if len(shape) == 1 else shape if "_embedding." in name else shape[::-1]
        for name, shape in weight_shapes(config, rows).items()
    }


def _convert(name: str, weight: Tensor) -> Tensor:
    """Return a weight of Marian in our shape, or one of ours in Marian's; `name` is ours."""
    if name.endswith("_embedding.weight"):
        return weight
    if name.endswith(".bias") or ".norm." in name:
        return weight[0] if weight.ndim == 2 else weight[None]
    return weight.T.contiguous()
