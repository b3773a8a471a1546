"""Fine-tuning: initialise a model with the weights of another one, as far as they fit."""

from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from nmt.checkpoint import load_weights, weights_of
from nmt.config_file import load_config
from nmt.data.tokens.tokenizer import BOS, EOS, PAD, UNK, SubwordModel, Tokenizer
from nmt.errors import ConfigError
from nmt.model.transformer import Transformer
from nmt.run_directory import find_run, load_run

_NAMES_IN_MESSAGE = 8


def load_pretrained(
    folder: Path, model: Transformer, tokenizer: Tokenizer, log: Callable[[str], None]
) -> None:
    """Copy the weights of a checkpoint `folder` that fit into `model`, and log which do not fit.

    A tensor fits if name and shape are the same. An embedding is copied row by row, for all pieces
    that are in both vocabularies; `tokenizer` is that of `model`.

    Raises:
        ConfigError: no tensor fits.
        CheckpointError: the weights are missing or damaged.
    """
    run = find_run(folder)
    if load_config(str(run.config)).training.lora:  # its checkpoints hold the adapter alone
        weights = dict(weights_of(load_run(folder, torch.device("cpu")).model))
    else:
        weights = load_weights(folder)
    saved_tokenizer = Tokenizer.load(run.tokenizer)
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
            pieces, saved_pieces = (getattr(t, side).pieces for t in (tokenizer, saved_tokenizer))
            copied = _copy_rows(parameter, saved, saved_pieces, pieces)
            _fill_with_means(parameter, saved, getattr(saved_tokenizer, side), pieces)
            if copied < len(parameter):
                incomplete[name] = f"{copied:,} of {len(parameter):,} pieces there"
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
def _copy_rows(new: Tensor, saved: Tensor, saved_pieces: list[str], pieces: list[str]) -> int:
    """Copy the embeddings of pieces in both lists from `saved` to `new`; return their number."""
    saved_ids = {piece: index for index, piece in enumerate(saved_pieces)}
    ids = [(index, saved_ids[piece]) for index, piece in enumerate(pieces) if piece in saved_ids]
    if ids:
        new_ids, old_ids = map(list, zip(*ids, strict=True))
        new[new_ids] = saved[old_ids].to(new.device)
    return len(ids)


@torch.no_grad()
def _fill_with_means(new: Tensor, saved: Tensor, parent: SubwordModel, pieces: list[str]) -> None:
    """Set the row of each piece that `parent` lacks to the mean of the rows that spell it there.

    `parent` splits the text of the piece; a piece that it cannot spell keeps its random values.
    """
    known = set(parent.pieces)
    lacking = [i for i, piece in enumerate(pieces) if piece not in known]
    texts = [pieces[i].replace("▁", " ") for i in lacking]
    for i, ids in zip(lacking, parent.encode(texts), strict=True):
        spelt = [j for j in ids if j not in (PAD, UNK, BOS, EOS)]
        if spelt:
            new[i] = saved[spelt].mean(0).to(new.device)


def _describe(incomplete: dict[str, str]) -> str:
    """Return the first tensors, each with its reason, as text."""
    shown = [f"{name} ({why})" for name, why in list(incomplete.items())[:_NAMES_IN_MESSAGE]]
    more = len(incomplete) - len(shown)
    return ", ".join([*shown, f"and {more} more"] if more else shown)
