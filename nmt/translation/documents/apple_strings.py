"""Strings files of Apple: "key" = "string"; with comments, in UTF-8 or UTF-16."""

import re
from collections.abc import Iterator

from nmt.errors import DataError
from nmt.translation.documents.document import Document, ReadingOptions
from nmt.translation.documents.encodings import decode_text
from nmt.translation.documents.keyed_strings import (
    KeyedString,
    is_asked_for,
    keyed_strings_document,
)
from nmt.translation.documents.strings import StringSyntax

_SIGNS = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\"}
_SYNTAX = StringSyntax({sign: f"\\{letter}" for letter, sign in _SIGNS.items()})
_STRING = r'"(?:[^"\\]|\\.)*+"'
_GAP = r"(?:\s|//[^\r\n]*+|/\*(?:[^*]|\*(?!/))*+\*/)*+"
_ENTRY = re.compile(
    rf"{_GAP}(?:(?P<key>{_STRING}|[\w.$/:-]++){_GAP}(?:={_GAP}(?P<value>{_STRING}){_GAP})?;{_GAP})?",
    re.DOTALL,
)
_ESCAPE = re.compile(r"\\(?:[uU]([0-9A-Fa-f]{4})|([0-7]{1,3})|(.))", re.DOTALL)


def read_apple_strings(content: bytes, name: str, options: ReadingOptions) -> Document:
    """Read a strings file: the strings of all keys, or of those asked for.

    Raises:
        DataError: it is not in its encoding, or a line is not in the format.
    """
    if content.startswith(b"bplist"):
        raise DataError(
            f"{name}: is a binary property list; write it as text, which has "
            '"key" = "string"; on each line'
        )
    text, encode = decode_text(content, name, [options.languages.source])
    strings = (each for each in _strings(text, name) if is_asked_for(each.key, options))
    return keyed_strings_document(text, list(strings), encode)


def _strings(text: str, name: str) -> Iterator[KeyedString]:
    """Yield the strings of a file that are well-formed; others stay as they are.

    Raises:
        DataError: a line is not in the format.
    """
    at = 1 if text.startswith("\ufeff") else 0
    while at < len(text):
        entry = _ENTRY.match(text, at)
        if not entry or entry.end() == at:
            line = text.count("\n", 0, at) + 1
            raise DataError(
                f"{name}: line {line} has {text[at : at + 60]!r}, expected "
                '"key" = "string"; or a comment; check the file with `plutil -lint`'
            )
        at = entry.end()
        if entry["value"]:
            start, end = entry.span("value")
            try:
                value = _unescape(entry["value"][1:-1])
            except UnicodeDecodeError:  # half of a character
                continue
            yield KeyedString(entry["key"].strip('"'), (start + 1, end - 1), value, _SYNTAX)


def _unescape(written: str) -> str:
    def character(found: re.Match[str]) -> str:
        code, octal, sign = found.groups()
        if code or octal:
            return chr(int(code, 16) if code else int(octal, 8))
        return _SIGNS.get(sign, sign)

    # a character beyond U+FFFF has two escapes
    return _ESCAPE.sub(character, written).encode("utf-16-le", "surrogatepass").decode("utf-16-le")
