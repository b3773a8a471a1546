"""The characters of a text tell its script."""

import pytest

from nmt.data.text.scripts import chinese_script, share_in_scripts, unspaced_script


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
