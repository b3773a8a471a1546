"""Packages of Argos and folders of CTranslate2 come in as the models that CTranslate2 computes."""

import json
import shutil
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from nmt.data.tokens.tokenizer import SubwordModel
from nmt.errors import ExchangeError
from nmt.exchange.argos import create_package, export_argos
from nmt.exchange.ctranslate2 import export_ctranslate2, translate_with_model
from nmt.exchange.ctranslate2_binary import read_binary
from nmt.exchange.ctranslate2_import import import_if_ctranslate2
from nmt.exchange.engine import MAX_TRANSLATION, EngineTranslation
from nmt.exchange.imported import read_provenance, write_run
from nmt.exchange.verify import EXACT, verify_translations
from nmt.run.directory import find_run
from nmt.run.model import LoadedModel, load_model
from tests.exchange.small_runs import TEXTS, greedy_translations, small_run, untrained_run
from tests.exchange.test_argos import with_languages

ctranslate2 = pytest.importorskip("ctranslate2")
pytest.importorskip("onnx")
EN_DE = ("en", "de")


def import_run(path: Path, run: Path) -> LoadedModel:
    imported = import_if_ctranslate2(path)
    assert imported
    write_run(imported, run)
    return load_model(run)


def write_argos(loaded: LoadedModel, path: Path, quantization: Any = "float32") -> Path:
    with create_package(path) as folder:
        export_argos(with_languages(loaded, *EN_DE), folder, quantization)
        card = "---\nlanguage:\n- en\nlicense: cc0-1.0\n---\nlicense: mit\n"
        (folder / "README.md").write_text(card)
    return path


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"norm": "pre", "activation": "gelu", "embeddings": "target", "output_bias": True},
        {"embeddings": "separate", "activation": "swish", "positions": "sines_first"},
        {"positions": "tensor2tensor", "start_embedding": "zero", "layer_norm_epsilon": 0.03},
        {"positions": "rotary", "norm_kind": "rms", "feed_forward": "gated", "norm": "pre"},
    ],
    ids=str,
)
def test_a_package_in_float32_gives_the_same_weights_back(
    settings: dict[str, Any], tmp_path: Path
) -> None:
    loaded = untrained_run(**settings)
    again = import_run(write_argos(loaded, tmp_path / "a.argosmodel"), tmp_path / "run")
    assert again.tokenizer.source.pieces == loaded.tokenizer.source.pieces
    ours, theirs = dict(loaded.model.named_parameters()), dict(again.model.named_parameters())
    for name, weight in theirs.items():
        if name in ours and not name.endswith("_embedding.bias"):
            # pieces that the target lacks are in the SentencePiece model, and get rows of their own
            assert torch.equal(weight[: len(ours[name])], ours[name]), name
    assert ours.keys() <= theirs.keys()
    model = again.config.model
    assert model == loaded.config.model.model_copy(update={"output_bias": True}) or settings
    assert again.config.data.languages == EN_DE


@pytest.fixture(scope="module")
def loaded() -> LoadedModel:
    return small_run()


@pytest.fixture(scope="module")
def package(loaded: LoadedModel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_argos(loaded, tmp_path_factory.mktemp("p") / "a.argosmodel", "int8")


def unpacked(package: Path, folder: Path) -> Path:
    with zipfile.ZipFile(package) as archive:
        archive.extractall(folder)
    (root,) = folder.iterdir()
    return root


def test_translations_of_a_package_are_those_of_the_run(
    loaded: LoadedModel, tmp_path: Path
) -> None:
    again = import_run(write_argos(loaded, tmp_path / "a.argosmodel"), tmp_path / "run")
    assert [each.pieces for each in greedy_translations(again, TEXTS)] == [
        each.pieces for each in greedy_translations(loaded, TEXTS)
    ]
    provenance = read_provenance(find_run(tmp_path / "run"))
    assert provenance["license"] == "cc0-1.0"
    assert provenance["format"] == "argos" and provenance["stored_as"] == "float32"
    assert again.config.decoding.length_penalty == 0.2


def test_int8_becomes_what_ctranslate2_makes_of_it(package: Path, tmp_path: Path) -> None:
    again = import_run(package, tmp_path / "run")
    source = again.tokenizer.source
    assert read_provenance(find_run(tmp_path / "run"))["stored_as"] == "int8"
    model = str(unpacked(package, tmp_path / "p") / "model")
    translator = ctranslate2.Translator(model, compute_type="float32")
    found = translator.translate_batch(
        [[source.pieces[i] for i in ids[:-1]] for ids in source.encode(TEXTS)],
        beam_size=1,
        length_penalty=0,
        min_decoding_length=0,
        max_decoding_length=MAX_TRANSLATION,
        return_scores=True,
    )
    theirs = [EngineTranslation(each.hypotheses[0], each.scores[0]) for each in found]
    verify_translations(again, TEXTS, theirs, EXACT)


def test_an_installed_package_and_a_folder_of_ctranslate2_are_read(
    loaded: LoadedModel, package: Path, tmp_path: Path
) -> None:
    installed = import_run(unpacked(package, tmp_path / "p"), tmp_path / "run")
    assert installed.config.data.languages == EN_DE
    folder = tmp_path / "model"
    folder.mkdir()
    export_ctranslate2(loaded, folder)
    (folder / "README.md").write_bytes(b"---\r\nlicense: mit\r\n---\r\n")
    again = import_run(folder, tmp_path / "again")
    assert again.config.decoding.length_normalization == "average"
    provenance = read_provenance(find_run(tmp_path / "again"))
    assert provenance["format"] == "ctranslate2" and provenance["license"] == "mit"
    assert [e.pieces for e in greedy_translations(again, TEXTS[:9])] == [
        e.pieces for e in greedy_translations(loaded, TEXTS[:9])
    ]
    assert import_if_ctranslate2(tmp_path) is None


def as_opennmt_py(folder: Path, loaded: LoadedModel) -> None:
    """Write a model as the converter of OpenNMT-py does: sources have no end symbol."""
    (folder / "model").mkdir(parents=True)
    export_ctranslate2(loaded, folder / "model")
    (folder / "model" / "source.spm").rename(folder / "sentencepiece.model")
    (folder / "metadata.json").write_text(json.dumps({"from_code": "pb", "to_code": "zt"}))
    edit_json(folder / "model" / "config.json", add_source_eos=False, layer_norm_epsilon=None)


def edit_json(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_a_source_without_an_end_symbol_is_read_as_ctranslate2_reads_it(tmp_path: Path) -> None:
    loaded = small_run(norm="pre", embeddings="separate", output_bias=True)
    as_opennmt_py(tmp_path / "p", loaded)
    again = import_run(tmp_path / "p", tmp_path / "run")
    model = again.config.model
    assert not model.source_eos and model.layer_norm_epsilon == 1e-5
    assert again.config.data.languages == ("pt_BR", "zh_Hant")
    source = SubwordModel((tmp_path / "p" / "sentencepiece.model").read_bytes())
    translations = translate_with_model(tmp_path / "p" / "model", source, TEXTS)
    verify_translations(again, TEXTS, translations, EXACT)
    exported = tmp_path / "exported"
    exported.mkdir()
    export_ctranslate2(again, exported)
    assert json.loads((exported / "config.json").read_text())["add_source_eos"] is False


def old_binary(path: Path, version: int) -> None:
    """Write a model.bin again as an older version of CTranslate2 has written it."""
    binary = read_binary(path)
    named = {
        name: array
        for name, array in binary.variables.items()
        if "/" in name or name in ("num_heads",)
    }
    if version < 6:
        named["with_source_eos"] = np.array(1, np.int8)
    if version < 5:
        for name in ("num_heads", "pre_norm", "activation"):
            named[name] = named[f"encoder/{name}"]
            del named[f"encoder/{name}"], named[f"decoder/{name}"]

    def text(name: str) -> bytes:
        return struct.pack("<H", len(name) + 1) + name.encode() + b"\0"

    data = struct.pack("<I", version) + text("TransformerSpec")
    data += struct.pack("<I", 4 if version < 5 else 7) + struct.pack("<I", len(named))
    codes = {"float32": 0, "int8": 1, "int16": 2, "int32": 3}
    for name, array in named.items():
        data += text(name) + struct.pack("<B", array.ndim)
        data += struct.pack(f"<{array.ndim}I", *array.shape)
        size = array.nbytes if version > 3 else array.size
        code = codes[str(array.dtype)] if version > 3 else array.itemsize
        data += struct.pack("<BI", code, size) + array.tobytes()
    path.write_bytes(data + (struct.pack("<I", 0) if version > 2 else b""))


@pytest.mark.parametrize("version", [2, 3, 4, 5])
def test_older_versions_of_the_file_are_read(version: int, tmp_path: Path) -> None:
    loaded = untrained_run(embeddings="target")
    folder = tmp_path / "model"
    folder.mkdir()
    export_ctranslate2(loaded, folder)
    new = import_run(folder, tmp_path / "new")
    old_binary(folder / "model.bin", version)
    (folder / "config.json").unlink()
    for side in ("source", "target"):
        path = folder / f"{side}_vocabulary.json"
        path.with_suffix(".txt").write_text("\n".join(json.loads(path.read_text())) + "\n")
        path.unlink()
    old = import_run(folder, tmp_path / "old")
    assert old.config.model.layer_norm_epsilon == 1e-5
    assert old.tokenizer.target.pieces == new.tokenizer.target.pieces
    weights = dict(new.model.named_parameters())
    for name, weight in old.model.named_parameters():
        assert torch.equal(weight, weights[name]), name


def renamed(old: str, new: str) -> Callable[[Path], None]:
    """Return a change of the name of a variable; both have the same length."""

    def change(folder: Path) -> None:
        path = folder / "model" / "model.bin"
        data = path.read_bytes()
        assert len(old) == len(new) and old.encode() in data
        path.write_bytes(data.replace(old.encode(), new.encode()))

    return change


def config(**changes: Any) -> Callable[[Path], None]:
    return lambda folder: edit_json(folder / "model" / "config.json", **changes)


def metadata(**changes: Any) -> Callable[[Path], None]:
    return lambda folder: edit_json(folder / "metadata.json", **changes)


def remove(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


def write(name: str, data: bytes) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        (folder / name).write_bytes(data)

    return change


REFUSED: list[tuple[Callable[[Path], None], str]] = [
    (renamed("encoder/layer_0/ffn/linear_0/bias", "encoder/layer_0/relative_position"), "relative"),
    (
        renamed(
            "encoder/layer_0/ffn/linear_0/weight_scale", "encoder/layer_0/ffn/linear_9/weight_scale"
        ),
        "of int8, and the factors are missing",
    ),
    (renamed("TransformerSpec", "WhisperModelXXX"), "kind WhisperModelXXX, revision 7"),
    (renamed("encoder/position_encodings", "encoder/position_encodingx"), "position_encodingx"),
    (renamed("encoder/scale_embeddings", "encoder/activation_xxxxx"), "activation_xxxxx"),
    (config(decoder_start_token=None), "decoder_start_token is None, expected a token"),
    (config(decoder_start_token="x"), "the vocabulary lacks 'x', with which translations begin"),
    (config(add_source_bos=True), "every source begins with '<s>'"),
    (config(decoder_start_token="</s>"), "begin with the end symbol .*, as in models of fairseq"),
    (config(eos_token="<unk>"), "expected four different ones"),
    (config(eos_token="nothing"), "the end in the vocabulary"),
    (config(layer_norm_epsilon="x"), "layer_norm_epsilon"),
    (metadata(target_prefix="__de__"), "every translation begins with '__de__'"),
    (remove("sentencepiece.model"), "it has no sentencepiece.model; .* Moses"),
    (remove("model/shared_vocabulary.json"), "no vocabulary here"),
    (write("model/shared_vocabulary.json", b'["a"]'), "symbols for unknown, start, end"),
    (write("model/shared_vocabulary.json", b"{}"), "expected a list of pieces"),
    (write("model/model.bin", b"\7\0\0\0"), "begins with 7, expected a version from 1 to 6"),
    (write("model/model.bin", b"\6\0\0\0"), "damaged or cut short"),
    (write("model/config.json", b"["), "damaged, or no JSON"),
]


@pytest.mark.parametrize(("change", "message"), REFUSED)
def test_what_nmt_does_not_compute_is_one_sentence(
    change: Callable[[Path], None], message: str, package: Path, tmp_path: Path
) -> None:
    folder = unpacked(package, tmp_path)
    change(folder)
    with pytest.raises(ExchangeError, match=message) as error:
        import_if_ctranslate2(folder)
    assert "\n" not in str(error.value)


def test_a_zip_without_a_package_is_named(tmp_path: Path) -> None:
    path = tmp_path / "x.argosmodel"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a/b", "c")
    with pytest.raises(ExchangeError, match="holds 0 folders with metadata.json, expected one"):
        import_if_ctranslate2(path)
    path.write_bytes(b"no zip")
    with pytest.raises(ExchangeError, match=r"x.argosmodel: damaged, or no zip"):
        import_if_ctranslate2(path)


def test_a_folder_needs_its_sentencepiece_model(loaded: LoadedModel, tmp_path: Path) -> None:
    export_ctranslate2(loaded, tmp_path)
    (tmp_path / "source.spm").unlink()
    assert import_if_ctranslate2(tmp_path)  # the one that is left is that of both languages
    shutil.copy(tmp_path / "target.spm", tmp_path / "x.model")
    with pytest.raises(ExchangeError, match=r"found target.spm, x.model; put it there"):
        import_if_ctranslate2(tmp_path)
