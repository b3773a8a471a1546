"""Files of models of Hugging Face, read so that nothing in them is believed or run."""

import json
import re
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import Tensor

from nmt.errors import ExchangeError
from nmt.exchange.marian_files import MAX_EXPANSION, MIB, check_mapping, open_zip
from nmt.run.checkpoint_files import check_header


def parse_json(content: bytes, path: Path) -> dict[str, Any]:
    """Return the JSON object in `content`; `path` names the file in error messages.

    Raises:
        ExchangeError: `content` is damaged, something else than an object, or holds half of a
            surrogate pair, which JSON can spell.
    """
    try:
        value = json.loads(content)
        json.dumps(value, ensure_ascii=False).encode()  # a ValueError for half of a surrogate pair
    except (ValueError, RecursionError) as error:
        raise ExchangeError(f"{path}: damaged, or no JSON: {error}") from error
    return check_mapping(value, path)


def read_weights(path: Path) -> dict[str, Tensor]:
    """Return {their name: weight} in float32, from safetensors or a file of `torch.save`.

    A pickle is read with `weights_only`, so that code in it does not run.

    Raises:
        ExchangeError: the file is damaged, or holds something else than finite numbers.
    """
    if path.suffix == ".safetensors":
        with _read_errors(path):
            with path.open("rb") as file:
                check_header(file.read(8))
            weights = safetensors.torch.load_file(path)
        _check_storage(weights, path)
    else:
        weights = load_pickle(path)
    for name, weight in weights.items():
        # the sum is NaN or infinite if one number is
        if not weight.is_floating_point() or not weight.float().sum().isfinite():
            raise ExchangeError(
                f"{path}: {name!a} holds NaN, infinity or no floating-point numbers"
            )
    return {name: weight.float() for name, weight in weights.items()}


@contextmanager
def _read_errors(path: Path) -> Iterator[None]:
    """Turn the errors of a file that is read into an ExchangeError."""
    try:
        yield
    except ExchangeError:
        raise
    except OSError as error:
        raise ExchangeError(f"{path}: cannot be read: {error.strerror or error}") from error
    except Exception as error:  # a damaged pickle raises nearly anything
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise ExchangeError(f"{path}: damaged, or more than weights: {reason}") from error


def load_pickle(path: Path, mmap: bool = False) -> dict[str, Tensor]:
    """Return {name: tensor} of a file of `torch.save`, in which no code runs.

    With `mmap`, numbers are read when they are used; the file must be a zip then.

    Raises:
        ExchangeError: the file is damaged, or holds something else.
    """
    with _read_errors(path), open_zip(path) if zipfile.is_zipfile(path) else nullcontext():
        weights: Any = torch.load(path, map_location="cpu", weights_only=True, mmap=mmap)
    if not isinstance(weights, dict) or not all(
        isinstance(name, str) and isinstance(weight, Tensor) for name, weight in weights.items()
    ):
        raise ExchangeError(f"{path}: expected names and tensors, found something else")
    _check_storage(weights, path)
    return weights


def _check_storage(weights: Mapping[str, Tensor], path: Path) -> None:
    """Check that the numbers of all tensors are in the file, before they are copied.

    Raises:
        ExchangeError: a tensor is sparse, nested, quantised or without numbers (on the device
            meta), repeats the numbers of a smaller one, or all are far larger than the file.
    """
    for name, weight in weights.items():
        is_plain = weight.layout == torch.strided and weight.device.type == "cpu"
        if not is_plain or weight.is_nested or weight.is_quantized:
            raise ExchangeError(f"{path}: {name!a} is no plain tensor; save the weights again")
        if weight.nbytes > weight.untyped_storage().nbytes():
            raise ExchangeError(
                f"{path}: {name!a} has {weight.nbytes:,} bytes, and the file holds only "
                f"{weight.untyped_storage().nbytes():,} of them; save the weights again"
            )
    total = sum(weight.nbytes for weight in weights.values())
    if total > MAX_EXPANSION * path.stat().st_size + MIB:
        raise ExchangeError(
            f"{path}: its tensors have {total:,} bytes, more than {MAX_EXPANSION} times the size "
            "of the file: no model does"
        )


def license_of(card: str) -> str:
    """Return the licence in the YAML header of a model card; "unknown" if that says none or other.

    The header stands between the first two lines of `---`; lines may end in CR LF.
    """
    first, *lines = (line.rstrip() for line in card.split("\n"))
    if first != "---" or "---" not in lines:
        return "unknown"
    for line in lines[: lines.index("---")]:
        if line.startswith("license:"):
            licence = line.removeprefix("license:").strip(" \"'")
            return "unknown" if licence in ("", "other") else licence
    return "unknown"


def languages_in_name(name: str) -> tuple[str, str]:
    """Return the codes in a name such as OWNER/opus-mt-en-de or OWNER/kde4-en-to-de.

    They are und, undetermined, where the name has none.
    """
    match = re.search(r"(?:^|[-/])([a-z]{2,3})-(?:to-)?([a-z]{2,3})/?$", name)
    return (match[1], match[2]) if match else ("und", "und")


def abbreviate(value: object) -> str:
    """Return a value for an error message: on one line and not long."""
    spelled = ascii(value)
    return spelled if len(spelled) < 80 else f"{spelled[:80]}…"
