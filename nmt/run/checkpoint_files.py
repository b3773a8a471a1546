"""The files of a checkpoint, read without PyTorch, which takes a second to import."""

import hashlib
import json
import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray
from safetensors import SafetensorError

from nmt.errors import CheckpointError, DamagedCheckpointError
from nmt.files import check_format, read_json
from nmt.machine.memory import check_addresses

WEIGHTS, STATE, MANIFEST = "model.safetensors", "training_state.pt", "manifest.json"
FORMAT = 1
"""the version of the format that is written, and the newest that can be read"""
Array = NDArray[Any]
LARGEST_HEADER = 1 << 22
"""bytes of the list of tensors in a safetensors file; that of 1,000 tensors has 0.1 MB"""
_DAMAGE = (
    FileNotFoundError,
    NotADirectoryError,
    IsADirectoryError,
    ValueError,
    KeyError,
    TypeError,
)
"""errors that a missing or damaged file causes"""


def read_verified(path: Path, name: str) -> bytes:
    """Return the bytes of file `name` in the checkpoint folder `path`; check their SHA-256.

    Raises:
        DamagedCheckpointError: the file is missing or damaged.
        CheckpointError: it is of a newer format, or the operating system could not read it, so
            that it may be intact.
    """
    try:
        manifest = read_json(path / MANIFEST)
        check_format(manifest, FORMAT, path, "choose another checkpoint", CheckpointError)
        expected = manifest[name]["sha256"]
        data = (path / name).read_bytes()
    except _DAMAGE as error:
        raise DamagedCheckpointError(
            f"{path}: no usable checkpoint: {name} or its entry in {MANIFEST} cannot be read"
        ) from error
    except OSError as error:
        raise CheckpointError(
            f"{error.filename or path}: cannot be read: {error.strerror}; check the permissions "
            "and the disk, then give the same command again"
        ) from error
    if hashlib.sha256(data).hexdigest() != expected:
        raise DamagedCheckpointError(f"{path / name}: damaged: its SHA-256 is not the manifest's")
    return data


def read_arrays(path: Path) -> dict[str, Array]:
    """Return the weights {name: array} of the checkpoint folder `path`.

    Raises:
        CheckpointError: the checkpoint is missing, incomplete, damaged or of a newer format.
    """
    try:
        content = read_verified(path, WEIGHTS)
        check_header(content[:8])
        check_addresses(len(content))
        return safetensors.numpy.load(content)
    except SafetensorError as error:
        raise CheckpointError(f"{path / WEIGHTS}: not readable: {error}") from error


def count_weights(path: Path) -> int:
    """Return the number of weights in the checkpoint folder `path`, by the header of its file.

    Raises:
        DamagedCheckpointError: the file has no header, or is not as long as that says.
        OSError: it cannot be read.
    """
    try:
        with (path / WEIGHTS).open("rb") as file:
            check_header(start := file.read(8))
            size = int.from_bytes(start, "little")
            tensors = json.loads(file.read(size))
            tensors.pop("__metadata__", None)
            end = 8 + size + max(tensor["data_offsets"][1] for tensor in tensors.values())
            if file.seek(0, os.SEEK_END) == end:
                return sum(math.prod(tensor["shape"]) for tensor in tensors.values())
    except (SafetensorError, ValueError, KeyError, TypeError, AttributeError):
        pass
    raise DamagedCheckpointError(f"{path / WEIGHTS}: damaged: its header and length do not agree")


def check_finite(weights: Mapping[str, Array], origin: Path) -> None:
    """Check that all weights are finite; `origin` names them in the error message.

    Call it before translation or scoring: a fused attention kernel may hide a NaN, and 8-bit
    integers hide an infinity, so that the output would still look like text.

    Raises:
        CheckpointError: a weight is NaN or infinite.
    """
    for name, weight in weights.items():
        with np.errstate(all="ignore"):
            is_finite = np.isfinite(weight.sum())  # a sum of finite weights is finite
        if not is_finite:
            raise CheckpointError(
                f"{origin}: {name} holds NaN or infinity where numbers are expected, so the "
                "training diverged; choose another `checkpoint`"
            )


def check_header(start: bytes) -> None:
    """Check that the header of a safetensors file is small.

    `start` is the first eight bytes of the file, which are the size of the header in bytes.

    Raises:
        SafetensorError: the header is larger than `LARGEST_HEADER`, and might take minutes to read.
    """
    size = int.from_bytes(start, "little")
    if size > LARGEST_HEADER:
        raise SafetensorError(f"its header has {size:,} bytes, which no model needs")


def digest_of(weights: Iterable[tuple[str, Array]]) -> str:
    """Return the SHA-256 of weights, in hex.

    Each weight is a text that describes it, such as "norm.bias float32 (512,)", and its bytes as an
    array of uint8.
    """
    digest = hashlib.sha256()
    for description, content in weights:
        digest.update(description.encode())
        digest.update(content.data)  # the bytes, not copied
    return digest.hexdigest()
