"""Fine-tuning: initialise a model with the weights of another one, as far as they fit."""

import re
from pathlib import Path

import torch
from torch import Tensor

from nmt.data.tokens.tokenizer import BOS, EOS, PAD, UNK, SubwordModel, Tokenizer
from nmt.errors import ConfigError, Log
from nmt.exchange.engine import EXCLUDED_BIAS
from nmt.model.transformer import Transformer
from nmt.run.checkpoint import weights_of
from nmt.run.model import load_model

_NAMES_IN_MESSAGE = 8
_BYTE = re.compile("<0x[0-9A-F]{2}>")


def load_pretrained(folder: Path, model: Transformer, tokenizer: Tokenizer, log: Log) -> None:
    """Copy the weights of a checkpoint `folder` that fit into `model`, and log which do not fit.

    A tensor fits if name and shape are the same. An embedding is copied row by row, for all pieces
    that are in both vocabularies; `tokenizer` is that of `model`. A piece that is new gets the mean
    of the pieces into which the parent splits its text.

    Raises:
        ConfigError: no tensor fits.
        CheckpointError: the weights are missing or damaged.
    """
    parent = load_model(folder, torch.device("cpu"))
    unused = weights_of(parent.model)  # the parent's tensors that were not asked for yet, by name
    parameters = dict(model.named_parameters())
    incomplete: dict[str, str] = {}
    """why a tensor, or some of its rows, keeps its random values, by name"""
    random_tensors = 0
    for name, parameter in parameters.items():
        saved = unused.pop(name, None)
        if saved is None:
            incomplete[name] = "not there"
            random_tensors += 1
        elif "embedding." in name and saved.shape[1:] == parameter.shape[1:]:
            side = "source" if name.startswith("source_") else "target"
            old_pieces, new_pieces = getattr(parent.tokenizer, side), getattr(tokenizer, side)
            copied, composed = _transfer_rows(saved, old_pieces, parameter, new_pieces)
            if copied < len(parameter):
                incomplete[name] = f"{copied:,} of {len(parameter):,} pieces there"
                if composed:
                    incomplete[name] += f", {composed:,} from their parts"
        elif saved.shape == parameter.shape:
            with torch.no_grad():
                parameter.copy_(saved)
        else:
            incomplete[name] = f"{tuple(saved.shape)} there, {tuple(parameter.shape)} here"
            random_tensors += 1
    if random_tensors == len(parameters):
        raise ConfigError(
            f"training.initialize_from: {folder}: none of its weights fits this model "
            f"({_describe(incomplete)}); use its model section"
        )
    initialised = len(parameters) - random_tensors
    log(f"initialised {initialised} of {len(parameters)} tensors from {folder}")
    if incomplete:
        log(f"  new, or new in part: {_describe(incomplete)}")
    if unused:
        log(f"  not used: {', '.join(unused)}")


@torch.no_grad()
def _transfer_rows(
    old: Tensor, old_model: SubwordModel, new: Tensor, new_model: SubwordModel
) -> tuple[int, int]:
    """Fill the embedding `new` (V_new, D) with rows of `old` (V_old, D), piece by piece.

    A piece that both vocabularies have gets its old row. Another one gets the mean of the rows of
    the pieces into which `old_model` splits its text, unless one of these is unknown: then its row
    is left as it is. A piece for which an imported parent has no row counts as unknown: its row is
    zeros, and its output bias keeps it out of translations. Returns how many rows were copied, and
    how many are such means.
    """
    is_learnt = old > EXCLUDED_BIAS / 2 if old.dim() == 1 else old.any(1)  # (V_old,)
    old_ids = {piece: i for i, piece in enumerate(old_model.pieces) if is_learnt[i]}
    copied = composed = 0
    for i, piece in enumerate(new_model.pieces):
        is_special = i in (PAD, UNK, BOS, EOS)  # the same ids in every vocabulary
        if is_special or piece in old_ids:
            new[i] = old[i if is_special else old_ids[piece]]
            copied += 1
            continue
        if _BYTE.fullmatch(piece):
            continue  # it stands for a byte of any character
        parts = old_model.split(piece.replace("▁", " "))
        # SentencePiece begins each text with a space; a piece from inside of a word has none
        if parts and not piece.startswith("▁"):
            parts[0] = parts[0].removeprefix("▁")
            parts = [part for part in parts if part]
        if parts and all(part in old_ids for part in parts):
            new[i] = old[[old_ids[part] for part in parts]].mean(0)
            composed += 1
    return copied, composed


def _describe(incomplete: dict[str, str]) -> str:
    """Return the first tensors, each with its reason, as text."""
    first = list(incomplete.items())[:_NAMES_IN_MESSAGE]
    phrases = [f"{name} ({reason})" for name, reason in first]
    more = len(incomplete) - len(first)
    if more:
        phrases.append(f"and {more} more")
    return ", ".join(phrases)
