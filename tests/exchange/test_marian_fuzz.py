"""Damaged and forged models of Marian: each is read or is one sentence, and never a traceback."""

import io
import random
import zipfile
from pathlib import Path

import pytest

from nmt.errors import NmtError
from nmt.exchange.marian import import_marian
from tests.exchange.marian_packages import write_package

CASES = 300
FORGED = [
    b"0",
    b"-1",
    b"1e9",
    b"99999999999",
    b"~",
    b"[]",
    b"{}",
    b"''",
    b"&a",
    b"*a",
    b"!!x",
    b"\0",
]
FORGED += [b"\xff", b"\n", b": ", b"- ", b"? ", b'"', b"\\x", b"\xe2\x80\xa8", b"../" * 9, b"(,)"]


def mutate(data: bytes, draw: random.Random) -> bytes:
    """Change a few bytes: flip, cut, repeat, or replace them by what confuses parsers."""
    changed = bytearray(data)
    for _ in range(draw.randint(1, 3)):
        start = draw.randrange(len(changed) + 1)
        end = min(len(changed), start + draw.choice([0, 1, 2, 8, 100]))
        new = draw.choice([*FORGED, b"", changed[start:end] * 2, draw.randbytes(end - start)])
        changed[start:end] = new
    return bytes(changed) if draw.random() < 0.9 else bytes(changed[:start])


def mutate_zip(data: bytes, draw: random.Random) -> bytes:
    """Change a member of a zip and keep the check sums right, or change the bytes of the zip."""
    if draw.random() < 0.3:
        return mutate(data, draw)
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(buffer, "w") as new:
        chosen = draw.choice(old.namelist())
        for name in old.namelist():
            content = old.read(name)
            if name == chosen and name.endswith((".npy", ".npz")):  # rather headers than numbers
                content = mutate(content[:128], draw) + content[128:]
            elif name == chosen:
                content = mutate(content, draw)
            forged = draw.random() < 0.02
            new.writestr(draw.choice([f"../{name}", f"/{name}", "x"]) if forged else name, content)
    return buffer.getvalue()


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("package")
    write_package(folder, yaml_vocabulary=True)
    return folder


def fuzz(package: Path, folder: Path, cases: range) -> None:
    originals = {path.name: path.read_bytes() for path in package.iterdir()}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in originals.items():
            archive.writestr(name, data)
    originals["opus.zip"] = buffer.getvalue()
    for name, data in originals.items():
        (folder / name).write_bytes(data)
    for seed in cases:
        draw = random.Random(seed)
        name = draw.choice(["model.npz", "decoder.yml", "opus.vocab.yml", "source.spm", "opus.zip"])
        change = mutate_zip if name.endswith(("npz", "zip")) else mutate
        (folder / name).write_bytes(change(originals[name], draw))
        try:
            import_marian(folder / "opus.zip" if name == "opus.zip" else folder)
        except NmtError as error:
            assert "\n" not in str(error) and str(error), (seed, name)
        except Exception as error:
            raise AssertionError(f"seed {seed} of {name} gives a traceback") from error
        (folder / name).write_bytes(originals[name])


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_damaged_models_are_read_or_refused_in_one_sentence(package: Path, tmp_path: Path) -> None:
    fuzz(package, tmp_path, range(CASES))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_many_damaged_models(package: Path, tmp_path: Path) -> None:
    fuzz(package, tmp_path, range(CASES, 10_000))
