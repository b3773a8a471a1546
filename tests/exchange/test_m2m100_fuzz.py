"""Damaged folders of M2M-100 and NLLB: each is read or is one sentence, and never a traceback."""

import random
import resource
import shutil
from pathlib import Path

import pytest

pytest.importorskip("transformers")

from nmt.errors import NmtError
from nmt.exchange.imported import write_run
from nmt.exchange.m2m100 import import_m2m100
from tests.exchange.m2m100_models import write_model
from tests.exchange.test_marian_fuzz import mutate

CASES = 40
HEADER = 6000
"""the first bytes of the weights, which name and place them"""
MOST_BYTES = 1 << 30
"""memory that no damage may take in addition"""
CHANGED = (
    "config.json",
    "generation_config.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "sentencepiece.bpe.model",
    "vocab.json",
    "model.safetensors",
)


@pytest.fixture(scope="module", params=["nllb", "m2m"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "model"
    write_model(folder, request.param, d_model=8, encoder_ffn_dim=8, decoder_ffn_dim=8)
    return folder


def fuzz(folder: Path, run: Path, cases: range) -> None:
    originals = {name: (folder / name).read_bytes() for name in CHANGED if (folder / name).exists()}
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for seed in cases:
        draw = random.Random(seed)
        name = draw.choice([*originals])
        data = originals[name]
        end = HEADER if name.endswith("safetensors") and draw.random() < 0.8 else len(data)
        (folder / name).write_bytes(mutate(data[:end], draw) + data[end:])
        try:
            write_run(import_m2m100(folder), run)
        except NmtError as error:
            assert "\n" not in str(error) and str(error), (seed, name)
        except Exception as error:
            raise AssertionError(f"seed {seed} of {name} gives a traceback") from error
        shutil.rmtree(run, ignore_errors=True)
        (folder / name).write_bytes(data)
    taken = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert taken * 1024 < MOST_BYTES


def test_damaged_folders_are_read_or_refused_in_one_sentence(folder: Path, tmp_path: Path) -> None:
    fuzz(folder, tmp_path / "run", range(CASES))


@pytest.mark.slow
def test_many_damaged_folders(folder: Path, tmp_path: Path) -> None:
    fuzz(folder, tmp_path / "run", range(CASES, 5_000))  # of each of two kinds
