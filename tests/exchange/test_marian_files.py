"""Marian's files: npz byte for byte, vocabularies as its YAML library writes them, zips."""

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from nmt.errors import ExchangeError
from nmt.exchange.marian_files import (
    OPTIONS,
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
