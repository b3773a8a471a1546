"""The encodings of files of plain text: Unicode, else that of Windows for their language."""

import codecs
import contextlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from nmt.data.languages import look_up_language
from nmt.errors import DataError

_LANGUAGES_OF_CODE_PAGES = {
    "cp874": "th",
    "cp932": "ja",
    "gb18030": "zh",
    "cp950": "zh_Hant",
    "cp949": "ko",
    "windows-1250": "bs cs hr hu pl ro sk sl sq sr_Latn",
    "windows-1251": "be bg kk ky mk mn ru sr tg tt uk",
    "windows-1253": "el",
    "windows-1254": "az tr uz",
    "windows-1255": "he yi",
    "windows-1256": "ar fa ug ur",
    "windows-1257": "et lt lv",
    "windows-1258": "vi",
}
"""the encodings of Windows before Unicode, and the languages that are written in each"""
_CODE_PAGES = {
    language: page for page, known in _LANGUAGES_OF_CODE_PAGES.items() for language in known.split()
}


_MARKS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF16_LE: "utf-16le",
    codecs.BOM_UTF16_BE: "utf-16be",
}
_XML_ENCODING = re.compile(rb"""<\?xml[^>]*?encoding\s*=\s*["']\s*([\w.:-]+)""")


def marked_encoding(content: bytes) -> tuple[bytes, str]:
    """Return the byte order mark of a text and the encoding that it names; both are empty if none.

    The codec of such an encoding reads and writes no mark.
    """
    return next((each for each in _MARKS.items() if content.startswith(each[0])), (b"", ""))


def xml_encoding(content: bytes) -> str | None:
    """Return the encoding that XML or XHTML declares at its start; None: it declares none."""
    declared = _XML_ENCODING.match(content)
    return declared[1].decode("ascii") if declared else None


@dataclass(frozen=True)
class TextFile:
    """The text of a file, and what encodes its translation."""

    name: str
    """what messages call it"""
    text: str
    encode: Callable[[str], bytes] = str.encode

    def error(self, at: int, problem: str) -> DataError:
        """Return an error that says where in the file it is."""
        line = self.text.count("\n", 0, at) + 1
        column = at - self.text.rfind("\n", 0, at)
        return DataError(f"{self.name}: line {line}, column {column}: {problem}")


def decode_text(content: bytes, name: str, sources: Sequence[str]) -> TextFile:
    """Return a file as text; messages call it `name`.

    It is in UTF-8, in UTF-16, or in the encoding of Windows for the languages `sources`, the codes
    of those that it may be in ("und" if they are unknown); its translation is in the same one, or
    in UTF-8 if that lacks a character.

    Raises:
        DataError: its encoding is none of these.
    """
    encoding = unicode_encoding(content)
    if encoding is None:
        if b"\0" in content:
            raise DataError(f"{name}: has zero bytes, so it is a binary file; save it as text")
        encoding, *others = {_code_page(source): None for source in sources}
        if others or "und" in sources:
            raise DataError(
                f"{name} is not UTF-8; name the language of its text, or save it as UTF-8"
            )
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError as error:
        raise DataError(f"{name} is neither UTF-8 nor {encoding}; save it as UTF-8") from error
    mark = codecs.BOM_UTF16_BE if content.startswith(codecs.BOM_UTF16_BE) else b""
    if mark:
        encoding = "utf-16-be"  # the codec utf-16 would write the other order of bytes

    def encode(translation: str) -> bytes:
        try:
            return mark + translation.encode(encoding)
        except UnicodeEncodeError:
            return translation.encode("utf-8-sig")  # the mark tells a player that it is Unicode

    return TextFile(name, text, encode)


def _code_page(source: str) -> str:
    """Return the encoding of Windows for a language, by its code."""
    language = look_up_language(source)
    page = _CODE_PAGES.get(language.code) or _CODE_PAGES.get(language.base)
    return page or "windows-1252"


def unicode_encoding(content: bytes) -> str | None:
    """Return the encoding of a text if it is UTF-8 or UTF-16, with or without a mark of its order.

    In UTF-16 without a mark, digits, spaces and line ends have a zero byte on the same side.
    """
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    for encoding, first in (("utf-16-le", 1), ("utf-16-be", 0)):
        zeros, others = (content[side::2].count(0) for side in (first, 1 - first))
        if len(content) % 2 == 0 and zeros > len(content) // 20 and others == 0:
            return encoding
    with contextlib.suppress(UnicodeDecodeError):
        content.decode("utf-8")
        return "utf-8-sig" if content.startswith(codecs.BOM_UTF8) else "utf-8"
    return None
