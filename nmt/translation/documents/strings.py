"""Texts of programs, such as the values of PO, JSON and properties files: lines, tags, spaces.

A text may have several lines, and tags such as <b>. An empty line, or one after the end of a
sentence, separates two segments; other line breaks are marks inside one.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial

from nmt.translation.documents.document import DocumentSegment, has_text, replace_source
from nmt.translation.documents.marked_text import Piece, read_pieces
from nmt.translation.documents.tokens import Token

_TAG = r"</?[A-Za-z][^<>\n]*>"
_PIECE = re.compile(
    rf"(?P<tag>{_TAG})|(?P<space> (?![ \t\n]))|(?P<break>[ \t\n]+)|(?:(?!{_TAG})[^ \t\n])+"
)
_NAME = re.compile(r"</?([A-Za-z][^\s<>/]*)")
_SEPARATOR = re.compile(r"((?<![ \t])[ \t]*\n[ \t]*\n\s*|(?<=[.!?:…。！？])[ \t]*\n[ \t]*)")


def string_segments(
    text: str, written: Mapping[str, str]
) -> tuple[list[Token], list[DocumentSegment]]:
    """Return the tokens of a text, and its segments, whose places are some of them.

    `written` says how the document writes some characters, such as a quotation mark.
    """
    codes = {ord(character): source for character, source in written.items()}
    tokens: list[Token] = []
    segments: list[DocumentSegment] = []
    for i, part in enumerate(_SEPARATOR.split(text)):  # every second part is a separator
        tokens.append(Token("text", part.translate(codes)))
        if i % 2 == 0:
            found = read_pieces(string_pieces(part, codes), written)
            if has_text(found):
                segments.append(DocumentSegment(found, partial(replace_source, tokens[-1:])))
    return tokens, segments


def string_pieces(text: str, codes: Mapping[int, str]) -> Iterator[Piece]:
    """Yield the pieces of a text, whose sources have other characters, as `str.translate` takes."""
    found = list(_PIECE.finditer(text))
    partners = tag_partners([match[0] if match["tag"] else "" for match in found])
    for i, match in enumerate(found):
        tokens = [Token("text", match[0].translate(codes))]
        if i in partners:
            yield Piece("open" if partners[i] > i else "close", tokens, element=min(i, partners[i]))
        elif match.lastgroup:
            yield Piece(match.lastgroup, tokens)  # type: ignore[arg-type]
        else:
            yield Piece("word", tokens, match[0])


def tag_partners(tags: list[str]) -> dict[int, int]:
    """Return for each tag that begins an element the one that ends it, and the other way round.

    `tags` has empty texts between them. Others stay alone: <br>, and those that overlap.
    """
    partners: dict[int, int] = {}
    opened: list[tuple[int, str]] = []
    counts: Counter[str] = Counter()  # of the names of those that are open
    for i, tag in enumerate(tags):
        found = _NAME.match(tag)
        name = found[1].lower() if found else ""
        if name and not tag.startswith("</") and not tag.endswith("/>"):
            opened.append((i, name))
            counts[name] += 1
        elif tag.startswith("</") and counts[name]:
            while opened[-1][1] != name:
                counts[opened.pop()[1]] -= 1
            start, _ = opened.pop()
            counts[name] -= 1
            partners[start], partners[i] = i, start
    return partners
