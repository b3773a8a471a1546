"""`nmt memory`: from an empty file to a memory that other programs read."""

import json
from pathlib import Path

import pytest

from nmt.errors import ConfigError, DataError
from tests.cli.commands import fail, invoke, lines_of, records_of, succeed

ROWS = "Article 12 applies here.\tL'article 12 s'applique ici.\nThe dog barks.\tLe chien aboie.\n"


@pytest.fixture
def memory(tmp_path: Path) -> Path:
    path = tmp_path / "laws.tm"
    made = invoke("memory", "create", path, "--languages", "en-fr")
    assert made.stderr == (
        f"{path}: an empty memory of translations from en to fr; next: "
        f"`nmt memory import {path} FILE` adds pairs\n"
    )
    result = invoke("memory", "add", path, "--author", "anna", text=f"{ROWS}\t \n")
    assert result.stderr == (
        f"stdin: 2 new pairs, 0 that were there already; left out: 1 empty; {path} has 2 pairs\n"
    )
    return path


def test_search_prints_score_source_and_target(memory: Path) -> None:
    assert lines_of("memory", "search", memory, "Article 15 applies here.") == [
        "1.00\tArticle 12 applies here.\tL'article 15 s'applique ici."
    ]
    [match] = records_of("memory", "search", memory, "The dog sleeps.", "--json")
    assert match == {
        "source": "The dog barks.",
        "target": "Le chien aboie.",
        "score": 0.75,
        "identity": 2,
        "same_context": False,
    }
    assert lines_of("memory", "search", memory, "The dog sleeps.", "--minimum", 0.8) == []


def test_words_that_differ_are_marked_in_a_terminal(
    memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nmt.cli.memory._is_terminal", lambda: True)
    [line] = lines_of("memory", "search", memory, "The dog sleeps.")
    assert line == "0.75\tThe dog \x1b[1;4mbarks\x1b[0m.\tLe chien aboie."


@pytest.mark.parametrize("suffix", ["tmx", "tsv", "xlf"])
def test_an_exported_memory_can_be_imported(memory: Path, tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"laws.{suffix}"
    succeed("memory", "export", memory, "-o", file)
    copy = tmp_path / "copy.tm"
    succeed("memory", "create", copy, "--languages", "en-fr")
    result = invoke("memory", "import", copy, file, file, "--domain", "law")
    new, again = result.stderr.splitlines()
    assert new == f"{file}: 2 new pairs, 0 that were there already; left out: none; " + (
        f"{copy} has 2 pairs"
    )
    assert "0 new pairs, 2 that were there already" in again
    facts = json.loads(succeed("memory", "stats", copy, "--json"))
    assert facts["pairs"] == facts["domains"]["law"] == 2
    assert facts["authors"] == ({} if suffix == "xlf" else {"anna": 2})
    succeed("memory", "export", copy, "-o", file, "--domain", "medicine")
    assert "Article" not in file.read_text("utf-8")


def test_sentences_of_a_test_set_are_found_and_named(memory: Path, tmp_path: Path) -> None:
    test = tmp_path / "test.en"
    test.write_text("the dog barks\nA cat.\n\nle chien aboie!\n", "utf-8")
    *_, counts, first, second = lines_of("memory", "stats", memory, "--test", test)
    assert counts == "test: 2 of 3 sentences are in the memory"
    assert [first, second] == ["  the dog barks", "  le chien aboie!"]
    test.write_text("\n", "utf-8")
    assert "has no sentence to look for" in fail(
        ConfigError, "memory", "stats", memory, "--test", test
    )


def test_wrong_input_is_one_sentence(memory: Path, tmp_path: Path) -> None:
    missing = tmp_path / "none.tm"
    assert "no such memory" in fail(DataError, "memory", "search", missing, "text")
    assert "exists already" in fail(ConfigError, "memory", "create", memory, "--languages", "en-fr")
    assert "expected the codes" in fail(
        ConfigError, "memory", "create", missing, "--languages", "enfr"
    )
    assert "is no format of a memory" in fail(
        ConfigError, "memory", "export", memory, "-o", tmp_path / "a.doc"
    )
    assert not (tmp_path / "a.doc").exists()
    assert "are the same file" in fail(ConfigError, "memory", "export", memory, "-o", memory)
    table = tmp_path / "wrong.tsv"
    table.write_text("Le juge a lu toute la lettre.\tThe judge has read the letter.\n" * 3, "utf-8")
    assert "the other way round?" in fail(DataError, "memory", "import", memory, table)
    assert "laws.tm: no such file" not in fail(DataError, "memory", "import", memory, missing)
