"""Fine-tuning: initialise a model with the weights of another one, as far as they fit."""

import re
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from nmt.checkpoint import weights_of
from nmt.data.tokens.tokenizer import BOS, EOS, PAD, UNK, SubwordModel, Tokenizer
from nmt.errors import ConfigError
from nmt.load_run import load_run
from nmt.model.transformer import Transformer

_NAMES_IN_MESSAGE = 8
_BYTE = re.compile("<0x[0-9A-F]{2}>")


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
        is_special = i in (PAD, UNK, BOS, EOS)  # the same ids in every vocabulary
        if is_special or piece in saved_ids:
            new[i] = saved[i if is_special else saved_ids[piece]]
            copied += 1
            continue
        if _BYTE.fullmatch(piece):
            continue  # it stands for a byte of any character
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
