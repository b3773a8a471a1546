"""Beginning from the weights of another model (fine-tuning), as far as they fit."""

from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from nmt.checkpoint import WEIGHTS, load_weights
from nmt.data.tokens.tokenizer import Tokenizer
from nmt.errors import ConfigError
from nmt.model.transformer import Transformer
from nmt.run_directory import checkpoint_folder, find_run


def find_pretrained(path: str) -> Path:
    """The folder of weights that a run directory (its best ones) or a checkpoint folder means.

    Raises:
        CheckpointError: there are none.
    """
    run = find_run(Path(path))
    return Path(path) if (Path(path) / WEIGHTS).is_file() else checkpoint_folder(run, "best")


def load_pretrained(
    folder: Path, model: Transformer, tokenizer: Tokenizer, log: Callable[[str], None]
) -> None:
    """Copy into the model what fits of a checkpoint folder, and say what does not.

    A tensor fits if name and shape are the same; of an embedding, the rows of the pieces that both
    vocabularies have, wherever they stand.

    Raises:
        ConfigError: nothing fits.
        CheckpointError: the weights are missing or damaged.
    """
    weights = load_weights(folder)
    theirs = Tokenizer.load(find_run(folder).tokenizer)
    parameters = dict(model.named_parameters())
    left: dict[str, str] = {}
    """why tensors, or rows of them, are still as they were drawn at random"""
    untouched = 0
    with torch.no_grad():
        for name, parameter in parameters.items():
            found = weights.pop(name, None)
            embedding = name.endswith("embedding.weight")
            if found is None:
                left[name] = "not there"
            elif embedding and found.shape[1] == parameter.shape[1]:
                pieces = _pieces(theirs, name), _pieces(tokenizer, name)
                known = _copy_rows(parameter, found, *pieces)
                if known < len(parameter):
                    left[name] = f"{known:,} of {len(parameter):,} pieces there"
                continue
            elif found.shape == parameter.shape:
                parameter.copy_(found)
                continue
            else:
                left[name] = f"{tuple(found.shape)} there, {tuple(parameter.shape)} here"
            untouched += 1
    if untouched == len(parameters):
        raise ConfigError(
            f"training.initialize_from: {folder}: none of its weights fits this model "
            f"({_described(left)}); use its model section"
        )
    log(f"began with {len(parameters) - untouched} of {len(parameters)} tensors from {folder}")
    if left:
        log(f"  new, or new in part: {_described(left)}")
    if weights:
        log(f"  not used: {', '.join(weights)}")


def _pieces(tokenizer: Tokenizer, embedding: str) -> list[str]:
    """What each row of an embedding stands for."""
    return (
        tokenizer.source_vocabulary
        if embedding.startswith("source_")
        else tokenizer.target_vocabulary
    )


def _copy_rows(here: Tensor, there: Tensor, pieces_there: list[str], pieces: list[str]) -> int:
    """Copy the rows of the pieces that both have; returns how many those are."""
    places = {piece: place for place, piece in enumerate(pieces_there)}
    rows = [(row, places[piece]) for row, piece in enumerate(pieces) if piece in places]
    if rows:
        to, of = map(list, zip(*rows, strict=True))
        here[to] = there[of].to(here.device)
    return len(rows)


def _described(left: dict[str, str], most: int = 8) -> str:
    some = [f"{name} ({reason})" for name, reason in list(left.items())[:most]]
    more = len(left) - len(some)
    return ", ".join([*some, f"and {more} more"] if more else some)
