import re
from pathlib import Path

import pytest

from nmt.data.text.glossary import Glossary, read_glossary, read_words
from nmt.data.text.lemmas import lemmatizer
from nmt.errors import DataError


@pytest.mark.parametrize(
    ("terms", "text", "targets"),
    [
        # the longest term, and none inside it
        (
            {"new york": "1", "new york city": "2", "city": "3"},
            "New York City and New York, a city",
            ["2", "1", "3"],
        ),
        ({"dog": "Hund"}, "Dog's dog, dogs and dog-lovers: DOG", ["Hund"] * 3),
        # a capital asks for this spelling and comes first
        ({"polish": "p", "Polish": "P"}, "polish Polish POLISH", ["p", "P", "p"]),
        # accents, however they are coded
        ({"caf\u00e9": "Kaffeehaus"}, "cafe\u0301", ["Kaffeehaus"]),
    ],
)
def test_terms_that_occur(terms: dict[str, str], text: str, targets: list[str]) -> None:
    assert [found.target for found in Glossary(terms).occurrences(text)] == targets


@pytest.mark.parametrize(
    ("terms", "text", "targets"),
    [
        ({"book": "Buch"}, "Books and a book", ["Buch+", "Buch"]),
        # as it is written before another form, and the longest before both
        ({"book": "Buch", "books": "Bände"}, "books book", ["Bände", "Buch"]),
        ({"ice cream": "Eis", "ice creams cart": "Karren"}, "ice creams", ["Eis+"]),
        ({"ice": "E", "ice cream": "Eis"}, "two ice creams and ice", ["Eis+", "E"]),
        # the term itself is in the form that it has
        ({"glasses": "Brille"}, "a glass, glasses", ["Brille"]),
        ({"glasses case": "Etui"}, "glass cases", ["Etui+"]),
        ({"Apple": "Apfelfirma"}, "apples of Apple", ["Apfelfirma"]),
    ],
)
def test_with_lemmas_terms_occur_in_other_forms(
    terms: dict[str, str], text: str, targets: list[str]
) -> None:
    """A "+" marks what has another form."""
    found = Glossary(terms).occurrences(text, lemmatizer("en"))
    assert [each.target + "+" * each.is_inflected for each in found] == targets
    assert Glossary(terms).occurrences(text, lemmatizer("xx")) == Glossary(terms).occurrences(text)


def test_a_place_counts_the_characters_that_are_no_white_space() -> None:
    [found] = Glossary({"ice cream": "Eis"}).occurrences("An  ice   cream.")
    assert "Anicecream."[found.characters.start : found.characters.stop] == "icecream"


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


def test_a_spreadsheet_writes_some_columns_in_quotes(tmp_path: Path) -> None:
    text = 'dog\t"Köter, alt"\n"the ""big"" dog"\tHund\n"\tZoll\n"a" or "b"\tc\n'
    terms = {"dog": "Köter, alt", 'the "big" dog': "Hund", '"': "Zoll", '"a" or "b"': "c"}
    assert read_glossary(write(tmp_path / "g", text)).terms == terms


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\tb\nc\n", "g:2: 1 columns; expected two: source term, TAB, translation"),
        ("a\tb\tc\n", "g:1: 3 columns"),
        ("a\tb\n\na\tc\n", "g:3: 'a' becomes 'c' here and 'b' in line 1; keep one of them"),
        (
            "a\t \n",
            "g:1: the translation of 'a' -> '': the term '' is blank; write a word or a phrase",
        ),
        (None, "no such file; name a text file of terms"),
        (b"a\t\xff\n", "g:1: not valid UTF-8 (byte 0xff); convert the file to UTF-8"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, text: str | bytes | None, message: str) -> None:
    if text is not None:
        write(tmp_path / "g", text)
    with pytest.raises(DataError, match=re.escape(message)):
        read_glossary(tmp_path / "g")


@pytest.mark.parametrize(
    ("term", "message"), [(" ", "blank"), ("a\nb", "line"), ("\ud800", "half")]
)
def test_what_is_no_text_on_one_line_is_no_term(term: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        Glossary({"dog": term})
