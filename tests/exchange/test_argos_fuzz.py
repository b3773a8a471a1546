"""Damaged and forged packages of Argos: each is read or is one sentence, in little time."""

import io
import random
import struct
import zipfile
from pathlib import Path

import pytest

from nmt.errors import NmtError
from nmt.exchange.argos import create_package, export_argos
from nmt.exchange.ctranslate2_import import import_if_ctranslate2
from nmt.exchange.imported import write_run
from tests.exchange.small_runs import untrained_run
from tests.exchange.test_argos import with_languages
from tests.exchange.test_bergamot_fuzz import LENGTHS
from tests.exchange.test_marian_fuzz import mutate

pytest.importorskip("ctranslate2")
pytest.importorskip("onnx")
CASES = 150
HEADER = 4000
"""bytes of model.bin in which most numbers are lengths, shapes and types"""


def mutate_binary(data: bytes, draw: random.Random) -> bytes:
    """Change numbers of a model.bin near names of variables, or any bytes."""
    if draw.random() < 0.3:
        return mutate(data[:HEADER], draw) + data[HEADER:]
    changed = bytearray(data)
    for _ in range(draw.randint(1, 3)):
        name = draw.choice([b"encoder/", b"decoder/", b"Spec", b"weight", b"scale", b"bias"])
        place = changed.find(name, draw.randrange(len(changed)))
        place = max(0, place + draw.randint(-8, 60))
        size = draw.choice([1, 2, 4])
        old = int.from_bytes(changed[place : place + size], "little")
        new = draw.choice([*LENGTHS, old + 1, old - 1, old * 2, draw.randrange(1 << 32)])
        changed[place : place + size] = struct.pack("<Q", new % (1 << 64))[:size]
    return bytes(changed[: len(data)])


def mutate_package(data: bytes, draw: random.Random) -> bytes:
    """Change a member of the zip and keep its check sum right, or change the bytes of the zip."""
    if draw.random() < 0.1:
        return mutate(data, draw)
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(buffer, "w") as new:
        members = [name for name in old.namelist() if not name.endswith((".onnx", "/"))]
        members += [name for name in members if name.endswith("model.bin")] * 3
        chosen = draw.choice(members)
        for name in dict.fromkeys(members):
            content = old.read(name)
            if name == chosen:
                change = mutate_binary if name.endswith(".bin") else mutate
                content = change(content, draw)
            forged = draw.random() < 0.02
            new.writestr(draw.choice([f"../{name}", f"/{name}", "x"]) if forged else name, content)
    return buffer.getvalue()


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("package") / "a.argosmodel"
    loaded = untrained_run(encoder_layers=1, decoder_layers=1)
    with create_package(path) as folder:
        export_argos(with_languages(loaded, "en", "de"), folder, "int8")
    return path.read_bytes()


def fuzz(package: bytes, folder: Path, cases: range) -> None:
    path, refused = folder / "a.argosmodel", 0
    for seed in cases:
        draw = random.Random(seed)
        path.write_bytes(mutate_package(package, draw))
        try:
            imported = import_if_ctranslate2(path)
            if imported and draw.random() < 0.05:  # building a model takes most of the time
                write_run(imported, folder / f"run-{seed}")
        except NmtError as error:
            refused += 1
            assert "\n" not in str(error) and str(error), seed
        except Exception as error:
            raise AssertionError(f"seed {seed} gives a traceback") from error
    assert refused > len(cases) / 3


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_damaged_packages_are_read_or_refused(package: bytes, tmp_path: Path) -> None:
    fuzz(package, tmp_path, range(CASES))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_many_damaged_packages(package: bytes, tmp_path: Path) -> None:
    fuzz(package, tmp_path, range(CASES, 10_000))
