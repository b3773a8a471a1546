"""The plain text of a block of an HTML page, and the tags inside it.

Tags, comments and white space at both ends of a block stay where they are. What is inside becomes a
text with single spaces, whose entities are characters, and tags at certain characters of it.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from html import unescape
from itertools import accumulate
from typing import Literal, NamedTuple

from nmt.translation.html.blocks import Block
from nmt.translation.html.source import UNWRITABLE, Token
from nmt.translation.html.tag_places import InlineTag
from nmt.translation.spans import Span

_CHUNKS = re.compile(
    r"(?P<space>[ \t\n\r\f]+)|(?P<fixed>&(?:nbsp|#160|#[xX]0*[aA]0);)"
    r"|(?:(?!&(?:nbsp|#160|#[xX]0*[aA]0);)[^ \t\n\r\f])+"
)
_ENTITY = re.compile(r"&#?\w+;")
_SOFT_HYPHEN = "\u00ad"
_ALWAYS_ESCAPED = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}


class _Part(NamedTuple):
    """A smallest part of a block: a word of text, white space, or what an `Item` is."""

    kind: Literal["word", "space", "fixed", "open", "close", "tag", "kept"]
    """"fixed" is a non-breaking space that is written as an entity"""
    tokens: list[Token]
    element: int = 0
    """of the tags of an element: the index of its start tag in the page"""


@dataclass(slots=True)
class BlockText:
    """The text of a block, its tags, and what is before and after all text."""

    before: list[Token]
    text: str
    tags: list[InlineTag]
    kept: dict[Span, list[Token]]
    """parts of the text that are not translated, and their tokens"""
    after: list[Token]
    entities: dict[str, str]
    """characters that the block writes as entities, and these"""

    @property
    def has_tags(self) -> bool:
        """Whether tags or kept parts stand inside the text."""
        return bool(self.tags or self.kept)

    def escape(self, text: str) -> str:
        """Return text as HTML, with the entities that the block uses."""
        written = _ALWAYS_ESCAPED | self.entities
        codes = {ord(character): entity for character, entity in written.items()}
        return text.translate(UNWRITABLE | codes)


def read_block(tokens: Sequence[Token], partners: dict[int, int], block: Block) -> BlockText:
    """Read the text of a block; `partners` are those of `Elements`."""
    all_parts = list(_parts(tokens, partners, block))
    parts = list(_join_empty_elements(all_parts))
    first, end = _inside(parts)  # what is before and after is kept as it is
    reader = _BlockReader()
    for part in parts[first:end]:
        reader.read(part)
    before = [token for part in parts[:first] for token in part.tokens]
    after = [token for part in parts[end:] for token in part.tokens]
    entities: dict[str, str] = {}  # {character: entity}
    for part in parts:
        if part.kind == "word":
            entities.update(_entities(part.tokens[0]))
    return BlockText(before, "".join(reader.text), reader.tags, reader.kept, after, entities)


def _parts(tokens: Sequence[Token], partners: dict[int, int], block: Block) -> Iterator[_Part]:
    """Yield the parts of a block, in order; `partners` has the start tag of each end tag."""
    for item in block:
        if item.kind == "text":
            for chunk in _CHUNKS.finditer(tokens[item.first].source):
                token = Token("text", chunk[0])
                yield _Part(chunk.lastgroup or "word", [token])  # type: ignore[arg-type]
        else:
            start = partners[item.first] if item.kind == "close" else item.first
            yield _Part(item.kind, list(tokens[item.first : item.end]), start)


def _join_empty_elements(parts: Sequence[_Part]) -> Iterator[_Part]:
    """Yield the parts with one tag in place of each element that has no text."""
    words_before = list(accumulate((_has_text(part) for part in parts), initial=0))
    ends: dict[int, int] = {}  # of each start tag; an inner element ends first
    open_parts: list[int] = []
    for i, part in enumerate(parts):
        if part.kind == "open":
            open_parts.append(i)
        elif part.kind == "close":
            ends[open_parts.pop()] = i + 1
    i = 0
    while i < len(parts):
        end = ends.get(i, i + 1)
        if i in ends and words_before[end] == words_before[i]:
            yield _Part("tag", [token for part in parts[i:end] for token in part.tokens])
            i = end
        else:
            yield parts[i]
            i += 1


def _has_text(part: _Part) -> bool:
    """Return whether a part is more than tags, white space and soft hyphens."""
    is_word = part.kind == "word" and text_of(part.tokens[0].source) != ""
    return is_word or part.kind == "kept"


def _inside(parts: Sequence[_Part]) -> Span:
    """Return the parts without tags and white space at both ends, as (first part, end).

    An element that is around all text counts as tags at both ends.
    """
    first, end = 0, len(parts)
    outside = ("space", "fixed", "tag")
    while first < end:
        if parts[first].kind in outside:
            first += 1
        elif parts[end - 1].kind in outside:
            end -= 1
        elif parts[first].kind == "open" and parts[end - 1][::2] == ("close", parts[first].element):
            first, end = first + 1, end - 1
        else:
            break
    return first, end


def _entities(token: Token) -> Iterator[tuple[str, str]]:
    """Yield (character, entity) for each entity in a text that stands for one character."""
    for entity in _ENTITY.findall(token.source):
        character = unescape(entity)
        if len(character) == 1 and character != _SOFT_HYPHEN:
            yield character, entity


def text_of(source: str) -> str:
    """Return the text that an HTML source without tags stands for, on one line."""
    return unescape(source).replace(_SOFT_HYPHEN, "").replace("\n", " ")


@dataclass(slots=True)
class _OpenElement:
    """An element whose end tag is not read yet."""

    opening: list[Token]
    """its start tag"""
    start: int | None = None
    """the first character of its text; None: it has none yet"""
    children: list[InlineTag] = field(default_factory=list)


class _BlockReader:
    """Reads the parts of a block one after another."""

    def __init__(self) -> None:
        self.text: list[str] = []  # words, and the single spaces between them
        self.kept: dict[Span, list[Token]] = {}
        """the tokens of each part that is not translated, by its characters in the text"""
        self._length = 0  # of the text, in characters
        self._open = [_OpenElement([])]
        """the elements whose end is not read yet; the first stands for the block itself"""
        self._gap = False  # whether a space comes before the next word
        self._spaces: list[Token] = []  # white space since the last word or tag
        self._point: InlineTag | None = None
        """the tag between two words that was read last; further tags and white space join it. None:
        a word, or the start or end of an element with text, has come since"""

    @property
    def tags(self) -> list[InlineTag]:
        """The tags that are in no other element."""
        return self._open[0].children

    def read(self, part: _Part) -> None:
        """Read the next part."""
        match part.kind:
            case "word":
                self._add_text(text_of(part.tokens[0].source))
            case "kept":
                text = text_of(" ".join(t.source for t in part.tokens if t.kind == "text"))
                if words := text.split():
                    self.kept[self._add_text(" ".join(words))] = part.tokens
                else:
                    self._add_point(part.tokens, is_space=False)
            case "space":
                self._add_space(part.tokens[0])
            case "tag" | "fixed":
                self._add_point(part.tokens, part.kind == "fixed")
            case "open":
                self._open.append(_OpenElement(part.tokens))
                self._spaces, self._point = [], None
            case "close":
                self._close(part.tokens)

    def _add_text(self, text: str) -> Span:
        """Add a word, and return its characters in the text of the block."""
        if not text:  # it was a soft hyphen alone
            return self._length, self._length
        if self._gap and self._length:
            self.text.append(" ")
            self._length += 1
        start = self._length
        for element in reversed(self._open):
            if element.start is not None:
                break
            element.start = start
        self.text.append(text)
        self._length += len(text)
        self._gap, self._spaces, self._point = False, [], None
        return start, self._length

    def _add_space(self, token: Token) -> None:
        """Add white space, which a tag just before it takes to itself."""
        if not self._point:
            self._spaces.append(token)
        else:
            self._point.opening.append(token)
            self._point.replaces_space |= not self._gap
        self._gap = True

    def _add_point(self, tokens: Sequence[Token], is_space: bool) -> None:
        """Add a tag between two words, or a space that is written as an entity."""
        if not self._point:
            self._point = InlineTag((self._length, self._length), [*self._spaces])
            self._point.replaces_space = bool(self._spaces)
            self._point.needs_space = True
            self._open[-1].children.append(self._point)
            self._spaces = []
        self._point.opening += tokens
        self._point.needs_space &= is_space
        if is_space or tokens[0].name == "br":
            self._point.replaces_space |= not self._gap
            self._gap = True

    def _close(self, tokens: list[Token]) -> None:
        """End the innermost open element, whose end tag is `tokens`."""
        element = self._open.pop()
        start = self._length if element.start is None else element.start
        span = start, self._length
        self._open[-1].children.append(InlineTag(span, element.opening, tokens, element.children))
        self._spaces, self._point = [], None
