"""A model of another program becomes a run directory, and an export restores its order of rows.

The rows of an embedding matrix belong to the pieces of the vocabulary. An import puts them in the
order of our ids; an export to the same program puts them back. The folder `imported/` of the run
holds provenance.json (where the model came from, its licence and the digests of its files) and the
small original files, in which the original order stands.
"""

import hashlib
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from nmt.data.tokens.foreign_vocabulary import (
    AdoptedVocabulary,
    ForeignVocabulary,
    adopt_foreign,
    tokenizer_of,
)
from nmt.data.tokens.tokenizer import SOURCE, TARGET
from nmt.errors import DataError, ExchangeError, print_warning
from nmt.exchange.engine import EXCLUDED_BIAS
from nmt.files import create_folder_atomically, explain_os_errors, read_json, write_json
from nmt.model.anatomy import output_bias, weight_shapes
from nmt.recipe.config import (
    Config,
    DataConfig,
    DecodingConfig,
    GuidedAlignmentConfig,
    ModelConfig,
    TokenizerConfig,
    TrainingConfig,
)
from nmt.run.checkpoint import write_checkpoint
from nmt.run.directory import RunDirectory, find_run
from nmt.run.model import LoadedModel

ARCHITECTURE = (
    "d_model",
    "heads",
    "d_ff",
    "encoder_layers",
    "decoder_layers",
    "decoder",
    "activation",
    "norm",
    "embeddings",
)
"""the settings of a model that the original files state, which an export restores"""
LARGEST_SMALL_FILE = 1 << 24
"""bytes; the largest vocabulary that is published has 2 MB"""
RowOrder = tuple[list[int], list[int]]
"""for each row of a reordered matrix, the index of this row in the matrix before; -1: none

First for the source embeddings, if they are a matrix of their own; then for the target embeddings,
which may be shared, the output matrix and the output bias."""


@dataclass(frozen=True)
class ForeignShortlist:
    """The target rows that may occur in translations of a source."""

    frequent: int
    """F, the number of first rows that every source may need"""
    best: int
    """B, the most entries of a source row"""
    offsets: NDArray[Any]
    """(source rows + 1,) where the entries of each source row begin"""
    entries: NDArray[Any]
    """target rows"""


@dataclass(frozen=True)
class ImportedModel:
    """A model in our names; the rows of its vocabularies are still in their original order."""

    config: ModelConfig
    weights: Mapping[str, Tensor]
    """{our name: weight} in the shapes of `weight_shapes`: the readers have checked them before any
    memory is taken for the model. Those of a large model are read when they are asked for"""
    vocabularies: tuple[ForeignVocabulary, ForeignVocabulary]
    """of source and target"""
    decoding: DecodingConfig
    originals: Mapping[str, bytes]
    """{name: content} of the files that an export restores"""
    languages: tuple[str, str] = ("und", "und")
    """codes of source and target; und: undetermined"""
    language_tags: tuple[str, ...] = ()
    """codes of all languages of a model of many, see `DataConfig.language_tags`"""
    provenance: dict[str, Any] = field(default_factory=dict)
    """where the model comes from: format, source, licence, sha256 of files and so on"""
    shortlist: ForeignShortlist | None = None
    """the target rows that translations of a source may have"""
    guided_alignment: GuidedAlignmentConfig | None = None
    """the attention head that has learnt alignments"""

    @property
    def parameters(self) -> int:
        """The number of weights."""
        source, target = self.vocabularies
        shapes = weight_shapes(self.config, (len(source.kept_rows), len(target.kept_rows)))
        return sum(map(math.prod, shapes.values()))


def write_run(imported: ImportedModel, output: Path) -> tuple[AdoptedVocabulary, AdoptedVocabulary]:
    """Write a run directory that holds the model as its only checkpoint.

    Returns the vocabularies of source and target in our ids.

    Raises:
        ConfigError: `output` exists.
        ExchangeError: the vocabulary does not fit the weights, or the files cannot be written.
    """
    source, target = _adopt_vocabularies(imported)
    tokenizer = tokenizer_of(source, target)
    config = _config(imported, output, tokenizer.shared)
    sizes = len(source.rows), len(target.rows)
    shapes = weight_shapes(config.model, sizes)
    rows = source.rows, target.rows
    weights = (reorder_rows({name: imported.weights[name]}, rows)[name] for name in shapes)
    try:
        with create_folder_atomically(output) as folder:
            directory = RunDirectory(folder)
            directory.write_config(config)
            tokenizer.save(directory.tokenizer)
            directory.imported.mkdir()
            for name, content in imported.originals.items():
                (directory.imported / name).write_bytes(content)
            write_json(directory.provenance, imported.provenance)
            directory.checkpoints.mkdir()
            write_checkpoint(directory.checkpoint(0), shapes, weights)
    except OSError as error:
        raise ExchangeError(
            f"{output}: the run is not written: {error.strerror or error}"
        ) from error
    return source, target


def _adopt_vocabularies(imported: ImportedModel) -> tuple[AdoptedVocabulary, AdoptedVocabulary]:
    """Return the vocabularies of source and target in our ids."""
    source, target = imported.vocabularies
    if imported.config.embeddings == "shared" and source.rows != target.rows:
        raise ExchangeError(
            "the model has one matrix for both languages, but its vocabularies differ; they do not "
            "belong together"
        )
    try:
        return adopt_foreign(source, target)
    except DataError as error:
        raise ExchangeError(str(error)) from error


def _config(imported: ImportedModel, output: Path, shared: bool) -> Config:
    """Return the configuration of the run; `shared`: both languages use one vocabulary."""
    source, target = imported.languages
    tokenizer = TokenizerConfig()
    if not shared:
        folder = RunDirectory(output).tokenizer
        models = (str(folder / SOURCE), str(folder / TARGET))
        tokenizer = TokenizerConfig(shared=False, model=models[0], target_model=models[1])
    return Config(
        data=DataConfig(
            source_language=source,
            target_language=target,
            language_tags=list(imported.language_tags),
        ),
        tokenizer=tokenizer,
        model=imported.config,
        training=TrainingConfig(guided_alignment=imported.guided_alignment),
        decoding=imported.decoding,
    )


def warn_of_lack(where: str, name: str, value: str) -> None:
    """Warn that a setting of the other program is left out."""
    print_warning(f"{where}: {name}: {value} is left out; nmt does not have it")


def read_small_file(path: Path) -> bytes:
    """Return the content of a file of a model that is not its weights.

    Raises:
        ExchangeError: the file cannot be read, or is larger than `LARGEST_SMALL_FILE`.
    """
    with explain_os_errors(path, "read", ExchangeError):
        if path.stat().st_size > LARGEST_SMALL_FILE:
            raise ExchangeError(f"{path}: has {path.stat().st_size:,} bytes, which no model needs")
        return path.read_bytes()


def check_links(folder: Path, paths: Iterable[Path]) -> None:
    """Check that no file of a model is a link out of its folder, whose target would be copied.

    In the cache of the Hub, a folder links to the `blobs` beside the `snapshots`.

    Raises:
        ExchangeError: a file is such a link.
    """
    root = folder.resolve()
    allowed = [root]
    if root.parent.name == "snapshots":
        allowed.append(root.parents[1] / "blobs")
    for path in paths:
        if path.is_symlink():
            target = Path(os.path.realpath(path))  # never an error, not even for a loop
            if not any(target.is_relative_to(inside) for inside in allowed):
                raise ExchangeError(
                    f"{path}: a link that leads out of the model's folder, to {target}; if you "
                    "trust it, put a copy of the file in its place"
                )


def file_digests(paths: Sequence[Path]) -> dict[str, str]:
    """Return {name: sha256 in hex} of these files, which exist."""
    digests = {}
    for path in paths:
        with path.open("rb") as file:
            digests[path.name] = hashlib.file_digest(file, "sha256").hexdigest()
    return digests


def read_provenance(directory: RunDirectory) -> dict[str, Any]:
    """Return where a run's first weights come from, as `ImportedModel.provenance` says it.

    It is empty for a model that was trained from the start.

    Raises:
        ExchangeError: the file is damaged, or says something else.
    """
    path = directory.provenance
    if not path.is_file():
        return {}
    try:
        provenance = read_json(path)
    except (OSError, ValueError) as error:
        raise ExchangeError(f"{path}: cannot be read ({error}); import the model again") from error
    texts = [provenance.get(name) for name in ("source", "format", "license")]
    texts.append(provenance.get("revision", ""))
    is_record = all(isinstance(text, str) for text in texts)
    if provenance and not (is_record and isinstance(provenance.get("sha256", {}), dict)):
        raise ExchangeError(
            f"{path}: damaged: expected the source, format and license of an imported model; "
            "import the model again"
        )
    return provenance


def origin_of(directory: RunDirectory) -> str:
    """Return in a few words where a run's first weights come from; empty if they were random.

    Raises:
        ExchangeError: the record is damaged.
    """
    provenance = read_provenance(directory)
    if not provenance:
        return ""
    source, details = provenance["source"], provenance["format"]
    if "revision" in provenance:  # a model of the Hub
        details += f", revision {provenance['revision']}"
    else:  # of a path only the name: the folders of this machine do not concern others
        source = Path(source).name
    return f"{source} ({details}), licence: {provenance['license']}"


def original_files(loaded: LoadedModel) -> dict[str, bytes]:
    """Return {name: content} of the files in `imported/` of a run; empty if it was not imported."""
    folder = find_run(loaded.path).imported
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*")) if path.is_file()}


def original_order(
    loaded: LoadedModel,
    architecture: ModelConfig,
    vocabularies: tuple[ForeignVocabulary, ForeignVocabulary],
) -> RowOrder | None:
    """Return the order that brings our rows back into that of the original `vocabularies`.

    None if the run, which was fine-tuned, has another vocabulary or another `architecture` than the
    imported model, so that the original files do not describe it any more.
    """
    source, target = adopt_foreign(*vocabularies)
    is_changed = any(
        getattr(loaded.config.model, name) != getattr(architecture, name) for name in ARCHITECTURE
    )
    if is_changed or tokenizer_of(source, target).differs_from(loaded.tokenizer):
        return None
    # for each row of theirs, our id of its piece, which is the row in our matrix
    return source.ids(vocabularies[0].size), target.ids(vocabularies[1].size)


def weights_to_export(loaded: LoadedModel) -> dict[str, Tensor]:
    """Return {our name: weight} in float32, with an output bias: zeros if the model has none."""
    weights = {name: weight.detach().float() for name, weight in loaded.model.named_parameters()}
    weights.setdefault(output_bias(loaded.config.model), torch.zeros(loaded.tokenizer.target.size))
    return weights


def reorder_rows(weights: Mapping[str, Tensor], order: RowOrder) -> dict[str, Tensor]:
    """Return {our name: weight} with the rows of embeddings and output bias in another order.

    A row that did not exist before becomes zeros; its output bias, if the model has one, becomes
    `EXCLUDED_BIAS`, so that no translation has the token.
    """
    reordered = dict(weights)
    for name, weight in weights.items():
        if "_embedding." in name:
            rows = torch.tensor(order[0] if name.startswith("source") else order[1])
            is_new = rows < 0
            reordered[name] = weight[rows.clamp(min=0)]
            reordered[name][is_new] = EXCLUDED_BIAS if name.endswith(".bias") else 0.0
    return reordered
