"""Marian: native models in and out, single ones, ensembles, and the packages of OPUS-MT."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from nmt import strict_yaml
from nmt.config import Config, ModelConfig
from nmt.data.tokens.foreign_vocabulary import ForeignVocabulary
from nmt.data.tokens.tokenizer import BOS, EOS, PAD, UNK
from nmt.data.tokens.vocabulary import pieces_of
from nmt.errors import DataError, ExchangeError
from nmt.exchange.engine import NEVER
from nmt.exchange.imported import (
    ImportedModel,
    bias_name,
    digests,
    original_files,
    original_order,
    rows_in_order,
)
from nmt.exchange.marian_files import (
    OPTIONS,
    parse_yaml,
    read_bytes,
    read_npz,
    read_vocabulary,
    write_npz,
)
from nmt.exchange.marian_names import options_of, read_config, to_marian, to_ours, vocabulary_sizes
from nmt.exchange.marian_package import (
    DECODER,
    MarianPackage,
    open_package,
    own_names,
    read_decoding,
    shared_names,
)
from nmt.run_directory import LoadedModel, find_run

MODEL, DESCRIPTION = "model.npz", "model.yml"
COMPANIONS = ("README.md", "LICENSE", "preprocess.sh", "postprocess.sh")
"""other files in a package of OPUS-MT; nmt keeps the scripts, but does not run them"""
LICENCE, LICENCE_TITLE = "cc-by-4.0", b"Attribution 4.0 International"
"""that of OPUS-MT's models, and how the file LICENSE names it"""


def import_marian(source: Path) -> list[ImportedModel]:
    """Read a package, given its folder, decoder.yml, .npz or zip; an ensemble is several models.

    Raises:
        ExchangeError: a file is missing or damaged, or nmt cannot compute the model.
    """
    with open_package(source) as package:
        companions = [package.folder / name for name in (DECODER, *COMPANIONS)]
        originals = {path.name: read_bytes(path) for path in companions if path.is_file()}
        originals |= package.vocabulary_files()
        files = [source] if source.suffix == ".zip" else [*package.models, *package.vocabularies]
        licence = LICENCE if LICENCE_TITLE in originals.get("LICENSE", b"") else "unknown"
        provenance = {
            "format": "marian",
            "source": str(source),
            "license": licence,
            "sha256": digests(files),
        }
        return [_read_model(path, package, originals, provenance) for path in package.models]


def _read_model(
    path: Path, package: MarianPackage, originals: dict[str, bytes], provenance: dict[str, Any]
) -> ImportedModel:
    text, weights = read_npz(path)
    options = parse_yaml(text.rstrip(b"\0"), f"{path}: {OPTIONS}")
    config = read_config(options, str(path))
    sides = zip(
        package.segmentations,
        package.vocabularies,
        vocabulary_sizes(options, str(path)),
        strict=True,
    )
    source, target = (_vocabulary(read_bytes(spm), rows, size) for spm, rows, size in sides)
    return ImportedModel(
        config=config,
        weights=to_ours(weights, options, config, str(path)),
        vocabularies=(source, target),
        decoding=read_decoding(package),
        originals={**originals, DESCRIPTION: text},
        provenance={**provenance, "model": path.name},
    )


def _vocabulary(segmentation: bytes, path: Path, size: int) -> ForeignVocabulary:
    """Return a vocabulary whose rows stand in a file; the matrices have `size` rows."""
    rows = _read_rows(path)
    if (last := max(rows.values())) >= size:
        raise ExchangeError(
            f"{path}: the vocabulary has a row {last:,}, but the model has {size:,} rows; they do "
            "not belong together"
        )
    return ForeignVocabulary(segmentation, rows, size, {UNK: rows["<unk>"], EOS: rows["</s>"]})


def _read_rows(path: Path) -> dict[str, int]:
    """Return {piece: row} of a vocabulary, .yml or .spm."""
    if path.suffix == ".yml":
        rows = read_vocabulary(path)
    else:
        try:
            pieces = pieces_of(read_bytes(path), str(path))
        except DataError as error:
            raise ExchangeError(str(error)) from error
        rows = {piece: row for row, piece in enumerate(pieces)}
    for piece in ("</s>", "<unk>"):
        if piece not in rows:
            raise ExchangeError(f"{path}: the vocabulary has no {piece}, which Marian needs")
    return rows


def export_marian(run: LoadedModel, folder: Path) -> None:
    """Write model.npz, the vocabularies and decoder.yml into an empty folder.

    A model that was imported from Marian gets its original vocabularies and order of rows, so that
    unchanged weights give the original file, bit for bit.

    Raises:
        ExchangeError: Marian's format cannot hold the model; the message says what can.
        OSError: a file cannot be written.
    """
    check_sayable(run.config.model)
    layout = _original_layout(run) or _own_layout(run)
    options = parse_yaml(layout.options.rstrip(b"\0"), DESCRIPTION)
    weights = _reordered(run, layout)
    text = layout.options
    if options.get("output-omit-bias") and weights[bias_name(run.config.model)].any():
        options = {**options, "output-omit-bias": False}  # the model has learnt one since
        text = strict_yaml.dump(options).encode() + b"\0"
    weights = to_marian(weights, options, run.config.model)
    (folder / MODEL).write_bytes(write_npz(text, weights))
    for name, content in layout.files.items():
        (folder / name).write_bytes(content)
    (folder / DECODER).write_text(_decoder(layout.names, run.config), encoding="utf-8")


def check_sayable(config: ModelConfig) -> None:
    """Check that Marian can compute a model of this architecture.

    Raises:
        ExchangeError: it cannot; the message names the setting.
    """
    for name, expected in (
        ("norm", "post"),
        ("positions", "tensor2tensor"),
        ("start_embedding", "zero"),
        ("layer_norm_epsilon", 1e-6),
    ):
        if (found := getattr(config, name)) != expected:
            raise ExchangeError(
                f"Marian cannot compute the model: it needs model.{name}: {expected}, which is "
                f"chosen before training, and the model has {found}; export it to ctranslate2, "
                "huggingface, onnx or safetensors"
            )


@dataclass(frozen=True)
class MarianLayout:
    """The order of the rows in an exported model, and the files that say it."""

    options: bytes
    files: dict[str, bytes]
    names: list[str]
    """the vocabularies of source and target in decoder.yml"""
    ids: tuple[list[int], list[int]]
    """of source and target: our id of each row; -1: none"""


def _own_layout(run: LoadedModel) -> MarianLayout:
    """Return the layout of our SentencePiece models, whose ids are the rows."""
    sides = (run.tokenizer.source, run.tokenizer.target)
    names = (shared_names if run.tokenizer.shared else own_names)(".spm")
    options = options_of(run.config.model, (sides[0].size, sides[1].size))
    source, target = ([-1 if i in (PAD, BOS) else i for i in range(side.size)] for side in sides)
    return MarianLayout(
        strict_yaml.dump(options).encode() + b"\0",
        {name: side.model for name, side in zip(names, sides, strict=True)},
        names,
        (source, target),
    )


def _original_layout(run: LoadedModel) -> MarianLayout | None:
    """Return the layout that a model imported from Marian had.

    None if the model or its vocabulary has another origin.
    """
    files, folder = original_files(run), find_run(run.path).imported
    suffixes = (".yml", ".spm")
    candidates = [names(suffix) for suffix in suffixes for names in (shared_names, own_names)]
    names = next((pair for pair in candidates if files.keys() >= set(pair)), None)
    if DESCRIPTION not in files or names is None:
        return None
    segmentations = names if names[0].endswith(".spm") else own_names(".spm")
    sizes = vocabulary_sizes(parse_yaml(files[DESCRIPTION].rstrip(b"\0"), DESCRIPTION), DESCRIPTION)
    source, target = (
        _vocabulary(read_bytes(folder / spm), folder / name, size)
        for spm, name, size in zip(segmentations, names, sizes, strict=True)
    )
    ids = original_order(run, (source, target))
    kept = {name: files[name] for name in (*names, *segmentations)}
    return MarianLayout(files[DESCRIPTION], kept, names, ids) if ids else None


def _reordered(run: LoadedModel, layout: MarianLayout) -> dict[str, Tensor]:
    """Return the weights with rows in the order of `layout`, and an output bias.

    A row without a piece of ours is zero, and its bias lets it have no probability.
    """
    weights = {name: weight.detach().float() for name, weight in run.model.named_parameters()}
    bias = bias_name(run.config.model)
    weights.setdefault(bias, torch.zeros(run.tokenizer.target.size))
    for name in [name for name in weights if "_embedding." in name]:
        ids = layout.ids[0 if name.startswith("source") else 1]
        weights[name] = rows_in_order(weights[name], ids, NEVER if name == bias else 0.0)
    return weights


def _decoder(vocabularies: list[str], config: Config) -> str:
    """Return decoder.yml, with the settings of the search as far as Marian has them."""
    decoding = config.decoding
    exponents = {"average": 1.0, "none": 0.0, "gnmt": decoding.length_penalty}
    return strict_yaml.dump(
        {
            "relative-paths": True,
            "models": [MODEL],
            "vocabs": vocabularies,
            "beam-size": decoding.beam_size,
            "normalize": exponents[decoding.length_normalization],
            "word-penalty": 0,
            "allow-unk": decoding.allow_unknown,
            # Marian has no offset; 3 is its default
            "max-length-factor": 3.0 if decoding.max_length_offset else decoding.max_length_factor,
        }
    )
