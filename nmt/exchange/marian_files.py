"""Files of Marian: weights as .npz, options and vocabularies as YAML, and the zips of OPUS-MT.

Nothing that a file claims about sizes is believed: a zip may not unpack to far more than its own
size, and the header of an array must agree with its bytes. No pickle is ever read.
"""

import io
import math
import re
import stat
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nmt import strict_yaml
from nmt.errors import ConfigError, ExchangeError

OPTIONS = "special:model.yml"
"""the name under which Marian stores its options between the weights"""
MOST_EXPANSION = 20
"""a zip that unpacks to more than this times its size, and 1 MiB, is no model: weights hardly
shrink, and text shrinks to a quarter"""

_HEADER = re.compile(
    rb"\x93NUMPY\x01\x00(..)\{'descr': '([<|][a-z][0-9])', 'fortran_order': False, "
    rb"'shape': \(([0-9, ]{0,99})\), *\} *\n",
    re.DOTALL,
)
_ESCAPES = {"0": "\0", "a": "\a", "b": "\b", "t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r"}
_ESCAPES |= {"e": "\x1b", "N": "\x85", "_": "\xa0", "L": "\u2028", "P": "\u2029"}


def read_npz(path: Path) -> tuple[bytes, dict[str, Tensor]]:
    """Return the options of a Marian model, as YAML, and its float32 weights by Marian's names.

    Raises:
        ExchangeError: the file is damaged, holds other types than float32, or is not Marian's.
    """
    options, weights = None, {}
    with _open_zip(path) as archive:
        for info in archive.infolist():
            name = info.filename.removesuffix(".npy")
            array = _parse_array(archive.read(info), f"{path}: {name}", name == OPTIONS)
            if name == OPTIONS:
                options = array.tobytes()
            else:
                weights[name] = torch.from_numpy(array)
    if options is None:
        raise ExchangeError(f"{path}: it has no {OPTIONS}, so it is no model that Marian has saved")
    for name, weight in weights.items():
        if not weight.isfinite().all():
            raise ExchangeError(f"{path}: {name} holds NaN or infinity: the model is damaged")
    return options, weights


def _parse_array(data: bytes, where: str, is_text: bool) -> NDArray[Any]:
    """Return the array in `data`, which is in NumPy's format 1.0, as Marian writes it."""
    header = _HEADER.match(data)
    if not header or header.end() != 10 + int.from_bytes(header[1], "little"):
        raise ExchangeError(f"{where}: damaged: it has no header of an array that Marian writes")
    found, expected = header[2].decode(), ("<i1", "|i1") if is_text else ("<f4",)
    if found not in expected:
        raise ExchangeError(
            f"{where}: its numbers have the type {found}, expected {expected[0]}; nmt reads models "
            "of float32, which Marian saves when it trains"
        )
    shape = [int(length) for length in header[3].replace(b",", b" ").split()]
    content, needed = data[header.end() :], math.prod(shape) * int(found[-1])
    if len(content) != needed:
        raise ExchangeError(
            f"{where}: damaged: an array of shape {tuple(shape)} has {needed:,} bytes, "
            f"found {len(content):,}"
        )
    return np.frombuffer(content, found).reshape(shape).copy()


def write_npz(options: bytes, weights: Mapping[str, Tensor]) -> bytes:
    """Return the bytes of a model file that Marian reads; what `read_npz` read gives its bytes."""
    arrays = {name: weight.cpu().numpy() for name, weight in weights.items()}
    arrays[OPTIONS] = np.frombuffer(options, np.int8)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, array in sorted(arrays.items()):
            descr = "<i1" if array.dtype == np.int8 else "<f4"  # Marian knows no "|i1"
            shape = ", ".join(str(length) for length in array.shape) + ("," * (array.ndim == 1))
            header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': ({shape}), }}"
            header += " " * (-(len(header) + 11) % 16) + "\n"
            prefix = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little")
            info = zipfile.ZipInfo(f"{name}.npy", (1980, 0, 0, 0, 0, 0))
            archive.writestr(info, prefix + header.encode() + array.tobytes())
            info.create_system = info.external_attr = 0  # Marian writes neither these nor dates
    return buffer.getvalue()


def parse_yaml(data: bytes, where: str) -> dict[str, Any]:
    """Return the mapping in a YAML document, such as decoder.yml.

    Raises:
        ExchangeError: it is not YAML, or no mapping.
    """
    try:
        value, _ = strict_yaml.parse(data.decode("utf-8"), where)
    except (ConfigError, UnicodeDecodeError) as error:
        raise ExchangeError(f"{where}: cannot be read: {error}") from error
    if not isinstance(value, dict):
        raise ExchangeError(f"{where}: expected names and values, found {type(value).__name__}")
    return value


def read_vocabulary(path: Path) -> dict[str, int]:
    """Return {piece: row} of a vocabulary that Marian wrote as YAML.

    Each line is PIECE: ROW; a piece may be quoted. YAML libraries refuse some pieces of published
    models, such as raw control characters (Tatoeba-Challenge issue 16), and would read `no` or `~`
    as no string. A long piece or one with escapes may stand on a line of its own, after `? `
    (CTranslate2 issue 1134). The delete character has two bytes there that are no UTF-8
    (marian-dev issue 239).

    Raises:
        ExchangeError: a line has another form, or a piece or a row occurs twice.
    """
    try:
        text = read_bytes(path).replace(b"\xc1\xbf", b"\x7f").decode("utf-8")
    except UnicodeDecodeError as error:
        raise ExchangeError(f"{path}: the vocabulary is not UTF-8: {error}") from error
    rows: dict[str, int] = {}
    lines = re.sub(r"^\? ([^\n]*)\n: ", r"\1: ", text, flags=re.MULTILINE).split("\n")
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        found = re.fullmatch(r"(.+): +([0-9]{1,8})\r?", line, re.DOTALL)
        if not found:
            raise ExchangeError(f"{path}: entry {number}: expected PIECE: ROW, got {line[:60]!r}")
        piece = _unquote(found[1])
        if piece in rows:
            raise ExchangeError(f"{path}: entry {number}: the piece {piece!r} occurs twice")
        rows[piece] = int(found[2])
    if len(set(rows.values())) < len(rows):
        raise ExchangeError(f"{path}: two pieces of the vocabulary have the same row")
    return rows


def _unquote(scalar: str) -> str:
    """Return the string that a YAML scalar stands for: plain, 'single' or "double" quoted."""
    if len(scalar) > 1 and scalar[0] == scalar[-1] == '"':
        pattern = r"\\(x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U00[01][0-9A-Fa-f]{5}|.)"
        return re.sub(pattern, _unescape, scalar[1:-1], flags=re.DOTALL)
    if len(scalar) > 1 and scalar[0] == scalar[-1] == "'":
        return scalar[1:-1].replace("''", "'")
    return scalar


def _unescape(match: re.Match[str]) -> str:
    code = match[1]
    if len(code) == 1:
        return _ESCAPES.get(code, code)
    return chr(min(int(code[1:], 16), 0x10FFFF))


def unpack(path: Path, folder: Path) -> None:
    """Unpack a zip into an existing folder.

    Raises:
        ExchangeError: the zip is damaged, unpacks to far more than its size, or holds links or
            names that lead out of the folder.
    """
    with _open_zip(path) as archive:
        for info in archive.infolist():
            name = PurePosixPath(info.filename)
            link = stat.S_ISLNK(info.external_attr >> 16)
            if link or name.is_absolute() or ".." in name.parts or "\\" in info.filename:
                raise ExchangeError(
                    f"{path}: it holds {'a link' if link else 'a name that leads elsewhere'}, "
                    f"{info.filename!r}; unpack it yourself if you trust it"
                )
            archive.extract(info, folder)


@contextmanager
def _open_zip(path: Path) -> Iterator[zipfile.ZipFile]:
    """Open a zip; whatever is wrong with it, then or while its members are read, is one error."""
    try:
        with zipfile.ZipFile(path) as archive:
            unpacked = sum(info.file_size for info in archive.infolist())
            if unpacked > MOST_EXPANSION * path.stat().st_size + (1 << 20):
                raise ExchangeError(
                    f"{path}: it would unpack to {unpacked:,} bytes, more than {MOST_EXPANSION} "
                    "times its size: no model does"
                )
            if len(archive.namelist()) != len(set(archive.namelist())):
                raise ExchangeError(f"{path}: damaged: two of its files have the same name")
            yield archive
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, RuntimeError) as error:
        raise ExchangeError(f"{path}: damaged, or no zip or npz file: {error}") from error
    except OSError as error:
        raise ExchangeError(f"{path}: cannot be read: {error.strerror or error}") from error


def read_bytes(path: Path) -> bytes:
    """Return the content of a file.

    Raises:
        ExchangeError: it cannot be read.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        raise ExchangeError(f"{path}: cannot be read: {error.strerror}") from error
