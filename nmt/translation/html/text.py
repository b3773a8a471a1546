"""The parts of a block of an HTML page: its words, white space and tags."""

import re
from collections.abc import Iterator, Sequence
from html import unescape

from nmt.translation.documents.marked_text import MARKUP, MarkedText, Piece, read_pieces
from nmt.translation.documents.tokens import Token
from nmt.translation.html.blocks import Block

_CHUNKS = re.compile(
    r"(?P<space>[ \t\n\r\f]+)|(?P<fixed>&(?:nbsp|#160|#[xX]0*[aA]0);)"
    r"|(?:(?!&(?:nbsp|#160|#[xX]0*[aA]0);)[^ \t\n\r\f])+"
)
_ENTITY = re.compile(r"&#?\w+;")
_SOFT_HYPHEN = "\u00ad"


def read_block(tokens: Sequence[Token], partners: dict[int, int], block: Block) -> MarkedText:
    """Read the text of a block, whose entities become characters.

    `partners` are those of `Elements`.
    """
    parts = list(_parts(tokens, partners, block))
    written = dict(MARKUP)
    for part in parts:
        if part.kind == "word":
            written.update(_entities(part.tokens[0]))
    return read_pieces(parts, written)


def _parts(tokens: Sequence[Token], partners: dict[int, int], block: Block) -> Iterator[Piece]:
    """Yield the parts of a block, in order; `partners` has the start tag of each end tag."""
    for item in block:
        inside = list(tokens[item.first : item.end])
        if item.kind == "text":
            for chunk in _CHUNKS.finditer(inside[0].source):
                kind = chunk.lastgroup or "word"
                text = text_of(chunk[0]) if kind == "word" else ""
                yield Piece(kind, [Token("text", chunk[0])], text)  # type: ignore[arg-type]
        elif item.kind == "kept":
            text = text_of(" ".join(t.source for t in inside if t.kind == "text"))
            yield Piece("kept", inside, " ".join(text.split()))
        elif item.kind == "tag":
            yield Piece("break" if inside[0].name == "br" else "tag", inside)
        else:
            start = partners[item.first] if item.kind == "close" else item.first
            yield Piece(item.kind, inside, element=start)


def _entities(token: Token) -> Iterator[tuple[str, str]]:
    """Yield (character, entity) for each entity in a text that stands for one character."""
    for entity in _ENTITY.findall(token.source):
        character = unescape(entity)
        if len(character) == 1 and character != _SOFT_HYPHEN:
            yield character, entity


def text_of(source: str) -> str:
    """Return the text that an HTML source without tags stands for, on one line."""
    return unescape(source).replace(_SOFT_HYPHEN, "").replace("\n", " ")
