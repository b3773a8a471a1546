import sys
import unicodedata

import pytest

from nmt.data.text.lemmas import known_languages, lemmatizer
from nmt.errors import MissingExtraError

ENGLISH = lemmatizer("en")


def test_words_have_the_form_of_a_dictionary() -> None:
    assert {"en", "de", "fr"} < known_languages()
    assert ENGLISH.lemmas("two children, with red buses!") == "two child, with red bus!"
    assert lemmatizer("en-GB").lemma("books") == "book"


def test_the_words_of_an_unknown_language_are_their_own_lemmas() -> None:
    unknown = lemmatizer("xx")
    assert not unknown.is_known
    assert unknown.lemmas("two books") == "two books"
    assert unknown.find("Book", "a book, books") == [(2, 6)]


@pytest.mark.parametrize(
    ("term", "text", "found"),
    [
        ("book", "Books and a book", ["Books", "book"]),
        ("ice cream", "No ice creams, ice or cream.", ["ice creams"]),
        ("box box", "box boxes box", ["box boxes"]),
        ("caf\u00e9", "two cafe\u0301s", ["caf\u00e9s"]),
        ("book", "a notebook", []),
        ("!?", "a book", []),
    ],
)
def test_terms_are_found_in_any_form(term: str, text: str, found: list[str]) -> None:
    composed = unicodedata.normalize("NFC", text)
    assert [composed[slice(*span)] for span in ENGLISH.find(term, text)] == found


def test_a_missing_library_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "simplemma.strategies.dictionaries.dictionary_factory", None)
    with pytest.raises(MissingExtraError, match=r"nmt\[terms\]"):
        known_languages()
