"""Fine-tuning: initialise a model with the weights of another one, as far as they fit."""

from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from nmt.checkpoint import load_weights
from nmt.data.tokens.tokenizer import Tokenizer
from nmt.errors import ConfigError
from nmt.model.transformer import Transformer
from nmt.run_directory import find_run

_NAMES_IN_MESSAGE = 8


def load_pretrained(
    folder: Path, model: Transformer, tokenizer: Tokenizer, log: Callable[[str], None]
) -> None:
    """Copy the weights of a checkpoint folder that fit into the model; log those that do not.

    A tensor fits if name and shape are the same. An embedding fits by row: the rows of all pieces
    that are in both vocabularies are copied.

    Raises:
        ConfigError: nothing fits.
        CheckpointError: the weights are missing or damaged.
    """
    weights = load_weights(folder)
    saved_tokenizer = Tokenizer.load(find_run(folder).tokenizer)
    parameters = dict(model.named_parameters())
    incomplete: dict[str, str] = {}
    """why tensors, or rows of them, keep their random values"""
    missing = 0
    for name, parameter in parameters.items():
        saved = weights.pop(name, None)
        if saved is None:
            incomplete[name] = "not there"
            missing += 1
        elif name.endswith("embedding.weight") and saved.shape[1] == parameter.shape[1]:
            side = "source" if name.startswith("source_") else "target"
            pieces, saved_pieces = (getattr(t, side).pieces for t in (tokenizer, saved_tokenizer))
            known = _copy_rows(parameter, saved, saved_pieces, pieces)
            if known < len(parameter):
                incomplete[name] = f"{known:,} of {len(parameter):,} pieces there"
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
def _copy_rows(here: Tensor, there: Tensor, pieces_there: list[str], pieces: list[str]) -> int:
    """Copy the rows of the pieces that both have; return how many those are."""
    places = {piece: place for place, piece in enumerate(pieces_there)}
    rows = [(row, places[piece]) for row, piece in enumerate(pieces) if piece in places]
    if rows:
        to, of = map(list, zip(*rows, strict=True))
        here[to] = there[of].to(here.device)
    return len(rows)


def _describe(incomplete: dict[str, str]) -> str:
    """Return the first tensors with their reasons as text."""
    shown = [f"{name} ({why})" for name, why in list(incomplete.items())[:_NAMES_IN_MESSAGE]]
    more = len(incomplete) - len(shown)
    return ", ".join([*shown, f"and {more} more"] if more else shown)
