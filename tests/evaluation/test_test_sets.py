"""Test sets come from sacreBLEU, which keeps them in a folder of its own, or from files."""

import hashlib
from pathlib import Path

import pytest
from sacrebleu.dataset import DATASETS

from nmt.data.text.lines import read_lines
from nmt.data.text.parallel_text import SentencePair
from nmt.errors import ConfigError, DataError
from nmt.evaluation import test_sets
from nmt.evaluation.test_sets import (
    EvaluationSet,
    find_split,
    list_official_sets,
    official_set,
    own_sets,
    set_of_pairs,
    set_of_references,
    translate_test_set,
)
from nmt.recipe.config import DataConfig, TextPair
from nmt.run.model import LoadedModel
from nmt.translation.translator import Translator

FIELDS = ("src", "ref", "docid", "genre", "origlang")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder where sacreBLEU keeps its test sets; there is no network."""

    def no_network(url: str) -> None:
        raise OSError("no network here")

    monkeypatch.setattr("urllib.request.urlopen", no_network)
    monkeypatch.setattr("sacrebleu.utils.SACREBLEU_DIR", str(tmp_path))
    for name, dataset in DATASETS.items():
        monkeypatch.setattr(dataset, "_outdir", str(tmp_path / name))
        monkeypatch.setattr(dataset, "_rawdir", str(tmp_path / name / "raw"))
    return tmp_path


def prepare(cache: Path, name: str, pair: str, **texts: str) -> None:
    """Write the files that sacreBLEU has once it has downloaded a test set."""
    (cache / name).mkdir(parents=True)
    for field in FIELDS:
        path = cache / name / f"{name.replace('/', '_')}.{pair}.{field}"
        path.write_text(texts.get(field, "x\nx\n"), "utf-8")


@pytest.mark.parametrize(
    ("name", "official_name", "languages", "lines"),
    [
        ("wmt19", "wmt19", ("en", "de"), 2),
        ("newstest2019", "wmt19", ("en_GB", "DE"), 2),
        ("wmt14", "wmt14", ("en", "de"), 2),
        ("newstest2014", "wmt14/full", ("en", "de"), 3003),
    ],
)
def test_a_set_that_is_in_the_cache_needs_no_network(
    cache: Path, name: str, official_name: str, languages: tuple[str, str], lines: int
) -> None:
    """The newstest2014 of the paper is wmt14/full. sacreBLEU knows no countries."""
    source, target = ["A dog\u2028barks"] * lines, ["Ein Hund bellt"] * lines
    texts = {"src": "\n".join(source), "ref": "\n".join(target)}
    prepare(cache, official_name, "en-de", **texts)
    expected = EvaluationSet(name, target, source, ("en", "de"), official_name)
    assert official_set(name, languages) == expected


@pytest.mark.parametrize(
    ("name", "lines", "message"),
    [
        ("wmt10", (2, 1), "2 sentences and 1 references of en-fr, expected as many"),
        ("wmt14/full", (9, 9), "9 sentences and 9 references of en-fr, expected 3003 of each"),
    ],
)
def test_a_set_that_is_incomplete_is_an_error(
    cache: Path, name: str, lines: tuple[int, int], message: str
) -> None:
    prepare(cache, name, "en-fr", src="one\n" * lines[0], ref="un\n" * lines[1])
    with pytest.raises(DataError, match=f"{cache / name}: {message}.*: delete it and try again"):
        official_set(name, ("en", "fr"))


def test_a_set_that_cannot_be_downloaded_is_an_error(cache: Path) -> None:
    message = "test set 'wmt13' cannot be loaded by sacreBLEU: no network here; check the network"
    with pytest.raises(DataError, match=f"{message}, delete {cache / 'wmt13'} and try again"):
        official_set("wmt13", ("en", "fr"))


def test_the_sets_of_sacrebleu_are_listed_by_direction() -> None:
    found = {listing.name: listing.use for listing in list_official_sets(("it", "en_GB"))}
    assert found["mtedx/test"] == "test" and found["mtedx/valid"] == "validation"
    assert "mtedx/test" not in {listing.name for listing in list_official_sets(("en", "it"))}
    french = {listing.name: listing.use for listing in list_official_sets(("en", "fr"))}
    assert french["mtnt1.1/train"] == "training" and french["iwslt17/dev2010"] == "validation"
    assert {"wmt14/full", "wmt15"} <= set(french)
    german = {listing.name for listing in list_official_sets(("en", "de"))}
    assert {f"wmt{year}" for year in range(15, 25)} <= german


@pytest.mark.parametrize(
    ("name", "pair", "message"),
    [
        ("wmt14/ful", ("en", "de"), "no test set 'wmt14/ful'; did you mean 'wmt14/full'.*--list"),
        ("x", ("en", "de"), "no test set 'x'; known are wmt13, wmt14/full and others"),
        ("wmt13", ("en", "it"), "test set 'wmt13' has no en-it; it has .*de-en, .*en-de"),
    ],
)
def test_an_unknown_set_is_an_error(name: str, pair: tuple[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        official_set(name, pair)


@pytest.mark.parametrize(
    ("languages", "is_known"),
    [(None, True), (("EN", "de_AT"), True), (("fr", "de"), False), (("de", "en"), False)],
)
def test_references_of_the_paper_are_recognised_in_its_languages(
    monkeypatch: pytest.MonkeyPatch, languages: tuple[str, str] | None, is_known: bool
) -> None:
    digest = hashlib.sha256(b"ein\nzwei\n").hexdigest()
    monkeypatch.setattr(test_sets, "FINGERPRINTS", {digest: ("wmt14/full", "en", "de")})
    found = set_of_references("mine.de", ["ein", "zwei"], languages)
    official = (("en", "de"), "wmt14/full") if is_known else (languages, "")
    assert found == EvaluationSet("mine.de", ["ein", "zwei"], None, *official)
    assert str(found) == ("mine.de (wmt14/full)" if is_known else "mine.de")
    pairs = [SentencePair("one", "ein"), SentencePair("two", "drei")]
    other = set_of_pairs("mine.de", pairs, languages)
    assert other == EvaluationSet("mine.de", ["ein", "drei"], ["one", "two"], languages)


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("newstest2014.ende.de", ("wmt14/full", "en", "de")),
        ("newstest2014.ende.en", ("wmt14/full", "de", "en")),
        ("newstest2014.enfr.fr", ("wmt14/full", "en", "fr")),
        ("newstest2014.enfr.en", ("wmt14/full", "fr", "en")),
        ("newstest2013.de", ("wmt13", "en", "de")),
        ("newstest2013.fr", ("wmt13", "en", "fr")),
    ],
)
def test_the_test_sets_of_the_paper_are_recognised(
    test_data: Path, file: str, expected: tuple[str, str, str]
) -> None:
    lines = list(read_lines(test_data / "newstest" / f"{file}.xz"))
    found = set_of_references("x", lines, None)
    assert (found.official_name, *(found.languages or ())) == expected
    assert len(lines) == test_sets.PAPER_SIZES[expected[0]]
    assert set_of_references("x", lines[:-1], None).languages is None


def test_json_tells_the_set_from_any_other() -> None:
    found = EvaluationSet("mine.de", ["ein", "zwei"], None, ("en", "de"), "wmt14/full").as_json()
    assert found == {
        "test_set": "mine.de",
        "official_name": "wmt14/full",
        "languages": "en-de",
        "sha256": hashlib.sha256(b"ein\nzwei\n").hexdigest(),
        "sentences": 2,
    }
    unknown = EvaluationSet("mine.de", ["ein"]).as_json()
    assert unknown["official_name"] is unknown["languages"] is None


def test_every_source_is_translated_and_counted(copying_run: LoadedModel) -> None:
    translator = Translator(copying_run)
    done: list[int] = []
    test_set = EvaluationSet("mine", ["ein Hund", "zwei"], ["a dog", "two"])
    assert translate_test_set(translator, test_set, done.append) == ["a dog", "two"]
    assert sum(done) == 2
    with pytest.raises(DataError, match="mine: no sentences to translate"):
        translate_test_set(translator, EvaluationSet("mine", [], []))
    with pytest.raises(DataError, match="mine: no sentences to translate"):
        translate_test_set(translator, EvaluationSet("mine", ["ein Hund"]))


def pairs_of(data: DataConfig, name: str) -> list[tuple[str, str]]:
    """The pairs of a set of a configuration."""
    found = find_split(data, name, print)
    return list(zip(found.sources or [], found.references, strict=True))


def test_a_split_comes_from_the_configuration(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / name).write_text(f"{name}\n")
    train, validation, test = (
        TextPair(source=str(tmp_path / name), target=str(tmp_path / "c"), tags=["de"])
        for name in "abc"
    )
    data = DataConfig(train=[train], validation=[validation], test=[test])
    assert pairs_of(data, "test") == [(">>de<<c", "c")]
    assert pairs_of(data, "validation") == [(">>de<<b", "c")]
    named = [validation.model_copy(update={"name": "b"}), test.model_copy(update={"name": "c"})]
    data = DataConfig(train=[train], validation=named, test=named[1:])
    assert pairs_of(data, "validation") == [(">>de<<b", "c"), (">>de<<c", "c")]
    assert pairs_of(data, "b") == [(">>de<<b", "c")]
    assert pairs_of(data, "c") == [(">>de<<c", "c")]
    assert own_sets(data) == ("validation", "test", "c", "b", "c")
    data = DataConfig(train=[train], validation=[validation])
    with pytest.raises(ConfigError, match="names no test set; give `source` and `reference`"):
        find_split(data, "test", print)


def test_a_set_is_in_the_languages_of_its_texts(tmp_path: Path) -> None:
    """Two languages on a side are ISO 639-2's `mul`: no rule of one of them holds for all."""
    path = tmp_path / "text"
    path.write_text("a\n")
    pairs = {"en-de": None, "en-fr": ["en", "fr"], "de-fr": ["de", "fr"]}
    texts = [
        TextPair(source=str(path), target=str(path), name=name, languages=languages)
        for name, languages in pairs.items()
    ]

    def languages(texts: list[TextPair], name: str = "test") -> tuple[str, str] | None:
        train = TextPair(source=str(path), target=str(path))
        data = DataConfig(train=[train], validation=[train], test=texts)
        return find_split(data, name, print).languages

    assert languages(texts) == ("mul", "mul")
    assert languages(texts[:2]) == ("en", "mul")
    assert languages(texts[1:]) == ("mul", "fr")
    assert languages(texts, "de-fr") == ("de", "fr")
    assert languages(texts[:1]) == ("en", "de")  # those of the recipe


def test_the_first_sentences_of_a_set_are_no_longer_that_set() -> None:
    whole = EvaluationSet("mine", ["a", "b"], ["c", "d"], ("en", "de"), "wmt13")
    assert whole.first(None) == whole.first(2) == whole
    assert whole.first(1) == EvaluationSet("mine", ["a"], ["c"], ("en", "de"))
