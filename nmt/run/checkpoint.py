"""Writes, reads and averages checkpoints: weights and training state on disk (section 6.1).

A checkpoint is a folder of model.safetensors, training_state.pt and manifest.json. It is written
under another name, flushed to disk and renamed. The manifest is written last and holds the version
of the format, and the size and SHA-256 of each file, because neither file format notices a flipped
bit.
"""

import contextlib
import hashlib
import io
import json
import math
import pickle
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor, nn

from nmt.errors import CheckpointError, DamagedCheckpointError, Log
from nmt.files import FORMAT_KEY, write_folder_atomically
from nmt.machine.memory import check_addresses
from nmt.run.checkpoint_files import (
    FORMAT,
    MANIFEST,
    STATE,
    WEIGHTS,
    check_header,
    digest_of,
    read_verified,
)

_MIB = 1 << 20  # bytes
_FLOAT_BYTES = 4
_HEADER_ALIGNMENT = 8


def trained_parameters(model: nn.Module) -> dict[str, nn.Parameter]:
    """Return {name: parameter} without frozen ones; tied parameters occur once."""
    return {name: p for name, p in model.named_parameters() if p.requires_grad}


def persistent_buffers(model: nn.Module) -> list[str]:
    """Return the names of the buffers that PyTorch would save, and a checkpoint does not."""
    saved = model.state_dict().keys()
    return [name for name, _buffer in model.named_buffers() if name in saved]


def weights_of(model: nn.Module) -> dict[str, Tensor]:
    """Return what a checkpoint holds: the `trained_parameters`, sharing memory with the model."""
    return {name: parameter.detach() for name, parameter in trained_parameters(model).items()}


def weights_digest(model: nn.Module) -> str:
    """Return the SHA-256 of the names, types, shapes and bytes of all parameters, in hex."""
    # each parameter as `digest_of` takes it: a description, and its bytes
    parameters = [(name, p.detach().cpu()) for name, p in model.named_parameters()]
    return digest_of(
        (f"{name} {p.dtype} {tuple(p.shape)}", p.reshape(-1).view(torch.uint8).numpy())
        for name, p in parameters
    )


def load_into(model: nn.Module, weights: Mapping[str, Tensor], origin: Path) -> None:
    """Copy `weights` into the model's trained parameters; `origin` names them in error messages.

    Raises:
        CheckpointError: names or shapes differ; the message has the first. Nothing is copied.
    """
    parameters = trained_parameters(model)
    for name in [*parameters, *weights]:
        expected = tuple(parameters[name].shape) if name in parameters else None
        actual = tuple(weights[name].shape) if name in weights else None
        if expected != actual:
            found = "missing" if actual is None else actual
            wanted = "no such tensor" if expected is None else expected
            raise CheckpointError(
                f"{origin}: weights of another model: {name} is {found}, "
                f"the configuration expects {wanted}"
            )
    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.copy_(weights[name])


def save_checkpoint(
    path: Path,
    weights: Mapping[str, Tensor],
    state: Mapping[str, Any] | None = None,
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Write or replace a checkpoint folder; `path` is never half written.

    Args:
        path: The checkpoint folder.
        weights: {name: parameter}.
        state: The training state, of tensors and plain types only; None: weights alone.
        metadata: Text that is stored in the file of the weights.

    Raises:
        CheckpointError: the folder cannot be written; the message has needed and free space.
        MemoryError: the weights do not fit in memory once more.
    """
    check_addresses(sum(tensor.nbytes for tensor in weights.values()))
    texts = dict(metadata) if metadata else None
    serialized = safetensors.torch.save(dict(weights), texts)
    contents: dict[str, bytes | memoryview] = {WEIGHTS: serialized}
    if state is not None:
        buffer = io.BytesIO()
        torch.save(dict(state), buffer)
        contents[STATE] = buffer.getbuffer()
    manifest: dict[str, Any] = {
        name: {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        for name, data in contents.items()
    }
    contents[MANIFEST] = json.dumps({FORMAT_KEY: FORMAT, **manifest}, indent=1).encode()
    try:
        write_folder_atomically(path, contents)
    except OSError as error:
        size = sum(map(len, contents.values()))  # bytes
        needed = math.ceil(size / _MIB)
        message = f"{path}: checkpoint not saved: {error.strerror}"
        with contextlib.suppress(OSError):  # the free space may be unknown, too
            free = shutil.disk_usage(path.parent).free // _MIB
            message += f" (needs {needed} MiB, {free} MiB free)"
        raise CheckpointError(message) from error


def write_checkpoint(
    path: Path, shapes: Mapping[str, Sequence[int]], weights: Iterable[Tensor]
) -> None:
    """Write a new checkpoint folder of weights in float32, one after the other.

    `shapes` are {name: shape}, and `weights` come in the same order; one is in memory at a time.
    The folder is for `create_folder_atomically` around it: it may be half written after an error.

    Raises:
        OSError: a file cannot be written.
    """
    header, end = {}, 0
    for name, shape in shapes.items():
        begin, end = end, end + math.prod(shape) * _FLOAT_BYTES
        header[name] = {"dtype": "F32", "shape": [*shape], "data_offsets": [begin, end]}
    encoded = json.dumps(header).encode()
    encoded += b" " * (-len(encoded) % _HEADER_ALIGNMENT)
    digest = hashlib.sha256()
    path.mkdir(parents=True)
    with (path / WEIGHTS).open("wb") as file:

        def write(content: bytes | memoryview) -> None:
            file.write(content)
            digest.update(content)

        write(len(encoded).to_bytes(8, "little") + encoded)
        for (name, shape), weight in zip(shapes.items(), weights, strict=True):
            assert tuple(weight.shape) == tuple(shape), name
            write(weight.float().contiguous().numpy().data.cast("B"))
        size = file.tell()
    manifest = {FORMAT_KEY: FORMAT, WEIGHTS: {"size": size, "sha256": digest.hexdigest()}}
    (path / MANIFEST).write_text(json.dumps(manifest, indent=1), "utf-8")


def load_weights(path: Path) -> dict[str, Tensor]:
    """Return the weights {name: tensor} of the checkpoint folder `path`, on the CPU.

    Raises:
        CheckpointError: the checkpoint is missing, incomplete, damaged or of a newer format.
    """
    return load_with_metadata(path)[0]


def load_with_metadata(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Return weights {name: tensor}, on the CPU, and metadata {key: text}.

    `path` is a checkpoint folder or a safetensors file.

    Raises:
        CheckpointError: `path` is missing, damaged or of a newer format.
    """
    try:
        data = path.read_bytes() if path.is_file() else read_verified(path, WEIGHTS)
        check_header(data[:8])
        check_addresses(len(data))
        weights = safetensors.torch.load(data)
    except (OSError, SafetensorError) as error:
        file = path if path.is_file() else path / WEIGHTS
        raise CheckpointError(f"{file}: not readable: {error}") from error
    # a safetensors file begins with the size of its JSON header, in eight bytes
    header_size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + header_size])
    return weights, header.get("__metadata__", {})


def load_state(path: Path) -> dict[str, Any]:
    """Return the training state of the checkpoint folder `path`, with tensors on the CPU.

    Raises:
        CheckpointError: the checkpoint is missing, incomplete, damaged or of a newer format.
    """
    data = io.BytesIO(read_verified(path, STATE))
    try:
        state: dict[str, Any] = torch.load(data, map_location="cpu", weights_only=True)
    except (RuntimeError, pickle.UnpicklingError) as error:
        raise CheckpointError(f"{path / STATE}: not readable: {error}") from error
    return state


def intact_checkpoints(paths: Sequence[Path], log: Log) -> list[Path]:
    """Return the checkpoints whose weights match their manifest; log the damaged others.

    Raises:
        CheckpointError: a checkpoint cannot be read for another reason than damage.
    """
    intact = []
    for path in paths:
        try:
            read_verified(path, WEIGHTS)
            intact.append(path)
        except DamagedCheckpointError as error:
            log(f"{error}; it is left out")
    return intact


def recover_newest_checkpoint(paths: Sequence[Path], log: Log) -> Path | None:
    """Return the last intact checkpoint of `paths`, oldest first; set aside damaged later ones.

    A checkpoint that is set aside is renamed to damaged-NAME, and `log` gets a message. Returns
    None if there are no paths.

    Raises:
        CheckpointError: no checkpoint is intact, or a later one cannot be read for another reason
            than damage: a newer nmt wrote it, or the disk failed. Nothing is renamed.
    """
    if not paths:
        return None
    damaged: dict[Path, DamagedCheckpointError] = {}
    for path in reversed(paths):
        try:
            for name in (WEIGHTS, STATE):
                read_verified(path, name)
        except DamagedCheckpointError as error:
            damaged[path] = error
            continue
        for damaged_path, reason in damaged.items():
            renamed = damaged_path.with_name(f"damaged-{damaged_path.name}")
            shutil.rmtree(renamed, ignore_errors=True)
            damaged_path.rename(renamed)
            log(f"{reason}; set aside as {renamed.name}")
        return path
    raise CheckpointError(
        f"no checkpoint to resume from: {'; '.join(map(str, damaged.values()))}. "
        f"Restore one, or start again in another `run_dir`"
    )


def average_weights(paths: Sequence[Path]) -> dict[str, Tensor]:
    """Return {name: tensor}, the mean weights of several checkpoints in float32 (section 6.1).

    Raises:
        CheckpointError: `paths` is empty, a checkpoint is damaged, or names or shapes differ.
    """
    if not paths:
        raise CheckpointError("no checkpoints to average")
    total: dict[str, Tensor] = {}
    for path in paths:
        weights = load_weights(path)
        if total and _shapes(weights) != _shapes(total):
            raise CheckpointError(
                f"{path}: its model is not that of {paths[0]}; cannot average them"
            )
        for name, weight in weights.items():
            exact = weight.double()  # summed in float64
            total[name] = total[name] + exact if name in total else exact
    return {name: (weight / len(paths)).float() for name, weight in total.items()}


def _shapes(weights: Mapping[str, Tensor]) -> dict[str, torch.Size]:
    return {name: weight.shape for name, weight in weights.items()}
