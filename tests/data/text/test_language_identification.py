"""py3langid names languages, among all or among some, and the characters of a text its script."""

import builtins
from typing import Any

import pytest

from nmt.data.text.language_identification import (
    check_is_installed,
    chinese_script,
    is_improbable,
    known_languages,
    rank_languages,
    share_in_scripts,
    unspaced_script,
)
from nmt.errors import MissingExtraError


def test_only_a_much_likelier_language_makes_another_improbable() -> None:
    text = "The dogs are sleeping in the old house of my friend."
    assert is_improbable("de", text, 50)
    assert not is_improbable("en", text, 50)
    assert not is_improbable("de", "\udcff", 50)


def test_probabilities_among_some_languages_add_up_to_one() -> None:
    ranked = rank_languages("Los perros duermen.", ["de", "es"])
    assert [code for code, _ in ranked] == ["es", "de"]
    assert sum(probability for _, probability in ranked) == pytest.approx(1)
    long_text = "The dogs are sleeping in the old house of my friend. " * 100
    assert sum(p for _, p in rank_languages(long_text, ["zh", "ja"])) == pytest.approx(1)
    assert rank_languages("a", ["xx"]) == []


def test_the_codes_of_two_letters_are_known() -> None:
    assert {"en", "de", "zh"} <= known_languages()


def test_without_the_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def fail(name: str, *arguments: Any) -> Any:
        if name == "py3langid":
            raise ImportError(name)
        return real(name, *arguments)

    monkeypatch.setattr(builtins, "__import__", fail)
    with pytest.raises(MissingExtraError, match="a test needs the extra 'serve'"):
        check_is_installed("a test", "serve")


@pytest.mark.parametrize(
    ("text", "scripts", "share"),
    [
        ("the dog", ["Latn"], 1.0),
        ("dog собака 123", ["Latn"], 1 / 3),
        ("犬が好き", ["Hira", "Kana", "Hani"], 1.0),
        ("ภาษา ไทย", ["Thai"], 1.0),  # with its vowel marks
        ("123 .", ["Latn"], 0.0),
        ("dog", [], 0.0),
    ],
)
def test_letters_are_counted_by_script(text: str, scripts: list[str], share: float) -> None:
    assert share_in_scripts(text, scripts) == pytest.approx(share)


@pytest.mark.parametrize(
    ("lines", "script"),
    [
        (["我在公园里", "ok"], "Hani"),
        (["公園で犬を見ました"], "Jpan"),
        (["ฉันเห็น"], "Thai"),
        (["ကျွန်တော်"], "Mymr"),
        (["개가 있다"], ""),
        (["the dog"] * 1000 + ["我在公园里"], ""),
        ([], ""),
    ],
)
def test_most_letters_say_whether_words_have_spaces(lines: list[str], script: str) -> None:
    assert unspaced_script(lines) == script


@pytest.mark.parametrize(
    ("text", "script"),
    [("他们学习汉语", "Hans"), ("他們學習漢語", "Hant"), ("人山水", ""), ("dog", "")],
)
def test_characters_of_one_chinese_script_tell_it(text: str, script: str) -> None:
    assert chinese_script(text) == script
