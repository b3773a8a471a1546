"""Weights in files of Hugging Face, read one by one: a model of gigabytes is never in memory."""

import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import safetensors
import torch
from torch import Tensor

from nmt.errors import ExchangeError
from nmt.exchange.huggingface_files import load_pickle
from nmt.model.anatomy import Shape
from nmt.run.checkpoint_files import check_header

FLOATS = ("F16", "BF16", "F32", "F64")
_NUMBERS = 1 << 20
"""numbers of a weight that are looked at together"""


class StoredWeights(Mapping[str, Tensor]):
    """The weights of some files, safetensors or files of `torch.save`, by their names.

    Each is read when it is asked for, in the type of the file.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        """Read the names and shapes.

        Raises:
            ExchangeError: a file is damaged, or holds something else than floating-point numbers.
        """
        self.shapes: dict[str, Shape] = {}
        self._places: dict[str, tuple[Path, str]] = {}
        for path in paths:
            for name, shape in _shapes(path).items():
                self.shapes[name], self._places[name] = shape, (path, name)

    def __getitem__(self, name: str) -> Tensor:
        """Read one weight.

        Raises:
            ExchangeError: it cannot be read, or holds NaN or infinity.
        """
        path, stored_name = self._places[name]
        if path.suffix == ".safetensors":
            with _open(path) as file:
                weight: Tensor = file.get_tensor(stored_name)
        else:
            weight = load_pickle(path, mmap=True)[stored_name]
        # a sum is NaN or infinite if one number is; for one of all, PyTorch would copy the weight
        parts = weight.flatten().split(_NUMBERS)
        if not all(part.sum(dtype=torch.float64).isfinite() for part in parts):
            raise ExchangeError(f"{path}: {stored_name!a} holds NaN or infinity")
        return weight

    def __iter__(self) -> Iterator[str]:
        return iter(self.shapes)

    def __len__(self) -> int:
        return len(self.shapes)

    def renamed(self, names: Mapping[str, str]) -> "StoredWeights":
        """Return the same weights by other names: {new name: name here}."""
        renamed = StoredWeights([])
        renamed.shapes = {new: self.shapes[old] for new, old in names.items()}
        renamed._places = {new: self._places[old] for new, old in names.items()}
        return renamed


@contextmanager
def _open(path: Path) -> Iterator[Any]:
    """Open a safetensors file; a damaged one is an ExchangeError."""
    try:
        with path.open("rb") as file:
            check_header(file.read(8))
        with safetensors.safe_open(path, "pt") as opened:
            yield opened
    except OSError as error:
        raise ExchangeError(f"{path}: cannot be read: {error.strerror or error}") from error
    except safetensors.SafetensorError as error:
        raise ExchangeError(f"{path}: damaged, or no weights: {error}") from error


def _shapes(path: Path) -> dict[str, Shape]:
    """Return {name: shape} of the weights in a file, whose numbers are all there."""
    if path.suffix != ".safetensors":
        if not zipfile.is_zipfile(path):
            raise ExchangeError(
                f"{path}: damaged, or a file of a PyTorch before 1.6; save the weights again, as "
                "safetensors"
            )
        weights = load_pickle(path, mmap=True)
        types = {name: weight.is_floating_point() for name, weight in weights.items()}
        shapes = {name: tuple(weight.shape) for name, weight in weights.items()}
    else:
        with _open(path) as file:
            slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
            types = {name: each.get_dtype() in FLOATS for name, each in slices.items()}
            shapes = {name: tuple(each.get_shape()) for name, each in slices.items()}
    for name, is_float in types.items():
        if not is_float:
            raise ExchangeError(f"{path}: {name!a} holds no floating-point numbers")
    return shapes
