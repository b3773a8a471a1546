"""The architecture of a model.bin: an array that fits none is one sentence."""

from dataclasses import replace

import numpy as np
import pytest

from nmt.errors import ExchangeError
from nmt.exchange.ctranslate2 import export_ctranslate2
from nmt.exchange.ctranslate2_binary import Array, BinaryModel, read_binary
from nmt.exchange.ctranslate2_layers import read_config
from tests.exchange.small_runs import untrained_run

pytest.importorskip("ctranslate2")
POSITIONS = "encoder/position_encodings/encodings"


@pytest.fixture(scope="module")
def binary(tmp_path_factory: pytest.TempPathFactory) -> BinaryModel:
    folder = tmp_path_factory.mktemp("model")
    export_ctranslate2(untrained_run(), folder)
    return read_binary(folder / "model.bin")


@pytest.mark.parametrize(
    ("name", "array", "message"),
    [
        *((POSITIONS, np.zeros(shape, np.float32), "positions are learnt") for shape in [(), (9,)]),
        (POSITIONS, np.zeros((9, 1), np.float32), "positions are learnt"),
        ("decoder/embeddings/weight", np.float32(1).reshape(()), "it has no matrix decoder/emb"),
        ("encoder/layer_0/ffn/linear_0/weight", np.float32(1).reshape(()), "'d_ff'"),
    ],
)
def test_an_array_of_another_shape_is_named(
    name: str, array: Array, message: str, binary: BinaryModel
) -> None:
    assert name in binary.variables
    damaged = replace(binary, variables=binary.variables | {name: array})
    with pytest.raises(ExchangeError, match=f"^model.bin: .*{message}"):
        read_config(damaged, {"add_source_eos": True}, True, "model.bin")
