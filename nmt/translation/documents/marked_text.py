"""A text of a document without its marks, and the marks at certain characters of it.

Tags, comments and white space at both ends of a text stay where they are. What is inside becomes a
text with single spaces, and tags at certain characters of it.
"""

import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Literal, NamedTuple

from nmt.data.text.icu_messages import find_messages
from nmt.translation.documents.tag_places import InlineTag
from nmt.translation.documents.tokens import UNWRITABLE, Token, source_of
from nmt.translation.spans import Span

MARKUP = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
"""how HTML and XML write the characters that would begin or end a mark"""
BREAK_REFERENCE = r"&#(?:0*(?:9|10|13)|[xX]0*(?:9|[aAdD]));"
"""a regular expression for white space that HTML or XML writes as a reference"""


class Piece(NamedTuple):
    """A smallest part of a text: a word, white space, or a mark."""

    kind: Literal["word", "message", "space", "fixed", "open", "close", "tag", "break", "kept"]
    """"message" is one of ICU, whose tokens are the marks in it; "fixed" is a non-breaking space
    that is no character of the text; "open" and "close" are the ends of an element; "break" is a
    tag that separates words, as a line break does, and "tag" one that does not; "kept" has a text
    that is not translated"""
    tokens: list[Token]
    text: str = ""
    """what a word, or what is kept, stands for, without white space at its ends"""
    element: int = 0
    """the number of the element that is opened or closed"""
    needs_content: bool = False
    """of an "open" piece: whether the element is left out, with a warning, if its translation has
    nothing in it; **** in Markdown is no mark, but text"""


@dataclass(slots=True)
class MarkedText:
    """A text, its tags, and what is before and after all text."""

    before: list[Token]
    text: str
    tags: list[InlineTag]
    kept: dict[Span, list[Token]]
    """parts of the text that are not translated, and their tokens"""
    after: list[Token]
    written: Mapping[str, str]
    """characters that the document writes in another way, such as "&" as "&amp;", and how"""
    marks: frozenset[str] = frozenset()
    """the source of marks that are a part of the text, such as tags in an ICU message"""

    @property
    def has_tags(self) -> bool:
        """Whether tags or kept parts stand inside the text."""
        return bool(self.tags or self.kept)

    def escape(self, text: str) -> str:
        """Return text as the document writes it."""
        codes = {ord(character): source for character, source in self.written.items()}
        pattern = "|".join(map(re.escape, sorted(self.marks, key=len, reverse=True)))
        parts = re.split(f"({pattern})", text) if pattern else [text]  # every second is a mark
        parts[::2] = [part.translate(UNWRITABLE | codes) for part in parts[::2]]
        return "".join(parts)


def read_pieces(pieces: Iterable[Piece], written: Mapping[str, str]) -> MarkedText:
    """Read a text from its pieces; `written` says how the document writes some characters."""
    pieces = list(_join_empty_elements(list(pieces)))
    first, end = _inside(pieces)  # what is before and after is kept as it is
    reader = _PieceReader()
    for piece in pieces[first:end]:
        reader.read(piece)
    before = [token for piece in pieces[:first] for token in piece.tokens]
    after = [token for piece in pieces[end:] for token in piece.tokens]
    messages = [piece for piece in pieces if piece.kind == "message"]
    marks = frozenset(token.source for piece in messages for token in piece.tokens)
    return MarkedText(before, "".join(reader.text), reader.tags, reader.kept, after, written, marks)


def join_messages(pieces: Iterable[Piece]) -> list[Piece]:
    """Return the pieces with one in place of those of each ICU message.

    Its tags, line breaks and spaces belong to its syntax or to the texts of its branches. What
    touches it without a space belongs to the same piece.
    """
    pieces = list(pieces)
    texts = [each.text if each.kind == "word" else source_of(each.tokens) for each in pieces]
    spans = deque(message.span for message in find_messages("".join(texts)))
    if not spans:
        return pieces
    joined: list[Piece] = []
    texts_of_messages: dict[int, list[str]] = {}  # of the pieces of each one, by its index
    at = 0
    for piece, text in zip(pieces, texts, strict=True):
        start, at = at, at + len(text)
        while spans and spans[0][1] <= start:
            spans.popleft()
        if not spans or at <= spans[0][0]:
            joined.append(piece)
            continue
        marks = [] if piece.kind == "word" or text.isspace() else [Token("other", text)]
        if spans[0][0] < start:  # the message begins in the last piece
            joined[-1].tokens.extend(marks)
            texts_of_messages[len(joined) - 1].append(text)
        else:
            texts_of_messages[len(joined)] = [text]
            joined.append(Piece("message", marks))
    for i, parts in texts_of_messages.items():
        joined[i] = joined[i]._replace(text="".join(parts))
    ends = Counter(each.element for each in joined if each.kind in ("open", "close"))
    # an element that begins or ends in a message is none outside of it
    return [
        each
        if each.kind not in ("open", "close") or ends[each.element] == 2
        else each._replace(kind="tag")
        for each in joined
    ]


def _join_empty_elements(pieces: Sequence[Piece]) -> Iterator[Piece]:
    """Yield the pieces with one tag in place of each element that has no text."""
    if all(piece.kind != "open" for piece in pieces):
        yield from pieces
        return
    words_before = list(accumulate((piece.text != "" for piece in pieces), initial=0))
    ends: dict[int, int] = {}  # of each start tag; an inner element ends first
    open_pieces: list[int] = []
    for i, piece in enumerate(pieces):
        if piece.kind == "open":
            open_pieces.append(i)
        elif piece.kind == "close":
            ends[open_pieces.pop()] = i + 1
    i = 0
    while i < len(pieces):
        end = ends.get(i, i + 1)
        if i in ends and words_before[end] == words_before[i]:
            yield Piece("tag", [token for piece in pieces[i:end] for token in piece.tokens])
            i = end
        else:
            yield pieces[i]
            i += 1


def _inside(pieces: Sequence[Piece]) -> Span:
    """Return the pieces without tags and white space at both ends, as (first piece, end).

    An element that is around all text counts as tags at both ends.
    """
    first, end = 0, len(pieces)
    outside = ("space", "fixed", "tag", "break")
    while first < end:
        if pieces[first].kind in outside:
            first += 1
        elif pieces[end - 1].kind in outside:
            end -= 1
        elif pieces[first].kind == "open" and _ends(pieces[first], pieces[end - 1]):
            first, end = first + 1, end - 1
        else:
            break
    return first, end


def _ends(start: Piece, piece: Piece) -> bool:
    """Return whether a piece ends the element that `start` opens."""
    return piece.kind == "close" and piece.element == start.element


@dataclass(slots=True)
class _OpenElement:
    """An element whose end tag is not read yet."""

    opening: list[Token]
    """its start tag"""
    needs_content: bool = False
    start: int | None = None
    """the first character of its text; None: it has none yet"""
    children: list[InlineTag] = field(default_factory=list)


class _PieceReader:
    """Reads the pieces of a block one after another."""

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

        self._replacing: InlineTag | None = None
        """the tag at the end of an element that stands in place of the space before the next word,
        so far"""

    @property
    def tags(self) -> list[InlineTag]:
        """The tags that are in no other element."""
        return self._open[0].children

    def read(self, piece: Piece) -> None:
        """Read the next piece."""
        match piece.kind:
            case "word" | "message":
                self._add_text(piece.text)
            case "kept" if piece.text:
                self.kept[self._add_text(piece.text)] = piece.tokens
            case "space":
                self._add_space(piece.tokens[0])
            case "tag" | "break" | "fixed" | "kept":
                self._add_point(piece)
            case "open":
                self._open.append(_OpenElement(piece.tokens, piece.needs_content))
                self._spaces, self._point = [], None
            case "close":
                self._close(piece.tokens)

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
        self._gap, self._spaces, self._point, self._replacing = False, [], None, None
        return start, self._length

    def _add_space(self, token: Token) -> None:
        """Add white space, which a tag just before it takes to itself."""
        if not self._point:
            self._spaces.append(token)
            if self._replacing:  # it has its own space, and the text has this one
                self._replacing.replaces_space, self._replacing = False, None
        else:
            self._point.opening.append(token)
            self._point.replaces_space |= not self._gap
        self._gap = True

    def _add_point(self, piece: Piece) -> None:
        """Add a tag between two words, or a space that is no character of the text."""
        is_space = piece.kind == "fixed"
        if not self._point:
            self._point = InlineTag((self._length, self._length), [*self._spaces])
            self._point.replaces_space = bool(self._spaces)
            self._point.needs_space = True
            self._open[-1].children.append(self._point)
            self._spaces = []
        self._point.opening += piece.tokens
        self._point.needs_space &= is_space
        if is_space or piece.kind == "break":
            self._point.replaces_space |= not self._gap
            self._gap = True

    def _close(self, tokens: list[Token]) -> None:
        """End the innermost open element, whose end tag is `tokens`."""
        element = self._open.pop()
        start = self._length if element.start is None else element.start
        span = start, self._length
        tag = InlineTag(span, element.opening, tokens, element.children)
        tag.needs_content = element.needs_content
        self._open[-1].children.append(tag)
        if self._point and self._point.replaces_space:
            self._replacing = self._point
        self._spaces, self._point = [], None
