"""Settings and weights of Marian, Pegasus, M2M-100 and NLLB of Hugging Face, and their names here.

The tables serve both directions. Pegasus, which is Marian with pre-norm, has the same names.
"""

from collections.abc import Mapping
from typing import Any

from nmt.errors import ExchangeError
from nmt.exchange.engine import Program
from nmt.exchange.huggingface_files import abbreviate
from nmt.model.anatomy import parts_of
from nmt.recipe.config import ModelConfig
from nmt.recipe.config_file import replace_settings

ACTIVATIONS = {"relu": "relu", "swish": "swish", "silu": "swish", "gelu": "gelu"}
"""{theirs: ours}"""
_SIZES = {
    "d_model": ("d_model",),
    "heads": ("encoder_attention_heads", "decoder_attention_heads"),
    "d_ff": ("encoder_ffn_dim", "decoder_ffn_dim"),
    "encoder_layers": ("encoder_layers",),
    "decoder_layers": ("decoder_layers",),
}
"""{ours: theirs}; where they have two, both must be equal"""
_DROPOUTS = ("dropout", "attention_dropout", "activation_dropout")
_READABLE: dict[str, tuple[Any, Any]] = {
    "model_type": ("marian", None),
    "scale_embedding": (True, False),
    "normalize_before": (False, False),
    "normalize_embedding": (False, False),
    "add_final_layer_norm": (False, False),
}
"""of settings that change what a model computes: the value that nmt can read, and the default"""
M2M100 = "m2m_100"
"""the `model_type` of M2M-100 and NLLB, whose classes are the same"""
KINDS = f"'marian' and '{M2M100}' (M2M-100, NLLB)"
"""each `model_type` that nmt reads, for messages"""
_READABLE_M2M100 = _READABLE | {"model_type": (M2M100, None), "tie_word_embeddings": (True, True)}
OURS_M2M100: dict[str, Any] = {
    "norm": "pre",
    "embeddings": "shared",
    "output_bias": False,
    "positions": "fairseq",
    "start_embedding": "eos",
}
"""what a model of `M2M100` has in our words besides its sizes"""
BIAS = "final_logits_bias"
"""the output bias, which has the shape (1, V) there"""
POSITION_TABLES = ("model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight")
_TABLES_M2M100 = [f"{name}s" for name in POSITION_TABLES]
_EMBEDDINGS = ("shared", "encoder.embed_tokens", "decoder.embed_tokens")
COPIES = {*(f"model.{name}.weight" for name in _EMBEDDINGS), "lm_head.weight", *POSITION_TABLES}
COPIES |= {*_TABLES_M2M100}
"""weights that a file may hold although no weight of ours needs them: copies of a matrix that is
tied, and tables of positions, which are computed"""
PARTS = {
    "self_attention.query": "self_attn.q_proj",
    "self_attention.key": "self_attn.k_proj",
    "self_attention.value": "self_attn.v_proj",
    "self_attention.output": "self_attn.out_proj",
    "self_attention_sublayer.norm": "self_attn_layer_norm",
    "cross_attention.query": "encoder_attn.q_proj",
    "cross_attention.key": "encoder_attn.k_proj",
    "cross_attention.value": "encoder_attn.v_proj",
    "cross_attention.output": "encoder_attn.out_proj",
    "cross_attention_sublayer.norm": "encoder_attn_layer_norm",
    "feed_forward.inner": "fc1",
    "feed_forward.outer": "fc2",
    "feed_forward_sublayer.norm": "final_layer_norm",
    "norm": "layer_norm",
}
"""{our name of a `Part`: theirs}"""
PROGRAM = Program(
    "transformers",
    {
        "activation": [*dict.fromkeys(ACTIVATIONS.values())],
        "norm": ["post", "pre"],
        "norm_kind": ["layer"],
        "feed_forward": ["plain"],
        "positions": ["interleaved", "sines_first", "tensor2tensor"],
        "start_embedding": ["learned", "zero"],
        "decoder": ["attention"],
        "source_eos": [True],
    },
    PARTS,
)


def read_config(settings: Mapping[str, Any], where: str) -> ModelConfig:
    """Return the architecture that config.json describes, with the positions of transformers.

    `where` names config.json in error messages.

    Raises:
        ExchangeError: nmt cannot compute such a model; the message names the setting.
    """
    is_m2m100 = settings.get("model_type") == M2M100
    for name, (readable, default) in (_READABLE_M2M100 if is_m2m100 else _READABLE).items():
        value = settings.get(name, default)
        if value != readable:
            known = KINDS if name == "model_type" else repr(readable)
            raise ExchangeError(f"{where}: {name} is {abbreviate(value)}; nmt reads only {known}")
    activation = settings.get("activation_function")
    if not isinstance(activation, str) or activation not in ACTIVATIONS:
        raise ExchangeError(
            f"{where}: activation_function is {abbreviate(activation)}; "
            f"nmt reads {', '.join(ACTIVATIONS)}"
        )
    ours: dict[str, Any] = {name: settings[name] for name in _DROPOUTS if name in settings}
    for size, their_names in _SIZES.items():
        values = [settings.get(name) for name in their_names]
        if len(set(map(str, values))) > 1:  # as text: a damaged file may have lists here
            raise ExchangeError(
                f"{where}: {' and '.join(their_names)} are {abbreviate(values)}, "
                "expected equal ones"
            )
        ours[size] = values[0]
    is_shared = settings.get("share_encoder_decoder_embeddings", True)
    is_tied = settings.get("tie_word_embeddings", True)
    if is_shared and not is_tied:
        raise ExchangeError(
            f"{where}: tie_word_embeddings is False although encoder and decoder share their "
            "embeddings; nmt does not have this combination"
        )
    if is_shared:
        ours["embeddings"] = "shared"
    else:
        ours["embeddings"] = "target" if is_tied else "separate"
    ours |= {
        "activation": ACTIVATIONS[activation],
        "output_bias": True,
        "positions": "sines_first",
        "layer_norm_epsilon": 1e-5,  # that of nn.LayerNorm
        **(OURS_M2M100 if is_m2m100 else {}),
    }
    return replace_settings(ModelConfig(), ours, where, ExchangeError)


def vocabulary_sizes(settings: Mapping[str, Any], where: str) -> tuple[int, int]:
    """Return the rows of the embeddings of source and target that config.json states.

    Raises:
        ExchangeError: the file states no numbers.
    """
    source: Any = settings.get("vocab_size")
    target: Any = settings.get("decoder_vocab_size") or source
    for size in (source, target):
        if type(size) is not int:
            raise ExchangeError(
                f"{where}: vocab_size or decoder_vocab_size is {abbreviate(size)}, expected the "
                "number of rows of the embeddings"
            )
    return source, target


def settings_of(config: ModelConfig) -> dict[str, Any]:
    """Return what all our exports write into config.json about an architecture."""
    sizes = {theirs: getattr(config, ours) for ours, names in _SIZES.items() for theirs in names}
    return {
        "is_encoder_decoder": True,
        **sizes,
        "activation_function": config.activation,
        "scale_embedding": True,
    }


def weight_names(config: ModelConfig) -> dict[str, str]:
    """Return {our name: theirs} of all weights but `BIAS`, which has another shape than ours."""
    if config.embeddings == "shared":  # one matrix for source, target and output
        names = {"target_embedding.weight": "model.shared.weight"}
    else:
        names = {
            "source_embedding.weight": "model.encoder.embed_tokens.weight",
            "target_embedding.weight": "model.decoder.embed_tokens.weight",
        }
    if config.embeddings == "separate":  # else target and output have one matrix
        names["output_embedding.weight"] = "lm_head.weight"
    for part in parts_of(config):
        layer = "" if part.layer is None else f"layers.{part.layer}."
        theirs = f"model.{part.stack}.{layer}{PARTS[part.name]}"
        names |= {f"{part.path}.{kind}": f"{theirs}.{kind}" for kind in ("weight", "bias")}
    return names
