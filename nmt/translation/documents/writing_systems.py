"""How office programs treat a language: which fonts and marks its text has, and its direction.

They divide scripts into three kinds, and a style names a language for each: Latin and most others,
Asian (East Asian ideographs and syllables) and complex (written from right to left, or with signs
around letters).
"""

from dataclasses import dataclass
from typing import Literal

from nmt.data.languages import look_up_language
from nmt.translation.documents.document import LanguagePair

_ASIAN = frozenset({"Hani", "Hira", "Kana", "Hang", "Bopo", "Yiii"})
_RIGHT_TO_LEFT = frozenset({"Arab", "Hebr", "Syrc", "Thaa", "Nkoo", "Adlm", "Rohg", "Mand"})
_COMPLEX = _RIGHT_TO_LEFT | {
    *("Beng", "Deva", "Gujr", "Guru", "Khmr", "Knda", "Laoo", "Mlym", "Mymr", "Orya", "Sinh"),
    *("Taml", "Telu", "Thai", "Tibt", "Olck", "Mtei", "Java", "Bali"),
}
_COUNTRIES = {"Hans": "CN", "Hant": "TW"}
"""by which programs know the scripts of Chinese"""


@dataclass(frozen=True)
class WritingSystem:
    """That of the language of a translation."""

    tag: str
    """the language as documents write it, such as "pt-BR"; empty if unknown"""
    kind: Literal["latin", "asian", "complex"] = "latin"
    direction: Literal["", "ltr", "rtl"] = ""
    """the direction of the translation, if it may be another one than that of the document"""

    @property
    def language(self) -> str:
        """The language without country and script."""
        return self.tag.partition("-")[0]

    @property
    def script(self) -> str:
        """The script that the tag names, if a country does not stand for it."""
        script = self._subtag(4)
        return "" if script in _COUNTRIES else script

    @property
    def country(self) -> str:
        """The country that the tag names, or by which programs know its script; else empty."""
        return self._subtag(2) or _COUNTRIES.get(self._subtag(4), "")

    def _subtag(self, length: int) -> str:
        return next((part for part in self.tag.split("-")[1:] if len(part) == length), "")


def is_right_to_left(code: str) -> bool:
    """Return whether a language is written from right to left."""
    return bool(_RIGHT_TO_LEFT.intersection(look_up_language(code).scripts[:1]))


def writing_system(languages: LanguagePair) -> WritingSystem:
    """Return the writing system of a translation."""
    if languages.target == "und":
        return WritingSystem("")
    scripts = look_up_language(languages.target).scripts[:1]
    kind: Literal["latin", "asian", "complex"] = "latin"
    if _COMPLEX.intersection(scripts):
        kind = "complex"
    elif _ASIAN.intersection(scripts):
        kind = "asian"
    goes_left = is_right_to_left(languages.target)
    if languages.source != "und" and is_right_to_left(languages.source) == goes_left:
        return WritingSystem(languages.target_tag, kind)
    return WritingSystem(languages.target_tag, kind, "rtl" if goes_left else "ltr")
