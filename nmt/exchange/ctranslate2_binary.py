"""CTranslate2's model.bin, read without the program: named arrays, in any of its versions.

A file holds its version; from version 2 on the name and revision of the specification; for each
variable its name, shape, type, bytes and numbers; and from version 3 on aliases, which are names of
matrices that are shared. Text has a length of 16 bits and ends in a zero byte; all is little-endian
(python/ctranslate2/specs/model_spec.py there). A matrix in int8 has a factor for each row, in int16
one for all: the integers are the weights times this factor, rounded.
"""

import math
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmt.errors import ExchangeError
from nmt.files import explain_os_errors

VERSIONS = range(1, 7)
TYPES = ("float32", "int8", "int16", "int32", "float16", "bfloat16")
"""the types by their numbers, from version 4 on"""
OLD_TYPES = {4: "float32", 2: "int16", 1: "int8"}
"""{bytes of a number: its type} before version 4"""
STORED = {"float32": "<f4", "int8": "i1", "int16": "<i2", "int32": "<i4"} | dict(
    float16="<f2", bfloat16="<u2"
)
SCALE = "_scale"
OLD_INT16_SCALE = 1000.0
"""the factor of int16 in files that store none"""
MAX_DIMENSIONS = 4
Array = NDArray[Any]


@dataclass(frozen=True)
class BinaryModel:
    """What a model.bin holds."""

    specification: str
    """its name, such as TransformerSpec; empty in version 1"""
    revision: int
    variables: dict[str, Array]
    """by name; weights in float32, a shared one under each of its names; other numbers as stored"""
    types: set[str]
    """how the weights were stored"""

    def number(self, *names: str, default: float = 0) -> float:
        """Return the first of these variables that the file has; older files have other names."""
        found = [self.variables[name] for name in names if name in self.variables]
        return float(found[0].flat[0]) if found and found[0].size == 1 else default

    def text(self, name: str, default: str) -> str:
        """Return a variable that is text."""
        if name not in self.variables:
            return default
        return self.variables[name].astype(np.int8).tobytes().decode("utf-8", "replace")


class _Cursor:
    """Reads one value after the other."""

    def __init__(self, data: bytes) -> None:
        self.data, self.place = data, 0

    def number(self, form: str) -> int:
        (value,) = struct.unpack_from(f"<{form}", self.data, self.place)
        self.place += struct.calcsize(form)
        return int(value)

    def take(self, size: int) -> memoryview:
        if self.place + size > len(self.data):
            raise struct.error(f"{size:,} bytes are missing at byte {self.place:,}")
        self.place += size
        return memoryview(self.data)[self.place - size : self.place]

    def text(self) -> str:
        return bytes(self.take(self.number("H"))).rstrip(b"\0").decode("utf-8")


def read_binary(path: Path) -> BinaryModel:
    """Read a model.bin; matrices of rounded numbers become the float32 numbers they stand for.

    Raises:
        ExchangeError: the file is damaged, or of another version.
    """
    with explain_os_errors(path, "read", ExchangeError):
        data = path.read_bytes()
    try:
        return _parse(_Cursor(data), str(path))
    except (struct.error, UnicodeDecodeError, OverflowError) as error:
        raise ExchangeError(f"{path}: damaged or cut short: {error}") from error


def _parse(cursor: _Cursor, where: str) -> BinaryModel:
    version = cursor.number("I")
    if version not in VERSIONS:
        raise ExchangeError(
            f"{where}: no model.bin of CTranslate2 that nmt reads: it begins with {version}, "
            f"expected a version from 1 to {VERSIONS[-1]}"
        )
    specification, revision = (cursor.text(), cursor.number("I")) if version > 1 else ("", 1)
    stored: dict[str, tuple[str, Array]] = {}
    for _ in range(cursor.number("I")):
        name = cursor.text()
        if name in stored or not name.isprintable():
            raise ExchangeError(f"{where}: damaged: a variable has the name {ascii(name[:60])}")
        stored[name] = _read_variable(cursor, version, f"{where}: {name}")
    aliases = {}
    for _ in range(cursor.number("I") if version > 2 else 0):
        alias = cursor.text()
        aliases[alias] = cursor.text()
    if cursor.place != len(cursor.data):
        raise ExchangeError(f"{where}: damaged: {len(cursor.data) - cursor.place:,} bytes too many")
    variables = _as_numbers(stored, where)
    for alias, name in aliases.items():
        if name not in variables or alias in variables or not alias.isprintable():
            raise ExchangeError(f"{where}: damaged: {ascii(alias[:60])} stands for a missing name")
        variables[alias] = variables[name]
    types = {type_ for name, (type_, _) in stored.items() if name.endswith("/weight")}
    return BinaryModel(specification, revision, variables, types)


def _as_numbers(stored: dict[str, tuple[str, Array]], where: str) -> dict[str, Array]:
    """Return the variables without their factors."""
    variables = {}
    for name, (type_, array) in stored.items():
        if name.endswith(SCALE):
            continue
        scale = stored[f"{name}{SCALE}"][1] if f"{name}{SCALE}" in stored else None
        if scale is None and type_ == "int16" and array.ndim == 2:
            scale = np.array(OLD_INT16_SCALE)
        variables[name] = _as_float32(array, type_, scale, f"{where}: {name}")
    return variables


def _read_variable(cursor: _Cursor, version: int, where: str) -> tuple[str, Array]:
    """Return the type and the numbers of a variable, as they are stored."""
    dimensions = cursor.number("B")
    if dimensions > MAX_DIMENSIONS:
        raise ExchangeError(f"{where}: damaged: an array of {dimensions} dimensions")
    shape = [cursor.number("I") for _ in range(dimensions)]
    code = cursor.number("B")
    if version > 3:
        type_ = TYPES[code] if code < len(TYPES) else None
        size = cursor.number("I")
    else:
        type_ = OLD_TYPES.get(code)
        size = cursor.number("I") * code
    if type_ is None:
        raise ExchangeError(f"{where}: damaged: its numbers have the type {code}, which is none")
    dtype = np.dtype(STORED[type_])
    is_empty_matrix = size == 0 and dimensions > 1  # its other dimensions may be too large
    if math.prod(shape) * dtype.itemsize != size or is_empty_matrix:
        raise ExchangeError(
            f"{where}: damaged: an array of the shape {tuple(shape)} of {type_} has {size:,} bytes"
        )
    return type_, np.frombuffer(cursor.take(size), dtype).reshape(shape)


def _as_float32(array: Array, type_: str, scale: Array | None, where: str) -> Array:
    """Return numbers in float32, as CTranslate2 makes them of the stored ones.

    Raises:
        ExchangeError: one is NaN or infinite, or the factors do not fit.
    """
    if scale is not None:
        rows = len(array) if array.ndim else 1
        if scale.size not in (1, rows):
            raise ExchangeError(f"{where}: damaged: {scale.size:,} factors for {rows:,} rows")
        with np.errstate(all="ignore"):
            factors = 1 / scale.astype(np.float32).reshape(-1, *[1] * (array.ndim - 1))
            result = array * factors
    elif type_ == "bfloat16":  # the upper half of a float32
        result = (array.astype(np.uint32) << 16).view(np.float32)
    elif type_ in ("float16", "float32"):
        result = array.astype(np.float32)
    else:  # flags, numbers and text
        return array
    if not np.isfinite(result).all():
        raise ExchangeError(f"{where}: holds NaN or infinity: the model is damaged")
    return result
