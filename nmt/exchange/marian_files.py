"""Files of Marian: weights as .npz, options and vocabularies as YAML, and the zips of OPUS-MT.

Nothing that a file claims about sizes is believed: a zip may not unpack to far more than its own
size, and the header of an array must agree with its bytes. No pickle is ever read.
"""

import io
import lzma
import math
import re
import stat
import struct
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

from nmt.errors import ConfigError, ExchangeError
from nmt.exchange.imported import read_small_file
from nmt.recipe import strict_yaml

OPTIONS = "special:model.yml"
"""the name under which Marian stores its options between the weights"""
MIB = 1 << 20
MAX_EXPANSION = 20
"""a zip that unpacks to more than this times its size, and 1 MiB, is no model: weights hardly
shrink, and text shrinks to a quarter"""

MAX_FILES = 10_000
"""files and folders in a zip; a model has a few hundred"""
LARGEST_YAML = 1 << 16
"""bytes; settings have some thousand, and a YAML library reads 100 kB in a second"""

_MAGIC = b"\x93NUMPY\x01\x00"
"""the first bytes of an array in NumPy's format 1.0; then come the length of the header in two
bytes, little-endian, the header, and the numbers:
https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html"""
_OTHER_DAMAGE = (EOFError, ValueError, OverflowError, RuntimeError, struct.error)
"""errors that a damaged zip or array causes, beside those of the libraries for compression"""
_LONGEST_END = 22 + (1 << 16)  # bytes
_LONGEST_ENTRY = 1024
"""bytes that an entry in the list of files has at most, if its name is no longer than usual"""
_HEADER = re.compile(
    re.escape(_MAGIC) + rb"(?P<length>..)\{'descr': '(?P<type>[<|][a-z][0-9])', "
    rb"'fortran_order': False, 'shape': \((?P<shape>[0-9, ]{0,99})\), *\} *\n",
    re.DOTALL,
)
_ESCAPES = {"0": "\0", "a": "\a", "b": "\b", "t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r"}
_ESCAPES |= {"e": "\x1b", "N": "\x85", "_": "\xa0", "L": "\u2028", "P": "\u2029"}
"""{letter after a backslash: character} of YAML's double-quoted strings"""


def read_npz(path: Path) -> tuple[bytes, dict[str, Tensor]]:
    """Return the options of a Marian model, as YAML, and its float32 weights by Marian's names.

    Raises:
        ExchangeError: the file is damaged, holds other types than float32, or is not Marian's.
    """
    options, weights = None, {}
    with open_zip(path) as archive:
        for info in archive.infolist():
            name = info.filename.removesuffix(".npy")
            is_options = name == OPTIONS
            array = _parse_array(archive.read(info), f"{path}: {name}", is_text=is_options)
            if is_options:
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
    """Return the array in `data`, a .npy file: bytes of text as int8, or weights as float32."""
    header = _HEADER.match(data)
    prefix = len(_MAGIC) + 2  # the length of the header takes 2 bytes
    if not header or header.end() != prefix + int.from_bytes(header["length"], "little"):
        raise ExchangeError(f"{where}: damaged: it has no header of an array that Marian writes")
    number_type, readable = header["type"].decode(), ("<i1", "|i1") if is_text else ("<f4",)
    if number_type not in readable:
        raise ExchangeError(
            f"{where}: its numbers have the type {number_type}, expected {readable[0]}; nmt reads "
            "models of float32, which Marian saves when it trains"
        )
    shape = [int(length) for length in header["shape"].replace(b",", b" ").split()]
    content = data[header.end() :]
    expected_size = math.prod(shape) * int(number_type[-1])  # in bytes; 4 for <f4
    if len(content) != expected_size:
        raise ExchangeError(
            f"{where}: damaged: an array of shape {tuple(shape)} has {expected_size:,} bytes, "
            f"found {len(content):,}"
        )
    return np.frombuffer(content, number_type).reshape(shape).copy()


def write_npz(options: bytes, weights: Mapping[str, Tensor]) -> bytes:
    """Return the bytes of a model file as Marian writes it; `read_npz` reads them.

    What was read from a file of Marian and is unchanged gives the bytes of that file.
    """
    arrays = {name: weight.cpu().numpy() for name, weight in weights.items()}
    arrays[OPTIONS] = np.frombuffer(options, np.int8)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, array in sorted(arrays.items()):
            number_type = "<i1" if array.dtype == np.int8 else "<f4"  # Marian knows no "|i1"
            shape = ", ".join(map(str, array.shape))
            if array.ndim == 1:
                shape += ","
            header = f"{{'descr': '{number_type}', 'fortran_order': False, 'shape': ({shape}), }}"
            # spaces and a line feed make the prefix and the header a multiple of 16 bytes long
            header += " " * (-(len(_MAGIC) + 2 + len(header) + 1) % 16) + "\n"
            prefix = _MAGIC + len(header).to_bytes(2, "little")
            info = zipfile.ZipInfo(f"{name}.npy", (1980, 0, 0, 0, 0, 0))
            archive.writestr(info, prefix + header.encode() + array.tobytes())
            # Marian writes no date, system or file mode; the last two go into the list of the
            # members, which is written at the end
            info.create_system = info.external_attr = 0
    return buffer.getvalue()


def parse_yaml(data: bytes, where: str) -> dict[str, Any]:
    """Return the mapping in a YAML document, such as decoder.yml.

    Raises:
        ExchangeError: the document is not YAML, no mapping, or larger than `LARGEST_YAML`.
    """
    if len(data) > LARGEST_YAML:
        raise ExchangeError(f"{where}: has {len(data):,} bytes, which no settings of Marian need")
    try:
        value, _line_numbers = strict_yaml.parse(data.decode("utf-8"), where)
    except (ConfigError, UnicodeDecodeError, RecursionError) as error:
        raise ExchangeError(f"{where}: cannot be read: {error}") from error
    return check_mapping(value, where)


def check_mapping(value: object, where: str | Path) -> dict[str, Any]:
    """Return a value of YAML or JSON; raise an ExchangeError if it is no mapping."""
    if not isinstance(value, dict):
        raise ExchangeError(f"{where}: expected names and values, found {type(value).__name__}")
    return value


def read_vocabulary(path: Path) -> dict[str, int]:
    """Return {piece: row} of a vocabulary that Marian wrote as YAML.

    Each line is PIECE: ROW; a piece may be quoted. YAML libraries refuse some pieces of published
    models, such as raw control characters (Tatoeba-Challenge issue 16), and would read `no` or `~`
    as no string. A long piece or one with escapes may stand on a line of its own, after `? `
    (CTranslate2 issue 1134).

    Raises:
        ExchangeError: a line has another form, or a piece occurs twice.
    """
    content = read_small_file(path)
    # Marian writes the delete character as two bytes that are no UTF-8 (marian-dev issue 239)
    content = content.replace(b"\xc1\xbf", b"\x7f")
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ExchangeError(f"{path}: the vocabulary is not UTF-8: {error}") from error
    rows: dict[str, int] = {}
    # "? PIECE", line feed, ": ROW" becomes "PIECE: ROW"
    one_line_each = re.sub(r"^\? ([^\n]*)\n: ", r"\1: ", text, flags=re.MULTILINE)
    for number, entry in enumerate(one_line_each.split("\n"), start=1):
        if not entry.strip():
            continue
        match = re.fullmatch(r"(?P<piece>.+): +(?P<row>[0-9]{1,8})\r?", entry, re.DOTALL)
        if not match:
            raise ExchangeError(f"{path}: entry {number}: expected PIECE: ROW, got {entry[:60]!r}")
        piece = _unquote(match["piece"])
        if piece in rows:
            raise ExchangeError(f"{path}: entry {number}: the piece {piece!r} occurs twice")
        rows[piece] = int(match["row"])
    return rows


def _unquote(scalar: str) -> str:
    """Return the string that a YAML scalar stands for: plain, 'single' or "double" quoted."""
    if len(scalar) > 1 and scalar[0] == scalar[-1] == '"':
        escape = r"\\(x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U00[01][0-9A-Fa-f]{5}|.)"
        return re.sub(escape, _unescape, scalar[1:-1], flags=re.DOTALL)
    if len(scalar) > 1 and scalar[0] == scalar[-1] == "'":
        return scalar[1:-1].replace("''", "'")
    return scalar


def _unescape(match: re.Match[str]) -> str:
    """Return the character of an escape: after the backslash a letter, or x, u or U and digits."""
    code = match[1]
    if len(code) == 1:
        return _ESCAPES.get(code, code)
    return chr(min(int(code[1:], 16), 0x10FFFF))  # the last character of Unicode


def unpack(path: Path, folder: Path) -> None:
    """Unpack a zip into an existing folder.

    Raises:
        ExchangeError: the zip is damaged, unpacks to far more than its size, or holds links or
            names that lead out of the folder.
    """
    with open_zip(path) as archive:
        for info in archive.infolist():
            name = PurePosixPath(info.filename)
            is_link = stat.S_ISLNK(info.external_attr >> 16)  # the file mode is in the upper bits
            leads_out = name.is_absolute() or ".." in name.parts or "\\" in info.filename
            if is_link or leads_out:
                raise ExchangeError(
                    f"{path}: it holds {'a link' if is_link else 'a name that leads elsewhere'}, "
                    f"{info.filename!r}; unpack it yourself if you trust it"
                )
            archive.extract(info, folder)


@contextmanager
def open_zip(path: Path) -> Iterator[zipfile.ZipFile]:
    """Open a zip; what is wrong with it, now or while its members are read, is an ExchangeError."""
    try:
        _check_number_of_files(path)
        with zipfile.ZipFile(path) as archive:
            unpacked = sum(info.file_size for info in archive.infolist())  # bytes
            if unpacked > MAX_EXPANSION * path.stat().st_size + MIB:
                raise ExchangeError(
                    f"{path}: it would unpack to {unpacked:,} bytes, more than {MAX_EXPANSION} "
                    "times its size: no model does"
                )
            if len(archive.namelist()) > MAX_FILES:
                raise ExchangeError(
                    f"{path}: it holds {len(archive.namelist()):,} files and folders, which no "
                    "model needs"
                )
            if len(archive.namelist()) != len(set(archive.namelist())):
                raise ExchangeError(f"{path}: damaged: two of its files have the same name")
            yield archive
    except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, *_OTHER_DAMAGE) as error:
        raise ExchangeError(f"{path}: damaged, or no zip or npz file: {error}") from error
    except OSError as error:
        raise ExchangeError(f"{path}: cannot be read: {error.strerror or error}") from error


def _check_number_of_files(path: Path) -> None:
    """Check the size of the list of files at the end of a zip, before it is read.

    The end of a zip is 22 bytes, of which bytes 12 to 15 are this size, and a comment:
    https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT, section 4.3.16.
    """
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - _LONGEST_END))
        end = file.read()
    start = end.rfind(b"PK\x05\x06")
    size = int.from_bytes(end[start + 12 : start + 16], "little") if start >= 0 else 0
    if size > MAX_FILES * _LONGEST_ENTRY:
        raise ExchangeError(
            f"{path}: the list of its files has {size:,} bytes, which no model needs"
        )
