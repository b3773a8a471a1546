"""Weights and training state on disk: atomic, checksummed, averaged (section 6.1).

A checkpoint is a folder of model.safetensors, training_state.pt and manifest.json. It is written
beside its place, flushed, and renamed; the manifest, written last, holds the size and SHA-256 of
each file, because neither format notices a flipped bit.
"""

import contextlib
import hashlib
import io
import json
import os
import pickle
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor, nn

from nmt.errors import CheckpointError

WEIGHTS, STATE, MANIFEST = "model.safetensors", "training_state.pt", "manifest.json"


def weights_of(model: nn.Module) -> dict[str, Tensor]:
    """The model's parameters by name, where they are; tied parameters once."""
    return {name: parameter.detach() for name, parameter in model.named_parameters()}


def weights_digest(model: nn.Module) -> str:
    """SHA-256 over the names and the bytes of all parameters, in hex."""
    digest = hashlib.sha256()
    for name, weight in weights_of(model).items():
        digest.update(f"{name} {weight.dtype} {tuple(weight.shape)}".encode())
        digest.update(weight.cpu().reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def load_into(model: nn.Module, weights: Mapping[str, Tensor], origin: Path) -> None:
    """Copy `weights` into the model's parameters.

    Raises:
        CheckpointError: names or shapes differ; the first difference is named.
    """
    parameters = dict(model.named_parameters())
    for name in [*parameters, *weights]:
        expected = tuple(parameters[name].shape) if name in parameters else None
        found = tuple(weights[name].shape) if name in weights else None
        if expected != found:
            raise CheckpointError(
                f"{origin}: weights of another model: {name} is {found or 'missing'}, "
                f"the configuration expects {expected or 'no such tensor'}"
            )
    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.copy_(weights[name])


def check_finite(weights: Mapping[str, Tensor], origin: Path) -> None:
    """To be called where weights will translate or score and nothing else would notice.

    A fused kernel of attention may hide a NaN, and 8-bit integers hide an infinity: what comes out
    looks like text.

    Raises:
        CheckpointError: a weight is NaN or infinite.
    """
    for name, weight in weights.items():
        if not weight.sum().isfinite():  # as it is of numbers alone
            raise CheckpointError(
                f"{origin}: {name} holds NaN or infinity where numbers are expected, so the "
                "training diverged; choose another checkpoint with --checkpoint"
            )


def save_checkpoint(
    path: Path, weights: Mapping[str, Tensor], state: Mapping[str, Any] | None = None
) -> None:
    """Write a checkpoint folder; it is whole under its final name or not there at all.

    `state` holds tensors and plain types only.

    Raises:
        CheckpointError: it cannot be written; says how much space was needed and is left.
    """
    contents: dict[str, bytes | memoryview] = {WEIGHTS: safetensors.torch.save(dict(weights))}
    if state is not None:
        buffer = io.BytesIO()
        torch.save(dict(state), buffer)
        contents[STATE] = buffer.getbuffer()
    manifest = {
        name: {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        for name, data in contents.items()
    }
    contents[MANIFEST] = json.dumps(manifest, indent=1).encode()
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        replace_folder(path, temporary, contents)
    except OSError as error:
        shutil.rmtree(temporary, ignore_errors=True)
        needed = -(-sum(map(len, contents.values())) >> 20)  # rounded up, as what is free is down
        with contextlib.suppress(OSError):
            free = shutil.disk_usage(path.parent).free >> 20
            raise CheckpointError(
                f"{path}: checkpoint not saved: {error.strerror} "
                f"(needs {needed} MiB, {free} MiB free)"
            ) from error
        raise CheckpointError(f"{path}: checkpoint not saved: {error.strerror}") from error


def replace_folder(path: Path, temporary: Path, contents: Mapping[str, bytes | memoryview]) -> None:
    """Write `contents` into the folder `temporary`, flush it to disk and rename it to `path`."""
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    for name, data in contents.items():
        with (temporary / name).open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    _flush_folder(temporary)
    if path.exists():
        old = path.with_name(f".{path.name}.old")
        shutil.rmtree(old, ignore_errors=True)
        path.rename(old)
        temporary.rename(path)
        shutil.rmtree(old)
    else:
        temporary.rename(path)
    _flush_folder(path.parent)


def _flush_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _read_verified(path: Path, name: str) -> bytes:
    """The bytes of one file of a checkpoint, checked against the manifest."""
    try:
        manifest = json.loads((path / MANIFEST).read_bytes())
        expected = manifest[name]["sha256"]
        data = (path / name).read_bytes()
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CheckpointError(
            f"{path}: no usable checkpoint: {name} or its entry in {MANIFEST} cannot be read"
        ) from error
    if hashlib.sha256(data).hexdigest() != expected:
        raise CheckpointError(f"{path / name}: damaged: its SHA-256 is not the manifest's")
    return data


def load_weights(path: Path) -> dict[str, Tensor]:
    """The weights of the checkpoint folder `path`, on the CPU.

    Raises:
        CheckpointError: missing, incomplete or damaged.
    """
    try:
        return safetensors.torch.load(_read_verified(path, WEIGHTS))
    except SafetensorError as error:
        raise CheckpointError(f"{path / WEIGHTS}: not readable: {error}") from error


def load_state(path: Path) -> dict[str, Any]:
    """The training state saved with the weights; the same errors as `load_weights`."""
    data = io.BytesIO(_read_verified(path, STATE))
    try:
        state: dict[str, Any] = torch.load(data, map_location="cpu", weights_only=True)
    except (RuntimeError, pickle.UnpicklingError) as error:
        raise CheckpointError(f"{path / STATE}: not readable: {error}") from error
    return state


def intact_checkpoints(paths: Sequence[Path], log: Callable[[str], None]) -> list[Path]:
    """Those whose weights verify; the others are named in the log."""
    intact = []
    for path in paths:
        try:
            _read_verified(path, WEIGHTS)
            intact.append(path)
        except CheckpointError as error:
            log(f"{error}; going on without it")
    return intact


def newest_checkpoint(paths: Sequence[Path], log: Callable[[str], None]) -> Path:
    """The last of `paths` (oldest first) that verifies; damaged ones after it are set aside.

    Raises:
        CheckpointError: none verifies; nothing is then moved.
    """
    damaged: dict[Path, CheckpointError] = {}
    for path in reversed(paths):
        try:
            for name in (WEIGHTS, STATE):
                _read_verified(path, name)
        except CheckpointError as error:
            damaged[path] = error
            continue
        for bad, reason in damaged.items():
            aside = bad.with_name(f"damaged-{bad.name}")
            shutil.rmtree(aside, ignore_errors=True)
            bad.rename(aside)
            log(f"{reason}; set aside as {aside.name}")
        return path
    raise CheckpointError(
        f"no checkpoint to go on from: {'; '.join(map(str, damaged.values()))}. "
        f"Restore one, or start anew with another --run-dir"
    )


def average_weights(paths: Sequence[Path]) -> dict[str, Tensor]:
    """The mean of the weights of several checkpoints of one model (section 6.1).

    Raises:
        CheckpointError: none given, or they are of different models.
    """
    if not paths:
        raise CheckpointError("no checkpoints to average")
    total: dict[str, Tensor] = {}
    for path in paths:
        weights = load_weights(path)
        if total and {n: w.shape for n, w in weights.items()} != {
            n: w.shape for n, w in total.items()
        }:
            raise CheckpointError(f"{path}: of another model than {paths[0]}; cannot average them")
        for name, weight in weights.items():
            total[name] = total[name] + weight.double() if name in total else weight.double()
    return {name: (weight / len(paths)).float() for name, weight in total.items()}
