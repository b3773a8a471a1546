"""Students for browsers are read as Bergamot, translateLocally and Firefox store them."""

from pathlib import Path

import pytest
import torch

from nmt.data.tokens.foreign_vocabulary import adopt_foreign
from nmt.errors import ExchangeError
from nmt.exchange.bergamot_shortlist import in_our_ids
from nmt.exchange.imported import write_run
from nmt.exchange.marian import import_marian
from nmt.exchange.marian_files import parse_yaml
from nmt.exchange.marian_names import GUIDED_LAYER, read_guided_alignment, to_marian
from nmt.exchange.marian_package import open_package
from nmt.recipe.config import GuidedAlignmentConfig
from tests.exchange.bergamot_packages import write_student


@pytest.mark.parametrize("zipped", [False, True], ids=["plain", "gz"])
@pytest.mark.parametrize("layout", ["bergamot", "firefox"])
def test_a_student_is_read_with_its_weights_search_and_shortlist(
    tmp_path: Path, layout: str, zipped: bool
) -> None:
    weights = write_student(tmp_path, layout, zipped)
    (model,) = import_marian(tmp_path)
    assert model.config.decoder == "ssru" and model.config.activation == "relu"
    assert model.languages == ("en", "de")
    assert model.decoding.beam_size == 1
    assert model.decoding.length_normalization == "average"
    assert model.decoding.max_length_factor == (2.5 if layout == "bergamot" else 2.0)
    layers = model.config.decoder_layers
    assert model.guided_alignment == GuidedAlignmentConfig(layer=layers, position="predicts")
    options = parse_yaml(model.originals["model.yml"].rstrip(b"\0"), "model.yml")
    found = to_marian(model.weights, options, model.config)
    assert found.keys() == weights.keys()
    for name, weight in weights.items():
        torch.testing.assert_close(found[name], weight, rtol=1e-6, atol=0, msg=name)
    assert model.shortlist
    source, target = adopt_foreign(*model.vocabularies)
    candidates, always = in_our_ids(model.shortlist, source, target)
    rows = model.vocabularies[0].size
    for row, id_ in enumerate(source.ids(rows)):
        listed = {target.rows[each] for each in candidates[id_] if each}
        assert listed == {(row + i) % rows for i in range(row % 3 + 1)}
    assert {*always.tolist()} == {0, 1, 2, 3, *target.ids(rows)[:5]}


def test_a_model_alone_stands_for_its_folder_and_becomes_a_run(tmp_path: Path) -> None:
    folder = tmp_path / "student"
    folder.mkdir()
    write_student(folder, "firefox", zipped=True)
    (model,) = import_marian(folder / "model.ende.intgemm.alphas.bin.gz")
    write_run(model, tmp_path / "run")
    assert (tmp_path / "run" / "imported" / "quantization.json").is_file()


@pytest.mark.parametrize(("named", "layer"), [("last", 3), ("1", 1), (2, 2), ("4", 3), (None, 3)])
def test_the_layer_that_aligns_words_is_read(named: object, layer: int) -> None:
    assert read_guided_alignment({GUIDED_LAYER: named}, 3).layer == layer


def test_two_vocabularies_are_found(tmp_path: Path) -> None:
    write_student(tmp_path, "firefox")
    content = (tmp_path / "vocab.ende.spm").read_bytes()
    (tmp_path / "vocab.ende.spm").rename(tmp_path / "srcvocab.ende.spm")
    (tmp_path / "trgvocab.ende.spm").write_bytes(content)
    with open_package(tmp_path) as package:
        names = [path.name for path in package.vocabularies]
    assert names == ["srcvocab.ende.spm", "trgvocab.ende.spm"]


def remove_vocabulary(folder: Path) -> None:
    (folder / "vocab.ende.spm").unlink()


def add_model(folder: Path) -> None:
    (folder / "model.deen.intgemm.alphas.bin").touch()


def cut_gzip(folder: Path) -> None:
    content = (folder / "vocab.ende.spm").read_bytes()
    (folder / "vocab.ende.spm").unlink()
    (folder / "vocab.ende.spm.gz").write_bytes(b"\x1f\x8b" + content[:50])


def damage_shortlist(folder: Path) -> None:
    path = folder / "lex.50.50.ende.s2t.bin"
    content = path.read_bytes()
    path.write_bytes(content[:-12] + b"\1\1\1\1" + content[-8:])


def put_text_for_the_model(folder: Path) -> None:
    (folder / "model.ende.intgemm.alphas.bin").write_text("version https://git-lfs.github.com/spec")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (remove_vocabulary, "one vocabulary .* found 1 and 0"),
        (add_model, r"expected one model \(model.\*.bin\) .* found 2 and 1"),
        (cut_gzip, "vocab.ende.spm.gz: damaged, or no file of gzip"),
        (damage_shortlist, "s2t.bin: damaged or cut short; fetch the file again"),
        (put_text_for_the_model, "no model in Marian's binary format: it begins with"),
    ],
)
def test_what_is_missing_or_damaged_is_named(tmp_path: Path, change: object, message: str) -> None:
    write_student(tmp_path, "firefox")
    assert callable(change)
    change(tmp_path)
    with pytest.raises(ExchangeError, match=message):
        import_marian(tmp_path)
