"""A corpus is found by its name or address, got once, and gives way to the user's own files."""

import hashlib
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nmt.data.corpora import demo_corpus, registry
from nmt.data.corpora.hub import HubData
from nmt.data.corpora.origin import Origin
from nmt.data.corpora.registry import (
    check_files,
    find_corpus,
    find_held_out,
    find_splits,
    obtain_corpus,
    obtain_splits,
)
from nmt.data.corpora.splits import SPLITS, Languages
from nmt.data.prepared import prepare
from nmt.data.text.parallel_text import ParallelText
from nmt.errors import ConfigError, DataError
from nmt.recipe.config import DataConfig, TextPair
from nmt.recipe.config_file import load_config
from tests.data.corpora.site import names, origin_in, silent, split_names


@pytest.fixture(autouse=True)
def no_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NMT_TEST_DATA", raising=False)


def obtained_by(write: Any, name: str, folder: Path, copies: Path | None = None) -> None:
    """Obtain a corpus whose text another function writes."""
    corpus = replace(find_corpus(name), write=lambda _, languages, origin: write(origin))
    obtain_corpus(corpus, ("de", "en"), folder, copies, silent)


def pair(name: str) -> TextPair:
    return TextPair(source=f"{name}.en", target=f"{name}.de")


def counts(*texts: TextPair | None) -> list[int]:
    return [sum(1 for _ in ParallelText(text)) for text in texts if text]


# -- files ----------------------------------------------------------------------------------------


def test_own_files_need_no_corpus(tmp_path: Path) -> None:
    own: dict[str, Any] = {"train": pair("a"), "validation": pair("b"), "test": pair("c")}
    for corpus in (None, "demo"):
        splits = obtain_splits(DataConfig(corpus=corpus, directory=str(tmp_path), **own))
        assert splits == registry.Splits([pair("a")], [pair("b")], [pair("c")])
    assert names(tmp_path) == []
    assert obtain_splits(DataConfig(train=[pair("a")], validation=[pair("b")])).test == []


def test_a_corpus_is_made_once_serves_both_directions_and_gives_way_to_own_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(directory: Path) -> None:
        for name in split_names("en", "de"):
            (directory / name).write_text("a line\n" * 3)

    monkeypatch.setattr(demo_corpus, "write", write)
    config = DataConfig(corpus="demo", directory=str(tmp_path))
    back = config.model_copy(update={"source_language": "de", "target_language": "en"})
    assert find_splits(config) is None
    messages: list[str] = []
    there = obtain_splits(config, messages.append)
    assert messages == ["generating the demo corpus"]
    assert there.train[0].source == str(tmp_path / "demo" / "de-en" / "train.en")
    assert counts(*there.train, *there.held_out) == [3, 3, 3]
    assert find_splits(config) == there
    monkeypatch.setattr(demo_corpus, "write", None)
    train = there.train[0]
    assert obtain_splits(back).train == [TextPair(source=train.target, target=train.source)]
    mine = obtain_splits(config.model_copy(update={"validation": [pair("mine")]}))
    assert mine == replace(there, validation=[pair("mine")])


def test_held_out_text_is_found_without_a_download_and_what_lacks_is_named(tmp_path: Path) -> None:
    for name in ("here.en", "here.de"):
        (tmp_path / name).write_text("a line\n")
    here, url = pair(f"{tmp_path}/here"), TextPair(file="nosuchservice://a/b.tsv")
    own = DataConfig(validation=[here], test=[pair("lost"), url])
    assert find_held_out(own) == ([here], ["lost.en, lost.de", "nosuchservice://a/b.tsv"])
    for corpus in ("demo", "no_such_corpus"):
        config = DataConfig(corpus=corpus, directory=str(tmp_path), validation=[here])
        assert find_held_out(config) == ([here], [f"corpus '{corpus}'"])
    assert find_held_out(DataConfig()) == ([], [])


def test_a_corpus_without_training_text_goes_with_own_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(directory: Path) -> None:
        for name in ("test.en", "test.de"):
            (directory / name).write_text("a line\n")

    monkeypatch.setattr(demo_corpus, "write", write)
    config = DataConfig(corpus="demo", directory=str(tmp_path))
    with pytest.raises(ConfigError, match="data.train is not given, and corpus 'demo' has none;"):
        obtain_splits(config)
    own: dict[str, Any] = {"train": [pair("a")]}
    with pytest.raises(ConfigError, match="data.validation is not given, and corpus 'demo' has n"):
        obtain_splits(config.model_copy(update=own))
    own["validation"] = [pair("b")]
    splits = obtain_splits(config.model_copy(update=own))
    assert splits.train == [pair("a")] and splits.validation == [pair("b")]
    assert counts(*splits.test) == [1]
    assert find_held_out(config) == (splits.test, [])
    assert find_held_out(config.model_copy(update=own)) == (splits.test, ["b.en, b.de"])


def test_a_failure_leaves_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(directory: Path) -> None:
        (directory / "train.en").write_text("half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(demo_corpus, "write", fail)
    with pytest.raises(DataError, match="cannot be written: No space left on device"):
        obtain_splits(DataConfig(corpus="demo", directory=str(tmp_path)))
    assert [path.name for path in (tmp_path / "demo").glob("[!.]*")] == []


def test_copies_are_used_where_the_environment_names_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    origins: list[Origin] = []
    for name in ("multi30k_tok", "elsewhere"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("NMT_TEST_DATA", str(tmp_path))
    for number, copies in enumerate((None, tmp_path / "elsewhere")):
        obtained_by(origins.append, "multi30k_tokenized", tmp_path / str(number), copies)
    folders = [origin.folder for origin in origins]
    assert folders == [tmp_path / "multi30k_tok", tmp_path / "elsewhere"]


def test_downloads_of_one_pair_outlive_those_of_another(tmp_path: Path) -> None:
    waiting = tmp_path / "multi30k" / "de-fr.downloads" / "train.de.gz.part"
    waiting.parent.mkdir(parents=True)
    waiting.write_bytes(b"half")
    obtained_by(lambda origin: origin.downloads.mkdir(), "multi30k", tmp_path)
    assert waiting.read_bytes() == b"half"
    assert not (tmp_path / "multi30k" / "de-en.downloads").exists()


# -- names, addresses and languages ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "data.train is not given; name its source and target files, or set data.corpus"),
        ({"train": pair("a")}, "data.validation is not given"),
        ({"corpus": "multi30"}, "unknown corpus 'multi30'; did you mean 'multi30k'.*nmt data list"),
        ({"corpus": "x"}, "unknown corpus 'x'; known: demo, multi30k, .*nmt data list"),
        ({"corpus": "demo", "target_language": "fr"}, "'demo' has no en-fr; it has en-de, in both"),
        ({"corpus": "demo", "target_language": "en"}, "'demo' has no en-en"),
        (
            {"corpus": "multi30k", "target_language": "cs"},
            "'multi30k' has no en-cs; it has en-de, en-fr, de-fr, in both directions",
        ),
    ],
)
def test_what_cannot_be_resolved_says_what_can(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        obtain_splits(DataConfig(**settings))


@pytest.mark.parametrize(
    "name",
    ["hf:", "hf:wmt14", "hf:wmt14:de-en", "hf:a/../b:c", "hf:../a", "hf:a/b/c", "hf:a/b:c:d"]
    + ["hf:a/b@../x", "hf:a/b@:c", "hf:/etc/passwd", "opus:", "opus:a/b", "opus:..", "opus:a:b:c"],
)
def test_a_wrong_address_is_told(name: str) -> None:
    kind = name.partition(":")[0]
    with pytest.raises(ConfigError, match=f"'{name}' is no address of a corpus; expected {kind}:"):
        find_corpus(name)


@pytest.mark.parametrize(
    ("name", "source", "target", "expected"),
    [
        ("multi30k", None, None, ("en", "de")),
        ("multi30k", "de", None, ("de", "en")),
        ("multi30k", None, "fr", ("en", "fr")),
        ("multi30k", "fr", "en", ("fr", "en")),
        ("opus_books", None, "it", ("en", "it")),
        ("opus_books", None, "de", ("en", "de")),
        ("opus_books", None, "el", ("en", "el")),
        ("hf:wmt/wmt16:de-en", None, None, ("de", "en")),
        ("hf:wmt/wmt16:de-en", "en", None, ("en", "de")),
        ("hf:IWSLT/x:iwslt2017-en-it", None, None, ("en", "it")),
        ("hf:a/b:ro_en", None, None, ("ro", "en")),
        ("hf:a/b", "en", "pt_br", ("en", "pt_br")),
        ("hf:a/b:en-en", "en", "fr", ("en", "fr")),
        ("opus:Books", "en", "pt_br", ("en", "pt_br")),
    ],
)
def test_a_language_left_open_is_the_first_that_fits(
    name: str, source: str | None, target: str | None, expected: Languages
) -> None:
    corpus = find_corpus(name)
    assert corpus.pair_of(source, target) == expected
    if corpus.language_pairs:
        with pytest.raises(ConfigError, match=r"has no xx-any; it has ..-.."):
            corpus.pair_of("xx", None)


@pytest.mark.parametrize("name", ["hf:a/b", "hf:a/b:plain", "hf:a/b:en-en", "opus:Books"])
def test_languages_that_nothing_tells_must_be_named(name: str) -> None:
    corpus = find_corpus(name)
    for source, target in ((None, None), ("en", None), (None, "fr"), ("en", "en")):
        with pytest.raises(ConfigError, match="which languages. got .*; name two .*`source_lang"):
            corpus.pair_of(source, target)
    for bad in ("../en", "", "e n", "_"):
        with pytest.raises(ConfigError, match=f"'{bad}' names no language of a corpus"):
            corpus.pair_of(bad, "fr")


# -- what is asked for ----------------------------------------------------------------------------

WMT14 = "b199e406369ec1b7634206d3ded5ba45de2fe696"
BOOKS = "1f9f6191d0e91a3c539c2595e2fe48fc1420de9b"


@pytest.mark.parametrize(
    ("name", "language", "data"),
    [
        ("wmt14", "de", HubData("wmt/wmt14", "de-en", WMT14, SPLITS)),
        ("wmt14", "fr", HubData("wmt/wmt14", "fr-en", WMT14, SPLITS)),
        ("opus_books", "it", HubData("Helsinki-NLP/opus_books", "en-it", BOOKS)),
        ("hf:wmt/wmt16:de-en", "de", HubData("wmt/wmt16", "de-en", None)),
        ("hf:bentrevett/multi30k", "de", HubData("bentrevett/multi30k", None, None)),
        ("hf:a/b@v1.0:c_d", "de", HubData("a/b", "c_d", "v1.0")),
        ("hf:a/b@refs/heads/x", "de", HubData("a/b", None, "refs/heads/x")),
        ("opus:Books", "de", {"corpus": "Books", "version": None}),
        ("opus:QED:v2.0a", "de", {"corpus": "QED", "version": "v2.0a"}),
    ],
)
def test_the_hub_and_opus_are_asked_for_the_corpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, language: str, data: Any
) -> None:
    calls: list[Any] = []
    monkeypatch.setattr(registry, "write_hub_text", lambda _, *call, data: calls.append(data))
    monkeypatch.setattr(registry, "write_moses", lambda _, *call, **data: calls.append(data))
    corpus = find_corpus(name)
    for languages in ((language, "en"), ("en", language)):
        corpus.write(tmp_path, languages, origin_in(tmp_path))
    assert calls == [data, data]
    assert Path(corpus.folder).name == corpus.folder and ":" not in corpus.folder


# -- real text ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "languages", "sizes"),
    [
        ("multi30k", ("en", "de"), [29_000, 1014, 1000]),
        ("multi30k", ("fr", "en"), [29_000, 1014, 1000]),
        ("multi30k_tokenized", ("de", "fr"), [29_000, 1014, 1000]),
        ("multi30k_tokenized", ("en", "de"), [29_000, 1014, 1000]),
        ("tatoeba_en_fr", ("en", "fr"), [160_858, 2009, 2063]),
    ],
)
def test_a_corpus_comes_verified_from_copies_and_is_split_alike_everywhere(
    tmp_path: Path, test_data: Path, name: str, languages: Languages, sizes: list[int]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NMT_TEST_DATA", str(test_data))
        texts = obtain_corpus(find_corpus(name), languages, tmp_path, None, silent)
    assert counts(*texts.values()) == sizes
    assert str(texts["train"].source).endswith(f".{languages[0]}")
    assert names(tmp_path / name / "-".join(sorted(languages))) == split_names(*languages)
    if name == "tatoeba_en_fr":
        digest = hashlib.sha256(Path(texts["validation"].paths[0]).read_bytes()).hexdigest()
        assert digest.startswith("d56671897ad7")


def test_the_recipe_of_six_directions_says_what_downloads_its_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError) as raised:
        prepare(load_config("multi30k_six_directions.yaml"), lambda message: None)
    assert str(raised.value) == (
        "data/multi30k/de-en/train.en: no such file; `nmt data download multi30k "
        "--source-language de --target-language en` downloads it"
    )


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        ("texts/iwslt2017/de-en/train.en", "--target-language en --directory texts` downloads it"),
        ("texts/mine/de-en/train.en", "check data.train in the configuration"),
        ("texts/iwslt2017/train.en", "check data.train in the configuration"),
        ("elsewhere/iwslt2017/de-en/train.en", "check data.train in the configuration"),
    ],
)
def test_only_a_file_of_a_known_corpus_can_be_downloaded(path: str, hint: str) -> None:
    with pytest.raises(DataError, match=f"{path}: no such file; ") as raised:
        check_files([TextPair(source=path, target=path)], "data.train", Path("texts"))
    assert str(raised.value).endswith(hint)


def test_the_command_that_downloads_can_be_pasted() -> None:
    path = "my texts/iwslt2017/de-en/train.en"
    with pytest.raises(DataError, match="--directory 'my texts'` downloads it"):
        check_files([TextPair(source=path, target=path)], "data.train", Path("my texts"))


def test_a_file_is_not_missing_and_a_folder_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "text").touch()
    file, folder = str(tmp_path / "text"), str(tmp_path)
    check_files([TextPair(source=file, target=file)], "data.train", tmp_path)
    pipe = str(tmp_path / "pipe")
    os.mkfifo(pipe)
    with pytest.raises(DataError, match="pipe: is a pipe or a device, and this text is read more"):
        check_files([TextPair(source=pipe, target=file)], "data.train", tmp_path)
    with pytest.raises(DataError, match="is a folder, expected a file; check data.train in the"):
        check_files([TextPair(source=file, target=folder)], "data.train", tmp_path)
