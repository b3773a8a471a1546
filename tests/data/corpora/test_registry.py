"""A known corpus is found by its name, got once, and gives way to one's own files."""

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nmt.config import DataConfig, TextPair
from nmt.data.corpora import demo_corpus
from nmt.data.corpora import registry as corpora
from nmt.data.corpora.download import Origin
from nmt.data.corpora.hub import HubData
from nmt.data.corpora.registry import find_corpus, is_at_hand, known_corpora, obtain_corpus, resolve
from nmt.data.corpora.splits import SPLITS
from nmt.data.text.parallel_text import read_pairs
from nmt.errors import ConfigError, DataError


@pytest.fixture(autouse=True)
def no_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NMT_TEST_DATA", raising=False)


def pair(name: str) -> TextPair:
    return TextPair(source=f"{name}.en", target=f"{name}.de")


def count(text: TextPair | None) -> int:
    assert text is not None
    return sum(1 for _ in read_pairs(Path(text.source), Path(text.target)))


def write_three_lines(directory: Path, seed: int = 1) -> None:
    """A demo corpus that is quickly written."""
    for split in ("train", "validation", "test"):
        for language in ("en", "de"):
            (directory / f"{split}.{language}").write_text(f"{language}\n" * 3)


def test_names_are_unique_and_pairs_are_pairs() -> None:
    names = [corpus.name for corpus in known_corpora()]
    assert len(set(names)) == len(names)
    assert all(a != b for corpus in known_corpora() for a, b in corpus.language_pairs)


def test_own_files_need_no_corpus() -> None:
    splits = resolve(DataConfig(train=pair("a"), validation=pair("b"), test=pair("c")))
    assert (splits.train, splits.validation, splits.test) == ([pair("a")], pair("b"), pair("c"))
    assert resolve(DataConfig(train=pair("a"), validation=pair("b"))).test is None


def test_own_files_that_fill_every_split_make_the_corpus_unneeded(tmp_path: Path) -> None:
    own = {"train": pair("a"), "validation": pair("b"), "test": pair("c")}
    resolve(DataConfig(corpus="demo", directory=str(tmp_path), **own))
    assert list(tmp_path.iterdir()) == []


def test_own_files_take_the_place_of_the_corpus_split_by_split(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo_corpus, "write", write_three_lines)
    splits = resolve(DataConfig(corpus="demo", directory=str(tmp_path), validation=pair("mine")))
    assert splits.validation == pair("mine")
    assert splits.train[0].source == str(tmp_path / "demo" / "de-en" / "train.en")
    assert count(splits.test) == 3


def test_corpus_is_made_once_and_serves_both_directions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo_corpus, "write", write_three_lines)
    there = resolve(DataConfig(corpus="demo", directory=str(tmp_path)))
    monkeypatch.setattr(demo_corpus, "write", None)
    config = DataConfig(
        corpus="demo", directory=str(tmp_path), source_language="de", target_language="en"
    )
    back = resolve(config)
    there_text = there.train[0]
    assert back.train == [TextPair(source=there_text.target, target=there_text.source)]
    assert count(back.train[0]) == 3


def test_demo_corpus_is_generated_here(tmp_path: Path) -> None:
    messages: list[str] = []
    splits = resolve(DataConfig(corpus="demo", directory=str(tmp_path)), messages.append)
    assert messages == ["generating the demo corpus"]
    assert count(splits.train[0]) == demo_corpus.TRAIN_PAIRS
    assert count(splits.validation) == demo_corpus.VALIDATION_PAIRS
    assert count(splits.test) == demo_corpus.TEST_PAIRS


def test_failure_leaves_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(directory: Path) -> None:
        (directory / "train.en").write_text("half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(demo_corpus, "write", fail)
    with pytest.raises(DataError, match="cannot be written: No space left on device"):
        resolve(DataConfig(corpus="demo", directory=str(tmp_path)))
    assert [path.name for path in (tmp_path / "demo").glob("[!.]*")] == []


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
        resolve(DataConfig(**settings))


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        (None, None, ("en", "de")),
        ("de", None, ("de", "en")),
        (None, "fr", ("en", "fr")),
        ("fr", "en", ("fr", "en")),
        ("en", "fr", ("en", "fr")),
    ],
)
def test_language_left_open_is_the_first_that_fits(
    source: str | None, target: str | None, expected: tuple[str, str]
) -> None:
    assert find_corpus("multi30k").pair_of(source, target) == expected


@pytest.mark.parametrize(
    ("languages", "configuration"),
    [(("en", "de"), "de-en"), (("de", "en"), "de-en"), (("en", "fr"), "fr-en")],
)
def test_wmt14_is_asked_for_at_one_revision(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    languages: tuple[str, str],
    configuration: str,
) -> None:
    calls = []

    def write(data: HubData, pair: tuple[str, str], folder: Path, origin: Origin) -> None:
        calls.append((data.repository, data.configuration))
        assert pair == languages and data.splits == SPLITS
        assert data.revision and len(data.revision) == 40 and int(data.revision, 16)

    monkeypatch.setattr(corpora, "write_hub_text", write)
    splits = obtain_corpus(find_corpus("wmt14"), languages, tmp_path, None, lambda message: None)
    assert calls == [("wmt/wmt14", configuration)]
    folder = tmp_path / "wmt14" / "-".join(sorted(languages))
    assert splits.test == TextPair(
        source=str(folder / f"test.{languages[0]}"), target=str(folder / f"test.{languages[1]}")
    )


def test_copies_are_used_where_the_environment_names_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    origins: list[Path | None] = []
    for name in ("multi30k_tok", "elsewhere"):
        (tmp_path / name).mkdir()

    def write(folder: Path, languages: tuple[str, str], origin: Origin) -> None:
        origins.append(origin.folder)

    corpus = replace(find_corpus("multi30k_tokenized"), write=write)
    monkeypatch.setenv("NMT_TEST_DATA", str(tmp_path))
    for number, copies in enumerate((None, tmp_path / "elsewhere")):
        obtain_corpus(corpus, ("en", "de"), tmp_path / str(number), copies, lambda message: None)
    assert origins == [tmp_path / "multi30k_tok", tmp_path / "elsewhere"]


@pytest.mark.parametrize("languages", [("en", "it"), ("it", "en")])
def test_opus_books_is_one_training_text_at_one_revision(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, languages: tuple[str, str]
) -> None:
    calls: list[HubData] = []
    monkeypatch.setattr(corpora, "write_hub_text", lambda data, *rest: calls.append(data))
    corpus = find_corpus("opus_books")
    obtain_corpus(corpus, languages, tmp_path, None, lambda message: None)
    assert [(data.repository, data.configuration, data.splits) for data in calls] == [
        ("Helsinki-NLP/opus_books", "en-it", ("train",))
    ]
    assert calls[0].revision and len(calls[0].revision) == 40


def test_language_of_the_books_alone_means_its_pair_with_english() -> None:
    corpus = find_corpus("opus_books")
    for language in ("it", "de", "es", "sv", "el"):
        assert set(corpus.pair_of(None, language)) == {"en", language}


def test_downloads_of_one_pair_outlive_those_of_another(tmp_path: Path) -> None:
    waiting = tmp_path / "multi30k" / "de-fr.downloads" / "train.de.gz.part"
    waiting.parent.mkdir(parents=True)
    waiting.write_bytes(b"half")

    def write(folder: Path, languages: tuple[str, str], origin: Origin) -> None:
        origin.downloads.mkdir(parents=True)

    corpus = replace(find_corpus("multi30k"), write=write)
    obtain_corpus(corpus, ("de", "en"), tmp_path, None, lambda message: None)
    assert waiting.read_bytes() == b"half"
    assert not (tmp_path / "multi30k" / "de-en.downloads").exists()


@pytest.mark.parametrize("name", ["multi30k", "multi30k_tokenized"])
@pytest.mark.parametrize("languages", [("en", "de"), ("fr", "en"), ("de", "fr")])
def test_multi30k_comes_verified_from_copies(
    tmp_path: Path,
    test_data: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    languages: tuple[str, str],
) -> None:
    monkeypatch.setenv("NMT_TEST_DATA", str(test_data))
    source, target = languages
    config = DataConfig(
        corpus=name, source_language=source, target_language=target, directory=str(tmp_path)
    )
    splits = resolve(config)
    assert [count(text) for text in (*splits.train, splits.validation, splits.test)] == [
        29_000,
        1014,
        1000,
    ]
    assert str(splits.train[0].source).endswith(f".{source}")


def test_tatoeba_is_split_alike_everywhere(
    tmp_path: Path, test_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NMT_TEST_DATA", str(test_data))
    splits = resolve(
        DataConfig(corpus="tatoeba_en_fr", target_language="fr", directory=str(tmp_path))
    )
    digest = hashlib.sha256(Path(splits.validation.source).read_bytes()).hexdigest()
    assert digest.startswith("d56671897ad7")
    assert [count(text) for text in (*splits.train, splits.validation, splits.test)] == [
        160_858,
        2009,
        2063,
    ]
    assert sorted(path.suffix for path in (tmp_path / "tatoeba_en_fr" / "en-fr").iterdir()) == (
        [".en"] * 3 + [".fr"] * 3
    )


def test_a_corpus_is_at_hand_once_it_is_there(tmp_path: Path) -> None:
    config = DataConfig(corpus="demo", directory=str(tmp_path))
    assert not is_at_hand(config)
    resolve(config)
    assert is_at_hand(config)
    assert is_at_hand(DataConfig())
