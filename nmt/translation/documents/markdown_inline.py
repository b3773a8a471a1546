"""The inline part of Markdown: emphasis, links, code and breaks, each with its place in the source.

markdown-it-py decides what is what, by the rules of CommonMark. It keeps no places, so its rules
are wrapped: what a rule has read stands between the places before and after its call.
"""

import re
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from nmt.translation.documents.document import DocumentSegment, has_text
from nmt.translation.documents.marked_text import MarkedText, Piece, read_pieces
from nmt.translation.documents.strings import tag_partners
from nmt.translation.documents.tokens import Token

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_inline import StateInline

_KEPT = r"\{\{.*?\}\}|\{%.*?%\}|https?://[^\s<>]*[^\s<>.,;:!?)\]'\"]"
"""templates and addresses"""
_PART = re.compile(rf"(?P<kept>{_KEPT})|(?P<space>[ \t\n]+)|(?:(?!{_KEPT})[^ \t\n])++")
_SPECIAL = "*`[<\\~"
"""characters that may begin a mark"""
_EMPHASIS = ("em_", "strong_", "s_")
"""how the kinds of tokens begin whose marks without text between them would be text: ****"""


@dataclass
class _Part:
    """What one rule has read: a part of the source, and the token that it became."""

    start: int
    end: int
    token: Any


@dataclass
class MarkdownText:
    """The text of a paragraph, a heading or a cell."""

    text: MarkedText
    alternatives: list[DocumentSegment]
    """the alternative texts of pictures inside it"""
    short_links: dict[str, str]
    """the source of links without an address, such as [tests], which name their definition by
    their text, and what is written for them where the text has another one behind it"""


class InlineReader:
    """Reads the inline part of paragraphs, headings and cells."""

    def __init__(self, parser: "MarkdownIt", definitions: MutableMapping[str, Any]) -> None:
        """Take a parser, whose rules are wrapped, and the definitions that it has found."""
        self._parser, self._definitions = parser, definitions
        self._source = ""
        self._parts: list[_Part] = []
        ruler = parser.inline.ruler
        rules = list(zip(ruler.get_active_rules(), ruler.getRules(""), strict=True))
        for name, rule in rules:
            ruler.at(name, partial(self._read_rule, rule))
        # adjacent texts stay apart, as they are in the source
        parser.inline.ruler2.disable("fragments_join")
        parser.core.ruler.disable("text_join")

    def read(self, source: str, escaped: str = "") -> MarkdownText:
        """Read a text; `escaped` are characters that always have a backslash, as `|` in a table."""
        self._source, self._parts = source, []
        self._parser.parseInline(source, self._definitions)
        parts = sorted(self._parts, key=lambda part: part.start)
        short = {}
        for part in parts:
            label = part.token.meta.get("label") if part.token.type == "link_close" else None
            if label is not None and source[part.start : part.end] in ("]", "][]"):
                short[f"[{label}{source[part.start : part.end]}"] = f"[{label}][{label}]"
        alternatives: list[DocumentSegment] = []
        pieces = list(_pieces(source, parts, alternatives))
        text = read_pieces(pieces, _written(source, parts, escaped))
        return MarkdownText(text, alternatives, short)

    def _read_rule(
        self, rule: "Callable[[StateInline, bool], bool]", state: "StateInline", silent: bool
    ) -> bool:
        """Call a rule, and note what it has read."""
        start, count, pending = state.pos, len(state.tokens), state.pending
        is_read = rule(state, silent)
        # the label of a picture is parsed by itself, with places of its own
        if is_read and not silent and state.src == self._source:
            tokens = state.tokens[count:]
            if pending and tokens and tokens[0].type == "text":
                tokens = tokens[1:]  # text before what was read
            if tokens:
                self._note(start, state, tokens)
        return is_read

    def _note(self, start: int, state: "StateInline", tokens: Sequence[Any]) -> None:
        """Note the parts between `start` and the place of `state`, which became `tokens`."""
        first, last = tokens[0], tokens[-1]
        if first.type == "link_open" and state.src[start] == "[":
            end = state.md.helpers.parseLinkLabel(state, start, True)
            last.meta["label"] = state.src[start + 1 : end]
            self._parts.append(_Part(start, start + 1, first))
            self._parts.append(_Part(end, state.pos, last))
        elif first.type == "text":  # each is a character that may become emphasis
            for token in tokens:
                self._parts.append(_Part(start, start + len(token.content), token))
                start += len(token.content)
        else:
            before = state.src[:start]
            spaces = len(before) - len(before.rstrip(" ")) if "break" in last.type else 0
            self._parts.append(_Part(start - spaces, state.pos, last))


def _written(source: str, parts: Sequence[_Part], escaped: str) -> dict[str, str]:
    """Return how the source writes some characters: as entities, or with a backslash."""
    plain, at = "", 0
    found: dict[str, str] = {}
    for part in parts:
        plain += source[at : part.start]
        at = max(at, part.end)
        if part.token.type == "text_special" and len(part.token.content) == 1:
            found.setdefault(part.token.content, source[part.start : part.end])
        elif part.token.type in ("text", "text_special"):  # also a backslash before a letter
            plain += source[part.start : part.end]
    plain += source[at:]
    usual = {char: "\\" + char for char in _SPECIAL} | found
    return {c: s for c, s in usual.items() if c not in plain} | {c: "\\" + c for c in escaped}


def _pieces(
    source: str, parts: Sequence[_Part], alternatives: list[DocumentSegment]
) -> Iterator[Piece]:
    """Yield the pieces of a text."""
    parts = list(_joined_delimiters(parts))
    partners = tag_partners([_tag(source, part) for part in parts])
    at = 0
    for i, part in enumerate(parts):
        yield from _plain_pieces(source[at : part.start])
        raw = source[part.start : part.end]
        at = part.end
        token = Token("text", raw)
        kind = part.token.type
        if i in partners:
            is_start = partners[i] > i
            if kind == "link_close" and raw in ("]", "][]"):
                token.source = f"][{part.token.meta['label']}]"
            element, is_emphasis = min(i, partners[i]), kind.startswith(_EMPHASIS)
            yield Piece("open" if is_start else "close", [token], "", element, is_emphasis)
        elif kind == "text":
            yield from _plain_pieces(raw)
        elif kind == "text_special":
            character = part.token.content
            is_space = character == "\u00a0"
            yield Piece("fixed", [token]) if is_space else Piece("word", [token], character)
        elif kind == "softbreak":
            yield Piece("space", [Token("text", " ")])
        elif kind == "hardbreak":
            yield Piece("break", [token])
        elif kind in ("code_inline", "math_inline", "link_close"):  # code, or an address in < >
            yield Piece("kept", [token], part.token.content or raw)
        else:
            if kind == "image":
                alternatives += _alternative(token, part.token)
            yield Piece("tag", [token])
    yield from _plain_pieces(source[at:])


def _joined_delimiters(parts: Sequence[_Part]) -> Iterator[_Part]:
    """Yield the parts with both characters of ** in one."""
    waiting: _Part | None = None  # the first character of an opening **
    for i, part in enumerate(parts):
        kind = part.token.type
        is_consumed = kind == "text" and part.token.content == ""
        before = parts[i - 1].token.type if i else ""
        if is_consumed and before in ("strong_close", "s_close"):
            continue
        if is_consumed:
            waiting = part
            continue
        start, end = (waiting.start if waiting else part.start), part.end
        waiting = None
        following = parts[i + 1] if i + 1 < len(parts) else None
        if kind in ("strong_close", "s_close") and following and following.token.content == "":
            end = following.end if following.token.type == "text" else end
        yield _Part(start, end, part.token)


def _tag(source: str, part: _Part) -> str:
    """Return a tag by which the partner of a part is found; empty if it has none."""
    kind = part.token.type
    if kind == "html_inline":
        return source[part.start : part.end]
    name, _, end = kind.rpartition("_")
    if source[part.start] == "<" or end not in ("open", "close"):
        return ""
    return f"<{name}->" if end == "open" else f"</{name}->"  # no name of HTML ends so


def _plain_pieces(text: str) -> Iterator[Piece]:
    """Yield the words and white space of a text without marks."""
    for found in _PART.finditer(text):
        token = Token("text", found[0])
        if found["space"]:
            yield Piece("space", [Token("text", " ")])
        elif found["kept"]:
            yield Piece("kept", [token], found[0])
        else:
            yield Piece("word", [token], found[0])


def _alternative(token: Token, image: Any) -> Iterator[DocumentSegment]:
    """Yield the alternative text of a picture, which has no marks."""
    label, plain = image.content, " ".join(_plain_text(image).split())
    text = MarkedText([], plain, [], {}, [], {char: "\\" + char for char in _SPECIAL + "[]_"})

    def put(translation: str) -> None:
        rest = token.source[2 + len(label) :]
        is_short = rest in ("]", "][]")
        if translation == text.escape(plain):
            return  # a short one keeps its form
        token.source = f"![{translation}" + (f"][{label}]" if is_short else rest)

    if has_text(text):
        yield DocumentSegment(text, put)


def _plain_text(token: Any) -> str:
    """Return the text of what the parser has read, without its marks."""
    if token.children is not None:
        return "".join(map(_plain_text, token.children))
    return " " if "break" in token.type else "" if token.type == "html_inline" else token.content
