"""The language of a text is one of those that are served."""

from nmt.serving.detection import detect


def test_only_languages_that_are_served_are_detected() -> None:
    text = "Das ist ein deutscher Satz über Hunde und Katzen."
    assert detect(text, ["en", "de", "fr"])[0] == {"confidence": 100.0, "language": "de"}
    assert detect(text, ["en", "fr"])[0]["language"] in ("en", "fr")
    assert detect("这是一个句子。", ["en", "zh_Hans"])[0]["language"] == "zh_Hans"
    assert detect("a", ["xx"]) == [{"confidence": 0.0, "language": "xx"}]
