"""A model of another program becomes a run directory, and an unchanged order of rows goes back.

The folder `imported/` of the run holds provenance.json (where the model came from, its licence and
the digests of its files) and the small original files, from which an export restores the layout.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from nmt.checkpoint import load_into, save_checkpoint, weights_of
from nmt.config import Config, DataConfig, DecodingConfig, ModelConfig, TokenizerConfig
from nmt.data.tokens.foreign_vocabulary import (
    AdoptedVocabulary,
    ForeignVocabulary,
    adopt_foreign,
    tokenizer_of,
)
from nmt.data.tokens.tokenizer import SOURCE, TARGET
from nmt.errors import ConfigError, DataError, ExchangeError
from nmt.exchange.engine import NEVER
from nmt.files import create_folder_atomically, read_json
from nmt.load_run import build_model
from nmt.run_directory import LoadedModel, RunDirectory, find_run

PROVENANCE = "provenance.json"


@dataclass(frozen=True)
class ImportedModel:
    """A model in our names; the rows of its vocabularies are still in their original order."""

    config: ModelConfig
    weights: Mapping[str, Tensor]
    """{our name: weight}, in the shapes that `config` says: the readers have checked them before
    any memory is taken for the model; an output bias may be missing, and then is zero"""
    vocabularies: tuple[ForeignVocabulary, ForeignVocabulary]
    """of source and target"""
    decoding: DecodingConfig
    originals: Mapping[str, bytes]
    """{name: content} of the files that an export restores"""
    languages: tuple[str, str] = ("und", "und")
    """codes of source and target"""
    provenance: dict[str, Any] = field(default_factory=dict)
    """where the model comes from: format, source, licence, sha256 of files and so on"""


def write_run(imported: ImportedModel, output: Path) -> None:
    """Write a run directory that holds the model as its only checkpoint.

    Raises:
        ConfigError: `output` exists.
        ExchangeError: the vocabulary does not fit the weights, or the files cannot be written.
    """
    sides = _adopt(imported)
    tokenizer = tokenizer_of(*sides)
    config = _config(imported, output, tokenizer.shared)
    weights = _in_our_order(imported, sides)
    model = build_model(config, tokenizer)
    load_into(model, weights, output)
    try:
        with create_folder_atomically(output) as folder:
            run = RunDirectory(folder)
            run.write_config(config)
            tokenizer.save(run.tokenizer)
            run.imported.mkdir()
            for name, content in imported.originals.items():
                (run.imported / name).write_bytes(content)
            text = json.dumps(imported.provenance, indent=1, ensure_ascii=False)
            (run.imported / PROVENANCE).write_text(text + "\n", "utf-8")
            run.checkpoints.mkdir()
            save_checkpoint(run.checkpoint(0), weights_of(model))
    except FileExistsError as error:
        raise ConfigError(
            f"{output}: exists already; choose another folder as --output, or remove it"
        ) from error
    except OSError as error:
        raise ExchangeError(
            f"{output}: the run is not written: {error.strerror or error}"
        ) from error


def read_provenance(run: RunDirectory) -> dict[str, Any]:
    """Return what is known of the origin of a run, its own or that of the model it began with.

    It is empty for a model that was trained from the start.

    Raises:
        ExchangeError: the file is damaged.
    """
    path = run.imported / PROVENANCE
    try:
        return read_json(path) if path.is_file() else {}
    except (OSError, ValueError) as error:
        raise ExchangeError(f"{path}: cannot be read ({error}); import the model again") from error


def origin_of(run: RunDirectory) -> str:
    """Return in a few words where a run's first weights come from; empty if they were random.

    Raises:
        ExchangeError: the record is damaged.
    """
    known = read_provenance(run)
    if not known:
        return ""
    revision = f", revision {known['revision']}" if "revision" in known else ""
    return f"{known['source']} ({known['format']}{revision}), licence {known['license']}"


def digests(paths: Sequence[Path]) -> dict[str, str]:
    """Return {name: sha256 in hex} of files.

    Raises:
        ExchangeError: one cannot be read.
    """
    found = {}
    for path in paths:
        try:
            with path.open("rb") as file:
                found[path.name] = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise ExchangeError(f"{path}: cannot be read: {error.strerror}") from error
    return found


def original_files(run: LoadedModel) -> dict[str, bytes]:
    """Return {name: content} of the original files of an imported run; empty if it is our own."""
    folder = find_run(run.path).imported
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*")) if path.is_file()}


def original_order(
    run: LoadedModel, vocabularies: tuple[ForeignVocabulary, ForeignVocabulary]
) -> tuple[list[int], list[int]] | None:
    """Return our id of each original row, of source and target (-1: it has none).

    None if the vocabulary of the run is not that of the imported model any more.
    """
    source, target = adopt_foreign(*vocabularies)
    if tokenizer_of(source, target).differs_from(run.tokenizer):
        return None
    return source.ids(vocabularies[0].size), target.ids(vocabularies[1].size)


def rows_in_order(weight: Tensor, ids: Sequence[int], missing: float = 0.0) -> Tensor:
    """Return the rows `ids` of a weight (V, …); an id of -1 gives a row of the number `missing`."""
    index = torch.tensor(ids)
    rows = weight[index.clamp(min=0)]
    rows[index < 0] = missing
    return rows


def bias_name(config: ModelConfig) -> str:
    """Return our name of the output bias."""
    return f"{'output' if config.embeddings == 'separate' else 'target'}_embedding.bias"


def _adopt(imported: ImportedModel) -> tuple[AdoptedVocabulary, AdoptedVocabulary]:
    source, target = imported.vocabularies
    for name, side in (("source", source), ("target", target)):
        if outside := [piece for piece, row in side.rows.items() if not 0 <= row < side.size]:
            raise ExchangeError(
                f"the {name} vocabulary has the row {side.rows[outside[0]]:,} for "
                f"{outside[0]!r}, but the model has {side.size:,} rows; they do not belong together"
            )
        if len(set(side.rows.values())) < len(side.rows):
            raise ExchangeError(f"two pieces of the {name} vocabulary have the same row")
    if imported.config.embeddings == "shared" and source.rows != target.rows:
        raise ExchangeError(
            "the model has one matrix for both languages, but its vocabularies differ; they do not "
            "belong together"
        )
    try:
        return adopt_foreign(source, target)
    except DataError as error:
        raise ExchangeError(str(error)) from error


def _in_our_order(
    imported: ImportedModel, sides: tuple[AdoptedVocabulary, AdoptedVocabulary]
) -> dict[str, Tensor]:
    """Return the weights with a row for each of our ids; a new row has no probability."""
    weights = dict(imported.weights)
    bias = bias_name(imported.config)
    weights.setdefault(bias, torch.zeros(imported.vocabularies[1].size))
    for name in [name for name in weights if "_embedding." in name]:
        rows = sides[0 if name.startswith("source") else 1].rows
        weights[name] = rows_in_order(weights[name], rows, NEVER if name == bias else 0.0)
    return weights


def _config(imported: ImportedModel, output: Path, shared: bool) -> Config:
    source, target = imported.languages
    tokenizer = TokenizerConfig()
    if not shared:
        folder = RunDirectory(output).tokenizer
        models = (str(folder / SOURCE), str(folder / TARGET))
        tokenizer = TokenizerConfig(shared=False, model=models[0], target_model=models[1])
    return Config(
        data=DataConfig(source_language=source, target_language=target),
        tokenizer=tokenizer,
        model=imported.config,
        decoding=imported.decoding,
    )
