"""Fine-tuning: a model begins with the settings and the weights of another one, its parent."""

import shutil
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from nmt.checkpoint import weights_of
from nmt.config import Config, Section, TokenizerConfig
from nmt.config_file import load_config, replace_settings
from nmt.data.tokens.tokenizer import SHARED, SOURCE, TARGET, SubwordModel, Tokenizer
from nmt.data.tokens.vocabulary import kind_of
from nmt.errors import ConfigError
from nmt.model.transformer import Transformer
from nmt.run_directory import LoadedModel, RunDirectory, find_run, load_run

_NAMES_IN_MESSAGE = 8


def inherit_settings(config: Config, run_dir: Path | None = None) -> Config:
    """Return a recipe with `training.initialize_from`, completed with settings of the parent.

    Each setting of `model` and `decoding` that the recipe does not give is the parent's, and so are
    the languages. Without a section `tokenizer`, the recipe uses the parent's tokenizer. If a run
    has begun in `run_dir`, it takes the place of the parent, which may be gone.

    Raises:
        CheckpointError: there is no parent.
        ConfigError: the settings of both do not fit together.
    """
    parent = RunDirectory(run_dir) if run_dir else None
    if parent is None or not parent.config.is_file():
        parent = find_run(Path(str(config.training.initialize_from)))
    inherited = load_config(str(parent.config))
    where = f"training.initialize_from: {parent.path}"
    languages = _given(config.data, {"source_language", "target_language"})
    old = {name: getattr(inherited.data, name) for name in ("source_language", "target_language")}
    changes: dict[str, object] = {
        "model": replace_settings(inherited.model, _given(config.model), where),
        "decoding": replace_settings(inherited.decoding, _given(config.decoding), where),
        "data": replace_settings(config.data, old | languages, where),
    }
    if "tokenizer" not in config.model_fields_set:
        changes["tokenizer"] = _tokenizer_settings(parent)
    return replace_settings(config, changes, where)


def _given(section: Section, names: set[str] | None = None) -> dict[str, object]:
    """Return the settings, of `names` only, that a recipe gives itself."""
    given = section.model_fields_set if names is None else section.model_fields_set & names
    return {name: getattr(section, name) for name in given}


def _tokenizer_settings(run: RunDirectory) -> TokenizerConfig:
    """Return the settings that use the tokenizer of a run."""
    shared = (run.tokenizer / SHARED).is_file()
    models = [run.tokenizer / name for name in ((SHARED,) if shared else (SOURCE, TARGET))]
    return TokenizerConfig(
        model=str(models[0]),
        target_model=None if shared else str(models[1]),
        kind=kind_of(models[0]),  # type: ignore[arg-type]
        shared=shared,
    )


def keep_origin(directory: RunDirectory, run: LoadedModel) -> None:
    """Copy what is known of the origin of an imported parent, if the vocabulary is still the same.

    An export of the new run, `directory`, then restores the original order of the rows.
    """
    parent, tokenizer = run.config.training.initialize_from, run.tokenizer
    if parent is None:
        return
    old = find_run(Path(parent))
    same = not tokenizer.differs_from(Tokenizer.load(old.tokenizer))
    if same and old.imported.is_dir():
        shutil.copytree(old.imported, directory.imported, dirs_exist_ok=True)


def load_pretrained(
    folder: Path, model: Transformer, tokenizer: Tokenizer, log: Callable[[str], None]
) -> None:
    """Copy the weights of a checkpoint `folder` that fit into `model`, and log which do not fit.

    A tensor fits if name and shape are the same. An embedding is copied row by row, for all pieces
    that are in both vocabularies; `tokenizer` is that of `model`. A piece that is new gets the mean
    of the pieces into which the parent splits its text.

    Raises:
        ConfigError: no tensor fits.
        CheckpointError: the weights are missing or damaged.
    """
    parent = load_run(folder, torch.device("cpu"))
    weights = weights_of(parent.model)
    parameters = dict(model.named_parameters())
    incomplete: dict[str, str] = {}
    """why a tensor, or some of its rows, keeps its random values, by name"""
    missing = 0
    for name, parameter in parameters.items():
        saved = weights.pop(name, None)
        if saved is None:
            incomplete[name] = "not there"
            missing += 1
        elif "embedding." in name and saved.shape[1:] == parameter.shape[1:]:
            side = "source" if name.startswith("source_") else "target"
            old, new = getattr(parent.tokenizer, side), getattr(tokenizer, side)
            copied, composed = _transfer_rows(parameter, saved, old, new)
            if copied < len(parameter):
                incomplete[name] = f"{copied:,} of {len(parameter):,} pieces there"
                incomplete[name] += f", {composed:,} from their parts" if composed else ""
        elif saved.shape == parameter.shape:
            with torch.no_grad():
                parameter.copy_(saved)
        else:
            incomplete[name] = f"{tuple(saved.shape)} there, {tuple(parameter.shape)} here"
            missing += 1
    if missing == len(parameters):
        raise ConfigError(
            f"training.initialize_from: {folder}: none of its weights fits this model "
            f"({_describe(incomplete)}); use its model section"
        )
    log(f"initialised {len(parameters) - missing} of {len(parameters)} tensors from {folder}")
    if incomplete:
        log(f"  new, or new in part: {_describe(incomplete)}")
    if weights:
        log(f"  not used: {', '.join(weights)}")


@torch.no_grad()
def _transfer_rows(
    new: Tensor, saved: Tensor, old: SubwordModel, wanted: SubwordModel
) -> tuple[int, int]:
    """Copy the rows of pieces that both vocabularies have from `saved` to `new`.

    The row of another piece of `wanted` becomes the mean of the rows of the pieces into which the
    model `old` splits its text, unless one of these is unknown. Returns how many were copied, and
    how many are such means.
    """
    saved_ids = {piece: i for i, piece in enumerate(old.pieces)}
    copied = composed = 0
    for i, piece in enumerate(wanted.pieces):
        if piece in saved_ids:
            new[i] = saved[saved_ids[piece]]
            copied += 1
            continue
        parts = old.split(piece.replace("▁", " "))
        if parts and not piece.startswith("▁"):  # SentencePiece begins each text with a space
            bare = parts[0].removeprefix("▁")
            parts = [*([bare] if bare else []), *parts[1:]]
        if parts and all(part in saved_ids for part in parts):
            new[i] = saved[[saved_ids[part] for part in parts]].mean(0)
            composed += 1
    return copied, composed


def _describe(incomplete: dict[str, str]) -> str:
    """Return the first tensors, each with its reason, as text."""
    shown = [f"{name} ({why})" for name, why in list(incomplete.items())[:_NAMES_IN_MESSAGE]]
    more = len(incomplete) - len(shown)
    return ", ".join([*shown, f"and {more} more"] if more else shown)
