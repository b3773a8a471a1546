import pytest

from nmt.data.text.words import any_of, has_any, has_capital, word_spans, words


def test_every_character_but_white_space_is_in_a_word_or_a_mark() -> None:
    text = "Dog's T-shirt, l'eau — 小狗 a--b 3.5 e\u0301te\u0301"
    assert "".join(words(text)) == "".join(text.split())


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a dog's tail", ["a", "dog", "'", "s", "tail"]),
        ("dog-lover", ["dog-lover"]),
        ("小狗", ["小", "狗"]),
        ("e\u0301te\u0301!", ["e\u0301te\u0301", "!"]),
        ("a - b", ["a", "-", "b"]),
        ("", []),
    ],
)
def test_a_hyphen_joins_and_an_apostrophe_separates(text: str, found: list[str]) -> None:
    assert words(text) == found
    assert [text[start:end] for start, end in word_spans(text)] == found


@pytest.mark.parametrize(
    ("term", "text", "count"),
    [
        ("hund", "Hund, HUND und hund.", 3),
        ("Hund", "Hund, HUND und hund.", 1),
        ("hund", "Hunde Hund-e Bluthund Hund_", 0),
        ("ein hund", "Ein  Hund", 1),
        ("狗", "小狗跑", 1),
        (".", "Ja. Nein.", 2),
        ("c++", "C++ und C++17", 2),
        ("$5", "für $5, nicht $50", 1),
    ],
)
def test_terms_are_found_as_whole_words(term: str, text: str, count: int) -> None:
    assert len(any_of((term,)).findall(text)) == count
    assert has_any(("x y", term), text) is (count > 0)


@pytest.mark.parametrize("letters", ["iıİI", "sſS", "kKK", "σςΣ", "ǆǅǄ", "ßẞ", "åÅÅ"])
def test_letters_that_any_of_finds_in_any_casing_are_found(letters: str) -> None:
    for one in letters:
        for other in letters:
            is_found = any_of((one,)).search(other) is not None
            assert has_any((one,), other) is is_found


def test_a_word_with_several_letters_for_one_is_found_in_any_casing() -> None:
    assert has_any(("straße",), "STRASSE") and has_any(("strasse",), "Straße")


def test_small_letters_stand_for_every_casing() -> None:
    assert not has_capital("straße 3") and has_capital("Straße") and has_capital("iPhone")
