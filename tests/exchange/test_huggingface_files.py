"""Forged files of Hugging Face's models: one sentence each, in seconds and in bounded memory."""

import os
import resource
import shutil
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

pytest.importorskip("transformers")

from nmt.errors import ExchangeError
from nmt.exchange.huggingface import CARD, DOWNLOADED, import_huggingface
from nmt.exchange.imported import write_run
from tests.exchange.huggingface_models import write_model
from tests.exchange.test_huggingface_bad_input import FC1, write


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "model"
    write_model(folder)
    return folder


@pytest.fixture
def copy(model: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(model, tmp_path / "copy"))


def link(name: str, target: str) -> Callable[[Path], object]:
    """Return what replaces a file by a link; `../elsewhere` is a copy of the file."""

    def change(folder: Path) -> None:
        path = folder / name
        content = path.read_bytes() if path.is_file() else b"{}"
        (folder.parent / "elsewhere").write_bytes(content)
        path.unlink(missing_ok=True)
        path.symlink_to(target)

    return change


def in_pickle(
    new: Callable[[torch.Tensor], object], zipped: bool = True
) -> Callable[[Path], object]:
    """Return what writes pytorch_model.bin with another tensor for one weight."""

    def change(folder: Path) -> None:
        weights: dict[str, Any] = load_file(folder / "model.safetensors")
        weights[FC1] = new(weights[FC1])
        (folder / "model.safetensors").unlink()
        path = folder / "pytorch_model.bin"
        torch.save(weights, path, _use_new_zipfile_serialization=zipped)

    return change


def nested(weight: torch.Tensor) -> torch.Tensor:
    return torch.nested.nested_tensor([weight, weight[:3]])


def repeated(weight: torch.Tensor) -> torch.Tensor:
    return weight[:1, :1].expand(200_000, 200_000)  # 160 GB in float32


def quantized(weight: torch.Tensor) -> torch.Tensor:
    return torch.quantize_per_tensor(weight, 0.1, 0, torch.qint8)


def shared_a_thousand_times(folder: Path) -> None:
    weights: dict[str, Any] = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    large = torch.zeros(1000, 1000)
    weights |= {f"copy{i}": large for i in range(1000)}
    torch.save(weights, folder / "pytorch_model.bin")


def deflated(folder: Path) -> None:
    """A file of torch.save whose zeros are compressed."""
    in_pickle(lambda _: torch.zeros(3000, 3000))(folder)
    path = folder / "pytorch_model.bin"
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(folder / "new", "w", 8) as new:
        for info in old.infolist():
            new.writestr(info.filename, old.read(info))
    (folder / "new").rename(path)


def header(text: bytes, size: int | None = None) -> Callable[[Path], object]:
    length = (len(text) if size is None else size).to_bytes(8, "little")
    return write("model.safetensors", length + text)


def many_tensors(folder: Path) -> None:
    entry = '"%d":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}'
    text = "{" + ",".join(entry % i for i in range(100_000)) + "}"
    header(text.encode())(folder)


def fifo(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    os.mkfifo(folder / "model.safetensors")


FORGED_FILES: list[tuple[str, Callable[[Path], object]]] = [
    *((f"{name}: a link that leads out", link(name, "../elsewhere")) for name in DOWNLOADED[:7]),
    *(
        (f"{name}: a link that leads out", link(name, "../elsewhere"))
        for name in (CARD, "model.safetensors")
    ),
    ("a link that leads out of the model's folder, to /dev/zero", link("vocab.json", "/dev/zero")),
    ("vocab.json: the file is missing", link("vocab.json", "vocab.json")),  # to itself
    ("there are no weights", fifo),
    ("fc1.weight' has 160,000,000,000 bytes, and the file holds only", in_pickle(repeated)),
    ("fc1.weight' has .* bytes, and the file holds only", in_pickle(repeated, zipped=False)),
    ("fc1.weight' is no plain tensor", in_pickle(lambda w: w.to("meta"))),
    ("fc1.weight' is no plain tensor", in_pickle(nested)),
    ("fc1.weight' is no plain tensor", in_pickle(lambda w: w.to_sparse())),
    ("fc1.weight' is no plain tensor", in_pickle(lambda w: w.to_sparse_csr())),
    ("fc1.weight' is no plain tensor", in_pickle(quantized)),
    ("no floating-point", in_pickle(lambda w: w.to(torch.complex64))),
    ("found something else", in_pickle(lambda _: None)),
    ("found something else", in_pickle(lambda w: {"w": w})),
    ("more than 20 times the size of the file", shared_a_thousand_times),
    ("it would unpack to .* bytes, more than 20 times", deflated),
    ("its header has 4,294,967,296 bytes", header(b"{}", 1 << 32)),
    ("its header has 18,446,744,073,709,551,615 bytes", header(b"{}", (1 << 64) - 1)),
    ("its header has .* bytes, which no model needs", many_tensors),
    ("model.safetensors: damaged", header(b"{" + b'"a":{' * 10_000)),
    ("model.safetensors: damaged", header(b"[" * 100_000)),
    *(
        (
            "model.safetensors: damaged",
            header(b'{"a":{"dtype":"F32","shape":%s,"data_offsets":%s}}1234' % entry),
        )
        for entry in (
            (b"[NaN]", b"[0,4]"),
            (b"[-1,-1]", b"[0,4]"),
            (b"[1e9]", b"[0,4]"),
            (b"[1]", b"[4,0]"),
            (b"[1]", b"[0,400]"),
            (b"[9223372036854775807,4]", b"[0,4]"),
        )
    ),
    (
        "model.safetensors: damaged",
        header(
            b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[2,6]}}123456'
        ),
    ),
    ("config.json: damaged, or no JSON", write("config.json", b"[" * 100_000)),
    ("config.json: damaged, or no JSON", write("config.json", b'{"a":' * 100_000)),
    (
        "config.json: damaged, or no JSON",
        write("config.json", b'{"d_model": %s}' % (b"9" * 10_000)),
    ),
    ("expected pieces and their rows", write("vocab.json", b'{"a": NaN, "b": Infinity}')),
]


@pytest.mark.filterwarnings("ignore:.*(prototype|beta|deprecated).*:UserWarning")
@pytest.mark.parametrize(
    ("message", "forge"), FORGED_FILES, ids=[f"{i}" for i in range(len(FORGED_FILES))]
)
def test_a_forged_file_is_one_sentence_in_seconds_and_in_bounded_memory(
    message: str, forge: Callable[[Path], object], copy: Path
) -> None:
    forge(copy)
    start, memory = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ExchangeError, match=message) as caught:
        write_run(import_huggingface(copy), copy.parent / "run")
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 1000
    assert time.process_time() - start < 5
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory < 1 << 18  # in KiB
    assert not (copy.parent / "run").exists()


def test_links_of_the_cache_of_the_hub_are_followed(model: Path, tmp_path: Path) -> None:
    blobs, snapshot = tmp_path / "models--a--b" / "blobs", tmp_path / "models--a--b/snapshots/123"
    shutil.copytree(model, blobs)
    snapshot.mkdir(parents=True)
    for path in blobs.iterdir():
        (snapshot / path.name).symlink_to(f"../../blobs/{path.name}")
    write_run(import_huggingface(snapshot), tmp_path / "run")
    link("vocab.json", "../elsewhere")(snapshot)
    with pytest.raises(ExchangeError, match="a link that leads out"):
        import_huggingface(snapshot)
