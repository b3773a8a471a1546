"""Texts of XML with elements inside them: OpenDocument, XLIFF, TMX, resources of Android."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from nmt.translation.documents.marked_text import Piece
from nmt.translation.documents.tokens import Token, source_of
from nmt.translation.documents.xml_tokens import XmlSource, text_of_xml, write_text

_WORDS = re.compile(r"(?P<space>[ \t\r\n]+)|[^ \t\r\n]+")
_EXACT_WORDS = re.compile(r"(?P<space> (?![ \t\r\n]))|(?P<break>[ \t\r\n]+)|[^ \t\r\n]+")
_REFERENCES = ("rid", "startRef", "i", "id")
"""attributes by which the end of a pair names its start, the first that is there"""


@dataclass(frozen=True)
class InlineNames:
    """What the elements inside a text are; all others are marks between two words."""

    around: frozenset[str]
    """elements around words"""
    kept: frozenset[str] = frozenset()
    """elements with text that is not translated"""
    breaks: frozenset[str] = frozenset()
    """elements that separate words"""
    spaces: frozenset[str] = frozenset()
    """elements that stand for white space"""
    pairs: Mapping[str, str] = field(default_factory=dict)
    """elements that begin what another element ends, which names it: {name: name}"""
    preserve: bool = False
    """whether all white space counts: any but a single space is a mark, at its place"""
    is_kept: Callable[[Token], bool] = lambda tag: False
    """whether what a tag begins is not translated"""


def inline_pieces(source: XmlSource, first: int, end: int, names: InlineNames) -> Iterator[Piece]:
    """Yield the pieces of the text between two tokens."""
    tokens = source.tokens
    pairs = _pairs(source, first, end, names)
    i = first
    while i < end:
        token, stop = tokens[i], source.end(i)
        if token.kind == "text":
            yield from _words(token.source, names.preserve)
            i += 1
        elif i in pairs:
            kind: Literal["open", "close"] = "open" if pairs[i] > i else "close"
            yield Piece(kind, tokens[i:stop], element=min(i, pairs[i]))
            i = stop
        elif token.name in names.around and token.kind != "empty":
            if token.kind == "start" and names.is_kept(token):
                yield _whole("kept", source, i, stop)
                i = stop
            else:
                is_end = token.kind == "end"
                opened = source.partners[i] if is_end else i
                yield Piece("close" if is_end else "open", [token], element=opened)
                i += 1
        else:
            yield _whole(_kind(token, names), source, i, stop)
            i = stop


def _kind(token: Token, names: InlineNames) -> Literal["kept", "break", "space", "tag"]:
    """Return what an element is that is not around words."""
    if token.name in names.kept:
        return "kept"
    if token.name in names.spaces:
        return "space"
    return "break" if token.name in names.breaks else "tag"


def _whole(
    kind: Literal["kept", "break", "space", "tag"], source: XmlSource, first: int, end: int
) -> Piece:
    """Return the piece of an element with its content, which is not translated."""
    inside = source.tokens[first:end]
    shown = ""
    if kind == "kept":
        texts = source_of(token for token in inside if token.kind == "text")
        shown = " ".join(text_of_xml(texts).split())
    if kind == "space":  # one token, which may become a space of the text
        return Piece("space", [Token("other", source_of(inside))])
    return Piece(kind, inside, shown)


def _words(source: str, preserve: bool) -> Iterator[Piece]:
    """Yield the words and white space of the source of a text."""
    if source.startswith("<"):  # CDATA
        source = write_text(text_of_xml(source))
    for found in (_EXACT_WORDS if preserve else _WORDS).finditer(source):
        kind: Literal["space", "break", "word"] = found.lastgroup or "word"  # type: ignore[assignment]
        text = text_of_xml(found[0]) if kind == "word" else ""
        yield Piece(kind, [Token("text", found[0])], text)


def _pairs(source: XmlSource, first: int, end: int, names: InlineNames) -> dict[int, int]:
    """Return for each start of a pair its end, and the other way round, as indices of tokens.

    Pairs that do not lie inside each other are marks between words.
    """
    tokens = source.tokens
    pairs: dict[int, int] = {}
    opened: list[tuple[int, str]] = []  # starts of pairs and of elements, with their ids
    i = first
    while i < end:
        token, stop = tokens[i], source.end(i)
        if token.name in names.around and token.kind == "start" and not names.is_kept(token):
            opened.append((i, ""))
            stop = i + 1
        elif token.name in names.around and token.kind == "end":
            while opened and opened.pop()[1]:
                pass  # pairs that do not end in the element
            stop = i + 1
        elif token.name in names.pairs and token.kind != "end":
            opened.append((i, _reference(token)))
        elif token.name in names.pairs.values() and token.kind != "end" and opened:
            start, reference = opened[-1]
            expected = names.pairs.get(tokens[start].name)
            if expected == token.name and reference == _reference(token):
                pairs[start], pairs[i] = i, start
                opened.pop()
        i = stop
    return pairs


def _reference(token: Token) -> str:
    """Return by what a pair is known: never an empty text."""
    values = (token.attribute(name) for name in _REFERENCES)
    return next((value for value in values if value), "?")
