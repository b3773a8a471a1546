"""Import of Marian models of Hugging Face: a folder of config.json, weights and vocabularies.

https://huggingface.co/docs/transformers/model_doc/marian
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from nmt.data.tokens.foreign_vocabulary import ForeignVocabulary
from nmt.data.tokens.tokenizer import BOS, EOS, PAD, UNK
from nmt.errors import ExchangeError
from nmt.exchange.huggingface_files import abbreviate, license_of, parse_json, read_weights
from nmt.exchange.huggingface_names import (
    BIAS,
    COPIES,
    POSITION_TABLES,
    read_config,
    vocabulary_sizes,
    weight_names,
)
from nmt.exchange.imported import (
    ImportedModel,
    check_links,
    file_digests,
    read_small_file,
    warn_of_lack,
)
from nmt.model.anatomy import Shape, output_bias, weight_shapes
from nmt.model.positional_encoding import sinusoids
from nmt.recipe.config import DecodingConfig, ModelConfig, Positions
from nmt.recipe.config_file import replace_settings

CONFIG, GENERATION, TOKENIZER = "config.json", "generation_config.json", "tokenizer_config.json"
VOCABULARY, TARGET_VOCABULARY = "vocab.json", "target_vocab.json"
SEGMENTATIONS = ("source.spm", "target.spm")
"""the SentencePiece models that split text into pieces"""
WEIGHTS = ("model.safetensors", "model-*.safetensors", "pytorch_model.bin")
"""the names of the weights; those of a large model may be in several files"""
KEPT = (CONFIG, GENERATION, TOKENIZER, VOCABULARY, TARGET_VOCABULARY, *SEGMENTATIONS)
"""the small files that an import keeps, so that an export can restore them"""
FORBIDDEN = ("bad_words_ids", "suppress_tokens")
"""the settings of the search with the rows that no translation may have"""
CARD = "README.md"
DOWNLOADED = (*KEPT, *WEIGHTS, CARD)


def import_huggingface(folder: Path) -> ImportedModel:
    """Read a folder of a Marian model as Hugging Face publishes it.

    Raises:
        ExchangeError: a file is missing or damaged, or nmt cannot compute the model.
    """
    check_links(folder, [path for name in DOWNLOADED for path in folder.glob(name)])
    settings = parse_json(read_small_file(folder / CONFIG), folder / CONFIG)
    config = read_config(settings, str(folder / CONFIG))
    found = (name for name in WEIGHTS if any(path.is_file() for path in folder.glob(name)))
    weights_path = next((folder / name for name in found), None)
    if weights_path is None:
        raise ExchangeError(f"{folder}: there are no weights; expected {' or '.join(WEIGHTS)}")
    their_weights: dict[str, Tensor] = {}
    for path in sorted(path for path in folder.glob(weights_path.name) if path.is_file()):
        their_weights |= read_weights(path)
    config = _with_positions(config, their_weights, weights_path)
    sizes = vocabulary_sizes(settings, str(folder / CONFIG))
    weights = _to_ours(their_weights, config, sizes, weights_path)
    originals = {name: read_small_file(folder / name) for name in KEPT if (folder / name).is_file()}
    vocabularies = read_vocabularies(originals, settings, folder)
    begin_row = vocabularies[1].specials[BOS]
    if not weights["target_embedding.weight"][begin_row].any():
        # Our model then keeps these zeros in training, so that it can be exported to Marian again.
        config = config.model_copy(update={"start_embedding": "zero"})
    generation = settings  # older models have the settings of the search in config.json
    if GENERATION in originals:
        generation = parse_json(originals[GENERATION], folder / GENERATION)
    warn_of_search(generation, vocabularies[1].specials, str(folder))
    files = [path for name in DOWNLOADED for path in sorted(folder.glob(name)) if path.is_file()]
    card = (folder / CARD).read_text("utf-8", "replace") if (folder / CARD).is_file() else ""
    return ImportedModel(
        config=config,
        weights=weights,
        vocabularies=vocabularies,
        decoding=read_decoding(generation, vocabularies[1].specials[UNK], str(folder)),
        originals=originals,
        languages=_languages(originals, folder),
        provenance={
            "format": "huggingface",
            "source": os.path.abspath(folder),  # also of "."
            "license": license_of(card),
            "sha256": file_digests(files),
        },
    )


def _with_positions(config: ModelConfig, weights: Mapping[str, Tensor], path: Path) -> ModelConfig:
    """Return the architecture with the positional encoding whose tables a file holds, if any."""
    for name in POSITION_TABLES:
        if name in weights:
            positions = _kind_of_positions(weights[name], config.d_model, f"{path}: {name}")
            config = config.model_copy(update={"positions": positions})
    return config


def _kind_of_positions(table: Tensor, d_model: int, where: str) -> Positions:
    """Return which of our positional encodings a table (length, D) holds."""
    kinds: tuple[Positions, ...] = ("sines_first", "tensor2tensor", "interleaved")
    if table.dim() == 2 and table.shape[1] == d_model:
        for kind in kinds:
            expected = sinusoids(len(table), d_model, kind)
            if torch.allclose(table, expected, atol=2e-3):  # tables may be published in float16
                return kind
    raise ExchangeError(f"{where} is no table of sines and cosines; nmt does not read learnt ones")


def _to_ours(
    weights: Mapping[str, Tensor], config: ModelConfig, rows: tuple[int, int], path: Path
) -> dict[str, Tensor]:
    """Return the weights of a file by our names, after checks of names and shapes.

    `rows` are the sizes of the vocabularies of source and target.
    """
    shapes = {name: tuple(weight.shape) for name, weight in weights.items()}
    if BIAS in shapes:
        shapes[BIAS] = (weights[BIAS].numel(),)
    names = check_weights(shapes, config, rows, path)
    ours = {name: weights[theirs] for name, theirs in names.items()}
    ours[output_bias(config)] = weights[BIAS].flatten()
    return ours


def check_weights(
    shapes: Mapping[str, Shape], config: ModelConfig, rows: tuple[int, int], path: Path
) -> dict[str, str]:
    """Check names and `shapes` of the weights in a file; return {our name: theirs} of those to use.

    `rows` are the sizes of the vocabularies of source and target.

    Raises:
        ExchangeError: one is missing, unknown, or of another model.
    """
    if max(config.encoder_layers, config.decoder_layers) > len(shapes):
        raise ExchangeError(
            f"{path}: has {len(shapes):,} weights, too few for {config.encoder_layers:,} encoder "
            f"and {config.decoder_layers:,} decoder layers; {CONFIG} is of another model"
        )
    names = weight_names(config)
    if config.output_bias:
        names[output_bias(config)] = BIAS
    expected_names = {*names.values()}
    missing = expected_names - shapes.keys()
    unknown = shapes.keys() - expected_names - COPIES
    if wrong := sorted(missing | unknown):
        problem = "is missing" if wrong[0] in missing else "is none that nmt knows"
        raise ExchangeError(f"{path}: the weight {abbreviate(wrong[0])} {problem}")
    source, target = rows
    if config.embeddings == "shared" and source != target:
        raise ExchangeError(
            f"{path.parent / CONFIG}: vocab_size is {source:,} and decoder_vocab_size {target:,}, "
            "expected equal numbers, as both languages share their embeddings"
        )
    for name, expected in weight_shapes(config, rows).items():
        if (shape := shapes[names[name]]) != expected:
            raise ExchangeError(
                f"{path}: {names[name]} has the shape {tuple(shape)}, and "
                f"{CONFIG} says {expected}; they are of different models"
            )
    return names


def read_vocabularies(
    files: Mapping[str, bytes], settings: Mapping[str, Any], folder: Path
) -> tuple[ForeignVocabulary, ForeignVocabulary]:
    """Return the vocabularies of source and target.

    Args:
        files: {name: content} of the original files.
        settings: The content of config.json.
        folder: Where the files are, for error messages.

    Raises:
        ExchangeError: a file is missing or damaged, or its special tokens are not those of Marian.
    """
    target_name = TARGET_VOCABULARY if TARGET_VOCABULARY in files else VOCABULARY
    names = (VOCABULARY, target_name)
    for name in (*names, *SEGMENTATIONS):
        if name not in files:
            raise ExchangeError(f"{folder / name}: the file is missing; a Marian model has it")
    sizes = vocabulary_sizes(settings, str(folder / CONFIG))
    vocabularies = []
    for name, segmentation, size in zip(names, SEGMENTATIONS, sizes, strict=True):
        rows = read_rows(files[name], folder / name)
        specials = _special_rows(settings, rows, size, str(folder / name))
        vocabularies.append(ForeignVocabulary(files[segmentation], rows, size, specials))
    source, target = vocabularies
    return source, target


def read_rows(content: bytes, path: Path) -> dict[str, int]:
    """Return {piece: row} of a file such as vocab.json.

    Raises:
        ExchangeError: the file is damaged, or has something else.
    """
    rows = parse_json(content, path)
    if not all(type(row) is int for row in rows.values()):
        raise ExchangeError(f"{path}: expected pieces and their rows")
    return rows


def _special_rows(
    settings: Mapping[str, Any], rows: Mapping[str, int], size: int, where: str
) -> dict[int, int]:
    """Return {our special id: row}.

    Where padding also begins a target, as in published models, its row is that of BOS alone: our
    model masks padding, so PAD needs no row.
    """
    eos = settings.get("eos_token_id")
    special_rows = {
        PAD: settings.get("pad_token_id"),
        UNK: rows.get("<unk>"),
        BOS: settings.get("decoder_start_token_id", settings.get("pad_token_id")),
        EOS: eos[0] if isinstance(eos, list) and eos else eos,
    }
    names = {PAD: "pad_token_id", UNK: "<unk>", BOS: "decoder_start_token_id", EOS: "eos_token_id"}
    for token, row in special_rows.items():
        if type(row) is not int or not 0 <= row < size:
            raise ExchangeError(
                f"{where}: {names[token]} is {abbreviate(row)}, expected a row from 0 to {size - 1}"
            )
    if special_rows[PAD] == special_rows[BOS]:
        del special_rows[PAD]
    if len(set(special_rows.values())) < len(special_rows):
        raise ExchangeError(f"{where}: two special tokens have the same row: {special_rows}")
    return special_rows


def read_decoding(generation: Mapping[str, Any], unknown_row: int, where: str) -> DecodingConfig:
    """Return the settings of the search in generation_config.json, as far as nmt has them.

    `unknown_row` is the row of the unknown symbol, which may be forbidden there.

    Raises:
        ExchangeError: transformers does not know one of the values.
    """
    # transformers counts the begin symbol, too, except in min_new_tokens
    least = [_number(generation, "min_length") - 1, _number(generation, "min_new_tokens"), 0]
    changes = {
        "beam_size": generation.get("num_beams") or 4,
        # transformers divides by the length to the power of length_penalty
        "length_normalization": "none" if generation.get("length_penalty") == 0 else "average",
        "early_stopping": generation.get("early_stopping") is True,
        "min_length": max(least),
        "no_repeat_ngram": generation.get("no_repeat_ngram_size") or 0,
        "allow_unknown": [unknown_row] not in _forbidden(generation, FORBIDDEN),
    }
    return replace_settings(DecodingConfig(), changes, where, ExchangeError)


def _number(generation: Mapping[str, Any], name: str) -> int:
    """Return a whole number of generation_config.json; 0 if it is missing, null or another type."""
    value = generation.get(name)
    return value if type(value) is int else 0


def _forbidden(generation: Mapping[str, Any], names: Sequence[str]) -> list[Any]:
    """Return the sequences of rows that no translation may have, by the settings with `names`."""
    values = [generation.get(name) for name in names]
    entries = [entry for value in values if isinstance(value, list) for entry in value]
    return [entry if isinstance(entry, list) else [entry] for entry in entries]


def warn_of_search(generation: Mapping[str, Any], specials: Mapping[int, int], where: str) -> None:
    """Warn of settings of the search that nmt does not have, unless they change nothing.

    `specials` are the rows of our special ids: PAD and BOS stand in no translation, and
    `allow_unknown` says whether UNK does. transformers does not let EOS be a bad word.
    """
    eos = specials[EOS]
    without_effect: dict[str, tuple[Any, ...]] = {
        "length_penalty": (0, 1, None),
        "forced_eos_token_id": (None, eos, [eos]),  # at the longest length, where we end as well
        **dict.fromkeys(("repetition_penalty", "encoder_repetition_penalty"), (1, None)),
        **dict.fromkeys(("num_beam_groups", "guidance_scale"), (1, None)),
        **dict.fromkeys(("diversity_penalty", "encoder_no_repeat_ngram_size"), (0, None)),
        **dict.fromkeys(("do_sample", "penalty_alpha", "prompt_lookup_num_tokens"), (0, None)),
        **dict.fromkeys(("forced_bos_token_id", "exponential_decay_length_penalty"), (None,)),
        **dict.fromkeys(("force_words_ids", "constraints", "sequence_bias"), (None, [], {})),
    }
    left_out = {
        name for name, values in without_effect.items() if generation.get(name) not in values
    }
    never = [[specials.get(PAD)], [specials[BOS]]]
    unknown = [[specials[UNK]]]
    is_never_unknown = unknown[0] in _forbidden(generation, FORBIDDEN)
    obeyed = {
        "bad_words_ids": [*never, *unknown, [eos]],
        "suppress_tokens": [*never, *unknown],
        "begin_suppress_tokens": [*never, *unknown] if is_never_unknown else never,
    }
    left_out |= {
        name
        for name, rows in obeyed.items()
        if any(entry not in rows for entry in _forbidden(generation, (name,)))
    }
    for name in sorted(left_out):
        warn_of_lack(where, name, abbreviate(generation[name]))


def _languages(files: Mapping[str, bytes], folder: Path) -> tuple[str, str]:
    """Return the codes of source and target in tokenizer_config.json, else und (undetermined)."""
    settings = parse_json(files.get(TOKENIZER, b"{}"), folder / TOKENIZER)
    source, target = (settings.get(name) or "und" for name in ("source_lang", "target_lang"))
    if not all(isinstance(code, str) for code in (source, target)):
        raise ExchangeError(f"{folder / TOKENIZER}: source_lang or target_lang is no code")
    return source, target
