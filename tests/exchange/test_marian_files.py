"""Marian's files: npz byte for byte, vocabularies as its YAML library writes them, zips."""

import io
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from nmt.errors import ExchangeError
from nmt.exchange.marian_files import (
    OPTIONS,
    parse_yaml,
    read_npz,
    read_vocabulary,
    unpack,
    write_npz,
)
from tests.exchange.marian_packages import write_vocabulary

ODD_PIECES = ["</s>", "no", "~", "1e-4", "#", "'", '"', "\\", "a: b", "\x85\x84", "▁", "\x02", "😀"]


def example_weights() -> dict[str, Tensor]:
    return {"Wemb": torch.randn(5, 3), "b": torch.randn(1, 5), "s": torch.tensor(2.0)}


def write_zip(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def test_what_is_written_is_read_back_bit_for_bit_and_numpy_reads_it_too(tmp_path: Path) -> None:
    weights = example_weights()
    data = write_npz(b"type: transformer\0\0", weights)
    (tmp_path / "model.npz").write_bytes(data)
    options, read = read_npz(tmp_path / "model.npz")
    assert options == b"type: transformer\0\0"
    assert all(torch.equal(read[name], weights[name]) for name in weights)
    assert read.keys() == weights.keys()
    assert write_npz(options, read) == data
    with np.load(io.BytesIO(data)) as arrays:
        assert all(np.array_equal(arrays[name], weights[name].numpy()) for name in weights)


def test_an_npz_that_numpy_wrote_is_read(tmp_path: Path) -> None:
    arrays: dict[str, Any] = {name: w.numpy() for name, w in example_weights().items()}
    options = np.frombuffer(b"type: transformer\0", np.int8)
    np.savez(tmp_path / "model.npz", **{**arrays, OPTIONS: options})
    assert read_npz(tmp_path / "model.npz")[1].keys() == arrays.keys()


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"Wemb": np.zeros((2, 2), np.float32)}, "it has no special:model.yml"),
        ({"Wemb": np.zeros((2, 2), np.float16)}, "numbers have the type <f2, expected <f4"),
        ({"Wemb": np.full((2, 2), np.nan, np.float32)}, "Wemb holds NaN or infinity"),
        ({"Wemb": np.asfortranarray(np.zeros((2, 3), np.float32))}, "no header of an array"),
    ],
)
def test_other_arrays_are_refused(tmp_path: Path, arrays: dict[str, Any], message: str) -> None:
    if "special" not in message:
        arrays = {OPTIONS: np.frombuffer(b"type: transformer\0", np.int8), **arrays}
    np.savez(tmp_path / "model.npz", **arrays)
    with pytest.raises(ExchangeError, match=message):
        read_npz(tmp_path / "model.npz")


def test_an_array_of_pickled_objects_is_never_loaded(tmp_path: Path) -> None:
    np.savez(tmp_path / "model.npz", Wemb=np.array([print], object))
    with pytest.raises(ExchangeError, match="no header of an array"):
        read_npz(tmp_path / "model.npz")


def test_a_shape_that_its_bytes_contradict_is_refused(tmp_path: Path) -> None:
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (50000000, 30000), }\n"
    array = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(60)
    path = write_zip(tmp_path / "model.npz", {"Wemb.npy": array})
    with pytest.raises(ExchangeError, match="has 6,000,000,000,000 bytes, found 60"):
        read_npz(path)


@pytest.mark.parametrize("kept", [0, 30, 200, -30])
def test_a_truncated_file_is_refused(tmp_path: Path, kept: int) -> None:
    data = write_npz(b"type: transformer\0", example_weights())
    (tmp_path / "model.npz").write_bytes(data[:kept])
    with pytest.raises(ExchangeError, match="damaged, or no zip or npz file"):
        read_npz(tmp_path / "model.npz")


def test_a_missing_file_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ExchangeError, match=r"no\.npz: cannot be read: No such file"):
        read_npz(tmp_path / "no.npz")


def test_a_vocabulary_keeps_every_piece_as_the_string_that_it_is(tmp_path: Path) -> None:
    rows = {piece: row for row, piece in enumerate(ODD_PIECES)}
    (tmp_path / "vocab.yml").write_text(write_vocabulary(rows), encoding="utf-8")
    assert read_vocabulary(tmp_path / "vocab.yml") == rows


def test_a_vocabulary_is_read_as_yaml_cpp_writes_it(tmp_path: Path) -> None:
    text = (
        "\"</s>\": 0\n? \"\\x85▁\\x84\"\n: 1\n'it''s': 2\nplain\x85nel: 3\n,: 4\n▁:: 5\n"
        '~: 6\n"\\U0001F600": 7\n\x01: 8\r\n'
    )
    delete = b'"\xc1\xbf": 9\n'  # yaml-cpp's own spelling of U+007F
    (tmp_path / "vocab.yml").write_bytes(text.encode() + delete)
    expected = ["</s>", "\x85▁\x84", "it's", "plain\x85nel", ",", "▁:", "~", "😀", "\x01", "\x7f"]
    assert read_vocabulary(tmp_path / "vocab.yml") == {p: row for row, p in enumerate(expected)}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"a: 0\na: 1\n", "entry 2: the piece 'a' occurs twice"),
        (b"a: 0\nb\n", "entry 2: expected PIECE: ROW, got 'b'"),
        (b"\xff: 0\n", "the vocabulary is not UTF-8"),
    ],
)
def test_a_wrong_vocabulary_is_refused(tmp_path: Path, text: bytes, message: str) -> None:
    (tmp_path / "vocab.yml").write_bytes(text)
    with pytest.raises(ExchangeError, match=message):
        read_vocabulary(tmp_path / "vocab.yml")


@pytest.mark.parametrize("name", ["../evil", "/evil", "a/../../evil", "..\\evil"])
def test_a_zip_writes_nothing_outside_of_its_folder(tmp_path: Path, name: str) -> None:
    path = write_zip(tmp_path / "model.zip", {name: b"x"})
    (tmp_path / "folder").mkdir()
    with pytest.raises(ExchangeError, match="a name that leads elsewhere"):
        unpack(path, tmp_path / "folder")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["folder", "model.zip"]


def test_a_zip_with_a_link_is_refused(tmp_path: Path) -> None:
    link = zipfile.ZipInfo("decoder.yml")
    link.external_attr = 0o120777 << 16
    with zipfile.ZipFile(tmp_path / "model.zip", "w") as archive:
        archive.writestr(link, "/etc/passwd")
    with pytest.raises(ExchangeError, match=r"it holds a link, 'decoder.yml'"):
        unpack(tmp_path / "model.zip", tmp_path)


def test_a_zip_of_zeros_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    path = write_zip(tmp_path / "model.zip", {"model.npz": bytes(1 << 24)})
    with pytest.raises(ExchangeError, match="it would unpack to 16,777,216 bytes"):
        unpack(path, tmp_path)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_files_of_one_name_are_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "model.npz", "w") as archive:
        archive.writestr("Wemb.npy", b"1")
        archive.writestr("Wemb.npy", b"2")
    with pytest.raises(ExchangeError, match="two of its files have the same name"):
        read_npz(tmp_path / "model.npz")


def test_a_zip_of_sixty_thousand_folders_is_refused_at_once(tmp_path: Path) -> None:
    path = write_zip(tmp_path / "model.zip", {f"{i}/": b"" for i in range(60_000)})
    start = time.process_time()
    with pytest.raises(ExchangeError, match="it holds 60,000 files and folders, which no model"):
        unpack(path, tmp_path)
    assert time.process_time() - start < 5


def test_a_long_list_of_files_is_not_read(tmp_path: Path) -> None:
    path = write_zip(tmp_path / "model.zip", {"decoder.yml": b"1"})
    content = bytearray(path.read_bytes())
    content[-10:-6] = (1 << 30).to_bytes(4, "little")
    path.write_bytes(content)
    with pytest.raises(ExchangeError, match="the list of its files has 1,073,741,824 bytes"):
        unpack(path, tmp_path)


def encrypted(content: bytearray) -> None:
    content[6] |= 1
    content[content.index(b"PK\x01\x02") + 8] |= 1


def changed(offset: int, value: int, size: int) -> Callable[[bytearray], None]:
    """Return what writes a number into the entry of the first file in the list."""

    def change(content: bytearray) -> None:
        start = content.index(b"PK\x01\x02") + offset
        content[start : start + size] = value.to_bytes(size, "little")

    return change


LIES: dict[str, tuple[Callable[[bytearray], None], str]] = {
    "encrypted": (encrypted, "is encrypted"),
    "unknown compression": (changed(10, 99, 2), "damaged, or no zip or npz file"),
    "LZMA without data": (changed(10, 14, 2), "damaged, or no zip or npz file"),
    "bzip2 without data": (changed(10, 12, 2), "cannot be read|damaged"),
    "larger than it says": (changed(24, 10, 4), "damaged, or no zip or npz file: Bad CRC-32"),
    "far larger": (changed(24, 1 << 31, 4), "it would unpack to 2,147,483,6"),
    "zip64 without sizes": (
        changed(24, (1 << 32) - 1, 4),
        "it would unpack to 4,294,967,2|damaged",
    ),
    "begins elsewhere": (changed(42, 1 << 20, 4), "damaged"),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_zip_that_lies_is_one_sentence(lie: str, tmp_path: Path) -> None:
    change, message = LIES[lie]
    path = write_zip(tmp_path / "model.zip", {"decoder.yml": b"models: []\n" * 100, "b": b"2"})
    content = bytearray(path.read_bytes())
    change(content)
    path.write_bytes(content)
    (tmp_path / "folder").mkdir()
    with pytest.raises(ExchangeError, match=message) as caught:
        unpack(path, tmp_path / "folder")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "names", [("a", "a/b"), ("a/b", "a"), ("x" * 300,), ("a" + "/b" * 3000,), ("model.npz\0.yml",)]
)
def test_names_that_a_folder_cannot_hold_are_one_sentence(
    names: tuple[str, ...], tmp_path: Path
) -> None:
    path = write_zip(tmp_path / "model.zip", dict.fromkeys(names, b"1"))
    (tmp_path / "folder").mkdir()
    try:
        unpack(path, tmp_path / "folder")
    except ExchangeError as error:
        assert "\n" not in str(error)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["folder", "model.zip"]


def test_names_that_differ_by_case_are_two_files(tmp_path: Path) -> None:
    path = write_zip(tmp_path / "model.zip", {"Vocab.yml": b"1", "vocab.yml": b"2"})
    (tmp_path / "folder").mkdir()
    unpack(path, tmp_path / "folder")
    assert [p.read_bytes() for p in sorted((tmp_path / "folder").iterdir())] == [b"1", b"2"]


@pytest.mark.parametrize(
    "shape",
    ["0, 99999999999999999999", "1, " * 33 + "1", "1, " * 30, "0, 0", "0, 9223372036854775808"],
)
def test_a_forged_shape_is_read_or_one_sentence(shape: str, tmp_path: Path) -> None:
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({shape}), }}\n".encode()
    content = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header
    content += b"" if shape.startswith("0") else b"1234"
    path = write_zip(tmp_path / "model.npz", {"Wemb.npy": content})
    with pytest.raises(ExchangeError, match="it has no special:model.yml|damaged"):
        read_npz(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"a: " + b"[" * 30_000, "cannot be read"),
        (b"a: " * 1000, "cannot be read"),
        (b"\n".join(b"%s- " % (b" " * i) for i in range(300)), "cannot be read|found list"),
        (b"a: &a [x, x]\nb: &b [*a, *a]\n", "are not allowed|cannot be read"),
        (b"x: 1\n" * 100_000, "has 500,000 bytes, which no settings of Marian need"),
        (b"a: " + b"9" * 5000, "cannot be read"),
        (b"? [1, 2]\n: 3", "a key must be a word"),
        (b"a: !!python/object:os.system x", "tags are not allowed"),
        (b"{" * 20_000, "cannot be read"),
        (b"'" * 65_000, "cannot be read|found"),
        (b"a: 1\n\0", "cannot be read"),
    ],
)
def test_forged_settings_are_one_sentence_in_seconds(text: bytes, message: str) -> None:
    start = time.process_time()
    with pytest.raises(ExchangeError, match=message) as caught:
        parse_yaml(text, "decoder.yml")
    assert "\n" not in str(caught.value)
    assert time.process_time() - start < 5
