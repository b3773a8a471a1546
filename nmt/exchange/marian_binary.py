"""Models of Marian in its binary format: weights in float32, or in int8 as browsers use them.

A file holds two numbers, version and count; for each weight four numbers, the lengths of its name,
its type, the number of its dimensions and its bytes; then all names, all shapes, padding, and the
weights. Numbers have 64 bits, dimensions 32, little-endian (marian-dev, src/common/binary.cpp).

A quantised matrix is the integer nearest to w * multiplier, one multiplier for the whole matrix,
which stands behind its numbers. A matrix of (in, out) is stored output by output; the embeddings,
(rows, d_model), row by row. Beside each matrix stands NAME_QuantMultA, the multiplier of the
activations that the matrix is multiplied by: the "alpha", found once with typical text.
"""

import math
import struct
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from nmt.errors import ExchangeError
from nmt.exchange.marian_files import MAX_EXPANSION, MIB, OPTIONS, read_npz
from nmt.files import explain_os_errors

VERSION = 1
FLOAT32, TEXT = 0x404, 0x101
INT8_OF_BERGAMOT, INT8_OF_MARIAN = 0x4101, 0x10001
"""types of a weight; Marian and its fork for browsers write int8 by different numbers"""
ALPHA = "_QuantMultA"
OUTPUT_ALPHA = f"none{ALPHA}"
"""the alpha of the output projection: its matrix, the embeddings turned round, has no name"""
EMBEDDINGS = "Wemb"
"""a part of the names of the matrices that are not stored output by output"""
LARGEST_INT8 = 127
MULTIPLIERS = (1e-20, 1e20)
"""every multiplier lies between these"""
MAX_WEIGHTS, MAX_DIMENSIONS = 10_000, 4
ALIGNMENT = 256
"""bytes; each weight begins at a multiple of it"""
GZIP = b"\x1f\x8b"
Array = NDArray[Any]


@dataclass(frozen=True)
class MarianWeights:
    """What a model file of Marian holds."""

    options: bytes
    """YAML"""
    weights: dict[str, Tensor]
    """by Marian's names, in float32"""
    multipliers: dict[str, float]
    """of each matrix that was in int8: the multiplier of its weights"""
    alphas: dict[str, float]
    """{NAME_QuantMultA: multiplier of activations}"""


def read_model(path: Path) -> MarianWeights:
    """Read a model of Marian, .npz or .bin, which may be compressed with gzip.

    Raises:
        ExchangeError: the file is damaged, or its weights have a type that nmt does not read.
    """
    if path.suffix == ".npz":
        return MarianWeights(*read_npz(path), multipliers={}, alphas={})
    with explain_os_errors(path, "read", ExchangeError):
        data = path.read_bytes()
    model = parse_bin(unzip(data, path), str(path))
    for name, weight in model.weights.items():
        if not weight.isfinite().all():
            raise ExchangeError(f"{path}: {name} holds NaN or infinity: the model is damaged")
    return model


def unzip(data: bytes, where: str | Path) -> bytes:
    """Return the content of a file, decompressed if it is one of gzip.

    Raises:
        ExchangeError: it is damaged, or far larger than any model is beside its compressed file.
    """
    if not data.startswith(GZIP):
        return data
    most = MAX_EXPANSION * len(data) + MIB
    reader = zlib.decompressobj(31)  # 31: with the header and the checksum of gzip
    try:
        content = reader.decompress(data, most)
    except zlib.error as error:
        raise ExchangeError(f"{where}: damaged, or no file of gzip: {error}") from error
    if not reader.eof or reader.unused_data:
        problem = f"it unpacks to more than {most:,} bytes" if len(content) == most else "cut short"
        raise ExchangeError(f"{where}: damaged, or no model: {problem}")
    return content


def parse_bin(data: bytes, where: str) -> MarianWeights:
    """Return what a file in Marian's binary format holds; see the module.

    Raises:
        ExchangeError: the file is damaged, or a weight has a type that nmt does not read.
    """
    options, weights, multipliers, alphas = None, {}, {}, {}
    for name, type_, shape, content in _items(data, where):
        if name == OPTIONS:
            options = content
            continue
        weight, multiplier = _weight(name, type_, shape, content, f"{where}: {name}")
        if name.endswith(ALPHA):
            alphas[name] = float(weight.flatten()[0])
        else:
            weights[name] = torch.from_numpy(weight)
            if multiplier:
                multipliers[name] = multiplier
    if options is None:
        raise ExchangeError(
            f"{where}: it has no {OPTIONS}, so it is no model that Marian has saved"
        )
    return MarianWeights(options, weights, multipliers, alphas)


def _items(data: bytes, where: str) -> list[tuple[str, int, tuple[int, ...], bytes]]:
    """Return name, type, shape and bytes of each weight; all lengths are checked."""
    try:
        version, count = struct.unpack_from("<QQ", data)
        if version != VERSION or count > MAX_WEIGHTS:
            raise ExchangeError(
                f"{where}: no model in Marian's binary format: it begins with {version} and "
                f"{count:,}, expected version {VERSION} and the number of weights"
            )
        headers = [struct.unpack_from("<QQQQ", data, 16 + 32 * i) for i in range(count)]
        place, names, shapes = 16 + 32 * count, [], []
        for length, *_ in headers:
            names.append(data[place : place + length].rstrip(b"\0").decode())
            place += length
        for _, _, dimensions, _ in headers:
            shapes.append(struct.unpack_from(f"<{min(dimensions, len(data))}i", data, place))
            place += 4 * dimensions
        (padding,) = struct.unpack_from("<Q", data, place)
    except (struct.error, UnicodeDecodeError, OverflowError) as error:  # of lengths above 2**63
        raise ExchangeError(f"{where}: damaged or cut short: {error}") from error
    place += 8 + padding
    total = place + sum(length for *_, length in headers)
    if total != len(data) or len(set(names)) != count:
        raise ExchangeError(
            f"{where}: damaged or cut short: has {len(data):,} bytes and {len(set(names)):,} "
            f"names, expected {total:,} and {count:,}"
        )
    for name in names:
        if not name.isprintable():
            raise ExchangeError(f"{where}: damaged: a weight has the name {ascii(name[:40])}")
    items = []
    for (_, type_, _, length), name, shape in zip(headers, names, shapes, strict=True):
        items.append((name, type_, shape, data[place : place + length]))
        place += length
    return items


def _weight(
    name: str, type_: int, shape: tuple[int, ...], content: bytes, where: str
) -> tuple[Array, float | None]:
    """Return a weight in float32, and its multiplier if it is quantised."""
    if type_ not in (FLOAT32, INT8_OF_BERGAMOT, INT8_OF_MARIAN):
        raise ExchangeError(
            f"{where}: its numbers have the type {type_:#x}, and nmt reads float32 and int8 that "
            "any processor can use; take the model in another file, or convert the original again "
            "(`marian-conv --gemm-type intgemm8`)"
        )
    count = math.prod(shape)
    needed = 4 * count if type_ == FLOAT32 else count + 4
    is_array = min(shape, default=0) > 0 and len(shape) <= MAX_DIMENSIONS
    if not is_array or not needed <= len(content) < needed + ALIGNMENT:
        raise ExchangeError(
            f"{where}: damaged: an array of shape {shape} has {needed:,} bytes, found "
            f"{len(content):,}"
        )
    if type_ == FLOAT32:
        return np.frombuffer(content, "<f4", count).reshape(shape).copy(), None
    multiplier = float(np.frombuffer(content, "<f4", 1, offset=count)[0])
    if not MULTIPLIERS[0] < multiplier < MULTIPLIERS[1]:
        raise ExchangeError(f"{where}: damaged: its multiplier is {multiplier}")
    integers = _turned(np.frombuffer(content, "i1", count), name, shape)
    return np.ascontiguousarray(integers) * np.float32(1 / np.float32(multiplier)), multiplier


def _turned(integers: Array, name: str, shape: tuple[int, ...]) -> Array:
    """Return the integers of a quantised matrix, which are stored output by output."""
    return integers.reshape(shape) if EMBEDDINGS in name else integers.reshape(shape[::-1]).T


def write_bin(model: MarianWeights) -> bytes:
    """Return the bytes of a file for Bergamot and Firefox; `parse_bin` reads them.

    The matrices with a multiplier are stored in int8.
    """
    items = [(name, *_stored(name, w.numpy(), model)) for name, w in model.weights.items()]
    for name, alpha in model.alphas.items():
        of_alpha = MarianWeights(b"", {}, {}, {})
        if EMBEDDINGS in name:  # Bergamot takes it for a matrix, too
            of_alpha.multipliers[name] = multiplier_of(torch.tensor([alpha]))
        items.append((name, *_stored(name, np.array([[alpha]], np.float32), of_alpha)))
    items = [*sorted(items), (OPTIONS, TEXT, (len(model.options),), model.options)]
    names = b"".join(name.encode() + b"\0" for name, *_ in items)
    shapes = b"".join(struct.pack(f"<{len(shape)}i", *shape) for _, _, shape, _ in items)
    lengths = [(len(name.encode()) + 1, type_, len(s), len(c)) for name, type_, s, c in items]
    header = struct.pack("<QQ", VERSION, len(items))
    header += b"".join(struct.pack("<QQQQ", *each) for each in lengths) + names + shapes
    padding = -(len(header) + 8) % ALIGNMENT
    start = header + struct.pack("<Q", padding) + bytes(padding)
    return start + b"".join(content for *_, content in items)


def multiplier_of(weight: Tensor, before: float | None = None) -> float:
    """Return what a matrix is multiplied by, so that its largest number becomes 127.

    This is `before`, the multiplier when it was imported, as long as that does so.
    """
    largest = float(weight.abs().max())
    if before and round(largest * before) == LARGEST_INT8:
        return before
    return LARGEST_INT8 / largest if largest else 1.0


def quantize(weight: Array, multiplier: float) -> Array:
    """Return the integers nearest to a matrix times its multiplier, from -127 to 127."""
    integers = np.rint(weight * np.float32(multiplier))
    return np.clip(integers, -LARGEST_INT8, LARGEST_INT8).astype(np.int8)


def _stored(name: str, weight: Array, model: MarianWeights) -> tuple[int, tuple[int, ...], bytes]:
    """Return type, shape and bytes of a weight, the reverse of `_weight`."""
    multiplier = model.multipliers.get(name)
    if multiplier is None:
        type_, content = FLOAT32, weight.astype("<f4").tobytes()
    else:
        integers = quantize(weight, multiplier)
        turned = integers if EMBEDDINGS in name else integers.T
        type_, content = INT8_OF_BERGAMOT, turned.tobytes() + struct.pack("<f", multiplier)
    return type_, weight.shape, content + bytes(-len(content) % ALIGNMENT)
