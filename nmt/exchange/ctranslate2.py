"""CTranslate2: our weights by its public specification, and translations by its engine.

https://opennmt.net/CTranslate2/conversion.html
"""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from nmt.data.tokens.tokenizer import BOS, EOS, PAD, UNK, SubwordModel
from nmt.exchange.engine import (
    EXCLUDED_BIAS,
    MAX_SOURCE,
    MAX_TRANSLATION,
    EngineTranslation,
    Program,
    Quantization,
    import_engine,
)
from nmt.exchange.verify import excluded_ids
from nmt.model.decoder import Decoder
from nmt.model.encoder import Encoder
from nmt.model.positional_encoding import sinusoids
from nmt.model.transformer import Transformer
from nmt.recipe.config import ModelConfig
from nmt.run.model import LoadedModel

POSITIONS = 2 * MAX_SOURCE
"""rows of the exported table of positions, which the engine cannot exceed: it cuts a source at
`MAX_SOURCE` tokens by itself, and a translation may be twice as long"""
SOURCE, TARGET = "source.spm", "target.spm"
FEATURE = "the format ctranslate2"
ACTIVATIONS = {"relu": "RELU", "gelu": "GELU", "swish": "SWISH"}
"""{ours: theirs}; their GELU is the exact one, and two others are approximations"""
SELF, CROSS, NETWORK = "self_attention", "cross_attention", "feed_forward"
LAYER = {
    "self_attention.linear.0": (f"{SELF}.query", f"{SELF}.key", f"{SELF}.value"),
    "self_attention.linear.1": (f"{SELF}.output",),
    "self_attention.layer_norm": (f"{SELF}_sublayer.norm",),
    "attention.linear.0": (f"{CROSS}.query",),
    "attention.linear.1": (f"{CROSS}.key", f"{CROSS}.value"),
    "attention.linear.2": (f"{CROSS}.output",),
    "attention.layer_norm": (f"{CROSS}_sublayer.norm",),
    "ffn.linear_0": (f"{NETWORK}.inner",),
    "ffn.linear_0_noact": (f"{NETWORK}.gate",),
    "ffn.linear_1": (f"{NETWORK}.outer",),
    "ffn.layer_norm": (f"{NETWORK}_sublayer.norm",),
}
"""{path in a layer of the specification: our names of the `Part`s that are stacked there}"""
PROGRAM = Program(
    "CTranslate2",
    {
        "activation": ACTIVATIONS,
        "norm": ["post", "pre"],
        "norm_kind": ["layer", "rms"],
        "feed_forward": ["plain", "gated"],
        "positions": ["interleaved", "sines_first", "tensor2tensor", "fairseq", "rotary"],
        "decoder": ["attention"],
        "source_eos": [True, False],
    },
    parts={"norm", *(name for names in LAYER.values() for name in names)},
)

USAGE = """\
import ctranslate2, sentencepiece

source = sentencepiece.SentencePieceProcessor(model_file="source.spm")
target = sentencepiece.SentencePieceProcessor(model_file="target.spm")
translator = ctranslate2.Translator(".")  # of this folder
pieces = source.encode("A dog sleeps.", out_type=str)
result = translator.translate_batch([pieces], beam_size=4)[0]
print(target.decode(result.hypotheses[0]))
"""
"""how the exported folder is used, for the model card"""
USAGE_WITH_TAGS = (
    USAGE.replace("pieces = ", 'pieces = ["{source}"] + ')
    .replace("[pieces], ", '[pieces], target_prefix=[["{target}"]], ')
    .replace("hypotheses[0]", "hypotheses[0][1:]")
)
"""the same for a model of many languages, with the tags of two"""


def export_ctranslate2(
    loaded: LoadedModel, folder: Path, quantization: Quantization | None = None
) -> None:
    """Write the model, and the tokenizer as source.spm and target.spm, into an empty folder.

    `quantization` None: float32. The model's parameters are not changed. Tokens that no
    translation has get a bias of `EXCLUDED_BIAS`, because the engine does not know them.

    Raises:
        MissingExtraError: the package ctranslate2 is not installed.
        ExchangeError: CTranslate2 lacks a part of the model.
        OSError: a file cannot be written.
    """
    pieces = loaded.tokenizer.source.pieces, loaded.tokenizer.target.pieces
    excluded = excluded_ids(loaded.config.decoding)
    write_model(loaded.model, loaded.config.model, pieces, folder, quantization, excluded)
    (folder / SOURCE).write_bytes(loaded.tokenizer.source.model)
    (folder / TARGET).write_bytes(loaded.tokenizer.target.model)


def write_model(
    model: Transformer,
    config: ModelConfig,
    pieces: tuple[list[str], list[str]],
    folder: Path,
    quantization: Quantization | None = None,
    excluded: Sequence[int] = (PAD, BOS),
    tag: str = "",
) -> None:
    """Write the model alone into a folder, without its tokenizer.

    `pieces` are those of source and target, in the order of their ids. The ids `excluded` get an
    output bias of `EXCLUDED_BIAS`. The engine puts `tag`, if there is one, before every source.

    Raises:
        MissingExtraError: the package ctranslate2 is not installed.
        OSError: a file cannot be written.
    """
    spec = _specification(model, config)
    spec.decoder.projection.bias[list(excluded)] = EXCLUDED_BIAS
    source, target = pieces
    spec.register_source_vocabulary(source)
    spec.register_target_vocabulary(target)
    spec.config.bos_token, spec.config.eos_token = target[BOS], target[EOS]
    start = EOS if config.start_embedding == "eos" else BOS
    spec.config.unk_token, spec.config.decoder_start_token = target[UNK], target[start]
    spec.config.add_source_eos = config.source_eos
    if tag:  # the decoder has a start token of its own, so bos_token is for the source alone
        spec.config.add_source_bos, spec.config.bos_token = True, tag
    spec.config.layer_norm_epsilon = config.layer_norm_epsilon
    spec.validate()
    spec.optimize(quantization=quantization)
    spec.save(str(folder))


def translate_with_ctranslate2(
    folder: Path, texts: Sequence[str], tags: tuple[str, str] | None = None
) -> list[EngineTranslation]:
    """Return CTranslate2's greedy translations, computed on the CPU in the exported number format.

    `tags` are those of the languages of source and target, for a model of many languages.

    Raises:
        MissingExtraError: the package ctranslate2 is not installed.
    """
    source = SubwordModel((folder / SOURCE).read_bytes(), SOURCE)
    return translate_with_model(folder, source, texts, tags)


def translate_with_model(
    folder: Path,
    source: SubwordModel,
    texts: Sequence[str],
    tags: tuple[str, str] | None = None,
) -> list[EngineTranslation]:
    """Return CTranslate2's greedy translations by a model whose `source` vocabulary is given.

    `tags` are those of the languages of source and target, for a model of many languages.

    Raises:
        MissingExtraError: the package ctranslate2 is not installed.
    """
    ctranslate2 = import_engine("ctranslate2", FEATURE)
    ctranslate2.set_log_level(logging.ERROR)  # a CPU computes float16 in float32 and warns of it
    translator = ctranslate2.Translator(str(folder), device="cpu")
    ids_without_eos = [ids[:-1] for ids in source.encode(texts)]  # the engine adds EOS
    before, begin = ([tags[0]], [[tags[1]]] * len(texts)) if tags else ([], None)
    results = translator.translate_batch(
        [[*before, *(source.pieces[i] for i in ids)] for ids in ids_without_eos],
        target_prefix=begin,
        beam_size=1,
        length_penalty=0,
        min_decoding_length=0,  # its default forbids an empty translation
        max_decoding_length=MAX_TRANSLATION,
        return_scores=True,
        max_batch_size=16,
    )
    given = 1 if tags else 0  # tokens that are no choice of the engine
    return [EngineTranslation(each.hypotheses[0][given:], each.scores[0]) for each in results]


def _specification(model: Transformer, config: ModelConfig) -> Any:
    """Return the model as CTranslate2's TransformerSpec: its weights, without vocabularies."""
    specs = import_engine("ctranslate2", FEATURE).specs
    PROGRAM.check_holds(model, config)
    kinds = {
        "pre_norm": config.norm == "pre",
        "activation": specs.common_spec.Activation[ACTIVATIONS[config.activation]],
        "ffn_glu": config.feed_forward == "gated",
        "rms_norm": config.norm_kind == "rms",
        "rotary_dim": 0 if config.positions == "rotary" else None,  # 0: a whole head
    }
    transformer = specs.transformer_spec
    spec: Any = transformer.TransformerSpec(
        transformer.TransformerEncoderSpec(config.encoder_layers, config.heads, **kinds),
        transformer.TransformerDecoderSpec(config.decoder_layers, config.heads, **kinds),
    )
    _fill_embeddings(spec, model)
    _fill_stack(spec.encoder, model.encoder)
    _fill_stack(spec.decoder, model.decoder)
    return spec


def _fill_embeddings(spec: Any, model: Transformer) -> None:
    """Fill in the matrices of source, target and output, the output bias, and the positions.

    Where our model shares a matrix, the engine finds equal ones and stores them once.
    """
    output = model.output_embedding
    spec.encoder.embeddings[0].weight = _array(model.source_embedding.weight)
    spec.decoder.embeddings.weight = _array(model.target_embedding.weight)
    spec.decoder.projection.weight = _array(output.weight)
    bias = torch.zeros(len(output.weight)) if output.bias is None else output.bias
    spec.decoder.projection.bias = _array(bias)
    spec.decoder.start_from_zero_embedding = model.target_embedding.zero is not None
    for stack in (spec.encoder, spec.decoder):
        stack.scale_embeddings = True
        if model.positions.positions != "rotary":
            d_model = model.target_embedding.weight.shape[1]
            positions = sinusoids(POSITIONS, d_model, model.positions.positions)  # (POSITIONS, D)
            stack.position_encodings.encodings = _array(positions)


def _fill_stack(theirs: Any, ours: Encoder | Decoder) -> None:
    """Copy the weights of all layers of an encoder or decoder, `ours`, into the specification.

    Each sub-layer has one norm. `pre_norm` of the specification says whether the engine computes it
    before or after the sub-layer; if before, a stack also has a norm behind its last layer.
    """
    if not isinstance(ours.norm, nn.Identity):
        _fill(theirs.layer_norm, [ours.norm])
    layers: Any = ours.layers  # a ModuleList of either kind
    for their_layer, our_layer in zip(theirs.layer, layers, strict=True):
        modules = dict(our_layer.named_modules())
        for path, names in LAYER.items():
            if names[0] in modules:  # a layer of the encoder has no modules of cross-attention
                _fill(_at(their_layer, path), [modules[name] for name in names])


def _at(theirs: Any, path: str) -> Any:
    """Return the part of a layer of the specification at a path such as attention.linear.0."""
    for key in path.split("."):
        theirs = theirs[int(key)] if key.isdigit() else getattr(theirs, key)
    return theirs


def _fill(theirs: Any, ours: Sequence[Any]) -> None:
    """Copy a norm or a linear map into the specification; several maps become one, stacked."""
    names = ("weight", "bias") if isinstance(ours[0], nn.Linear) else ("gamma", "beta")
    for their_name, our_name in zip(names, ("weight", "bias"), strict=True):
        if hasattr(ours[0], our_name):  # RMSNorm has no bias
            weights = [_array(getattr(module, our_name)) for module in ours]
            setattr(theirs, their_name, np.concatenate(weights))


def _array(tensor: torch.Tensor) -> Any:
    """Return a copy as a NumPy array of float32; quantisation overwrites the arrays it is given."""
    return tensor.detach().cpu().float().numpy().copy()
