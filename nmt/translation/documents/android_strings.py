"""String resources of Android (strings.xml): strings, arrays and plurals."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial

from nmt.translation.documents.chosen_values import ChosenValues
from nmt.translation.documents.document import (
    Document,
    DocumentSegment,
    ReadingOptions,
    has_text,
    replace_source,
)
from nmt.translation.documents.marked_text import MARKUP, Piece, join_messages, read_pieces
from nmt.translation.documents.plural_forms import plural_forms
from nmt.translation.documents.tokens import Token, source_of
from nmt.translation.documents.xml_inline import InlineNames, inline_pieces
from nmt.translation.documents.xml_tokens import XmlSource, set_attribute, write_text

_PREFIXES = {"urn:oasis:names:tc:xliff:document:1.2": "xliff"}
_WRITTEN = MARKUP | {"\\": "\\\\", "'": "\\'", '"': '\\"'}
_PART = re.compile(
    r'(?P<mark>(?:\\[nt])+|")|(?P<space> )|(?:\\(?![nt]).|[^"\\ ]++|\\\Z)++', re.DOTALL
)
"""of words: line breaks, quotation marks around white space that counts, spaces, and the rest"""
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|(.))", re.DOTALL)
_REFERENCE = re.compile(r"\s*[@?][\w+:.]*/?[\w.:]+\s*")
"""a name of another resource, such as @string/app_name"""
_PLACEHOLDER = re.compile(r"%(?:\d+\$)?[-+ #0,(]*\d*(?:\.\d+)?[a-zA-Z%]|<xliff:g\b")


def read_android_strings(content: bytes, name: str, options: ReadingOptions) -> Document:
    """Read string resources: texts, or those of the names asked for, unless marked to stay.

    Plurals get an item for each quantity of the target language; others stay.

    Raises:
        DataError: it is no well-formed XML.
    """
    reader = _ResourceReader(XmlSource(content, name, _PREFIXES), options)
    segments = list(reader.read())
    reader.chosen.warn_of_unused(name)
    reader.source.insert(reader.added)
    return Document(segments, reader.source.encode, is_of_program=True)


class _ResourceReader:
    """Finds the segments of a file."""

    def __init__(self, source: XmlSource, options: ReadingOptions) -> None:
        self.source, self.chosen = source, ChosenValues(options)
        target = options.languages.target
        self._forms = plural_forms("en" if target == "und" else target)
        kept = frozenset({"xliff:g"})
        self._names = InlineNames(
            around=frozenset(token.name for token in source.tokens) - kept,
            kept=kept,
            breaks=frozenset({"br"}),
            has_written_tags=True,
        )
        self.added: dict[int, list[Token]] = {}
        """items of plurals to put before a token of the file, by its index"""

    def read(self) -> Iterator[DocumentSegment]:
        """Yield the segments of all resources."""
        for i, token in enumerate(self.source.tokens):
            name = token.attribute("name")
            if token.kind != "start" or name is None or token.attribute("translatable") == "false":
                continue
            if token.name == "string" or token.attribute("type") == "string":
                yield from self._string(name, i, self._inside(i))
            elif token.name == "string-array":
                for item in self._items(i):
                    yield from self._string(name, item, self._inside(item))
            elif token.name == "plurals":
                yield from self._plurals(name, self._items(i))

    def _inside(self, start: int) -> list[Token]:
        """Return the tokens between the tags of an element."""
        return self.source.tokens[start + 1 : self.source.partners[start]]

    def _items(self, start: int) -> list[int]:
        """Return the start tags of the items of an element that have a text."""
        inside = range(start + 1, self.source.partners[start])
        tokens = self.source.tokens
        return [i for i in inside if tokens[i].name == "item" and tokens[i].kind == "start"]

    def _string(self, name: str, start: int, place: list[Token]) -> Iterator[DocumentSegment]:
        """Yield the segment of the text of an element, whose translation takes a place."""
        inside = self._inside(start)
        if _REFERENCE.fullmatch(source_of(inside)):
            return
        pieces = inline_pieces(self.source, start + 1, self.source.partners[start], self._names)
        text = read_pieces(join_messages(_without_escapes(pieces)), _WRITTEN)
        if has_text(text) and self.chosen.has((name,), text.text):
            yield DocumentSegment(text, partial(_put, place))

    def _plurals(self, name: str, items: list[int]) -> Iterator[DocumentSegment]:
        """Yield the segments of the items, and of new ones with the text of the item "other"."""
        tokens = self.source.tokens
        quantities = {tokens[item].attribute("quantity") or "": item for item in items}
        other = quantities.pop("other", None)
        if other is not None:
            for category in self._forms.categories:
                if category not in (*quantities, "other"):
                    yield from self._string(name, other, self._add_item(other, category))
        for quantity, item in quantities.items():
            is_general = quantity == "one" and self._forms.has_inexact_singular
            text = item
            if other is not None and is_general and self._count(item) != self._count(other):
                text = other  # 1, 21 and 31 need the placeholder that "one file" does not have
            yield from self._string(name, text, self._inside(item))
        if other is not None:  # the last one, because the others read it
            yield from self._string(name, other, self._inside(other))

    def _count(self, item: int) -> int:
        """Return how many placeholders an item has."""
        return len(_PLACEHOLDER.findall(source_of(self._inside(item))))

    def _add_item(self, other: int, category: str) -> list[Token]:
        """Add a copy of an item, for another quantity, before it; return what is inside."""
        tokens = self.source.tokens
        first, *place, last = (
            replace(token) for token in tokens[other : self.source.partners[other] + 1]
        )
        set_attribute(first, "quantity", category)
        before = tokens[other - 1]
        space = before.source if before.kind == "text" and not before.source.strip() else ""
        self.added.setdefault(other, []).extend([first, *place, last, Token("text", space)])
        return place


def _put(place: list[Token], source: str) -> None:
    """Replace the text of a resource, which is no reference even if it begins like one."""
    replace_source(place, re.sub(r"^(\s*)(?=[@?])", r"\1\\", source))


def _without_escapes(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """Yield pieces whose words have characters in place of escapes."""
    for piece in pieces:
        if piece.kind != "word":
            yield piece
            continue
        for found in _PART.finditer(piece.text):
            tokens = [Token("text", write_text(found[0]))]
            if found["space"]:
                yield Piece("space", tokens)
            elif found["mark"]:
                yield Piece("break" if found[0].startswith("\\") else "tag", tokens)
            else:
                yield Piece("word", tokens, _unescape(found[0]))


def _unescape(word: str) -> str:
    """Return a word without escapes; with them, if one is half of a character."""
    text = _ESCAPE.sub(lambda found: chr(int(found[1], 16)) if found[1] else found[2], word)
    try:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError:
        return word
