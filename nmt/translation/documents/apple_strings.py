"""Strings files of Apple: "key" = "string"; with comments, in UTF-8 or UTF-16."""

import re
from collections.abc import Iterator

from nmt.translation.documents.chosen_values import ChosenValues
from nmt.translation.documents.data_values import DataValue, data_document, join_surrogates
from nmt.translation.documents.document import Document, ReadingOptions
from nmt.translation.documents.encodings import TextFile

_SIGNS = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\"}
_WRITTEN = {ord(sign): f"\\{letter}" for letter, sign in _SIGNS.items()}
_STRING = r'"(?:[^"\\]|\\.)*+"'
_GAP = r"(?:\s|//[^\r\n]*+|/\*(?:[^*]|\*(?!/))*+\*/)*+"
_ENTRY = re.compile(
    rf"{_GAP}(?:(?P<key>{_STRING}|[\w.$/:-]++){_GAP}(?:={_GAP}(?P<value>{_STRING}){_GAP})?;{_GAP})?",
    re.DOTALL,
)
_ESCAPE = re.compile(r"\\(?:[uU]([0-9A-Fa-f]{4})|([0-7]{1,3})|(.))", re.DOTALL)


def read_apple_strings(file: TextFile, options: ReadingOptions) -> Document:
    """Read a strings file: the strings of all keys, or of those asked for.

    Raises:
        DataError: a line is not in the format.
    """
    return data_document(file, ChosenValues(options).among(_values(file), file.name))


def _values(file: TextFile) -> Iterator[DataValue]:
    """Yield the strings of a file.

    Raises:
        DataError: a line is not in the format.
    """
    text = file.text
    at = 1 if text.startswith("\ufeff") else 0
    while at < len(text):
        entry = _ENTRY.match(text, at)
        if not entry or entry.end() == at:
            raise file.error(
                at,
                f'{text[at : at + 60]!r}, expected "key" = "string"; or a comment; check the file '
                "with `plutil -lint`",
            )
        at = entry.end()
        if entry["value"]:
            start, end = entry.span("value")
            value = _unescape(entry["value"][1:-1])
            yield DataValue((entry["key"].strip('"'),), (start + 1, end - 1), value, _write)


def _write(text: str) -> str:
    return text.translate(_WRITTEN)


def _unescape(written: str) -> str:
    def character(found: re.Match[str]) -> str:
        code, octal, sign = found.groups()
        if code or octal:
            return chr(int(code, 16) if code else int(octal, 8))
        return _SIGNS.get(sign, sign)

    return join_surrogates(_ESCAPE.sub(character, written))
