"""Properties files of Java: keys and strings, in UTF-8, or in ISO-8859-1 with escapes."""

import codecs
import re
from collections.abc import Callable, Iterator
from functools import partial

from nmt.data.text.icu_messages import find_messages
from nmt.errors import DataError
from nmt.translation.documents.chosen_values import ChosenValues
from nmt.translation.documents.data_values import DataValue, data_document, join_surrogates
from nmt.translation.documents.document import Document, ReadingOptions
from nmt.translation.documents.encodings import TextFile, unicode_encoding
from nmt.translation.documents.strings import QUOTED_BRACES, USUAL_SYNTAX, StringSyntax

_SIGNS = {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}
_WRITTEN = {ord(sign): f"\\{letter}" for letter, sign in (_SIGNS | {"\\": "\\"}).items()}
_SPACES = r"(?:[ \t\f]|\\(?:\r\n|\r|\n))*+"  # also at a line end after a backslash
_CHARACTER = r"\\(?:\r\n|.|\Z)"
_LINE = re.compile(
    rf"[ \t\f]*+(?:[#!][^\r\n]*+|(?P<key>(?:{_CHARACTER}|[^\\=:\s])*+){_SPACES}(?:[=:]{_SPACES})?"
    rf"(?P<value>(?:{_CHARACTER}|[^\\\r\n])*+))(?:\r\n|\r|\n|\Z)",
    re.DOTALL,
)
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|(?:\r\n|\r|\n)[ \t\f]*|(.)|\Z)", re.DOTALL)
_CONTINUED = re.compile(r"\\(\r\n|\r|\n)([ \t\f]*)")
_PLACEHOLDER = re.compile(r"\{\d+[^{}]*\}")


def read_properties(content: bytes, name: str, options: ReadingOptions) -> Document:
    """Read a properties file: the strings of all keys, or of those asked for.

    A string with placeholders such as {0} is a MessageFormat, where '' stands for an apostrophe,
    unless it has a single one. A file without any letter beyond ASCII gets escapes for these, which
    each version of Java reads.

    Raises:
        DataError: it is not in its encoding.
    """
    text, encode = _decode(content, name)
    values = ChosenValues(options).among(_values(text), name)
    return data_document(TextFile(name, text, encode), values)


def _values(text: str) -> Iterator[DataValue]:
    """Yield the strings of a file."""
    for line in _LINE.finditer(text):
        if line["value"]:
            value = _unescape(line["value"])
            path, write = (_unescape(line["key"]),), partial(_write, line["value"])
            yield DataValue(path, line.span("value"), value, write, _syntax(value))


def _syntax(value: str) -> StringSyntax:
    """Return the syntax of a value, which may be a MessageFormat."""
    without_quotes = re.sub(rf"''|{QUOTED_BRACES}", "", value)
    has_quotes = _PLACEHOLDER.search(value) and "'" not in without_quotes
    if has_quotes and not find_messages(value):  # an ICU message has its own quotes
        return StringSyntax(QUOTED_BRACES, has_message_quotes=True)
    return USUAL_SYNTAX


def _unescape(written: str) -> str:
    def character(found: re.Match[str]) -> str:
        if found[1]:
            return chr(int(found[1], 16))
        return _SIGNS.get(found[2], found[2]) if found[2] else ""

    return join_surrogates(_ESCAPE.sub(character, written))


def _write(old: str, text: str) -> str:
    """Return a text as a file writes it: over several lines if the old one was."""
    written = text.translate(_WRITTEN)
    if written.startswith((" ", "\t")):
        written = "\\" + written
    continued = _CONTINUED.search(old)
    if not continued:
        return written
    end, indent = continued.groups()
    return re.sub(r"(?<!\\)((?:\\\\)*\\n)(?=.)", rf"\1\\{end}{indent}", written)


def _decode(content: bytes, name: str) -> tuple[str, Callable[[str], bytes]]:
    """Return the text of a file, and what encodes its translation.

    Raises:
        DataError: it is in UTF-16, which Java does not read.
    """
    if (unicode_encoding(content) or "").startswith("utf-16"):
        raise DataError(f"{name}: is in UTF-16, which no properties file is; save it as UTF-8")
    mark = codecs.BOM_UTF8 if content.startswith(codecs.BOM_UTF8) else b""
    if mark or not content.isascii():
        try:
            text = content.removeprefix(mark).decode()
            return text, lambda changed: mark + changed.encode()
        except UnicodeDecodeError:
            return content.decode("latin-1"), lambda changed: _escape(changed, "latin-1")
    return content.decode("ascii"), lambda changed: _escape(changed, "ascii")


def _escape(text: str, encoding: str) -> bytes:
    """Return a text in an encoding, with escapes for the characters that this lacks."""

    def escapes(found: re.Match[str]) -> str:
        units = found[0].encode("utf-16-be")
        return "".join(f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2))

    missing = r"[^\x00-\x7f]" if encoding == "ascii" else r"[^\x00-\xff]"
    return re.sub(missing, escapes, text).encode(encoding)
