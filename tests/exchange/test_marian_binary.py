"""Marian's binary format: what is written is read back, and what nmt cannot read is named."""

import struct
from pathlib import Path

import numpy as np
import pytest
import torch

from nmt.errors import ExchangeError
from nmt.exchange.marian_binary import MarianWeights, multiplier_of, parse_bin, unzip, write_bin
from tests.exchange.bergamot_packages import file_of, write_student

TEXT = ("special:model.yml", 0x101, (3,), b"a: ")


def test_what_was_read_is_written_as_it_was(tmp_path: Path) -> None:
    write_student(tmp_path, "firefox")
    data = (tmp_path / "model.ende.intgemm.alphas.bin").read_bytes()
    model = parse_bin(data, "model")
    assert {name[-3:] for name in model.multipliers} >= {"emb", "_Wf", "n_W", "_W1"}
    names = [f"{name}_QuantMultA" for name in [*model.multipliers, "none"]]
    assert model.alphas == dict.fromkeys(sorted(names), pytest.approx(9.5))
    multipliers = {
        name: multiplier_of(model.weights[name], before)
        for name, before in model.multipliers.items()
    }
    assert multipliers == model.multipliers
    assert write_bin(model) == data


def test_the_alpha_of_the_embeddings_is_stored_as_a_matrix_would_be() -> None:
    model = MarianWeights(b"a: ", {"b": torch.ones(1, 2)}, {}, {"Wemb_QuantMultA": 8.5})
    again = parse_bin(write_bin(model), "model")
    assert again.alphas["Wemb_QuantMultA"] == pytest.approx(8.5)


def test_a_matrix_is_stored_output_by_output_and_embeddings_row_by_row() -> None:
    integers = np.array([1, 2, 3, 127, -5, 6], np.int8).tobytes() + struct.pack("<f", 2.0)
    items = [("a_W1", 0x4101, (2, 3), integers), ("Wemb", 0x4101, (2, 3), integers), TEXT]
    weights = parse_bin(file_of(items), "model").weights
    assert weights["a_W1"].tolist() == [[0.5, 1.5, -2.5], [1.0, 63.5, 3.0]]
    assert weights["Wemb"].tolist() == [[0.5, 1.0, 1.5], [63.5, -2.5, 3.0]]


FLOATS = struct.pack("<2f", 1, 2)


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ([("a", 0x404, (1, 2), FLOATS)], "it has no special:model.yml"),
        (
            [("a", 0x13101, (1, 2), FLOATS), TEXT],
            r"the type 0x13101, and nmt reads float32 and int8",
        ),
        ([("a", 0x404, (1, 999), FLOATS), TEXT], r"shape \(1, 999\) has 3,996 bytes, found 256"),
        ([("a\nb", 0x404, (1, 2), FLOATS), TEXT], r"damaged: a weight has the name 'a\\nb'"),
        ([("a", 0x404, (1, -2), FLOATS), TEXT], "damaged: an array"),
        ([("a", 0x404, (1,) * 65, FLOATS), TEXT], "damaged: an array"),  # more than NumPy has
        ([("a", 0x4101, (1, 2), bytes(8)), TEXT], "damaged: its multiplier is 0.0"),
        ([("a", 0x404, (1, 2), FLOATS), ("a", 0x404, (1, 2), FLOATS), TEXT], "2 names"),
    ],
)
def test_what_cannot_be_read_is_named(items: list[object], message: str) -> None:
    with pytest.raises(ExchangeError, match=message):
        parse_bin(file_of(items), "model")  # type: ignore[arg-type]


def test_a_length_that_no_file_has_is_refused() -> None:
    data = bytearray(file_of([("a", 0x404, (1, 2), FLOATS), TEXT]))
    data[16:24] = struct.pack("<Q", (1 << 64) - 1)  # of the first name
    with pytest.raises(ExchangeError, match="damaged or cut short"):
        parse_bin(bytes(data), "model")


def test_a_file_that_unpacks_to_far_more_than_a_model_is_refused() -> None:
    import gzip

    with pytest.raises(ExchangeError, match="unpacks to more than"):
        unzip(gzip.compress(bytes(1 << 24)), "model.bin.gz")
