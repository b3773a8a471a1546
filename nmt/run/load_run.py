"""Loads the model of a run: configuration, tokenizer, weights, and an adapter if there is one."""

import shlex
from pathlib import Path

import torch

from nmt.data.tokens.tokenizer import BOS, PAD, Tokenizer
from nmt.errors import CheckpointError, ConfigError
from nmt.model.transformer import Transformer
from nmt.recipe.config import Config
from nmt.recipe.config_file import load_config
from nmt.run.adapter import merge_adapter
from nmt.run.checkpoint import check_finite, load_into, load_weights, weights_of
from nmt.run.directory import LoadedModel, find_run, weights_folder


def build_model(config: Config, tokenizer: Tokenizer) -> Transformer:
    """Return a Transformer with random weights, with the vocabulary sizes of `tokenizer`.

    Raises:
        ConfigError: The recipe shares embeddings between two vocabularies that differ.
    """
    source, target = tokenizer.source, tokenizer.target
    if config.model.embeddings == "shared" and source.pieces != target.pieces:
        raise ConfigError(
            "model.embeddings: shared needs the same pieces in both languages, but those of the "
            "two tokenizers differ; write embeddings: target"
        )
    return Transformer(config.model, source.size, target.size, PAD, BOS)


def load_run(
    path: str | Path,
    device: torch.device,
    checkpoint: str = "best",
    adapter: str | Path | None = None,
) -> LoadedModel:
    """Load a run to translate, in eval mode; `path` is a run directory or a checkpoint of one.

    `checkpoint` is best, last, averaged, moving-average or step-N. `adapter`, a run with
    `training.lora`, a checkpoint of one, or a file, is merged into the weights. If `path` is itself
    such a run, its adapter is merged into the weights of its parent.

    Raises:
        CheckpointError: `path` is no run directory; or its weights, those of the adapter or of its
            parent are missing, damaged, NaN or infinite.
    """
    directory, folder = find_run(Path(path)), weights_folder(Path(path), checkpoint)
    config = load_config(str(directory.config))
    tokenizer = Tokenizer.load(directory.tokenizer)
    model = build_model(config, tokenizer)
    if config.training.lora:
        parent = _load_parent(config, directory.path)
        load_into(model, weights_of(parent.model), folder)
        merge_adapter(model, folder)
    else:
        load_into(model, load_weights(folder), folder)
    check_finite(weights_of(model), folder)
    if adapter is not None:
        adapter_path = Path(adapter)
        is_file = adapter_path.is_file()
        merge_adapter(model, adapter_path if is_file else weights_folder(adapter_path))
    return LoadedModel(config, tokenizer, model.to(device).eval(), folder)


def _load_parent(config: Config, path: Path) -> LoadedModel:
    """Load the run that the adapter in the run directory `path` was trained from.

    Raises:
        CheckpointError: The parent cannot be loaded.
    """
    parent = str(config.training.initialize_from)
    _check_chain(config, path)
    try:
        return load_run(parent, torch.device("cpu"))
    except CheckpointError as error:
        raise CheckpointError(
            f"{path}: holds an adapter, and its parent cannot be loaded: {error}; if the parent "
            f"has moved, give its new place: --model PARENT --adapter {shlex.quote(str(path))}"
        ) from error


def _check_chain(config: Config, path: Path) -> None:
    """Check that the parents of the adapter in the run directory `path` end in a whole model.

    Raises:
        CheckpointError: an adapter is among its own parents.
    """
    runs = [path.resolve()]
    while config.training.lora:
        try:
            parent = find_run(Path(str(config.training.initialize_from)))
        except CheckpointError:
            return  # the attempt to load it says what is wrong
        if parent.path.resolve() in runs:
            raise CheckpointError(
                f"{path}: holds an adapter that is its own parent (training.initialize_from: "
                f"{config.training.initialize_from}); give the parent that it was trained from: "
                f"--model PARENT --adapter {shlex.quote(str(path))}"
            )
        runs.append(parent.path.resolve())
        config = load_config(str(parent.config))
