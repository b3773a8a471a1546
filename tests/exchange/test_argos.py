"""Packages of Argos: what they hold, how they are verified, and what they cannot hold."""

import importlib.util
import json
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from nmt.data.tokens.tokenizer import SubwordModel, Tokenizer
from nmt.errors import ConfigError, ExchangeError
from nmt.exchange import argos
from nmt.exchange.argos import (
    argos_code,
    create_package,
    export_argos,
    verify_argos,
    version_in,
)
from nmt.exchange.ctranslate2 import translate_with_model
from nmt.exchange.verify import EXACT
from nmt.run.model import LoadedModel
from tests.exchange.small_runs import TEXTS, small_run

pytest.importorskip("ctranslate2")
pytest.importorskip("onnx")


def with_languages(loaded: LoadedModel, source: str, target: str) -> LoadedModel:
    data = loaded.config.data.model_copy(
        update={"source_language": source, "target_language": target}
    )
    return replace(loaded, config=loaded.config.model_copy(update={"data": data}))


@pytest.fixture(scope="module")
def loaded() -> LoadedModel:
    return small_run()


@pytest.fixture(scope="module")
def package(loaded: LoadedModel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("package") / "translate-pb_zt-1_2.argosmodel"
    with create_package(path) as folder:
        export_argos(with_languages(loaded, "pt-BR", "zh_Hant"), folder, "float32", "1.2")
        (folder / "README.md").write_text("card")
    return path


def test_a_package_is_a_zip_of_one_folder_with_the_codes_of_argos(package: Path) -> None:
    with zipfile.ZipFile(package) as archive:
        names = {name for name in archive.namelist() if not name.endswith("/")}
        metadata = json.loads(archive.read("translate-pb_zt-1_2/metadata.json"))
    files = ["README.md", "metadata.json", "minisbd/pb.onnx", "sentencepiece.model"]
    files += [f"model/{name}" for name in ("config.json", "model.bin", "shared_vocabulary.json")]
    assert names == {f"translate-pb_zt-1_2/{name}" for name in files}
    assert metadata | {"argos_version": ""} == {
        "package_version": "1.2",
        "argos_version": "",
        "from_code": "pb",
        "from_name": "Portuguese (Brazil)",
        "to_code": "zt",
        "to_name": "Chinese (traditional script)",
    }


@pytest.mark.parametrize(
    ("code", "theirs"),
    [
        *((code, "pb") for code in ("pt_br", "pt-BR", "pt_BR", "por_BR")),
        *((code, "pt") for code in ("pt", "por", "pt_PT")),
        *(
            (code, "zt")
            for code in ("zh_tw", "zh_TW", "zh-Hant", "zho_Hant", "zh-HK", "zh_Hant_TW")
        ),
        *((code, "zh") for code in ("zh", "zho_Hans", "zh_CN", "cmn")),
        *((code, "de") for code in ("de", "deu", "deu_Latn")),
    ],
)
def test_every_spelling_of_a_language_has_the_code_of_argos(code: str, theirs: str) -> None:
    assert argos_code(code) == theirs


def test_a_package_names_its_languages_in_english(loaded: LoadedModel, tmp_path: Path) -> None:
    export_argos(with_languages(loaded, "deu_Latn", "pt_br"), tmp_path, "float32")
    metadata = json.loads((tmp_path / "metadata.json").read_text())
    assert (metadata["from_name"], metadata["to_name"]) == ("German", "Portuguese (Brazil)")


def unpack(package: Path, folder: Path) -> Path:
    with zipfile.ZipFile(package) as archive:
        archive.extractall(folder)
    return folder / "translate-pb_zt-1_2"


def test_it_is_verified_by_ctranslate2_where_argos_translate_is_not_installed(
    loaded: LoadedModel, package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    result = verify_argos(loaded, unpack(package, tmp_path), TEXTS[:20], EXACT)
    assert result.startswith("by CTranslate2: 20 of 20 greedy translations are equal")
    assert "not by Argos Translate, which is not installed here" in result


def stub_argos(folder: Path, translate: str) -> None:
    """Write a package argostranslate that only knows the calls of the verification."""
    (folder / "argostranslate").mkdir()
    (folder / "argostranslate" / "__init__.py").write_text("")
    (folder / "argostranslate" / "package.py").write_text("def install_from_path(path): pass\n")
    (folder / "argostranslate" / "translate.py").write_text(
        "import types\n"
        "class Found:\n"
        "    def split_sentences(self, text): return [text]\n"
        "    def hypotheses(self, text, count):\n"
        f"        return [types.SimpleNamespace(value={translate})]\n"
        "    @property\n"
        "    def underlying(self): return self\n"
        "    sentencizer = underlying\n"
        "def get_translation_from_codes(source, target): return Found()\n"
    )


def test_a_package_that_argos_translate_computes_otherwise_is_an_error(
    loaded: LoadedModel, package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stub_argos(tmp_path, "'other'")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    folder = unpack(package, tmp_path)
    with pytest.raises(ExchangeError, match="makes 'other' of .* 10 of 10 texts differ"):
        verify_argos(loaded, folder, TEXTS[:10], EXACT)
    (tmp_path / "argostranslate" / "package.py").write_text("raise ValueError('no such thing')")
    with pytest.raises(ExchangeError, match="cannot use the package: ValueError: no such thing"):
        verify_argos(loaded, folder, TEXTS[:10], EXACT)


@pytest.mark.skipif(
    importlib.util.find_spec("argostranslate") is None,
    reason="argostranslate is not installed: it needs minisbd, whose licence is the AGPL",
)
def test_argos_translate_itself_translates_as_nmt_does(
    loaded: LoadedModel, package: Path, tmp_path: Path
) -> None:
    texts = [*TEXTS[:20], "Ab cd. Ef gh! (Ab.) Cd"]
    result = verify_argos(loaded, unpack(package, tmp_path), texts, EXACT)
    assert result.endswith("by Argos Translate, installed there: 21 of 21 texts are equal")


def test_a_tag_stands_before_every_source_of_a_model_of_several_languages(
    loaded: LoadedModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    several = with_languages(loaded, "en", "mul")
    with pytest.raises(ConfigError, match="one pair of languages, and the run says en and mul"):
        export_argos(several, tmp_path, "float32")
    with pytest.raises(ConfigError, match="target language de: the vocabulary has no tag >>de<<"):
        export_argos(several, tmp_path, "float32", target_language="de")
    source = loaded.tokenizer.source
    monkeypatch.setattr(argos, "spell_tag", lambda _language: source.pieces[-1])
    monkeypatch.setattr(argos, "check_tags", lambda *_arguments: None)
    export_argos(several, tmp_path, "float32", target_language="de")
    tag = source.pieces[-1]
    plain, tagged = tmp_path / "plain", tmp_path / "model"
    plain.mkdir()
    export_argos(with_languages(loaded, "en", "de"), plain, "float32")
    texts = [text for text in TEXTS if text.isalpha()][:20]
    pieces = [[tag, *source.split(text)] for text in texts]
    translator = pytest.importorskip("ctranslate2").Translator(str(plain / "model"))
    expected = translator.translate_batch(pieces, beam_size=1, min_decoding_length=0)
    found = translate_with_model(tagged, source, texts)
    assert [each.pieces for each in found] == [each.hypotheses[0] for each in expected]
    config = json.loads((tagged / "config.json").read_text())
    assert config["add_source_bos"] and config["bos_token"] == tag
    assert config["decoder_start_token"] == "<s>"


def test_two_sentencepiece_models_that_spell_alike_are_one(tmp_path: Path) -> None:
    loaded = with_languages(small_run(embeddings="separate"), "en", "de")
    export_argos(loaded, tmp_path, "float32")
    assert (tmp_path / "sentencepiece.model").read_bytes() == loaded.tokenizer.source.model


def test_a_target_that_the_model_of_the_source_cannot_join_is_refused(
    tmp_path: Path, loaded: LoadedModel, byte_model: SubwordModel
) -> None:
    tokenizer = Tokenizer(loaded.tokenizer.source, byte_model)
    wrong = with_languages(replace(loaded, tokenizer=tokenizer), "en", "de")
    with pytest.raises(ExchangeError, match="piece '<0x[0-9A-F]{2}>' of the target becomes"):
        export_argos(wrong, tmp_path, "float32")


@pytest.fixture
def byte_model() -> SubwordModel:
    from nmt.data.text.parallel_text import SentencePair
    from nmt.data.tokens.vocabulary import learn_vocabulary
    from nmt.recipe.config import TokenizerConfig

    config = TokenizerConfig(vocabulary_size=270, byte_fallback=True)
    return learn_vocabulary([SentencePair("abc abd", "ab ac")] * 9, config).source


@pytest.mark.parametrize(
    ("name", "version"),
    [("translate-en_de-1_9", "1.9"), ("translate-en_de", "1.0"), ("x-2", "2"), ("en-de", "1.0")],
)
def test_the_name_of_a_package_says_its_version(name: str, version: str) -> None:
    assert version_in(Path(f"{name}.argosmodel")) == version


def test_a_package_is_complete_or_absent(tmp_path: Path) -> None:
    with (
        pytest.raises(ConfigError, match="a package of Argos has a name such as"),
        create_package(tmp_path / "x.zip"),
    ):
        pass
    with pytest.raises(KeyError), create_package(tmp_path / "a.argosmodel"):
        raise KeyError
    (tmp_path / "b.argosmodel").write_text("")
    with pytest.raises(ConfigError, match="exists"), create_package(tmp_path / "b.argosmodel"):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["b.argosmodel"]
