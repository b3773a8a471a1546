"""Damaged and forged models of Hugging Face: each is one sentence, and nothing is left behind."""

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

pytest.importorskip("transformers")

from nmt.errors import ConfigError, ExchangeError, NmtError
from nmt.exchange.huggingface import import_huggingface
from nmt.exchange.imported import write_run
from tests.exchange.huggingface_models import write_model
from tests.exchange.test_marian_fuzz import FORGED, mutate

CASES = 200


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "model"
    write_model(folder)
    return folder


@pytest.fixture
def copy(model: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(model, tmp_path / "copy"))


def setting(**changes: Any) -> Callable[[Path], object]:
    """Return what changes config.json."""

    def change(folder: Path) -> object:
        settings = json.loads((folder / "config.json").read_text())
        return (folder / "config.json").write_text(json.dumps(settings | changes))

    return change


def weight(name: str, new: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[Path], object]:
    """Return what replaces a weight."""

    def change(folder: Path) -> None:
        weights = load_file(folder / "model.safetensors")
        weights[name] = new(weights[name]).contiguous()
        save_file(weights, folder / "model.safetensors")

    return change


def rows(**changes: int) -> Callable[[Path], object]:
    """Return what adds rows to vocab.json."""

    def change(folder: Path) -> object:
        old = json.loads((folder / "vocab.json").read_text())
        return (folder / "vocab.json").write_text(json.dumps(old | changes))

    return change


def write(name: str, content: bytes) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_bytes(content)


def remove(name: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).unlink()


def cut_weights(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])


def pickle_as_safetensors(folder: Path) -> None:
    torch.save(load_file(folder / "model.safetensors"), folder / "model.safetensors")


def safetensors_as_pickle(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


FC1 = "model.encoder.layers.0.fc1.weight"
DAMAGES: dict[str, Callable[[Path], object]] = {
    "model.safetensors: damaged": cut_weights,
    "model.safetensors: damaged, or more": pickle_as_safetensors,
    "pytorch_model.bin: damaged, or more than weights": safetensors_as_pickle,
    "no weights; expected model.safetensors or": remove("model.safetensors"),
    r"fc1.weight has the shape \(31, 16\), and config.json says \(32, 16\)": weight(
        FC1, lambda w: w[:31]
    ),
    "final_logits_bias has the shape": weight("final_logits_bias", lambda w: w[:, 1:]),
    "embed_tokens.*|shared.weight has the shape": weight("model.shared.weight", lambda w: w[:, 1:]),
    "fc1.weight' holds NaN": weight(FC1, lambda w: w * torch.nan),
    "no floating-point": weight(FC1, lambda w: w.int()),
    "the file is missing; a Marian model has it": remove("source.spm"),
    "vocab.json: the file is missing": remove("vocab.json"),
    "config.json: cannot be read: No such file": remove("config.json"),
    "not a SentencePiece model": write("target.spm", b"\xff" * 50),
    "model has [0-9]+ rows; they do not belong together": rows(extra=10**6),
    "two pieces of the source vocabulary have the same row": rows(extra=7),
    "model_type is 'bart'; nmt reads only 'marian' and 'm2m_100' .M2M-100, NLLB.$": setting(
        model_type="bart"
    ),
    "normalize_before is True": setting(normalize_before=True),
    "scale_embedding is False": setting(scale_embedding=False),
    "activation_function is 'gelu_new'; nmt reads relu": setting(activation_function="gelu_new"),
    "activation_function is \\[\\]": setting(activation_function=[]),
    "attention_heads are \\[2, 4\\], expected equal": setting(decoder_attention_heads=4),
    "too few for 1,000 encoder": setting(encoder_layers=1000),
    "config.json says \\(.*1000000": setting(d_model=10**6),
    "d_model": setting(d_model=-16),
    "expected names and values, found list": write("config.json", b"[]"),
    "config.json: damaged, or no JSON": write("config.json", b"\0" * 1000),
    "config.json: has 100,000,000 bytes": write("config.json", b"\0" * 100_000_000),
    "vocab.json: has 100,000,000 bytes": write("vocab.json", b"\0" * 100_000_000),
    "vocab.json: expected pieces and their rows": write("vocab.json", b'{"a": "1"}'),
    "vocab.json: damaged, or no JSON: .* surrogates": write("vocab.json", b'{"\\ud800": 1}'),
    "tokenizer_config.json: damaged": write("tokenizer_config.json", b"{"),
    r"shared.weight has the shape .*, and config.json says \(7, 16\)": setting(
        vocab_size=7, decoder_vocab_size=7
    ),
    "vocab_size or decoder_vocab_size is None, expected": setting(vocab_size=None),
    "vocab_size is 1,000,000,000 and decoder_vocab_size 95, expected equal": setting(
        vocab_size=1_000_000_000
    ),
    "decoder_start_token_id is None": setting(decoder_start_token_id=None),
    "two special tokens have the same row": setting(eos_token_id=1),
}


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("message", DAMAGES)
def test_a_damaged_model_is_one_sentence_and_stays_as_it_is(copy: Path, message: str) -> None:
    DAMAGES[message](copy)
    before = contents(copy.parent)
    with pytest.raises(ExchangeError, match=message) as caught:
        write_run(import_huggingface(copy), copy.parent / "run")
    assert "\n" not in str(caught.value)
    assert contents(copy.parent) == before


class Touch:
    """A pickled object that creates a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (self.path,))


def test_code_in_a_pickle_does_not_run(copy: Path) -> None:
    trace = copy.parent / "trace"
    remove("model.safetensors")(copy)
    torch.save({"model.shared.weight": Touch(trace)}, copy / "pytorch_model.bin")
    with pytest.raises(ExchangeError, match="damaged, or more than weights"):
        import_huggingface(copy)
    assert not trace.exists()
    torch.load(copy / "pytorch_model.bin", weights_only=False)  # the code is real
    assert trace.exists()


def test_an_existing_output_is_not_touched(model: Path, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    with pytest.raises(ConfigError, match="exists already; choose another folder"):
        write_run(import_huggingface(model), tmp_path / "run")
    assert not list((tmp_path / "run").iterdir())


def test_a_full_disk_leaves_nothing(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("nmt.exchange.imported.write_checkpoint", full)
    with pytest.raises(ExchangeError, match="the run is not written: No space left on device"):
        write_run(import_huggingface(model), tmp_path / "run")
    assert not list(tmp_path.iterdir())


def mutate_settings(data: bytes, draw: random.Random) -> bytes:
    """Replace a value of a JSON object by another kind of value, or change its bytes."""
    if draw.random() < 0.3:
        return mutate(data, draw)
    values = json.loads(data)
    odd: list[Any] = [
        None,
        True,
        -1,
        0,
        1.5,
        10**9,
        10**400,
        "",
        "x\ny",
        [],
        [1],
        {},
        "\ud800",
        1e308,
    ]
    for name in draw.choices(list(values), k=draw.randint(1, 3)):
        key = draw.choice([name, name, name, "", "\ud800", "a\nb"])
        values[key] = draw.choice(odd)
    return json.dumps(values).encode()


def mutate_header(data: bytes, draw: random.Random) -> bytes:
    """Change the header of a safetensors file and keep its length right, or change the bytes."""
    if draw.random() < 0.2:
        return mutate(data, draw)
    length = int.from_bytes(data[:8], "little")
    header = mutate(data[8 : 8 + length], draw)
    for old in draw.choices([b"16", b"32", b"F32", b"fc1", b"bias", b"dtype"], k=1):
        header = header.replace(old, draw.choice([*FORGED, b"F8_E4M3", b"I64", b"BF16"]), 1)
    return len(header).to_bytes(8, "little") + header + data[8 + length :]


CHANGES = {
    "config.json": mutate_settings,
    "generation_config.json": mutate_settings,
    "tokenizer_config.json": mutate_settings,
    "vocab.json": mutate_settings,
    "model.safetensors": mutate_header,
    "source.spm": mutate,
    "target.spm": mutate,
}


def fuzz(model: Path, folder: Path, cases: range) -> None:
    copy = Path(shutil.copytree(model, folder / "copy"))
    for seed in cases:
        draw = random.Random(seed)
        name = draw.choice(list(CHANGES))
        original = (copy / name).read_bytes()
        (copy / name).write_bytes(CHANGES[name](original, draw))
        try:
            write_run(import_huggingface(copy), folder / "run")
            shutil.rmtree(folder / "run")
        except NmtError as error:
            assert str(error) and "\n" not in str(error), (seed, name)
        except Exception as error:
            raise AssertionError(f"seed {seed} of {name} gives a traceback") from error
        (copy / name).write_bytes(original)
    assert [path.name for path in folder.iterdir()] == ["copy"]


def test_forged_models_are_read_or_are_one_sentence(model: Path, tmp_path: Path) -> None:
    fuzz(model, tmp_path, range(CASES))


@pytest.mark.slow
def test_many_forged_models(model: Path, tmp_path: Path) -> None:
    fuzz(model, tmp_path, range(CASES, 10_000))
