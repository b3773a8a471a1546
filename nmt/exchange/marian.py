"""Marian: native models in and out, single ones, ensembles, and the packages of OPUS-MT."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from torch import Tensor

from nmt.data.tokens.foreign_vocabulary import ForeignVocabulary
from nmt.data.tokens.tokenizer import BOS, EOS, PAD, UNK
from nmt.data.tokens.vocabulary import pieces_of
from nmt.errors import DataError, ExchangeError
from nmt.exchange.bergamot_package import languages_of
from nmt.exchange.bergamot_shortlist import read_shortlist
from nmt.exchange.engine import check_has_no_tags
from nmt.exchange.imported import (
    ImportedModel,
    RowOrder,
    check_links,
    file_digests,
    original_files,
    original_order,
    read_small_file,
    reorder_rows,
    weights_to_export,
)
from nmt.exchange.marian_binary import read_model
from nmt.exchange.marian_files import OPTIONS, parse_yaml, read_vocabulary, write_npz
from nmt.exchange.marian_names import (
    GUIDED_LAYER,
    PROGRAM,
    options_of,
    read_config,
    read_guided_alignment,
    to_marian,
    to_ours,
    vocabulary_sizes,
)
from nmt.exchange.marian_package import (
    DECODER,
    MarianPackage,
    open_package,
    read_decoding,
    vocabulary_names,
)
from nmt.model.anatomy import output_bias
from nmt.recipe import strict_yaml
from nmt.recipe.config import Config
from nmt.run.directory import find_run
from nmt.run.model import LoadedModel

MODEL = "model.npz"
DESCRIPTION = "model.yml"
"""the file in `imported/` that keeps the options of an imported model"""
QUANTIZATION = "quantization.json"
"""the file in `imported/` that keeps the multipliers and alphas of an imported int8 model"""
COMPANIONS = ("README.md", "LICENSE", "preprocess.sh", "postprocess.sh")
"""other files in a package of OPUS-MT; nmt keeps the scripts, but does not run them"""
LICENCE, LICENCE_TITLE = "cc-by-4.0", b"Attribution 4.0 International"
"""that of OPUS-MT's models, and how the file LICENSE names it"""


def import_marian(source: Path) -> list[ImportedModel]:
    """Read a package, given its folder, settings, model or zip; an ensemble is several models.

    Raises:
        ExchangeError: a file is missing or damaged, or nmt cannot compute the model.
    """
    with open_package(source) as package:
        companions = [package.folder / name for name in (DECODER, *COMPANIONS)]
        check_links(package.folder, [*companions, *package.files])
        originals = {path.name: read_small_file(path) for path in companions if path.is_file()}
        originals |= package.vocabulary_files()
        files = [source] if source.suffix == ".zip" else [*package.models, *package.vocabularies]
        licence = LICENCE if LICENCE_TITLE in originals.get("LICENSE", b"") else "unknown"
        provenance = {
            "format": "marian",
            "source": os.path.abspath(source),  # also of "."
            "license": licence,
            "sha256": file_digests(files),
        }
        return [_read_model(path, package, originals, provenance) for path in package.models]


def _read_model(
    path: Path, package: MarianPackage, originals: dict[str, bytes], provenance: dict[str, Any]
) -> ImportedModel:
    """Read one model of a package; `originals` and `provenance` are those of the whole package."""
    where = str(path)
    model = read_model(path)
    options = _parse_options(model.options, f"{path}: {OPTIONS}")
    config = read_config(options, where)
    sizes = vocabulary_sizes(options, where)
    quantization, guided = {}, read_guided_alignment(options, config.decoder_layers)
    if model.multipliers or model.alphas:
        numbers = {"multipliers": model.multipliers, "alphas": model.alphas}
        quantization[QUANTIZATION] = json.dumps(numbers, indent=1).encode()
    return ImportedModel(
        config=config,
        vocabularies=_read_vocabularies(package.segmentations, package.vocabularies, sizes),
        weights=to_ours(model.weights, options, config, where),
        decoding=read_decoding(package),
        originals={**originals, DESCRIPTION: model.options, **quantization},
        languages=languages_of(path.name),
        provenance={**provenance, "model": path.name},
        shortlist=read_shortlist(package.shortlist, sizes) if package.shortlist else None,
        guided_alignment=guided if model.alphas else None,  # only Bergamot's models have alphas
    )


def _parse_options(text: bytes, where: str) -> dict[str, Any]:
    """Return a model's options, which Marian stores as YAML with a zero byte at the end."""
    return parse_yaml(text.rstrip(b"\0"), where)


def _dump_options(options: dict[str, Any]) -> bytes:
    return strict_yaml.dump(options).encode() + b"\0"


def _read_vocabularies(
    segmentations: list[Path], vocabularies: list[Path], sizes: tuple[int, int]
) -> tuple[ForeignVocabulary, ForeignVocabulary]:
    """Return the vocabularies of source and target; `sizes` are the rows of their matrices."""
    sides = []
    for segmentation, path, size in zip(segmentations, vocabularies, sizes, strict=True):
        content, rows = read_small_file(segmentation), _read_rows(path)
        specials = {UNK: rows["<unk>"], EOS: rows["</s>"]}
        sides.append(ForeignVocabulary(content, rows, size, specials))
    source, target = sides
    return source, target


def _read_rows(path: Path) -> dict[str, int]:
    """Return {piece: row} of a vocabulary, .yml or .spm; in the latter the ids are the rows."""
    if path.suffix == ".yml":
        rows = read_vocabulary(path)
    else:
        try:
            pieces = pieces_of(read_small_file(path), str(path))
        except DataError as error:
            raise ExchangeError(str(error)) from error
        rows = {piece: row for row, piece in enumerate(pieces)}
    for piece in ("</s>", "<unk>"):
        if piece not in rows:
            raise ExchangeError(f"{path}: the vocabulary has no {piece}, which Marian needs")
    return rows


Layout = tuple[bytes, dict[str, bytes], list[str], RowOrder]
"""how a model is written for Marian: its options as `_dump_options` writes them, {name: content} of
the vocabularies, the two of these names that decoder.yml has, and the order of rows"""


class MarianContents(NamedTuple):
    """What an export writes for Marian."""

    options: bytes
    """YAML, and a zero byte"""
    weights: dict[str, Tensor]
    """by Marian's names"""
    files: dict[str, bytes]
    """{name: content} of the vocabularies"""
    vocabularies: list[str]
    """the two of these names that decoder.yml has"""
    order: RowOrder
    """our id of each row"""


def export_marian(loaded: LoadedModel, folder: Path) -> None:
    """Write model.npz, the vocabularies and decoder.yml into an empty folder.

    A model that was imported from Marian gets its original vocabularies and order of rows, so that
    unchanged weights give the original file, bit for bit.

    Raises:
        ExchangeError: Marian's format cannot hold the model; the message says what can.
        OSError: a file cannot be written.
    """
    contents = marian_contents(loaded)
    (folder / MODEL).write_bytes(write_npz(contents.options, contents.weights))
    for name, content in contents.files.items():
        (folder / name).write_bytes(content)
    decoder = decoder_yml(MODEL, contents.vocabularies, loaded.config)
    (folder / DECODER).write_text(strict_yaml.dump(decoder), encoding="utf-8")


def marian_contents(loaded: LoadedModel) -> MarianContents:
    """Return a model in Marian's names and order of rows.

    Raises:
        ExchangeError: Marian's format cannot hold the model; the message says what can.
    """
    check_has_no_tags(loaded.config.data, "Marian")
    PROGRAM.check_holds(loaded.model, loaded.config.model)
    # there is no original one if the model is not from Marian, or changed since
    layout = _original_layout(loaded) or _own_layout(loaded)
    options_text, files, vocabularies, order = layout
    weights = reorder_rows(weights_to_export(loaded), order)
    options = _parse_options(options_text, DESCRIPTION)
    if options.get("output-omit-bias") and weights[output_bias(loaded.config.model)].any():
        options["output-omit-bias"] = False  # the model has learnt one since its import
        options_text = _dump_options(options)
    weights = to_marian(weights, options, loaded.config.model)
    return MarianContents(options_text, weights, files, vocabularies, order)


def _own_layout(loaded: LoadedModel) -> Layout:
    """Return the layout of our own model: its SentencePiece models, whose ids are the rows."""
    source, target = loaded.tokenizer.source, loaded.tokenizer.target
    names = vocabulary_names(".spm", loaded.tokenizer.shared)
    options = options_of(loaded.config.model, (source.size, target.size))
    guided = loaded.config.training.guided_alignment
    if guided and guided.position == "predicts":
        options[GUIDED_LAYER] = str(guided.layer_index(loaded.config.model.decoder_layers) + 1)
    order = list(range(source.size)), list(range(target.size))
    for rows in order:
        rows[PAD] = rows[BOS] = -1  # Marian has no such tokens
    files = dict(zip(names, (source.model, target.model), strict=True))
    return _dump_options(options), files, names, order


def _original_layout(loaded: LoadedModel) -> Layout | None:
    """Return the layout that a model imported from Marian had.

    None if the model or its vocabulary has another origin, or has changed since.
    """
    files, folder = original_files(loaded), find_run(loaded.path).imported
    candidates = (
        vocabulary_names(suffix, shared) for suffix in (".yml", ".spm") for shared in (True, False)
    )
    vocabularies = next((names for names in candidates if files.keys() >= {*names}), None)
    if DESCRIPTION not in files or vocabularies is None:
        return None
    is_split_apart = vocabularies[0].endswith(".yml")
    segmentations = vocabulary_names(".spm", shared=False) if is_split_apart else vocabularies
    options = _parse_options(files[DESCRIPTION], DESCRIPTION)
    sizes = vocabulary_sizes(options, DESCRIPTION)
    foreign = _read_vocabularies(
        [folder / name for name in segmentations], [folder / name for name in vocabularies], sizes
    )
    order = original_order(loaded, read_config(options, DESCRIPTION), foreign)
    if order is None:
        return None
    kept = {name: files[name] for name in (*vocabularies, *segmentations)}
    return files[DESCRIPTION], kept, vocabularies, order


def decoder_yml(model: str, vocabularies: Sequence[str], config: Config) -> dict[str, Any]:
    """Return decoder.yml, with the settings of the search as far as Marian has them."""
    decoding = config.decoding
    exponents = {"average": 1.0, "none": 0.0, "gnmt": decoding.length_penalty}
    return {
        "relative-paths": True,
        "models": [model],
        "vocabs": [*vocabularies],
        "beam-size": decoding.beam_size,
        "normalize": exponents[decoding.length_normalization],
        "word-penalty": 0,
        "allow-unk": decoding.allow_unknown,
        # Marian has no offset; 3 is its default
        "max-length-factor": 3.0 if decoding.max_length_offset else decoding.max_length_factor,
    }
