"""A model is read as arrays, without PyTorch, and translates as PyTorch's model does.

Adapters are loaded with their parents, and a chain of parents must end in a whole model.
"""

import os
import pickle
import re
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import nmt
from nmt.data.tokens.alignment_model import FILE, AlignmentModel
from nmt.data.tokens.token_store import TokenStore
from nmt.data.tokens.tokenizer import EOS
from nmt.errors import CheckpointError, ConfigError, DataError
from nmt.inference.native.library import native_library
from nmt.model.transformer import Transformer
from nmt.recipe.config import LoraConfig, MemoryConfig, ModelConfig
from nmt.run.checkpoint import save_checkpoint, weights_digest, weights_of
from nmt.run.checkpoint_files import read_arrays
from nmt.run.directory import RunDirectory
from nmt.run.model import LoadedModel, build_model, load_model
from tests.cli.commands import lines_of

needs_library = pytest.mark.skipif(
    native_library() is None, reason="needs a C compiler and an x86 processor with AVX2"
)
SIZES = ModelConfig(d_model=64, heads=4, d_ff=64, encoder_layers=1, decoder_layers=1)
TEXTS = ["A dog sleeps.", "Two men", "", "A woman reads a book near the river."]


@pytest.fixture
def run(random_run: LoadedModel, tmp_path: Path) -> Path:
    """A run directory whose model is served by the C library."""
    config = replace_model(random_run, SIZES)
    torch.manual_seed(5)
    model = build_model(config.config, config.tokenizer)
    folder = RunDirectory(tmp_path / "run")
    folder.checkpoints.mkdir(parents=True)
    folder.write_config(config.config)
    config.tokenizer.save(folder.tokenizer)
    save_checkpoint(folder.checkpoint(1), weights_of(model))
    return folder.path


class WithMean(Transformer):
    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.encoder.register_buffer("mean", torch.zeros(3))


class WithFrozenNorm(Transformer):
    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.decoder.layers[0].feed_forward_sublayer.norm.requires_grad_(False)


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        (WithMean, r"has the buffer encoder\.mean, but .* register it with persistent=False"),
        (WithFrozenNorm, r"has the frozen parameter decoder\.\S+\.norm\.weight, but"),
    ],
)
def test_a_model_that_checkpoints_do_not_hold_is_refused(
    run: Path, monkeypatch: pytest.MonkeyPatch, changed: type[Transformer], problem: str
) -> None:
    """When its training begins, and when a run is opened."""
    loaded = nmt.open_run(run)
    monkeypatch.setattr("nmt.model.transformer.Transformer", changed)
    with pytest.raises(ConfigError, match=problem):
        build_model(loaded.config, loaded.tokenizer)
    with pytest.raises(ConfigError, match=problem):
        _ = nmt.open_run(run).model


def replace_model(loaded: LoadedModel, sizes: ModelConfig) -> LoadedModel:
    return replace(loaded, config=loaded.config.model_copy(update={"model": sizes}))


def test_a_string_is_one_text_and_a_list_is_several(random_run: LoadedModel) -> None:
    text, other = "a small dog", "123 ."
    ids = random_run.encode(text)
    assert random_run.encode([text, other]) == [ids, random_run.encode(other, "target")]
    assert not random_run.encode([]) and not random_run.decode([])
    assert random_run.decode(ids) == random_run.decode(ids, "source") == text
    assert random_run.decode([ids]) == [text]
    batch = random_run.batch([text, other], [other, text])
    assert random_run.decode(batch.source) == [text, other]
    assert random_run.decode(batch.target_output.numpy()) == [other, text]
    assert random_run.decode([*batch.target_input]) == [other, text]
    one: Any = torch.tensor(ids)  # types cannot tell a tensor of one text
    assert random_run.decode(one) == text
    assert batch.source_mask.sum().item() == batch.tokens == batch.target_mask.sum().item()
    assert random_run.batch([text]).tokens == 1


@pytest.mark.parametrize(
    ("ids", "problem"),
    [
        ("12", "ids has '12' of type str; expected a list of ids, or a list of such lists"),
        (["12"], "ids has '12' of type str; expected"),
        (12, "ids has 12 of type int; expected a list of ids"),
        ({1: 2}, "of type dict; expected"),
        ([1, [2]], r"ids has \[2\]; expected whole numbers below \d+, the size of the vocab"),
        ([[1], 2], r"ids has \[1\]; expected whole numbers"),
        ([1.5], "ids has 1.5 of type float"),
        ([5, -1], "ids has -1; expected whole numbers below"),
        ([[10**6]], "ids has 1000000; expected whole numbers below"),
    ],
)
def test_ids_that_would_be_misread_are_refused(
    random_run: LoadedModel, ids: Any, problem: str
) -> None:
    with pytest.raises(DataError, match=problem):
        random_run.decode(ids)


def test_other_languages_than_two_and_empty_batches_are_refused(random_run: LoadedModel) -> None:
    with pytest.raises(DataError, match="side is 'de', expected 'source' or 'target'"):
        random_run.encode("a", side="de")  # type: ignore[call-overload]
    with pytest.raises(DataError, match="at least one pair of texts, got none"):
        random_run.batch([])


def test_an_opened_run_is_what_a_translator_translates_with(run: Path) -> None:
    opened = nmt.open_run(run, "step-1", device="cpu")
    assert not opened.model.training
    assert nmt.load(opened).translate(TEXTS) == nmt.load(run, device="cpu").translate(TEXTS)
    with torch.no_grad():
        opened.model.output_embedding.weight.neg_()
    assert nmt.load(opened).translate(TEXTS) != nmt.load(run, device="cpu").translate(TEXTS)
    with pytest.raises(ConfigError, match="loaded already; give `checkpoint`, `device` and"):
        nmt.load(opened, checkpoint="last")


def translate(run: Path, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run `nmt translate`, and print at its end whether PyTorch was imported."""
    program = (
        "import atexit, sys\n"
        "atexit.register(lambda: print('torch' in sys.modules, file=sys.stderr))\n"
        "from nmt.__main__ import main\nmain()"
    )
    command = [sys.executable, "-c", program, "translate", "--model", str(run), *options]
    return subprocess.run(
        command,
        input="\n".join(TEXTS) + "\n",
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )


@needs_library
@pytest.mark.parametrize(
    "options",
    [[], ["--no-repeat-ngram", "2"], ["--forbid", "a", "--forbid", "e"]],
    ids=["plain", "no bigram twice", "forbidden words"],
)
def test_translating_imports_no_pytorch_and_finds_what_pytorch_finds(
    pytorch_searches: None, run: Path, options: list[str]
) -> None:
    in_fp32 = ("--device", "cpu", "--precision", "fp32", *options)
    without = translate(run, *in_fp32)  # another process, in which PyTorch would not search
    assert without.returncode == 0, without.stderr
    assert without.stderr.split()[-1] == "False"
    with_it = lines_of("translate", "--model", run, *in_fp32, text="\n".join(TEXTS))
    assert without.stdout.split("\n") == [*with_it, ""]
    assert len(with_it) == len(TEXTS)


@needs_library
def test_without_the_library_pytorch_is_imported(run: Path) -> None:
    done = translate(run, "--device", "cpu", NMT_NATIVE="0")
    assert done.returncode == 0, done.stderr
    assert done.stderr.split()[-1] == "True"


@needs_library
@pytest.mark.parametrize(
    "options",
    [["--sample"], ["--coverage-penalty", "0.2"], ["--precision", "bf16"]],
    ids=lambda options: options[0],
)
def test_what_needs_pytorch_gets_it(run: Path, options: list[str]) -> None:
    done = translate(run, "--device", "cpu", *options)
    assert done.returncode == 0, done.stderr
    assert done.stderr.split()[-1] == "True"


@needs_library
def test_alignments_need_no_pytorch(run: Path) -> None:
    done = translate(run, "--device", "cpu", "--alignments")
    assert done.returncode == 0, done.stderr
    assert done.stderr.split()[-1] == "False"


@needs_library
def test_weights_of_another_model_are_an_error_as_with_pytorch(run: Path) -> None:
    config = RunDirectory(run).config
    config.write_text(config.read_text().replace("decoder_layers: 1", "decoder_layers: 2"))
    with pytest.raises(CheckpointError, match="weights of another model: decoder"):
        nmt.load(run, device="cpu").translate("A dog")


@needs_library
def test_damaged_weights_are_an_error(run: Path) -> None:
    file = RunDirectory(run).checkpoint(1) / "model.safetensors"
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    with pytest.raises(CheckpointError, match="damaged: its SHA-256"):
        nmt.load(run, device="cpu")


def test_a_model_that_has_learnt_marks_has_their_aligner(run: Path) -> None:
    """It is beside the vocabularies; without it, the run is not complete."""
    loaded = load_model(run)
    assert loaded.aligner is None
    data = loaded.config.data.model_copy(update={"memory": MemoryConfig(marks=True)})
    directory = RunDirectory(run)
    directory.write_config(loaded.config.model_copy(update={"data": data}))
    with pytest.raises(
        DataError, match=r"aligner\.npz: the aligner for data\.memory\.marks cannot"
    ):
        load_model(run)
    pairs = TokenStore.of([[4, 5, EOS]] * 9, [[6, 7, EOS]] * 9)
    model = AlignmentModel(pairs, (loaded.tokenizer.source.size, loaded.tokenizer.target.size))
    model.learn()
    model.without_improbable().save(directory.tokenizer / FILE)
    again = load_model(run)
    assert again.aligner is not None
    assert len(again.aligner.align(pairs, np.arange(9))) == 9


def test_arrays_are_the_weights_of_the_model(run: Path) -> None:
    loaded = load_model(run)
    assert not loaded.is_in_torch and loaded.device_type == "cpu"
    stored, digest = loaded.arrays, loaded.digest
    model = loaded.model
    assert loaded.is_in_torch and loaded.model is model and loaded.device_type == "cpu"
    assert not any(module.training for module in model.modules())
    arrays = loaded.arrays
    assert list(arrays) == [name for name, _ in model.named_parameters()]
    assert set(stored) == set(arrays) and loaded.digest == digest
    assert all((stored[name] == arrays[name]).all() for name in arrays)
    again = load_model(run, torch.device("cpu"))
    assert weights_digest(again.model) == weights_digest(model)


def test_threads_that_ask_for_a_model_get_the_same_one(run: Path) -> None:
    """The server makes it in one thread while others may need it, or the arrays."""
    for _ in range(5):
        loaded = load_model(run)
        begin = threading.Barrier(8)

        def ask(number: int, loaded: LoadedModel = loaded, begin: Any = begin) -> object:
            begin.wait()
            return loaded.model if number % 4 else len(loaded.arrays)

        with ThreadPoolExecutor(8) as threads:
            found = list(threads.map(ask, range(8)))
        assert len(set(map(id, (each for i, each in enumerate(found) if i % 4)))) == 1


def test_a_model_is_pickled_in_either_form(run: Path) -> None:
    loaded = load_model(run)
    copy = pickle.loads(pickle.dumps(loaded))
    assert not copy.is_in_torch and copy.digest == loaded.digest
    assert loaded.model is not None
    copy = pickle.loads(pickle.dumps(loaded))
    assert copy.is_in_torch and copy.digest == loaded.digest


def test_weights_that_are_not_finite_are_an_error(run: Path) -> None:
    checkpoint = RunDirectory(run).checkpoint(1)
    arrays = read_arrays(checkpoint)
    weights = {name: torch.from_numpy(array.copy()) for name, array in arrays.items()}
    weights["target_embedding.weight"][5, 5] = float("inf")
    save_checkpoint(checkpoint, weights)
    with pytest.raises(CheckpointError, match="holds NaN or infinity"):
        nmt.load(run, device="cpu")


@needs_library
@pytest.mark.parametrize("rows", [4, 8, -1, 1])
@pytest.mark.parametrize("side", ["source", "target", "output"])
def test_embeddings_without_a_row_for_each_piece_are_named(
    rows: int, side: str, random_run: LoadedModel, tmp_path: Path
) -> None:
    """`rows` is how many there are, or if it is small, how many more than pieces."""
    sizes = SIZES.model_copy(update={"embeddings": "separate"})
    loaded = replace_model(random_run, sizes)
    model = build_model(loaded.config, loaded.tokenizer)
    run = RunDirectory(tmp_path / "run")
    run.checkpoints.mkdir(parents=True)
    run.write_config(loaded.config)
    loaded.tokenizer.save(run.tokenizer)
    weights, name = weights_of(model), f"{side}_embedding.weight"
    count = rows if rows > 1 else len(weights[name]) + rows
    weights[name] = torch.zeros(count, sizes.d_model)
    save_checkpoint(run.checkpoint(1), weights)
    message = re.escape(f"{name} is ({count}, 64), the configuration expects (")
    with pytest.raises(CheckpointError, match=message):
        nmt.load(run.path)


def write_adapter(loaded: LoadedModel, run: Path, parent: Path) -> None:
    """Write a run that claims to hold an adapter of `parent`."""
    directory = RunDirectory(run)
    directory.checkpoints.mkdir(parents=True)
    update = {"lora": LoraConfig(), "initialize_from": str(parent)}
    training = loaded.config.training.model_copy(update=update)
    directory.write_config(loaded.config.model_copy(update={"training": training}))
    loaded.tokenizer.save(directory.tokenizer)
    save_checkpoint(directory.checkpoint(1), weights_of(loaded.model))


@pytest.mark.parametrize("chain", ["a", "ab", "abc", "abcb", "abcc"])
def test_an_adapter_that_is_its_own_parent_is_refused(
    chain: str, random_run: LoadedModel, tmp_path: Path
) -> None:
    """Each run is the child of the next one, and the last one that of the first, or of itself."""
    parents = dict(zip(chain, chain[1:] + chain[0], strict=True))
    for name, parent in parents.items():
        write_adapter(random_run, tmp_path / name, tmp_path / parent)
    (tmp_path / "link").symlink_to(tmp_path / "a")
    for path in (tmp_path / "a", tmp_path / "link", tmp_path / "a/checkpoints/step-00000001"):
        with pytest.raises(CheckpointError, match="holds an adapter that is its own parent") as got:
            load_model(path, torch.device("cpu"))
        assert "\n" not in str(got.value)


def test_a_parent_that_is_no_run_is_named(random_run: LoadedModel, tmp_path: Path) -> None:
    write_adapter(random_run, tmp_path / "a", tmp_path / "b")
    write_adapter(random_run, tmp_path / "b", tmp_path / "gone")
    with pytest.raises(CheckpointError, match="gone: not a run directory: no such directory"):
        load_model(tmp_path / "a", torch.device("cpu"))
