"""Codes of languages as clients use them, and their names."""

import pytest

from nmt.serving.detection import detect
from nmt.serving.languages import known_code, language_name


@pytest.mark.parametrize(
    ("code", "known", "name"),
    [
        ("de", "de", "German"),
        ("deu", "de", "German"),
        ("no", "no", "Norwegian"),
        ("pt_BR", "pt_BR", "Portuguese (pt_BR)"),
        ("cmn_Hans", "cmn_Hans", "cmn_Hans"),
        ("zho_Hans", "zho_Hans", "Chinese (zho_Hans)"),
        ("xx", "xx", "xx"),
    ],
)
def test_codes_have_two_letters_where_there_are_such(code: str, known: str, name: str) -> None:
    assert known_code(code) == known
    assert language_name(known) == name


def test_an_unknown_code_can_be_replaced() -> None:
    assert known_code("bt", "") == ""
    assert known_code("fra", "") == "fr"


def test_only_languages_that_are_served_are_detected() -> None:
    text = "Das ist ein deutscher Satz über Hunde und Katzen."
    assert detect(text, ["en", "de", "fr"])[0] == {"confidence": 100.0, "language": "de"}
    assert detect(text, ["en", "fr"])[0]["language"] in ("en", "fr")
    assert detect("这是一个句子。", ["en", "zh_Hans"])[0]["language"] == "zh_Hans"
    assert detect("a", ["xx"]) == [{"confidence": 0.0, "language": "xx"}]
