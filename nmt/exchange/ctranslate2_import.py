"""CTranslate2 and Argos, in: a folder with model.bin, or a package .argosmodel around one."""

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nmt.data.languages import look_up_language
from nmt.data.tokens.foreign_vocabulary import ForeignVocabulary
from nmt.data.tokens.tokenizer import BOS, EOS, PAD, UNK
from nmt.errors import ExchangeError
from nmt.exchange.argos import CODES, METADATA, MODEL, SEGMENTATION, SUFFIX
from nmt.exchange.ctranslate2 import SOURCE, TARGET
from nmt.exchange.ctranslate2_binary import BinaryModel, read_binary
from nmt.exchange.ctranslate2_layers import (
    STACKS,
    check_variables,
    embeddings_of,
    read_config,
    read_weights,
)
from nmt.exchange.huggingface_files import abbreviate, license_of, parse_json
from nmt.exchange.imported import ImportedModel, check_links, file_digests, read_small_file
from nmt.exchange.marian_files import unpack
from nmt.recipe.config import DecodingConfig
from nmt.recipe.config_file import replace_settings

WEIGHTS, CONFIG, CARD = "model.bin", "config.json", "README.md"
PADDING = ("<pad>", "<blank>")
"""what programs call padding"""
SEARCH = {"beam_size": 4, "length_penalty": 0.2, "copy_unknown": True}
"""the search of Argos Translate as far as nmt has it: an unknown symbol becomes a source word, and
the exponent of the length n is 0.2; log P is divided by n^0.2 there, by ((5 + n) / 6)^0.2 here"""


def import_if_ctranslate2(path: Path) -> ImportedModel | None:
    """Read a package of Argos, packed or installed, or a folder of CTranslate2; None: neither.

    Raises:
        ExchangeError: a file is damaged or missing, or nmt cannot compute the model.
    """
    if path.suffix == SUFFIX and path.is_file():
        return import_argos(path)
    if (path / METADATA).is_file() and (path / MODEL / WEIGHTS).is_file():
        return _read_package(path, path)
    is_folder = (path / WEIGHTS).is_file() and any(path.glob("*_vocabulary.*"))
    return import_ctranslate2(path) if is_folder else None


def import_argos(path: Path) -> ImportedModel:
    """Read a package of Argos.

    Raises:
        ExchangeError: the zip or a file is damaged, or nmt cannot compute the model.
    """
    with tempfile.TemporaryDirectory(prefix="nmt-import-") as name:
        try:
            unpack(path, Path(name))
            found = sorted(Path(name).glob(f"*/{METADATA}"))
            if len(found) != 1:
                raise ExchangeError(
                    f"{path}: holds {len(found)} folders with {METADATA}, expected one; it is no "
                    "package of Argos"
                )
            return _read_package(path, found[0].parent)
        except ExchangeError as error:  # nobody knows the folder, which is removed again
            raise ExchangeError(str(error).replace(name, str(path))) from error


def _read_package(path: Path, folder: Path) -> ImportedModel:
    """Read an unpacked package in `folder`; `path` is what the user gave, for messages and origin.

    Raises:
        ExchangeError: a file is missing or damaged, or nmt cannot compute the model.
    """
    metadata = parse_json(read_small_file(folder / METADATA), folder / METADATA)
    if prefix := metadata.get("target_prefix"):
        raise ExchangeError(
            f"{path}: every translation begins with {abbreviate(prefix)} (target_prefix), which "
            "nmt does not have; import the original model of Hugging Face or Marian"
        )
    if not (folder / SEGMENTATION).is_file():
        raise ExchangeError(
            f"{path}: it has no {SEGMENTATION}; nmt does not read packages with bpe.model, which "
            "needs the tokenizer of Moses"
        )
    ours = {theirs: tag for tag, theirs in CODES.items()}
    codes = [str(metadata.get(name) or "und") for name in ("from_code", "to_code")]
    source, target = (look_up_language(ours.get(code, code)).code for code in codes)
    return _read_folder(
        folder / MODEL,
        (folder / SEGMENTATION, folder / SEGMENTATION),
        kept_files=[folder / METADATA, folder / CARD],
        languages=(source, target),
        provenance={
            "source": os.path.abspath(path),
            "sha256": file_digests([path if path.is_file() else folder / MODEL / WEIGHTS]),
        },
        is_argos=True,
    )


def import_ctranslate2(folder: Path) -> ImportedModel:
    """Read a folder of CTranslate2 with the SentencePiece models of its languages.

    They are source.spm and target.spm, or one file of another name that ends in .spm or .model.

    Raises:
        ExchangeError: a file is missing or damaged, or nmt cannot compute the model.
    """
    found = sorted([*folder.glob("*.spm"), *folder.glob("*.model")])
    names = [path.name for path in found]
    if names == [SOURCE, TARGET]:
        pair = found[0], found[1]
    elif len(found) == 1:
        pair = found[0], found[0]
    else:
        raise ExchangeError(
            f"{folder}: expected the SentencePiece model beside {WEIGHTS}, {SOURCE} and "
            f"{TARGET} or one .spm or .model, found {', '.join(names) or 'none'}; put it there"
        )
    files = [folder / WEIGHTS, *found]
    provenance = {"source": os.path.abspath(folder), "sha256": file_digests(files)}
    return _read_folder(folder, pair, [folder / CARD], ("und", "und"), provenance, is_argos=False)


def _read_folder(
    folder: Path,
    segmentations: tuple[Path, Path],
    kept_files: Sequence[Path],
    languages: tuple[str, str],
    provenance: dict[str, Any],
    is_argos: bool,
) -> ImportedModel:
    """Read a model; the run keeps those of `kept_files` that exist, and config.json."""
    check_links(folder, [*folder.glob("*"), *segmentations, *kept_files])
    binary, where = read_binary(folder / WEIGHTS), str(folder / WEIGHTS)
    check_variables(binary, where)
    settings = _read_settings(folder, binary)
    source, target = (len(embeddings_of(binary, stack, where)) for stack in STACKS)
    tables = [_read_table(folder, side) for side in ("source", "target")]
    models = [read_small_file(path) for path in segmentations]
    sides = [
        ForeignVocabulary(model, table, size, _special_rows(settings, table, size, str(folder)))
        for model, table, size in zip(models, tables, (source, target), strict=True)
    ]
    config = read_config(binary, settings, tables[0] == tables[1], where)
    if BOS not in sides[1].specials and config.start_embedding != "zero":
        raise ExchangeError(
            f"{where}: the vocabulary lacks {abbreviate(settings['decoder_start_token'])}, with "
            "which translations begin (decoder_start_token)"
        )
    search = SEARCH if is_argos else {"length_normalization": "average"}
    kept = [path for path in (*kept_files, folder / CONFIG) if path.is_file()]
    originals = {path.name: read_small_file(path) for path in kept}
    return ImportedModel(
        config=config,
        weights=read_weights(binary, config, (source, target), where),
        vocabularies=(sides[0], sides[1]),
        decoding=replace_settings(DecodingConfig(), search, where, ExchangeError),
        originals=originals,
        languages=languages,
        provenance={
            "format": "argos" if is_argos else "ctranslate2",
            "stored_as": ", ".join(sorted(binary.types)),
            **provenance,
            "license": license_of(originals.get(CARD, b"").decode("utf-8", "replace")),
        },
    )


def _read_settings(folder: Path, binary: BinaryModel) -> dict[str, Any]:
    """Return what config.json says; an older model says it in variables of model.bin."""
    path = folder / CONFIG
    settings = parse_json(read_small_file(path), path) if path.is_file() else {}
    defaults = {"unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>"}
    for name, default in defaults.items():
        settings.setdefault(name, binary.text(name, default))
    for name in ("source_bos", "source_eos"):
        settings.setdefault(f"add_{name}", bool(binary.number(f"with_{name}")))
    if "decoder_start_token" not in settings:
        start = "bos_token" if binary.number("with_target_bos", default=1) else "eos_token"
        user = binary.number("user_decoder_start_tokens")
        settings["decoder_start_token"] = None if user else settings[start]
    for name in (*defaults, "decoder_start_token"):
        if not isinstance(settings[name], str):
            raise ExchangeError(
                f"{path}: {name} is {abbreviate(settings[name])}, expected a token; nmt does not "
                "read models whose translations begin with a token that the user gives"
            )
    if settings["add_source_bos"]:
        raise ExchangeError(
            f"{path}: every source begins with {abbreviate(settings['bos_token'])} "
            "(add_source_bos), which nmt does not have; import the original model"
        )
    if settings["decoder_start_token"] == settings["eos_token"]:
        raise ExchangeError(
            f"{path}: translations begin with the end symbol (decoder_start_token), as in models "
            "of fairseq and NLLB; import the original model of Hugging Face"
        )
    return settings


def _read_table(folder: Path, side: str) -> dict[str, int]:
    """Return {piece: row} of the vocabulary of the source or target, .json or .txt."""
    for name in ("shared", side):
        path = folder / f"{name}_vocabulary.json"
        if path.is_file():
            # the file is a list, and parse_json, which finds all damage, takes objects alone
            pieces = parse_json(b'{"pieces": ' + read_small_file(path) + b"}", path)["pieces"]
            break
        path = path.with_suffix(".txt")
        if path.is_file():
            lines = read_small_file(path).decode("utf-8", "replace").removesuffix("\n").split("\n")
            ends = all(line.endswith("\r") for line in lines)
            pieces = [line.removesuffix("\r") for line in lines] if ends else lines
            break
    else:
        raise ExchangeError(f"{folder}: no vocabulary here, such as shared_vocabulary.json")
    if not isinstance(pieces, list) or not all(isinstance(piece, str) for piece in pieces):
        raise ExchangeError(f"{path}: expected a list of pieces")
    rows: dict[str, int] = {}
    for row, piece in enumerate(pieces):
        rows.setdefault(piece, row)  # of two equal ones, CTranslate2 uses the first
    return rows


def _special_rows(
    settings: Mapping[str, Any], table: Mapping[str, int], size: int, where: str
) -> dict[int, int]:
    """Return {our special id: row}; a symbol that the vocabulary lacks has none."""
    names = {
        UNK: settings["unk_token"],
        BOS: settings["decoder_start_token"],
        EOS: settings["eos_token"],
        PAD: next((name for name in PADDING if name in table), ""),
    }
    rows = {token: table[name] for token, name in names.items() if name in table}
    if EOS not in rows or len(set(rows.values())) < len(rows) or max(rows.values()) >= size:
        raise ExchangeError(
            f"{where}: the symbols for unknown, start, end and padding are {list(names.values())}, "
            "expected four different ones, the end in the vocabulary"
        )
    return rows
