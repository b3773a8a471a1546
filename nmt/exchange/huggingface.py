"""Import of Marian models of Hugging Face: a folder of config.json, weights and vocabularies.

https://huggingface.co/docs/transformers/model_doc/marian
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from nmt.config import DecodingConfig, ModelConfig, Positions
from nmt.config_file import replace_settings
from nmt.data.tokens.foreign_vocabulary import ForeignVocabulary
from nmt.data.tokens.tokenizer import BOS, EOS, PAD, UNK
from nmt.errors import ConfigError, ExchangeError
from nmt.exchange.huggingface_files import (
    license_of,
    parse_json,
    read_json_file,
    read_small,
    read_weights,
)
from nmt.exchange.huggingface_names import names_of
from nmt.exchange.imported import ImportedModel, bias_name, digests
from nmt.model.positional_encoding import sinusoids

CONFIG, GENERATION, TOKENIZER = "config.json", "generation_config.json", "tokenizer_config.json"
VOCABULARY, TARGET_VOCABULARY = "vocab.json", "target_vocab.json"
SEGMENTATIONS = ("source.spm", "target.spm")
WEIGHTS = ("model.safetensors", "pytorch_model.bin")
KEPT = (CONFIG, GENERATION, TOKENIZER, VOCABULARY, TARGET_VOCABULARY, *SEGMENTATIONS)
"""the small files that an import keeps, so that an export can restore them"""
CARD = "README.md"
DOWNLOADED = (*KEPT, *WEIGHTS, CARD)
BIAS = "final_logits_bias"
_ACTIVATIONS = {"relu": "relu", "swish": "swish", "silu": "swish", "gelu": "gelu"}
"""{theirs: ours}"""
_SIZES = {
    "d_model": ("d_model",),
    "heads": ("encoder_attention_heads", "decoder_attention_heads"),
    "d_ff": ("encoder_ffn_dim", "decoder_ffn_dim"),
    "encoder_layers": ("encoder_layers",),
    "decoder_layers": ("decoder_layers",),
}
_DROPOUTS = ("dropout", "attention_dropout", "activation_dropout")
_READABLE: dict[str, tuple[Any, ...]] = {
    "model_type": ("marian",),
    "scale_embedding": (True,),
    "normalize_before": (False,),
    "normalize_embedding": (False,),
    "add_final_layer_norm": (False,),
}
"""the values that nmt can read of settings that change what a model computes"""
_DEFAULTS = {"scale_embedding": False, "model_type": None}
"""what transformers assumes for settings that are missing; for the others, the readable value"""
POSITION_TABLES = ("model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight")


def import_huggingface(folder: Path) -> ImportedModel:
    """Read a folder of a Marian model as Hugging Face publishes it.

    Raises:
        ExchangeError: a file is missing or damaged, or nmt cannot compute the model.
    """
    settings = read_json_file(folder / CONFIG)
    config = _architecture(settings, str(folder / CONFIG))
    found = next((folder / name for name in WEIGHTS if (folder / name).is_file()), None)
    if found is None:
        raise ExchangeError(f"{folder}: there are no weights; expected {' or '.join(WEIGHTS)}")
    weights = read_weights(found)
    config, weights = _to_ours(config, weights, found)
    originals = {name: read_small(folder / name) for name in KEPT if (folder / name).is_file()}
    target = weights["target_embedding.weight"]
    rows = (len(weights.get("source_embedding.weight", target)), len(target))
    vocabularies = read_vocabularies(originals, settings, rows, folder)
    if not target[
        vocabularies[1].specials[BOS]
    ].any():  # then it may stay so, and Marian can read the model again
        config = config.model_copy(update={"start_embedding": "zero"})
    generation = read_json_file(folder / GENERATION) if GENERATION in originals else settings
    files = [folder / name for name in DOWNLOADED if (folder / name).is_file()]
    card = (folder / CARD).read_text("utf-8", "replace") if (folder / CARD).is_file() else ""
    return ImportedModel(
        config=config,
        weights=weights,
        vocabularies=vocabularies,
        decoding=_decoding(generation, str(folder)),
        originals=originals,
        languages=_languages(originals, folder),
        provenance={
            "format": "huggingface",
            "source": str(folder),
            "license": license_of(card),
            "sha256": digests(files),
        },
    )


def _architecture(settings: Mapping[str, Any], where: str) -> ModelConfig:
    for name, readable in _READABLE.items():
        found = settings.get(name, _DEFAULTS.get(name, readable[0]))
        if found not in readable:
            raise ExchangeError(
                f"{where}: {name} is {_short(found)}; nmt reads only {readable[0]!r}"
            )
    activation = settings.get("activation_function")
    if not isinstance(activation, str) or activation not in _ACTIVATIONS:
        raise ExchangeError(
            f"{where}: activation_function is {_short(activation)}; "
            f"nmt reads {', '.join(_ACTIVATIONS)}"
        )
    changes: dict[str, Any] = {name: settings[name] for name in _DROPOUTS if name in settings}
    for ours, theirs in _SIZES.items():
        values = [settings.get(name) for name in theirs]
        if len(set(map(str, values))) > 1:
            raise ExchangeError(
                f"{where}: {' and '.join(theirs)} are {_short(values)}, expected equal ones"
            )
        changes[ours] = values[0]
    shared = settings.get("share_encoder_decoder_embeddings", True)
    tied = settings.get("tie_word_embeddings", True)
    if shared and not tied:
        raise ExchangeError(
            f"{where}: tie_word_embeddings is False although encoder and decoder share their "
            "embeddings; nmt does not have this combination"
        )
    changes |= {
        "activation": _ACTIVATIONS[activation],
        "embeddings": "shared" if shared else "target" if tied else "separate",
        "output_bias": True,
        "positions": "sines_first",
        "layer_norm_epsilon": 1e-5,  # that of nn.LayerNorm
    }
    try:
        return replace_settings(ModelConfig(), changes, where)
    except ConfigError as error:
        raise ExchangeError(str(error)) from error


def _to_ours(
    config: ModelConfig, weights: dict[str, Tensor], path: Path
) -> tuple[ModelConfig, dict[str, Tensor]]:
    """Return the architecture, with the positions that the file holds, and weights by our names."""
    for name in POSITION_TABLES:
        if name in weights:
            config = _positions(config, weights[name], f"{path}: {name}")
    if max(config.encoder_layers, config.decoder_layers) > len(weights):
        raise ExchangeError(
            f"{path}: has {len(weights):,} weights, too few for {config.encoder_layers:,} encoder "
            f"and {config.decoder_layers:,} decoder layers; {CONFIG} is of another model"
        )
    names = names_of(config)
    tied = {"model.shared.weight", "lm_head.weight", *POSITION_TABLES}
    tied |= {f"model.{stack}.embed_tokens.weight" for stack in ("encoder", "decoder")}
    for theirs in sorted({*names.values(), BIAS} ^ (weights.keys() - (tied - {*names.values()}))):
        problem = "is none that nmt knows" if theirs in weights else "is missing"
        raise ExchangeError(f"{path}: the weight {_short(theirs)} {problem}")
    ours = {name: weights[theirs] for name, theirs in names.items()}
    ours[bias_name(config)] = weights[BIAS].flatten()
    rows = ours["target_embedding.weight"].shape[:1]
    for name, weight in ours.items():
        expected = _shape_of(name, config)
        if "_embedding." in name:  # only a source may have rows of its own
            expected = (weight if name.startswith("source") else torch.empty(rows)).shape[:1]
            expected += () if name.endswith("bias") else (config.d_model,)
        if weight.shape != expected:
            raise ExchangeError(
                f"{path}: {names.get(name, BIAS)} has the shape {tuple(weight.shape)}, and "
                f"{CONFIG} says {tuple(expected)}; they are of different models"
            )
    return config, ours


def _shape_of(name: str, config: ModelConfig) -> tuple[int, ...]:
    """Return the shape of a weight of a layer, by our name."""
    width, inner = config.d_model, config.d_ff
    outputs = inner if ".inner." in name else width
    inputs = inner if ".outer." in name else width
    return (outputs,) if name.endswith("bias") or ".norm." in name else (outputs, inputs)


def _positions(config: ModelConfig, table: Tensor, where: str) -> ModelConfig:
    """Return the architecture with the positional encoding whose table is given: (length, D)."""
    known: tuple[Positions, ...] = ("sines_first", "tensor2tensor", "interleaved")
    for positions in known:
        if table.dim() == 2 and table.shape[1] == config.d_model:
            expected = sinusoids(len(table), config.d_model, positions)
            if torch.allclose(table, expected, atol=2e-3):  # published tables may be in half
                return config.model_copy(update={"positions": positions})
    raise ExchangeError(f"{where} is no table of sines and cosines; nmt does not read learnt ones")


def read_vocabularies(
    files: Mapping[str, bytes],
    settings: Mapping[str, Any],
    sizes: tuple[int, int],
    folder: Path,
) -> tuple[ForeignVocabulary, ForeignVocabulary]:
    """Return the vocabularies of source and target, given the original files and config.json.

    `sizes` are the rows of the matrices of source and target; `folder` is for error messages.

    Raises:
        ExchangeError: a file is missing or damaged, or its special tokens are not those of Marian.
    """
    separate = TARGET_VOCABULARY in files
    names = (VOCABULARY, TARGET_VOCABULARY if separate else VOCABULARY)
    for name in (*names, *SEGMENTATIONS):
        if name not in files:
            raise ExchangeError(f"{folder / name}: the file is missing; a Marian model has it")
    sides = []
    for name, spm, size in zip(names, SEGMENTATIONS, sizes, strict=True):
        rows = parse_json(files[name], folder / name)
        if not all(type(row) is int and _is_text(piece) for piece, row in rows.items()):
            raise ExchangeError(f"{folder / name}: expected pieces and their rows")
        specials = _specials(settings, rows, size, str(folder / name))
        sides.append(ForeignVocabulary(files[spm], rows, size, specials))
    return sides[0], sides[1]


def _specials(
    settings: Mapping[str, Any], rows: Mapping[str, int], size: int, where: str
) -> dict[int, int]:
    """Return the rows of our special ids; padding that also begins a target is only the latter."""
    eos = settings.get("eos_token_id")
    found = {
        PAD: settings.get("pad_token_id"),
        UNK: rows.get("<unk>"),
        BOS: settings.get("decoder_start_token_id", settings.get("pad_token_id")),
        EOS: eos[0] if isinstance(eos, list) and eos else eos,
    }
    names = {PAD: "pad_token_id", UNK: "<unk>", BOS: "decoder_start_token_id", EOS: "eos_token_id"}
    for i, row in found.items():
        if type(row) is not int or not 0 <= row < size:
            raise ExchangeError(
                f"{where}: {names[i]} is {_short(row)}, expected a row from 0 to {size - 1}"
            )
    if found[PAD] == found[BOS]:
        del found[PAD]
    if len(set(found.values())) < len(found):
        raise ExchangeError(f"{where}: two special tokens have the same row: {found}")
    return found


def _decoding(generation: Mapping[str, Any], where: str) -> DecodingConfig:
    """Return the settings of the search, as far as nmt has them."""
    penalty = generation.get("length_penalty", 1.0)
    changes = {
        "beam_size": generation.get("num_beams") or 4,
        "length_normalization": "none" if penalty == 0 else "average",
        "early_stopping": generation.get("early_stopping") is True,
    }
    try:
        return replace_settings(DecodingConfig(), changes, where)
    except ConfigError as error:
        raise ExchangeError(str(error)) from error


def _languages(files: Mapping[str, bytes], folder: Path) -> tuple[str, str]:
    """Return the codes of source and target in tokenizer_config.json, else und (undetermined)."""
    settings = parse_json(files.get(TOKENIZER, b"{}"), folder / TOKENIZER)
    source, target = (settings.get(name) or "und" for name in ("source_lang", "target_lang"))
    if not all(isinstance(code, str) and _is_text(code) for code in (source, target)):
        raise ExchangeError(f"{folder / TOKENIZER}: source_lang or target_lang is no code")
    return source, target


def _is_text(text: str) -> bool:
    """Return whether a string has no half of a surrogate pair, which JSON can spell."""
    return text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text)


def _short(value: object) -> str:
    """Return a value for an error message: on one line and not long."""
    spelled = ascii(value)
    return spelled if len(spelled) < 80 else f"{spelled[:80]}…"
