import unicodedata

import pytest

from nmt.data.text import words as words_module
from nmt.data.text.glossary import Glossary
from nmt.data.text.words import (
    find_term,
    fold_case,
    has_any,
    has_capital,
    normalise,
    spaced_word_spans,
    word_spans,
    words,
)


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
    ("text", "found"),
    [
        ("စာသည်", ["စာ", "သည်"]),  # Burmese: a consonant that ends a syllable
        ("အင်္ဂလိပ်", ["အင်္ဂ", "လိပ်"]),  # one below another
        ("ភាសាខ្មែរ", ["ភា", "សា", "ខ្មែ", "រ"]),  # Khmer
        ("เกมดี", ["เก", "ม", "ดี"]),  # Thai: a vowel before, and one above
        ("ກະຕ່າ", ["ກະ", "ຕ່າ"]),  # Lao
        ("コピーｶﾞｽ", ["コ", "ピー", "ｶﾞ", "ｽ"]),
        ("葛\U000e0100城", ["葛\U000e0100", "城"]),  # a variant of a character
        ("👍🏽👨‍👩‍👧🇩🇪🇫🇷☺️1️⃣", ["👍🏽", "👨‍👩‍👧", "🇩🇪", "🇫🇷", "☺️", "1️⃣"]),
        ("हिन्दी है", ["हिन्दी", "है"]),
        ("ｓｔｕｄｅｎｔ Ｔ－ｓｈｉｒｔ", ["ｓｔｕｄｅｎｔ", "Ｔ－ｓｈｉｒｔ"]),
    ],
)
def test_a_cluster_is_never_cut(text: str, found: list[str]) -> None:
    assert words(text) == found
    assert "".join(found) == "".join(text.split())


@pytest.mark.parametrize(
    ("term", "text", "is_found"),
    [
        ("hund", "Hund, HUND und hund.", True),
        ("Hund", "hund und HUND.", False),
        ("Hund", "Hund", True),
        ("hund", "Hunde Hund-e Bluthund Hund_", False),
        ("ein hund", "Ein  Hund", True),
        ("狗", "小狗跑", True),
        (".", "Ja. Nein.", True),
        ("c++", "C++ und C++17", True),
        ("$5", "für $50", False),
        ("စာ", "ထမင်းစား", False),  # "letter" in "eats rice"
        ("စာ", "စာဖတ်", True),
        ("လ", "လက်", False),  # "moon" in "hand"
        ("လ", "လသည်", True),
        ("က", "စက္က", False),  # below another consonant
        ("ក", "ខ្ក", False),
        ("ម", "មក", True),
        ("กม", "เกม", False),  # after the vowel of its consonant
        ("กา", "กาแฟ", True),
        ("ก", "กา กะ ก็", False),
        ("ກ", "ກາ", False),
        ("コピ", "コピー", False),
        ("キ", "キャ", False),
        ("か", "か\u3099", False),  # "ga"
        ("が", "か\u3099", True),
        ("葛", "葛\U000e0100城", False),
        ("👍", "👍🏽", False),
        ("👧", "👨‍👩‍👧", False),
        ("cafe", "cafe\u0301", False),
        ("कि", "किताब", False),
        ("student", "ｓｔｕｄｅｎｔ", True),
        ("ｓｔｕｄｅｎｔ", "Student", True),
        ("ガス", "ｶﾞｽ", True),
        ("ｶﾞｽ", "ガス", True),
        ("カ", "ｶﾞ", False),
        ("سلام", "ﺳﻼﻡ", True),  # Arabic presentation forms
        ("kg", "㎏", True),
        ("file", "ﬁle", True),
        ("istanbul", "İstanbul İSTANBUL", True),
        ("ısı", "ISI", True),
        ("σας", "ΣΑΣ", True),
        ("straße", "STRASSE", True),
        ("ΣΑΣ", "σας", False),
        ("a\u0308pfel", "ÄPFEL", True),
        ("한국", "한국", True),
    ],
)
def test_terms_are_found_as_whole_words(term: str, text: str, is_found: bool) -> None:
    assert has_any((term,), text) is has_any(("x y", "X Y", term), text) is is_found
    occurrences = Glossary({term: "t"}).occurrences(text)
    assert bool(occurrences) is is_found
    compact = "".join(unicodedata.normalize("NFC", text).split())
    for found in occurrences:
        place = compact[found.characters.start : found.characters.stop]
        assert fold_case(place) == fold_case("".join(term.split()))
    if term in text:
        assert (find_term(term, text) >= 0) is is_found


@pytest.mark.parametrize("letters", ["iıİI", "sſS", "kKK", "σςΣ", "ǆǅǄ", "ßẞ", "åÅÅ", "aＡａ"])
def test_one_folding_of_case_holds_everywhere(letters: str) -> None:
    assert len(set(map(fold_case, letters))) == 1
    for one in letters:
        for other in letters:
            is_found = not has_capital(one) or normalise(one) == normalise(other)
            assert has_any((one,), other) is is_found
            assert bool(Glossary({one: "t"}).occurrences(other)) is is_found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a dog's  tail.", ["a", "dog's", "tail."]),
        ("小狗。 it's iPhone手机!", ["小", "狗", "。", "it's", "iPhone", "手", "机", "!"]),
        ("เกมดี คน", ["เก", "ม", "ดี", "ค", "น"]),
        ("हिन्दी है। عربي", ["हिन्दी", "है।", "عربي"]),
        (" ", []),
    ],
)
def test_white_space_separates_words_where_there_is_any(text: str, found: list[str]) -> None:
    assert [text[start:end] for start, end in spaced_word_spans(text)] == found


def test_a_word_with_several_letters_for_one_is_found_in_any_casing() -> None:
    assert has_any(("straße",), "STRASSE") and has_any(("strasse",), "Straße")


def test_small_letters_stand_for_every_casing() -> None:
    assert not has_capital("straße 3") and has_capital("Straße") and has_capital("iPhone")


def test_the_faster_pattern_finds_the_same_words() -> None:
    plain = [chr(code) for code in range(0x3000) if not words_module._NOT_PLAIN.search(chr(code))]
    assert len(plain) > 1000
    for character in plain:
        for text in (f"a{character}b", f"{character} {character}-{character}", f"-{character}."):
            found = words_module._WORDS.findall(text)
            assert words_module._PLAIN_WORDS.findall(text) == found, hex(ord(character))


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("1,000.5 on 12/03/2026, 12:30", ["1,000.5", "12/03/2026", "12:30"]),
        ("B12, 12th, COVID-19, 7.", ["7"]),
        ("2020年3月 ٣", ["2020", "3", "٣"]),
    ],
)
def test_numbers_are_no_parts_of_words(text: str, numbers: list[str]) -> None:
    assert words_module.NUMBER.findall(text) == numbers
