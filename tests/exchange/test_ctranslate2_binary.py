"""A model.bin is read as it is stored; what no such file holds is one sentence."""

import struct
from pathlib import Path

import numpy as np
import pytest

from nmt.errors import ExchangeError
from nmt.exchange.ctranslate2_binary import read_binary

FLOAT32, INT8 = 0, 1
Item = tuple[str, tuple[int, ...], int, bytes]


def write_binary(path: Path, items: list[Item]) -> Path:
    """Write a file of version 6 with these variables: name, shape, type and bytes."""

    def text(name: str) -> bytes:
        return struct.pack("<H", len(name) + 1) + name.encode() + b"\0"

    data = struct.pack("<I", 6) + text("TransformerSpec") + struct.pack("<II", 7, len(items))
    for name, shape, code, content in items:
        data += text(name) + struct.pack(f"<B{len(shape)}I", len(shape), *shape)
        data += struct.pack("<BI", code, len(content)) + content
    path.write_bytes(data + struct.pack("<I", 0))
    return path


def floats(*numbers: float) -> bytes:
    return np.array(numbers, "<f4").tobytes()


def test_integers_become_numbers_by_one_factor_or_one_of_each_row(tmp_path: Path) -> None:
    integers = np.array([2, 4, 6, 8], np.int8).tobytes()
    path = write_binary(
        tmp_path / "model.bin",
        [
            ("rows", (2, 2), INT8, integers),
            ("rows_scale", (2,), FLOAT32, floats(2, 4)),
            ("one", (2, 2), INT8, integers),
            ("one_scale", (), FLOAT32, floats(2)),
            ("text", (0,), INT8, b""),
        ],
    )
    variables = read_binary(path).variables
    assert variables["rows"].tolist() == [[1, 2], [1.5, 2]]
    assert variables["one"].tolist() == [[1, 2], [3, 4]]
    assert read_binary(path).text("text", "absent") == ""


HUGE = (1 << 32) - 1
DAMAGED: list[tuple[list[Item], str]] = [
    ([("a", (HUGE, HUGE, HUGE, 0), FLOAT32, b"")], "an array of the shape .* has 0 bytes"),
    ([("a", (0, 3), FLOAT32, b"")], r"an array of the shape \(0, 3\) of float32 has 0 bytes"),
    ([("a", (2,), FLOAT32, floats(1))], r"an array of the shape \(2,\) of float32 has 4 bytes"),
    ([("a", (1,) * 5, FLOAT32, floats(1))], "an array of 5 dimensions"),
    ([("a", (), 9, floats(1))], "its numbers have the type 9"),
    ([("a", (), INT8, b"\1"), ("a_scale", (2,), FLOAT32, floats(1, 2))], "2 factors for 1 rows"),
    ([("a", (1, 1), INT8, b"\1"), ("a_scale", (0,), FLOAT32, b"")], "0 factors for 1 rows"),
    ([("a", (3,), INT8, b"abc"), ("a_scale", (2,), FLOAT32, floats(1, 2))], "2 factors for 3 rows"),
    ([("a", (1,), INT8, b"\1"), ("a_scale", (1,), FLOAT32, floats(0))], "holds NaN or infinity"),
    ([("a", (), FLOAT32, floats(np.nan))], "holds NaN or infinity"),
]


@pytest.mark.parametrize(("items", "message"), DAMAGED)
def test_a_damaged_variable_is_named(items: list[Item], message: str, tmp_path: Path) -> None:
    path = write_binary(tmp_path / "model.bin", items)
    with pytest.raises(ExchangeError, match=f"model.bin: a: .*{message}"):
        read_binary(path)
