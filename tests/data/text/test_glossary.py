from pathlib import Path

import pytest

from nmt.data.text.glossary import Glossary, read_glossary, read_words
from nmt.errors import DataError


def targets(terms: dict[str, str], text: str) -> list[str]:
    return [occurrence.target for occurrence in Glossary(terms).occurrences(text)]


def test_the_longest_term_is_found_and_none_inside_it() -> None:
    terms = {"new york": "1", "new york city": "2", "city": "3"}
    assert targets(terms, "New York City and New York, a city") == ["2", "1", "3"]


def test_a_term_counts_as_often_as_it_occurs() -> None:
    assert targets({"dog": "Hund"}, "Dog's dog, dogs and dog-lovers: DOG") == ["Hund"] * 3


def test_a_capital_asks_for_this_spelling_and_comes_first() -> None:
    terms = {"polish": "polieren", "Polish": "polnisch"}
    assert targets(terms, "polish Polish POLISH") == ["polieren", "polnisch", "polieren"]


def test_accents_are_compared_however_they_are_coded() -> None:
    assert targets({"caf\u00e9": "Kaffeehaus"}, "cafe\u0301") == ["Kaffeehaus"]


def test_a_place_counts_the_characters_that_are_no_white_space() -> None:
    [found] = Glossary({"ice cream": "Eis"}).occurrences("An  ice   cream.")
    assert "Anicecream."[found.place.start : found.place.stop] == "icecream"


def test_of_two_glossaries_the_second_decides() -> None:
    both = Glossary({"dog": "Hund", "cat": "Katze"}) | Glossary({"dog": "Köter"})
    assert both.terms == {"dog": "Köter", "cat": "Katze"}
    assert [found.target for found in both.occurrences("dog cat")] == ["Köter", "Katze"]


def write(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_a_file_has_a_term_and_its_translation_on_each_line(tmp_path: Path) -> None:
    text = "\ufeffdog\tHund\r\n\n#tag \t Etikett\ndog\tHund\n"
    assert read_glossary(write(tmp_path / "g", text)).terms == {"dog": "Hund", "#tag": "Etikett"}
    assert read_words(write(tmp_path / "w", "a \n\nb c")) == ["a", "b c"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\tb\nc\n", "g:2: 1 columns; expected two: source term, TAB, translation"),
        ("a\tb\tc\n", "g:1: 3 columns"),
        ("a\tb\n\na\tc\n", "g:3: 'a' becomes 'c' here and 'b' in line 1; keep one of them"),
        ("a\t \n", "g:1: the term '' is blank; write a word or a phrase"),
        (b"a\t\xff\n", "g:1: not valid UTF-8 (byte 0xff); convert the file to UTF-8"),
    ],
)
def test_a_bad_line_is_refused_by_its_number(
    tmp_path: Path, text: str | bytes, message: str
) -> None:
    with pytest.raises(DataError) as error:
        read_glossary(write(tmp_path / "g", text))
    assert message in str(error.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file; name a text file of terms"):
        read_glossary(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("term", "message"), [(" ", "blank"), ("a\nb", "line"), ("\ud800", "half")]
)
def test_what_is_no_text_on_one_line_is_no_term(term: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        Glossary({"dog": term})
