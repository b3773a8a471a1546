"""`nmt translate` with a glossary, forbidden words and what JSON lines ask for."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from nmt.data.text.words import any_of
from nmt.errors import DataError
from tests.cli.commands import fail, succeed


def lines(*arguments: str | Path, text: str) -> list[str]:
    return succeed("translate", *arguments, text=text).split("\n")[:-1]


def has(text: str, *terms: str) -> bool:
    return all(any_of((term,)).search(text) for term in terms)


def record(**keys: object) -> str:
    return json.dumps(keys)


@pytest.fixture
def glossary(tmp_path: Path) -> Path:
    path = tmp_path / "terms.tsv"
    path.write_text("dog\tHund\nsmall dog\tZwerg-Ω\n", "utf-8")
    return path


def test_the_glossary_holds_where_its_terms_occur(tiny_run: Path, glossary: Path) -> None:
    text = "a Dog\na small dog\na cat\n\n"
    found = lines("-m", tiny_run, "--glossary", glossary, text=text)
    free = lines("-m", tiny_run, text=text)
    assert has(found[0], "Hund") and has(found[1], "Zwerg-Ω")
    assert found[2:] == free[2:]


def test_forbidden_words_come_from_options_and_a_file(tiny_run: Path, tmp_path: Path) -> None:
    [free] = lines("-m", tiny_run, text="a dog")
    word = free.split()[0]
    (tmp_path / "words").write_text(f"\n{word}\n", "utf-8")
    for option in (("--forbid", word), ("--forbid-file", tmp_path / "words")):
        [found] = lines("-m", tiny_run, *option, text="a dog")
        assert word not in found.split()


def test_a_json_line_asks_for_its_own_terms(tiny_run: Path, glossary: Path) -> None:
    text = "\n".join(
        [
            record(source="a dog", terms={"dog": "Wolf"}),
            record(source="a dog", terms=["Wolf", "Bär"], target_prefix="Das "),
            record(source="a dog"),
        ]
    )
    found = lines("-m", tiny_run, "--json-input", "--glossary", glossary, text=text)
    assert has(found[0], "Wolf") and not has(found[0], "Hund")
    assert found[1].startswith("Das ") and has(found[1], "Wolf", "Bär", "Hund")
    assert has(found[2], "Hund")


@pytest.mark.parametrize("options", [("--document",), ("--mbr", "chrf"), ("--alignments",)])
def test_terms_go_with_all_ways_to_choose(
    tiny_run: Path, glossary: Path, options: tuple[str, ...]
) -> None:
    text = record(source="A dog. A cat.", target_prefix="Ein ", terms={"cat": "Katze"})
    options = (*options, "--json-input", "--glossary", str(glossary))
    [found] = lines("-m", tiny_run, *options, text=text)
    assert found.startswith("Ein ") and has(found, "Hund", "Katze")


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"terms": 3}, '"terms" is 3; expected source terms with their translations'),
        ({"terms": {"dog": 5}}, '"terms" is {"dog": 5}; expected'),
        ({"terms": {"dog": " "}}, "the translation of 'dog' -> ' ': the term ' ' is blank"),
        ({"forbidden": "a"}, '"forbidden" is "a"; expected a list of words'),
        ({"forbidden": ["a\nb"]}, "holds a line end; write it on one line"),
        ({"target_prefix": 1}, '"target_prefix" is 1; expected a string'),
        ({"terms": ["Hund"], "forbidden": ["hund"]}, "the line 'a dog': 'Hund' is asked for"),
    ],
)
def test_what_cannot_be_asked_for_is_refused(
    tiny_run: Path, keys: Mapping[str, object], message: str
) -> None:
    assert message in fail(
        DataError, "translate", "-m", tiny_run, "--json-input", text=record(source="a dog", **keys)
    )
