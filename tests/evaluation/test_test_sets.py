"""Test sets come from sacreBLEU, which keeps them in a folder of its own, or from files."""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from nmt.config import DataConfig, TextPair
from nmt.data.text.lines import read_lines
from nmt.data.text.parallel_text import ParallelText, SentencePair
from nmt.errors import ConfigError, DataError
from nmt.evaluation import test_sets
from nmt.evaluation.test_sets import (
    EvaluationSet,
    find_split,
    official_set,
    set_of_pairs,
    set_of_references,
    translate_test_set,
)
from nmt.translation.line import Translation

PROJECT = Path(__file__).resolve().parents[2]
# in a process of its own: sacreBLEU reads the environment when it is imported
SCRIPT = """
import json, sys, urllib.request
from nmt.errors import NmtError
from nmt.evaluation.test_sets import official_set

def refuse(url):
    raise OSError("no network here")

urllib.request.urlopen = refuse
try:
    found = official_set(sys.argv[1], tuple(sys.argv[2].split("-")))
    print(json.dumps([found.name, found.official_name, found.sources, found.references]))
except NmtError as error:
    print(json.dumps(str(error)))
"""
FIELDS = ("src", "ref", "docid", "genre", "origlang")


def asked(cache: Path, name: str, pair: str) -> object:
    environment = os.environ | {"SACREBLEU": str(cache), "PYTHONPATH": str(PROJECT)}
    command = [sys.executable, "-c", SCRIPT, name, pair]
    result = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True, timeout=60
    )
    return json.loads(result.stdout)


def prepare(cache: Path, name: str, pair: str, **texts: str) -> None:
    """The files that sacreBLEU writes once it has a test set."""
    (cache / name).mkdir(parents=True)
    for field in FIELDS:
        path = cache / name / f"{name.replace('/', '_')}.{pair}.{field}"
        path.write_text(texts.get(field, "x\nx\n"), "utf-8")


@pytest.mark.parametrize(
    ("name", "known"),
    [("wmt19", "wmt19"), ("newstest2019", "wmt19"), ("wmt14", "wmt14")],
)
def test_set_in_the_cache_needs_no_network(tmp_path: Path, name: str, known: str) -> None:
    prepare(tmp_path, known, "en-de", src="A dog\u2028barks\nTwo\n", ref="Ein Hund bellt\nZwei\n")
    texts = [["A dog\u2028barks", "Two"], ["Ein Hund bellt", "Zwei"]]
    assert asked(tmp_path, name, "en-de") == [name, known, *texts]


def test_the_papers_test_set_is_the_whole_one(tmp_path: Path) -> None:
    lines = "x\n" * 3003
    prepare(tmp_path, "wmt14/full", "en-de", src=lines, ref=lines)
    found = asked(tmp_path, "newstest2014", "en-de")
    assert isinstance(found, list)
    assert found[1] == "wmt14/full"
    assert len(found[3]) == 3003


def test_the_papers_test_set_has_its_size(tmp_path: Path) -> None:
    lines = "x\n" * 2737
    prepare(tmp_path, "wmt14/full", "en-de", src=lines, ref=lines)
    message = str(asked(tmp_path, "newstest2014", "en-de"))
    assert "2737 sentences and 2737 references of en-de, expected 3003 of each" in message


def test_set_in_parts_is_refused(tmp_path: Path) -> None:
    prepare(tmp_path, "wmt10", "en-fr", src="one\ntwo\n", ref="un\n")
    message = asked(tmp_path, "wmt10", "en-fr")
    assert "2 sentences and 1 references of en-fr, expected as many" in str(message)


def test_set_that_cannot_be_downloaded_is_told(tmp_path: Path) -> None:
    message = str(asked(tmp_path, "wmt13", "en-fr"))
    assert message.startswith("test set 'wmt13' cannot be loaded by sacreBLEU: no network here; ch")
    assert f"delete {tmp_path / 'wmt13'} and try again" in message


@pytest.mark.parametrize(
    ("name", "pair", "message"),
    [
        ("wmt14/ful", ("en", "de"), "no test set 'wmt14/ful'; did you mean 'wmt14/full'.*--list"),
        ("x", ("en", "de"), "no test set 'x'; known are wmt13, wmt14/full and others"),
        ("wmt13", ("en", "it"), "test set 'wmt13' has no en-it; it has .*de-en, .*en-de"),
    ],
)
def test_unknown_set_is_told(name: str, pair: tuple[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        official_set(name, pair)


def test_references_of_the_paper_are_recognised(monkeypatch: pytest.MonkeyPatch) -> None:
    digest = hashlib.sha256(b"ein\nzwei\n").hexdigest()
    monkeypatch.setattr(test_sets, "FINGERPRINTS", {digest: ("wmt14/full", "en", "de")})
    found = set_of_references("mine.de", ["ein", "zwei"], None)
    assert found == EvaluationSet("mine.de", ["ein", "zwei"], None, ("en", "de"), "wmt14/full")
    assert str(found) == "mine.de (wmt14/full)"
    pairs = [SentencePair("one", "ein"), SentencePair("two", "drei")]
    other = set_of_pairs("mine.de", pairs, ("en", "fr"))
    assert other == EvaluationSet("mine.de", ["ein", "drei"], ["one", "two"], ("en", "fr"))
    assert str(other) == "mine.de"


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
def test_the_real_ones_are_recognised(
    test_data: Path, file: str, expected: tuple[str, str, str]
) -> None:
    lines = list(read_lines(test_data / "newstest" / f"{file}.xz"))
    found = set_of_references("x", lines, None)
    assert (found.official_name, *(found.languages or ())) == expected
    assert len(lines) == test_sets.PAPER_SIZES[expected[0]]
    assert set_of_references("x", lines[:-1], None).languages is None


@pytest.mark.parametrize("languages", [("EN", "DE"), ("en_GB", "de_DE"), ("en", "de")])
def test_a_country_and_capitals_change_nothing(test_data: Path, languages: tuple[str, str]) -> None:
    lines = list(read_lines(test_data / "newstest" / "newstest2014.ende.de.xz"))
    found = set_of_references("ref.de", lines, languages)
    assert (found.official_name, found.languages) == ("wmt14/full", ("en", "de"))
    other = set_of_references("ref.de", lines, ("fr_FR", "DE"))
    assert (other.official_name, other.languages) == ("", ("fr_FR", "DE"))


def test_sacrebleu_is_asked_without_the_country(tmp_path: Path) -> None:
    prepare(tmp_path, "wmt19", "en-de", src="One\n", ref="Eins\n")
    assert asked(tmp_path, "wmt19", "en_GB-DE") == ["wmt19", "wmt19", ["One"], ["Eins"]]


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


def test_another_direction_than_the_papers_is_not_the_papers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    digest = hashlib.sha256(b"ein Hund\n").hexdigest()
    monkeypatch.setattr(test_sets, "FINGERPRINTS", {digest: ("wmt13", "en", "de")})
    pairs = [SentencePair("un chien", "ein Hund")]
    names = {
        languages: (found := set_of_pairs("x", pairs, languages)).official_name
        for languages in (None, ("en", "de"), ("fr", "de"))
    }
    assert names == {None: "wmt13", ("en", "de"): "wmt13", ("fr", "de"): ""}
    assert found.languages == ("fr", "de")


class Shouter:
    """A translator into capitals."""

    def translate(
        self, texts: Iterable[str], warn: Callable[[str], None], progress: Callable[[int], Any]
    ) -> Iterator[Translation]:
        for text in texts:
            progress(1)
            yield Translation(text.upper(), 0.0)


def test_every_source_is_translated_and_counted() -> None:
    translator: Any = Shouter()
    done: list[int] = []
    test_set = EvaluationSet("mine", ["ein Hund", "zwei"], ["a dog", "two"])
    assert translate_test_set(translator, test_set, print, done.append) == ["A DOG", "TWO"]
    assert sum(done) == 2


@pytest.mark.parametrize("sources", [None, []])
def test_a_test_set_without_sources_is_an_error(sources: list[str] | None) -> None:
    translator: Any = Shouter()
    with pytest.raises(DataError, match="mine: no sentences to translate"):
        translate_test_set(translator, EvaluationSet("mine", [], sources), print)


def pair(name: str) -> TextPair:
    return TextPair(source=f"{name}.en", target=f"{name}.de")


def test_the_split_comes_from_the_configuration() -> None:
    data = DataConfig(train=[pair("train")], validation=pair("dev"), test=pair("test"))
    log: list[str] = []
    assert find_split(data, "test", log.append) == ParallelText(pair("test"), ("en", "de"))
    assert find_split(data, "validation", log.append) == ParallelText(pair("dev"), ("en", "de"))


def test_a_missing_split_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    splits = SimpleNamespace(validation=pair("dev"), test=None)
    monkeypatch.setattr(test_sets, "resolve", lambda config, log: splits)
    with pytest.raises(ConfigError, match="names no test set; give --source and --reference"):
        find_split(DataConfig(), "test", print)
