"""Memories in files: what goes out comes in again, and pairs that do harm stay out, counted."""

import gzip
from pathlib import Path

import pytest

from nmt.errors import ConfigError, DataError
from nmt.memory.match import MemoryPair
from nmt.memory.transfer import (
    MemoryRules,
    read_memory_pairs,
    read_rows,
    write_memory_pairs,
)

LANGUAGES = ("en", "fr")
PAIRS = [
    MemoryPair('A <b> & "c"', "Un <b> & «c»", 1_700_000_000, "anna <a@b.org>", "law", "Before."),
    MemoryPair("The dog barks.", "Le chien aboie\xa0!", 1_600_000_000),
]


def written(path: Path, pairs: list[MemoryPair]) -> Path:
    path.write_bytes(b"".join(write_memory_pairs(pairs, LANGUAGES, path.suffix)))
    return path


@pytest.mark.parametrize("name", ["memory.tmx", "memory.tsv"])
def test_what_is_exported_is_imported_with_all_that_is_known(tmp_path: Path, name: str) -> None:
    path = written(tmp_path / name, PAIRS)
    assert list(read_memory_pairs(path, LANGUAGES)) == PAIRS
    packed = tmp_path / f"{name}.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert list(read_memory_pairs(packed, LANGUAGES)) == PAIRS


def test_pairs_of_an_xliff_have_the_source_before_as_their_context(tmp_path: Path) -> None:
    found = list(read_memory_pairs(written(tmp_path / "memory.xlf", PAIRS), LANGUAGES))
    assert [(p.source, p.target) for p in found if p] == [(p.source, p.target) for p in PAIRS]
    assert [pair.context for pair in found if pair] == ["", PAIRS[0].source]


def test_a_memory_of_the_other_direction_is_turned_round(tmp_path: Path) -> None:
    path = written(tmp_path / "memory.tmx", PAIRS)
    found = list(read_memory_pairs(path, ("fr", "en")))
    assert [(p.source, p.target, p.author) for p in found if p] == [
        (pair.target, pair.source, pair.author) for pair in PAIRS
    ]
    with pytest.raises(DataError, match="has no text in de with its translation into en"):
        list(read_memory_pairs(path, ("de", "en")))


def test_what_xml_cannot_hold_is_replaced(tmp_path: Path) -> None:
    path = written(tmp_path / "memory.tmx", [MemoryPair("a\x01b\ud800", "c")])
    [pair] = read_memory_pairs(path, LANGUAGES)
    assert pair
    assert pair.source == "a\ufffdb\ufffd"


@pytest.mark.parametrize(
    ("languages", "expected"),
    [
        (("en", "fr"), MemoryPair("The color.", "La couleur (FR).", 0, "marie")),
        (("en_GB", "fr_CA"), MemoryPair("The colour.", "La couleur.", 1_704_067_200, "luc")),
        (("de", "en_US"), MemoryPair("Die Farbe.", "The color.", 0, "anna")),
        (("fr_CA", "de"), MemoryPair("La couleur.", "Die Farbe.", 0, "anna")),
    ],
)
def test_author_and_time_are_those_of_the_variant_that_is_taken(
    tmp_path: Path, languages: tuple[str, str], expected: MemoryPair
) -> None:
    path = tmp_path / "memory.tmx"
    path.write_text(
        '<tmx version="1.4"><header srclang="*all*"/><body><tu changeid="anna">'
        '<tuv xml:lang="en-US"><seg>The color.</seg></tuv>'
        '<tuv xml:lang="en-GB"><seg>The colour.</seg></tuv>'
        '<tuv xml:lang="fr-CA" changeid="luc" changedate="20240101T000000Z">'
        "<seg>La <bpt>{b}</bpt>couleur<ept>{/b}</ept>.</seg></tuv>"
        '<tuv xml:lang="fr-FR" changeid="marie"><seg>La couleur (FR).</seg></tuv>'
        '<tuv xml:lang="de-DE"><seg>Die Farbe.</seg></tuv></tu></body></tmx>',
        "utf-8",
    )
    assert list(read_memory_pairs(path, languages)) == [expected]


def test_a_time_may_be_missing_or_of_another_form(tmp_path: Path) -> None:
    text = written(tmp_path / "memory.tmx", PAIRS[1:]).read_text("utf-8")
    for date in ("2026", ""):
        (tmp_path / "memory.tmx").write_text(text.replace("20200913T122640Z", date), "utf-8")
        [pair] = read_memory_pairs(tmp_path / "memory.tmx", LANGUAGES)
        assert pair
        assert pair.time == 0


def test_a_line_without_a_target_or_with_no_time_is_named() -> None:
    with pytest.raises(DataError, match="stdin:2: one column, expected source and target"):
        list(read_rows(["a\tb", "c"], "stdin"))
    with pytest.raises(DataError, match=r"stdin:2: .*expected a time such as"):
        list(read_rows(["source\ttarget\ttime", "a\tb\tnow"], "stdin"))
    assert list(read_rows(["a\tb\tnow"], "stdin")) == [MemoryPair("a", "b")]
    head = "source\ttarget\ttime"
    for time in ("2023-11-14T22:13:20Z", "2023-11-14T22:13:20", "2023-11-15T00:13:20+02:00"):
        [pair] = read_rows([head, f"a\tb\t{time}"], "stdin")
        assert pair.time == 1_700_000_000
    assert [pair.time for pair in read_rows([head, "a\tb\t"], "stdin")] == [0]
    with pytest.raises(ConfigError, match="'.doc' is no format of a memory"):
        list(write_memory_pairs([], LANGUAGES, ".doc"))


def test_pairs_that_do_harm_are_left_out_and_counted() -> None:
    good = MemoryPair("The judge has read the whole letter.", "Le juge a lu toute la lettre.")
    harmful: list[MemoryPair | None] = [
        MemoryPair("a", " "),
        MemoryPair("a " * 10_000, "b"),
        MemoryPair("The same sentence.", "The same sentence."),
        MemoryPair("a\x00", "b"),
        MemoryPair("a\udcff", "b"),
        MemoryPair(good.source, "Der Richter hat den ganzen Brief sehr genau gelesen und lacht."),
        None,
    ]
    rules = MemoryRules(LANGUAGES)
    assert list(rules.keep([*[good] * 5, *harmful], "a.tmx")) == [good] * 5
    assert rules.describe() == (
        "1 empty, 1 of over 1,000 words, 1 target repeats source, 1 with control characters, "
        "1 not UTF-8, 1 in another language, 1 without a translation"
    )
    unchecked = MemoryRules(LANGUAGES, only_empty=True)
    assert len(list(unchecked.keep(harmful, "a.tmx"))) == 4
    assert unchecked.describe() == "1 empty, 1 not UTF-8, 1 without a translation"


def test_a_file_in_other_languages_adds_nothing() -> None:
    pair = MemoryPair("Le juge a lu toute la lettre.", "The judge has read the whole letter.")
    with pytest.raises(DataError, match=r"8 of 8 pairs are not in en-fr.*the other way round\?"):
        list(MemoryRules(LANGUAGES).keep([pair] * 8, "a.tsv"))
