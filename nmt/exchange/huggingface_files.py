"""Files of models of Hugging Face, read so that nothing in them is believed or run."""

import json
import re
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import Tensor

from nmt.errors import ExchangeError

LARGEST_JSON = 1 << 26  # bytes; the largest vocabulary that is published has 2 MB


def read_small(path: Path) -> bytes:
    """Return the content of a file that is no weights.

    Raises:
        ExchangeError: it cannot be read, or is far too large.
    """
    try:
        if path.stat().st_size > LARGEST_JSON:
            raise ExchangeError(f"{path}: has {path.stat().st_size:,} bytes, which no model needs")
        return path.read_bytes()
    except OSError as error:
        raise ExchangeError(f"{path}: cannot be read: {error.strerror}") from error


def read_json_file(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file.

    Raises:
        ExchangeError: it cannot be read, is far too large, or holds something else.
    """
    return parse_json(read_small(path), path)


def parse_json(content: bytes, path: Path) -> dict[str, Any]:
    """Return the JSON object that was read from `path`.

    Raises:
        ExchangeError: it is damaged, or something else.
    """
    try:
        value = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ExchangeError(f"{path}: damaged, or no JSON: {error}") from error
    if not isinstance(value, dict):
        raise ExchangeError(f"{path}: expected names and values, found {type(value).__name__}")
    return value


def read_weights(path: Path) -> dict[str, Tensor]:
    """Return {name: weight} in float32, from safetensors or a file of `torch.save`.

    A pickle is read with `weights_only`, so that code in it does not run.

    Raises:
        ExchangeError: the file is damaged, holds more than tensors, or NaN.
    """
    try:
        if path.suffix == ".safetensors":
            weights: Any = safetensors.torch.load_file(path)
        else:
            weights = torch.load(path, map_location="cpu", weights_only=True)
    except OSError as error:
        raise ExchangeError(f"{path}: cannot be read: {error.strerror or error}") from error
    except Exception as error:  # a damaged pickle raises nearly anything
        first = str(error).partition("\n")[0] or type(error).__name__
        raise ExchangeError(f"{path}: damaged, or more than weights: {first}") from error
    if not isinstance(weights, dict) or not all(
        isinstance(name, str) and isinstance(weight, Tensor) for name, weight in weights.items()
    ):
        raise ExchangeError(f"{path}: expected names and tensors, found something else")
    for name, weight in weights.items():
        if not weight.is_floating_point() or not weight.float().sum().isfinite():
            raise ExchangeError(
                f"{path}: {name!a} holds NaN, infinity or no floating-point numbers"
            )
    return {name: weight.float() for name, weight in weights.items()}


def license_of(card: str) -> str:
    """Return the licence in the YAML header of a model card, or "unknown"."""
    header = card.split("---\n")[1] if card.startswith("---\n") and card.count("---\n") > 1 else ""
    for line in header.split("\n"):
        if line.startswith("license:"):
            return line.removeprefix("license:").strip() or "unknown"
    return "unknown"


def languages_in_name(name: str) -> tuple[str, str]:
    """Return the codes in a name such as OWNER/opus-mt-tc-big-en-de, else und (undetermined)."""
    found = re.search(r"(?:^|[-/])([a-z]{2,3})-([a-z]{2,3})/?$", name)
    return (found[1], found[2]) if found else ("und", "und")
