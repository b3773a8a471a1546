"""JSON, JSON Lines and ARB: the strings that are texts; all other characters stay.

Comments, NaN, commas before a closing bracket and keys that are there twice are allowed.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from nmt.translation.documents.chosen_values import ChosenValues
from nmt.translation.documents.data_values import (
    MAX_DEPTH,
    DataValue,
    data_document,
    language_key,
)
from nmt.translation.documents.document import Document, LanguagePair, ReadingOptions
from nmt.translation.documents.encodings import TextFile
from nmt.translation.spans import Edit, Span

_TOKEN = re.compile(
    r"(?P<space>[ \t\r\n\ufeff]+|//[^\n]*+|/\*(?:[^*]|\*(?!/))*+\*/)"
    r'|(?P<string>"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+")'
    r"|(?P<literal>(?:-?\d[\d.eE+-]*|-?Infinity|NaN|true|false|null)(?![\w.]))"
    r"|(?P<mark>[{}\[\],:])"
)
_ESCAPE = re.compile(r"\\(?:u[dD][89abAB]\w\w\\u\w{4}|u\w{4}|.)")
_CODES = {chr(code): f"\\u{code:04x}" for code in range(32)} | {
    '"': '\\"',
    "\\": "\\\\",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
}


@dataclass(frozen=True, slots=True)
class _JsonString:
    """A string of a file."""

    path: tuple[str, ...]
    """the keys on the way to it; that of a key ends with itself"""
    span: Span
    text: str
    is_key: bool


def read_json(file: TextFile, options: ReadingOptions) -> Document:
    """Read a JSON file; a single key at the top that is the source language becomes the target's.

    Raises:
        DataError: it is damaged, or has over `MAX_DEPTH` values inside each other.
    """
    strings = list(_Scanner(file).strings())
    return _document(file, strings, options, _root_key(strings, options.languages))


def read_json_lines(file: TextFile, options: ReadingOptions) -> Document:
    """Read a file of JSON values that follow each other, usually one in a line.

    Raises: as `read_json` does.
    """
    return _document(file, list(_Scanner(file, has_several=True).strings()), options)


def read_arb(file: TextFile, options: ReadingOptions) -> Document:
    """Read an ARB file of Flutter, where keys that begin with "@" are about others, and stay.

    Its locale becomes the target language.

    Raises: as `read_json` does.
    """
    strings = list(_Scanner(file).strings())
    target = options.languages.target_tag.replace("-", "_")
    locales = [s for s in strings if target and s.path == ("@@locale",) and not s.is_key]
    messages = [s for s in strings if not any(key.startswith("@") for key in s.path)]
    return _document(file, messages, options, [Edit(s.span, json.dumps(target)) for s in locales])


def _document(
    file: TextFile,
    strings: list[_JsonString],
    options: ReadingOptions,
    edits: list[Edit] | None = None,
) -> Document:
    is_ascii = bool(file.text.isascii() and re.search(r"\\u(?!00[0-7])", file.text))
    values = (
        DataValue(
            each.path,
            each.span,
            each.text,
            partial(_write, file.text[slice(*each.span)], is_ascii),
        )
        for each in strings
        if not each.is_key
    )
    return data_document(file, ChosenValues(options).among(values, file.name), edits or [])


def _root_key(strings: list[_JsonString], languages: LanguagePair) -> list[Edit]:
    """Return the edit of a key at the top that is the source language, if it is the only one."""
    keys = [each for each in strings if each.is_key and len(each.path) == 1]
    if len(keys) != 1 or not any(len(each.path) > 1 for each in strings):
        return []
    target = language_key(keys[0].text, languages)
    return [Edit(keys[0].span, json.dumps(target))] if target else []


def _write(source: str, is_ascii: bool, text: str) -> str:
    """Return a text as JSON; characters that the source of the value escapes are escaped, too."""
    found = _ESCAPE.findall(source)
    codes = _CODES | {json.loads(f'"{escape}"'): escape for escape in reversed(found)}
    written = text.translate(str.maketrans(codes))
    if is_ascii:
        written = re.sub(r"[^\x00-\x7f]+", lambda part: json.dumps(part[0])[1:-1], written)
    return f'"{written}"'


class _Scanner:
    """Goes through the characters of a file once; depth is a list, no recursion."""

    def __init__(self, file: TextFile, has_several: bool = False) -> None:
        """Scan one value, or several that follow each other."""
        self._file, self._has_several = file, has_several
        self._open: list[str] = []
        """the brackets that are not closed"""
        self._path: list[str] = []
        """a key for each brace that is not closed"""
        self._next = "a value"
        """what is expected"""

    def strings(self) -> Iterator[_JsonString]:
        """Yield the strings of the file, keys as well."""
        text, at = self._file.text, 0
        while at < len(text):
            found = _TOKEN.match(text, at)
            if not found:
                raise self._error(at)
            if found["string"]:
                yield self._read_string(found)
            elif found["literal"]:
                self._read_value(at)
            elif found["mark"]:
                self._read_mark(found[0], at)
            at = found.end()
        if self._open or not (self._next == "the end of the file" or self._has_several):
            raise self._error(at)

    def _read_string(self, found: re.Match[str]) -> _JsonString:
        try:
            text = json.loads(found[0], strict=False) if "\\" in found[0] else found[0][1:-1]
        except ValueError:
            raise self._file.error(
                found.start(), f"the string {found[0][:40]} has an escape that JSON lacks"
            ) from None
        is_key = "a key" in self._next
        if is_key:
            self._path[-1] = text
            self._next = "':'"
        else:
            self._read_value(found.start())
        return _JsonString(tuple(self._path), found.span(), text, is_key)

    def _read_value(self, at: int) -> None:
        """Go behind a value, which must be expected here."""
        if "a value" not in self._next:
            raise self._error(at)
        if self._open:
            self._next = f"',' or '{self._open[-1]}'"
        else:
            self._next = "a value" if self._has_several else "the end of the file"

    def _read_mark(self, mark: str, at: int) -> None:
        """Go behind a bracket, a comma or a colon."""
        if mark in "{[" and "a value" in self._next:
            if len(self._open) == MAX_DEPTH:
                raise self._file.error(
                    at, f"more than {MAX_DEPTH} values are inside each other; divide the file"
                )
            self._open.append("}" if mark == "{" else "]")
            self._path += [""] if mark == "{" else []
            self._next = "a key or '}'" if mark == "{" else "a value or ']'"
        elif mark in "}]" and f"'{mark}'" in self._next:
            self._open.pop()
            self._path = self._path[:-1] if mark == "}" else self._path
            self._next = "a value"
            self._read_value(at)
        elif mark in ",:" and f"'{mark}'" in self._next:
            is_key = mark == "," and self._open[-1] == "}"
            is_element = mark == "," and self._open[-1] == "]"
            self._next = "a key or '}'" if is_key else "a value or ']'" if is_element else "a value"
        else:
            raise self._error(at)

    def _error(self, at: int) -> Exception:
        got = self._file.text[at : at + 20].split("\n")[0]
        remedy = "check it with `python -m json.tool`"
        if got.startswith('"') and "a value" in self._next:
            remedy = "a string must end in its line"
        if self._next == "the end of the file" and self._file.text[at] in '{["':
            remedy = "name a file of several values .jsonl, or give `format` jsonl"
        shown = repr(got) if got else "the end of the file" if at >= len(self._file.text) else "''"
        return self._file.error(at, f"got {shown}, expected {self._next}; {remedy}")
