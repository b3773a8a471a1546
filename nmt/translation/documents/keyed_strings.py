"""Files of keys and strings, such as those of Java and of Apple: only strings change."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from nmt.translation.documents.document import Document, DocumentSegment, ReadingOptions
from nmt.translation.documents.strings import StringSyntax, string_segments
from nmt.translation.documents.tokens import Token, source_of
from nmt.translation.spans import Edit, Span, apply_edits

_CODE = re.compile(r"\s*(?:true|false|[\w$/\\-]*[\w$-]\.[\w$./\\-]*\w)\s*")
"""one word that is no text: a file such as img/logo.png, or a class such as org.example.Name"""


@dataclass(frozen=True)
class KeyedString:
    """A string of a file, and its key."""

    key: str
    span: Span
    """its characters in the file"""
    text: str
    """what it stands for"""
    syntax: StringSyntax


def is_asked_for(key: str, options: ReadingOptions) -> bool:
    """Return whether the string of a key is translated; `*` in an option is for any characters."""
    asked = options.keys or ("*",)
    return any(fnmatchcase(key, each) for each in asked) and not any(
        fnmatchcase(key, each) for each in options.skipped_keys
    )


def keyed_strings_document(
    source: str,
    strings: Iterable[KeyedString],
    encode: Callable[[str], bytes],
    finish: Callable[[str, str], str] = lambda written, old: written,
) -> Document:
    """Return a document whose segments are strings of a file.

    File names and names of classes stay. `source` is the text of the file, and `encode` returns its
    bytes. `finish` gets a new string and
    the old one, as the file writes them, and returns how the new one is written.
    """
    segments: list[DocumentSegment] = []
    places: list[tuple[Span, str, list[Token]]] = []
    for string in strings:
        if _CODE.fullmatch(string.text):
            continue
        tokens, found = string_segments(string.text, string.syntax)
        if found:
            segments += found
            places.append((string.span, source_of(tokens), tokens))

    def write() -> bytes:
        edits = [
            Edit(span, finish(source_of(tokens), source[slice(*span)]))
            for span, old, tokens in places
            if source_of(tokens) != old  # else it stays as the file writes it
        ]
        return encode(apply_edits(source, edits))

    return Document(segments, write, is_of_program=True)
