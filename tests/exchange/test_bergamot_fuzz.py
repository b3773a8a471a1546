"""Damaged and forged students: each is read or is one sentence, in little time and memory."""

import random
import struct
from pathlib import Path

import pytest

from nmt.errors import NmtError
from nmt.exchange.bergamot_shortlist import read_shortlist
from nmt.exchange.marian_binary import parse_bin
from nmt.exchange.marian_files import parse_yaml
from nmt.exchange.marian_names import read_config, to_ours, vocabulary_sizes
from tests.exchange.bergamot_packages import write_student
from tests.exchange.test_marian_fuzz import mutate

CASES = 100
LENGTHS = [0, 1, 2, 255, 1 << 31, (1 << 32) - 1, 1 << 40, (1 << 63) - 1, (1 << 64) - 1]


def mutate_numbers(data: bytes, draw: random.Random, header: int) -> bytes:
    """Change the numbers of a header, or any bytes."""
    if draw.random() < 0.4:
        return mutate(data, draw)
    changed = bytearray(data)
    for _ in range(draw.randint(1, 3)):
        place = draw.randrange(0, header, draw.choice([4, 8]))
        old = int.from_bytes(changed[place : place + 8], "little")
        new = draw.choice([*LENGTHS, old + 1, old - 1, old * 2, old ^ (1 << draw.randrange(64))])
        changed[place : place + 8] = struct.pack("<Q", new % (1 << 64))
    return bytes(changed[: len(data)])


@pytest.fixture(scope="module")
def student(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("student")
    write_student(folder, "firefox")
    return folder


def read(name: str, folder: Path) -> None:
    if name.startswith("lex"):
        read_shortlist(folder / name, (30, 30))
        return
    model = parse_bin((folder / name).read_bytes(), name)
    options = parse_yaml(model.options.rstrip(b"\0"), name)
    vocabulary_sizes(options, name)
    to_ours(model.weights, options, read_config(options, name), name)


def fuzz(name: str, header: int, student: Path, folder: Path, cases: range) -> None:
    original, refused = (student / name).read_bytes(), 0
    for seed in cases:
        (folder / name).write_bytes(mutate_numbers(original, random.Random(seed), header))
        try:
            read(name, folder)
        except NmtError as error:
            refused += 1
            assert "\n" not in str(error) and str(error), seed
        except Exception as error:
            raise AssertionError(f"seed {seed} gives a traceback") from error
    assert refused > len(cases) / 3


FILES = [("model.ende.intgemm.alphas.bin", 2600), ("lex.50.50.ende.s2t.bin", 48)]


@pytest.mark.parametrize(("name", "header"), FILES)
def test_damaged_files_are_read_or_refused(
    name: str, header: int, student: Path, tmp_path: Path
) -> None:
    fuzz(name, header, student, tmp_path, range(CASES))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "header"), FILES)
def test_many_damaged_files(name: str, header: int, student: Path, tmp_path: Path) -> None:
    fuzz(name, header, student, tmp_path, range(CASES, 10_000))
