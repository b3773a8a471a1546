"""The language of a text is one of those that are served."""

from itertools import islice
from pathlib import Path

import pytest

from nmt.data.text.lines import raw_lines
from nmt.serving.detection import detect


def test_only_languages_that_are_served_are_detected() -> None:
    text = "Das ist ein deutscher Satz über Hunde und Katzen."
    assert detect(text, ["en", "de", "fr"])[0] == {"confidence": 100.0, "language": "de"}
    assert detect(text, ["en", "fr"])[0]["language"] in ("en", "fr")
    assert detect("这是一个句子。", ["en", "zh_Hans"])[0]["language"] == "zh_Hans"
    assert detect("a", ["xx"]) == [{"confidence": 0.0, "language": "xx"}]


@pytest.mark.parametrize(
    ("text", "served", "language"),
    [
        ("他们在公园里学习汉语。", "en zh-Hant zh-Hans", "zh-Hans"),
        ("他們在公園裡學習漢語。", "en zh-Hans zh-Hant", "zh-Hant"),
        ("他們在公園裡學習漢語。", "en zh-Hans", "zh-Hans"),  # the only variant
        ("他們在公園裡學習漢語。", "en zh", "zh"),
        ("Ово је реченица на српском језику.", "sr-Latn sr-Cyrl", "sr-Cyrl"),
        ("Ovo je rečenica na srpskom jeziku.", "sr-Cyrl sr-Latn", "sr-Latn"),
        ("यह हिंदी में एक वाक्य है।", "ur hi", "hi"),
        ("یہ اردو میں ایک جملہ ہے۔", "hi ur", "ur"),
        ("Dette er en setning på norsk om hunder.", "en nb", "nb"),
        ("ئەمە ڕستەیەکە بە کوردی.", "en ckb", "ckb"),  # which py3langid does not know
        ("12 + 3", "en de", "en"),
        ("", "en de", "en"),
    ],
)
def test_the_script_decides_between_languages_and_variants(
    text: str, served: str, language: str
) -> None:
    assert detect(text, served.split())[0]["language"] == language


def test_a_text_in_no_served_language_has_little_confidence(test_data: Path) -> None:
    """Of ten languages, two of them served."""
    served = {"eng": "en", "zho_simpl": "zh-Hans"}
    for name in ("jpn", "fin", "ita", "rus", "hin", "urd", "afr", "tha", *served):
        path = test_data / "flores101" / f"{name}.devtest.xz"
        lines = [line.decode() for line in islice(raw_lines(path), 20)]
        found = [detect(line, [*served.values()])[0] for line in lines]
        sure = sum(float(str(each["confidence"])) > 50 for each in found)
        if name in served:
            assert {each["language"] for each in found} == {served[name]}
            assert sure >= 15
        else:
            assert sure == 0, name
