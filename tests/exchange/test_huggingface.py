"""An imported model computes what transformers computes, and a bad folder is one sentence."""

import json
import os
import random
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from nmt.config import DecodingConfig
from nmt.data.tokens.batch import collate_source
from nmt.data.tokens.tokenizer import BOS, PAD
from nmt.errors import NmtError
from nmt.exchange.huggingface import import_huggingface
from nmt.exchange.huggingface_export import export_huggingface
from nmt.exchange.imported import read_provenance, write_run
from nmt.run_directory import LoadedModel, RunDirectory, load_run
from nmt.search.sampling import greedy_search

pytest.importorskip("transformers")
from transformers import AutoTokenizer  # noqa: E402

from tests.exchange.huggingface_models import TEXTS, write_marian  # noqa: E402

KINDS: list[dict[str, Any]] = [
    {},
    {"activation_function": "relu", "kind": "bpe", "pickled": True},
    {"separate": True, "encoder_layers": 3, "decoder_layers": 1},
    {"separate": True, "tied": False, "activation_function": "gelu"},
]


def imported(folder: Path) -> LoadedModel:
    write_run(import_huggingface(folder), folder.with_name("run"))
    return load_run(folder.with_name("run"), torch.device("cpu"))


@pytest.mark.parametrize("settings", KINDS, ids=str)
def test_ids_logits_and_translations_are_those_of_transformers(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    folder = tmp_path / "theirs"
    model: Any = write_marian(folder, **settings)
    run, tokenizer = imported(folder), AutoTokenizer.from_pretrained(folder)
    targets = tokenizer.target_encoder if tokenizer.separate_vocabs else tokenizer.encoder
    targets = {**targets, "<row 7>": 7}  # a row without a piece can be chosen, too
    pieces = {row: piece for piece, row in tokenizer.encoder.items()}
    texts = [text for text in TEXTS if not (settings.get("separate") and text.startswith(">>"))]
    for text in texts:
        (ours,) = run.tokenizer.source.encode([text])
        theirs = tokenizer([text], return_tensors="pt")["input_ids"]
        spelled = [run.tokenizer.source.pieces[i] for i in ours]
        assert spelled == [pieces[i] for i in theirs[0].tolist()]
        output = model.generate(
            theirs, num_beams=1, max_new_tokens=20, output_logits=True, return_dict_in_generate=True
        )
        decoding = DecodingConfig(max_length_offset=200)
        (found,) = greedy_search(run.model, collate_source([ours]), decoding)
        rows = [targets[run.tokenizer.target.pieces[i]] for i in found.tokens]
        expected = [i for i in output.sequences[0, 1:].tolist() if i != 0]
        assert rows[:20] == expected
        log_p = torch.stack(output.logits)[:, 0].log_softmax(-1)
        teacher = torch.tensor([[BOS, *found.tokens[: len(expected) - 1]]])
        with torch.inference_mode():
            ours_log_p = run.model(collate_source([ours]), teacher)[0].log_softmax(-1)
        chosen = [run.tokenizer.target.pieces.index(p) for p in targets if p in ("a", "▁", "<unk>")]
        named = [targets[run.tokenizer.target.pieces[i]] for i in chosen]
        n = min(len(log_p), len(ours_log_p))
        torch.testing.assert_close(ours_log_p[:n, chosen], log_p[:n, named], atol=2e-5, rtol=1e-5)
        assert not ours_log_p[:, PAD].exp().any()


def test_an_import_goes_back_bit_for_bit_and_says_where_it_came_from(tmp_path: Path) -> None:
    folder, back = tmp_path / "theirs", tmp_path / "back"
    write_marian(folder)
    (folder / "README.md").write_text("---\nlanguage: [en, de]\nlicense: cc-by-4.0\n---\n")
    run = imported(folder)
    back.mkdir()
    export_huggingface(run, back)
    before, after = (load_file(each / "model.safetensors") for each in (folder, back))
    assert before.keys() == after.keys()
    assert all(torch.equal(weight, after[name]) for name, weight in before.items())
    origin = read_provenance(RunDirectory(tmp_path / "run"))
    assert origin["license"] == "cc-by-4.0" and "model.safetensors" in origin["sha256"]
    assert run.config.data.languages == ("eng", "deu")


class Bomb:
    """Code in a pickle: it would make a folder."""

    def __reduce__(self) -> Any:
        return os.mkdir, ("ran",)


def change_json(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def spoil_weights(folder: Path, name: str, weight: torch.Tensor) -> None:
    path = folder / "model.safetensors"
    save_file({**load_file(path), name: weight}, path)


NORM = "model.encoder.layers.0.fc1.bias"


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda f: (f / "config.json").unlink(), r"config.json: cannot be read: No such file"),
        (lambda f: (f / "config.json").write_text("[1"), r"config.json: damaged, or no JSON"),
        (lambda f: (f / "config.json").write_text("[]"), r"expected names and values, found list"),
        (lambda f: change_json(f / "config.json", model_type="bart"), r"model_type is 'bart'"),
        (lambda f: change_json(f / "config.json", normalize_before=True), r"normalize_before is T"),
        (lambda f: change_json(f / "config.json", scale_embedding=False), r"scale_embedding is F"),
        (
            lambda f: change_json(f / "config.json", activation_function="gelu_new"),
            r"activation_function is 'gelu_new'; nmt reads relu, swish, silu, gelu",
        ),
        (
            lambda f: change_json(f / "config.json", decoder_ffn_dim=7),
            r"encoder_ffn_dim and decoder_ffn_dim are \[24, 7\], expected equal",
        ),
        (lambda f: change_json(f / "config.json", d_model=10**9), r"has the shape .* say"),
        (lambda f: change_json(f / "config.json", encoder_layers=10**7), r"10,000,002 layers"),
        (lambda f: (f / "model.safetensors").unlink(), r"there are no weights; expected model.saf"),
        (
            lambda f: (f / "model.safetensors").write_bytes(b"\x10" * 99),
            r"model.safetensors: damaged, or more than weights",
        ),
        (
            lambda f: spoil_weights(f, NORM, torch.tensor([float("nan")] * 24)),
            r"fc1.bias holds NaN",
        ),
        (lambda f: spoil_weights(f, NORM, torch.zeros(23)), r"inner.bias has the shape \(23,\)"),
        (lambda f: spoil_weights(f, "model.x", torch.zeros(2)), r"model.x is none that nmt knows"),
        (lambda f: (f / "source.spm").unlink(), r"source.spm: the file is missing"),
        (lambda f: (f / "source.spm").write_bytes(b"abc"), r"not a SentencePiece model"),
        (lambda f: change_json(f / "vocab.json", dog=10**6), r"the row 1,000,000 for 'dog', but"),
        (lambda f: change_json(f / "vocab.json", dog=3), r"two pieces of the source .* same row"),
        (lambda f: change_json(f / "vocab.json", dog="x"), r"expected pieces and their rows"),
        (
            lambda f: change_json(f / "config.json", eos_token_id=-1),
            r"eos_token_id is -1, expected",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_bad_folder_is_refused_in_one_sentence(tmp_path: Path, spoil: Any, message: str) -> None:
    folder = tmp_path / "theirs"
    write_marian(folder)
    spoil(folder)
    before = {path: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(NmtError, match=message) as raised:
        imported(folder)
    assert "\n" not in str(raised.value)
    assert not (tmp_path / "run").exists()
    assert before == {path: path.read_bytes() for path in folder.iterdir()}


def test_code_in_a_pickle_does_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "theirs"
    write_marian(folder, pickled=True)
    monkeypatch.chdir(tmp_path)
    torch.save({"weight": Bomb()}, folder / "pytorch_model.bin")
    with pytest.raises(NmtError, match=r"pytorch_model.bin: damaged, or more than weights"):
        imported(folder)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "cases", [200, pytest.param(10_000, marks=pytest.mark.slow)], ids=["few", "many"]
)
def test_mutated_files_never_end_in_a_traceback(tmp_path: Path, cases: int) -> None:
    folder, draw = tmp_path / "theirs", random.Random(1)
    write_marian(folder)
    files = {path: path.read_bytes() for path in sorted(folder.iterdir())}
    refused = 0
    for _ in range(cases):
        path = draw.choice(list(files))
        content = bytearray(files[path])
        reach = min(len(content), 4000)  # headers, mostly
        for _ in range(draw.randint(1, 4)):
            content[draw.randrange(reach)] = draw.choice([*b'0129"{}[]:,-e', draw.randrange(256)])
        if draw.random() < 0.2:
            del content[draw.randrange(reach) :]
        path.write_bytes(content)
        try:
            imported(folder)
        except NmtError as error:
            refused += 1
            assert str(error)
        else:
            remove(tmp_path / "run")
        assert not (tmp_path / "run").exists()
        path.write_bytes(files[path])
    assert refused > cases / 4


def remove(folder: Path) -> None:
    for path in sorted(folder.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    folder.rmdir()
