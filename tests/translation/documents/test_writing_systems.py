"""How office programs treat a language."""

import pytest

from nmt.translation.documents.document import LanguagePair
from nmt.translation.documents.writing_systems import WritingSystem, writing_system


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("en", "und", WritingSystem("")),
        ("en", "pt_BR", WritingSystem("pt-BR")),
        ("und", "de", WritingSystem("de", "latin", "ltr")),
        ("he", "de", WritingSystem("de", "latin", "ltr")),
        ("en", "zh_Hant", WritingSystem("zh-Hant", "asian")),
        ("en", "ja", WritingSystem("ja", "asian")),
        ("en", "ko", WritingSystem("ko", "asian")),
        ("en", "hi", WritingSystem("hi", "complex")),
        ("en", "th", WritingSystem("th", "complex")),
        ("en", "ar", WritingSystem("ar", "complex", "rtl")),
        ("und", "ur", WritingSystem("ur", "complex", "rtl")),
        ("ar", "he", WritingSystem("he", "complex")),
    ],
)
def test_writing_systems(source: str, target: str, expected: WritingSystem) -> None:
    assert writing_system(LanguagePair(source, target)) == expected


@pytest.mark.parametrize(
    ("tag", "expected"),
    [
        ("pt-BR", ("pt", "", "BR")),
        ("zh-Hant", ("zh", "", "TW")),
        ("sr-Latn", ("sr", "Latn", "")),
        ("de", ("de", "", "")),
    ],
)
def test_parts_of_a_tag(tag: str, expected: tuple[str, str, str]) -> None:
    system = WritingSystem(tag)
    assert (system.language, system.script, system.country) == expected
