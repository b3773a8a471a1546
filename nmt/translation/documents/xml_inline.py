"""Texts of XML with elements inside them: OpenDocument, XLIFF, TMX, resources of Android."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from nmt.translation.documents.marked_text import BREAK_REFERENCE, Piece
from nmt.translation.documents.strings import tag_partners
from nmt.translation.documents.tokens import Token, source_of
from nmt.translation.documents.xml_tokens import XmlSource, text_of_xml, write_text

_WORD = rf"[^ \t\r\n&]++(?: [^ \t\r\n&]++)*+|(?:[^ \t\r\n&]++|(?!{BREAK_REFERENCE})&)++"
"""words with single spaces between them, or one with references to characters"""
# of a row of white space or letters, a repeated group that is not possessive would keep each one
_WORDS = re.compile(
    rf"(?P<break>[ \t\r\n]*+(?:{BREAK_REFERENCE}[ \t\r\n]*+)++)|(?P<space>[ \t\r\n]++)|{_WORD}"
)
_EXACT_WORDS = re.compile(
    rf"(?P<space> (?![ \t\r\n]|{BREAK_REFERENCE}))"
    rf"|(?P<break>(?:[ \t\r\n]++|{BREAK_REFERENCE})++)|{_WORD}"
)
_VALUE = r"""(?:"[^"<]*+"|'[^'<]*+'|&quot;(?:(?!&quot;)[^<])*+&quot;|[^\s"'<>&]++)"""
_TAG = re.compile(rf"(&lt;/?[A-Za-z][\w:.-]*+(?:\s++[\w:.-]++\s*+=\s*+{_VALUE})*+\s*+/?(?:&gt;|>))")
"""not what is between the signs of "a <b or c> d" """
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
    """elements that stand for a space, or for as many as an attribute `c` says"""
    pairs: Mapping[str, str] = field(default_factory=dict)
    """elements that begin what another element ends, which names it: {name: name}"""
    preserve: bool = False
    """whether all white space counts: any but a single space is a mark, at its place"""
    is_kept: Callable[[Token], bool] = lambda tag: False
    """whether what a tag begins is not translated"""
    has_written_tags: bool = False
    """whether a tag that is written as text, as &lt;b&gt;, is a mark"""


def inline_pieces(source: XmlSource, first: int, end: int, names: InlineNames) -> Iterable[Piece]:
    """Return the pieces of the text between two tokens."""
    pieces = _pieces(source, first, end, names)
    return _pair_written_tags(list(pieces)) if names.has_written_tags else pieces


def _pieces(source: XmlSource, first: int, end: int, names: InlineNames) -> Iterator[Piece]:
    tokens = source.tokens
    pairs = _pairs(source, first, end, names)
    i = first
    while i < end:
        token, stop = tokens[i], source.end(i)
        if token.kind == "text":
            yield from _words(token.source, names)
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
            kind_of_whole = _kind(token, names)
            is_after_space = i > first and (
                tokens[i - 1].name in names.spaces or tokens[i - 1].source[-1:].isspace()
            )
            if kind_of_whole == "space" and is_after_space:  # two spaces are more than one
                kind_of_whole = "break"
            yield _whole(kind_of_whole, source, i, stop)
            i = stop


def _kind(token: Token, names: InlineNames) -> Literal["kept", "break", "space", "tag"]:
    """Return what an element is that is not around words."""
    if token.name in names.kept:
        return "kept"
    if token.name in names.spaces:
        counts = [value for name, value in token.attributes if name.rpartition(":")[2] == "c"]
        return "space" if counts in ([], ["1"]) else "break"
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


def _words(source: str, names: InlineNames) -> Iterator[Piece]:
    """Yield the words, white space and written tags of the source of a text."""
    if source.startswith("<"):  # CDATA
        source = write_text(text_of_xml(source))
    pattern = _EXACT_WORDS if names.preserve else _WORDS
    parts = _TAG.split(source) if names.has_written_tags else [source]
    for i, part in enumerate(parts):
        if i % 2:
            yield Piece("break" if part.startswith("&lt;br") else "tag", [Token("text", part)])
            continue
        for found in pattern.finditer(part):
            kind: Literal["space", "break", "word"] = found.lastgroup or "word"  # type: ignore[assignment]
            text = text_of_xml(found[0]) if kind == "word" else ""
            yield Piece(kind, [Token("text", found[0])], text)


def _pair_written_tags(pieces: list[Piece]) -> list[Piece]:
    """Return the pieces with the two ends of an element in place of written tags that match.

    Both are in the same element of the document; others stay marks between words.
    """
    levels: list[list[int]] = [[]]  # of each open element, the written tags that are directly in it
    ended: list[list[int]] = []
    for i, piece in enumerate(pieces):
        if piece.kind == "open":
            levels.append([])
        elif piece.kind == "close":
            ended.append(levels.pop())
        elif piece.kind == "tag" and piece.tokens[0].kind == "text":
            levels[-1].append(i)
    for inside in [*ended, *levels]:
        tags = [text_of_xml(source_of(pieces[i].tokens)) for i in inside]
        for tag, partner in tag_partners(tags).items():
            kind: Literal["open", "close"] = "open" if partner > tag else "close"
            number = -1 - inside[min(tag, partner)]  # no number of a token of the document
            pieces[inside[tag]] = pieces[inside[tag]]._replace(kind=kind, element=number)
    return pieces


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
