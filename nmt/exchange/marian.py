"""Marian: native models in and out, single ones, ensembles, and the packages of OPUS-MT."""

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from nmt import strict_yaml
from nmt.config import Config, DecodingConfig, ModelConfig
from nmt.data.tokens.tokenizer import BOS, PAD
from nmt.data.tokens.vocabulary import pieces_of
from nmt.errors import DataError, ExchangeError
from nmt.exchange.marian_files import (
    OPTIONS,
    parse_yaml,
    read_bytes,
    read_npz,
    read_vocabulary,
    write_npz,
)
from nmt.exchange.marian_names import bias_name, options_of, read_config, to_marian, to_ours
from nmt.exchange.marian_package import (
    DECODER,
    open_package,
    own_names,
    read_decoding,
    shared_names,
)
from nmt.run_directory import LoadedModel, find_run

MODEL, DESCRIPTION = "model.npz", "model.yml"
COMPANIONS = ("README.md", "LICENSE", "preprocess.sh", "postprocess.sh")
"""other files in a package of OPUS-MT; nmt keeps the scripts, but does not run them"""
NEVER = -1e4
"""the bias of tokens that no translation has"""


@dataclass(frozen=True)
class MarianModel:
    """A model of Marian in our names; the rows of its vocabularies keep their order."""

    config: ModelConfig
    weights: dict[str, Tensor]
    options: bytes
    """Marian's own description of the model, YAML that may end in zero bytes"""


@dataclass(frozen=True)
class MarianVocabulary:
    """The vocabulary of one language."""

    segmentation: bytes
    """the SentencePiece model that splits text into pieces"""
    rows: dict[str, int]
    """the row in the matrices of each piece; other pieces are unknown"""


@dataclass(frozen=True)
class MarianImport:
    """Everything that a package of Marian says; several models are an ensemble."""

    models: list[MarianModel]
    vocabularies: list[MarianVocabulary]
    """of source and target"""
    decoding: DecodingConfig
    originals: dict[str, bytes]
    """{name: content} of the files from which `export_marian` restores the original layout, and of
    those that accompany the model"""


def import_marian(source: Path) -> MarianImport:
    """Read a model, an ensemble or a package, given its folder, decoder.yml, .npz or zip.

    Raises:
        ExchangeError: a file is missing or damaged, or nmt cannot compute the model.
    """
    with open_package(source) as package:
        models = [read_model(path) for path in package.models]
        originals = package.vocabulary_files() | {DESCRIPTION: models[0].options}
        for name in (DECODER, *COMPANIONS):
            if (package.folder / name).is_file():
                originals[name] = read_bytes(package.folder / name)
        vocabularies = [
            MarianVocabulary(read_bytes(spm), _read_rows(path))
            for path, spm in zip(package.vocabularies, package.segmentations, strict=True)
        ]
        for model, path in zip(models, package.models, strict=True):
            _check_rows(model, vocabularies, path)
        return MarianImport(models, vocabularies, read_decoding(package), originals)


def read_model(path: Path) -> MarianModel:
    """Read a model file of Marian.

    Raises:
        ExchangeError: it is damaged, or a model that nmt cannot compute.
    """
    text, weights = read_npz(path)
    options = parse_yaml(text.rstrip(b"\0"), f"{path}: {OPTIONS}")
    config = read_config(options, str(path))
    return MarianModel(config, to_ours(weights, options, config, str(path)), text)


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


def _check_rows(model: MarianModel, vocabularies: list[MarianVocabulary], path: Path) -> None:
    """Check that every row of the vocabularies is in the matrices of a model."""
    sizes = [len(model.weights[_embedding(side, model.config)]) for side in ("source", "target")]
    for size, vocabulary in zip(sizes, vocabularies, strict=True):
        if (last := max(vocabulary.rows.values())) >= size:
            raise ExchangeError(
                f"{path}: the vocabulary has a row {last:,}, but the model has {size:,} rows; they "
                "do not belong together"
            )


def _embedding(side: str, config: ModelConfig) -> str:
    """Return our name of the embedding matrix of source or target."""
    return f"{'target' if config.embeddings == 'shared' else side}_embedding.weight"


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
                f"Marian cannot compute the model: it needs model.{name}: {expected}, and the "
                f"model has {found}; export it to ctranslate2 or safetensors, which hold every "
                "model"
            )


@dataclass(frozen=True)
class MarianLayout:
    """The order of the rows in an exported model, and the files that say it."""

    options: bytes
    files: dict[str, bytes]
    names: list[str]
    """the vocabularies of source and target in decoder.yml"""
    ids: list[list[int]]
    """of source and target: our id of each row; -1: none"""


def _own_layout(run: LoadedModel) -> MarianLayout:
    """Return the layout of our SentencePiece models, whose ids are the rows."""
    sides = (run.tokenizer.source, run.tokenizer.target)
    names = (shared_names if run.tokenizer.shared else own_names)(".spm")
    options = options_of(run.config.model, (sides[0].size, sides[1].size))
    return MarianLayout(
        strict_yaml.dump(options).encode() + b"\0",
        {name: side.model for name, side in zip(names, sides, strict=True)},
        names,
        [[-1 if i in (PAD, BOS) else i for i in range(side.size)] for side in sides],
    )


def _original_layout(run: LoadedModel) -> MarianLayout | None:
    """Return the layout that a model imported from Marian had; None: it has none."""
    folder, tokenizer = find_run(run.path).imported, run.tokenizer
    if not (folder / DESCRIPTION).is_file():
        return None
    candidates = [
        names(suffix) for suffix in (".yml", ".spm") for names in (shared_names, own_names)
    ]
    names = next(pair for pair in candidates if all((folder / name).is_file() for name in pair))
    files = {path.name: read_bytes(path) for path in sorted(folder.glob("*.spm"))}
    files |= {name: read_bytes(folder / name) for name in names}
    options = read_bytes(folder / DESCRIPTION)
    sizes = parse_yaml(options.rstrip(b"\0"), DESCRIPTION)["dim-vocabs"]
    ids = []
    for name, side, size in zip(names, (tokenizer.source, tokenizer.target), sizes, strict=True):
        id_of = {piece: i for i, piece in enumerate(side.pieces)}
        of_side = [-1] * size
        for piece, row in _read_rows(folder / name).items():
            of_side[row] = id_of.get(piece, -1)
        ids.append(of_side)
    return MarianLayout(options, files, names, ids)


def _reordered(run: LoadedModel, layout: MarianLayout) -> dict[str, Tensor]:
    """Return the weights with rows in the order of `layout`, and an output bias.

    A row without a piece of ours is zero, and its bias lets it have no probability.
    """
    config = run.config.model
    weights = {name: weight.detach().float() for name, weight in run.model.named_parameters()}
    bias = bias_name(config)
    weights.setdefault(bias, torch.zeros(run.tokenizer.target.size))
    for name in [name for name in weights if "_embedding." in name]:
        ids = torch.tensor(layout.ids[0 if name.startswith("source") else 1])
        rows = weights[name][ids.clamp(min=0)]
        rows[ids < 0] = NEVER if name == bias else 0.0
        weights[name] = rows
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
        }
    )
