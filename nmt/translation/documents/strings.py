"""Texts of programs, such as the values of PO, JSON and properties files: lines, tags, spaces.

A text may have several lines, and tags such as <b>. An empty line, or one after the end of a
sentence, separates two segments; other line breaks are marks inside one. Neither holds inside of an
ICU message, whose tags and line breaks belong to the texts of its branches. A text that has an
entity such as &amp; is HTML, and its translation is written so. The mark of a key in the label of a
menu, as in "E&xit" or "_Open", is taken out for the model (see accelerators.py).
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import lru_cache, partial
from html import unescape
from typing import NamedTuple

from nmt.data.text.icu_messages import find_messages
from nmt.translation.documents.accelerators import (
    SHORTCUT,
    SHORTCUT_AFTER_TAB,
    Accelerator,
    put_accelerator,
    take_accelerator,
)
from nmt.translation.documents.document import DocumentSegment, has_text, replace_source
from nmt.translation.documents.marked_text import Piece, join_messages, read_pieces
from nmt.translation.documents.tokens import UNWRITABLE, Token
from nmt.translation.spans import Edit, apply_edits

_VALUE = r"""(?:"[^"<]*+"|''[^'<]*+''|'[^'<]*+'|[^\s"'<>]++)"""
_WITHOUT_VALUE = (
    "checked|controls|disabled|download|hidden|multiple|open|readonly|required|selected"
)
_ATTRIBUTE = rf"(?:[\w:.@-]++\s*+=\s*+{_VALUE}|(?:{_WITHOUT_VALUE})\b|\{{[^{{}}<>]*+\}}|%[\w()$]++)"
TAG = rf"</?(?:[A-Za-z][\w:.-]*+|\d\d?)(?:\s++{_ATTRIBUTE})*+\s*+/?>"
"""a tag, and not what is between the signs of "a <b or c> d"; i18next writes <0> and </0>"""
_NO_BREAK_SPACE = "&nbsp;|&#160;|&#[xX][aA]0;|\u00a0|\u202f"
_CONTROL = f"[{''.join(map(re.escape, map(chr, UNWRITABLE)))}]"
_ENTITY = re.compile(r"&(?:[A-Za-z][A-Za-z0-9]{1,30}|#\d{1,7}|#[xX][0-9A-Fa-f]{1,6});")
_ENTITIES = {"&gt;": ">", "&quot;": '"', "&apos;": "'", "&#39;": "'", "&nbsp;": "\u00a0"}
"""entities that a translation has where its source has them; it always has &amp; and &lt;"""
_NAME = re.compile(r"</?(\w[^\s<>/]*)")
_SEPARATOR = re.compile(
    r"((?<![ \t])[ \t]*\r?\n[ \t]*\r?\n\s*|(?<=[.!?:…。！？])[ \t]*\r?\n[ \t]*"
    rf"|{SHORTCUT_AFTER_TAB})"
)
QUOTED_BRACES = r"'[{}][^']*'"
"""in a MessageFormat of Java: braces that are no placeholder"""


class StringSyntax(NamedTuple):
    """What a text has beside words."""

    kept: str = ""
    """a pattern of what is not translated; empty: the usual placeholders of programs"""
    has_message_quotes: bool = False
    """whether '' stands for an apostrophe, as in a MessageFormat of Java"""

    def written_in(self, text: str) -> Mapping[str, str]:
        """Return how the translation of a text writes some characters."""
        found = {"'": "''"} if self.has_message_quotes else {}
        if _ENTITY.search(text):
            names = {"&amp;": "&", "&lt;": "<"}
            names |= {name: sign for name, sign in _ENTITIES.items() if name in text}
            found |= {sign: name for name, sign in names.items()}
        return found


USUAL_SYNTAX = StringSyntax()


def string_segments(
    text: str, syntax: StringSyntax = USUAL_SYNTAX
) -> tuple[list[Token], list[DocumentSegment]]:
    """Return the tokens of a text, and its segments, whose places are some of them."""
    if SHORTCUT.fullmatch(text.strip()):
        return [Token("text", text)], []
    tokens: list[Token] = []
    segments: list[DocumentSegment] = []
    for i, part in enumerate(_split(text)):  # every second part is a separator
        tokens.append(Token("text", part))
        if i % 2 == 0:
            place = tokens[-1:]
            label, accelerator = take_accelerator(part)
            pieces = join_messages(string_pieces(label, syntax, bool(_ENTITY.search(text))))
            found = read_pieces(pieces, syntax.written_in(text))
            put = partial(replace_source, place)
            if accelerator:
                put = partial(_put_label, place, accelerator)
            if has_text(found):
                segments.append(DocumentSegment(found, put))
    return tokens, segments


def _split(text: str) -> list[str]:
    """Return the parts of a text, and between them the separators that are in no ICU message."""
    spans = [message.span for message in find_messages(text)]
    masked = apply_edits(text, [Edit(span, "x" * (span[1] - span[0])) for span in spans])
    parts, at = [], 0
    for found in _SEPARATOR.finditer(masked):
        parts += [text[at : found.start()], found[0]]
        at = found.end()
    return [*parts, text[at:]]


def _put_label(place: list[Token], accelerator: Accelerator, source: str) -> None:
    """Replace the source of a label by its translation, with the mark of its key."""
    replace_source(place, put_accelerator(source, accelerator))


@lru_cache(100)
def _piece_pattern(kept: str) -> re.Pattern[str]:
    """Return a pattern of the pieces of a text; `kept` matches what is not translated."""
    special = rf"{kept or '(?!)'}|{TAG}|{_CONTROL}|{_NO_BREAK_SPACE}"
    return re.compile(
        rf"(?P<kept>(?:{kept or '(?!)'})+)|(?P<tag>{TAG}|{_CONTROL}+)|(?P<fixed>{_NO_BREAK_SPACE})"
        rf"|(?P<space> (?![ \t\r\n]))|(?P<break>[ \t\r\n]+)|(?:(?!{special})[^ \t\r\n])++"
    )


def string_pieces(text: str, syntax: StringSyntax, is_html: bool = False) -> Iterator[Piece]:
    """Yield the pieces of a text; `is_html` says whether entities stand for characters."""
    found = list(_piece_pattern(syntax.kept).finditer(text))
    partners = tag_partners([match[0] if match["tag"] else "" for match in found])
    for i, match in enumerate(found):
        tokens = [Token("text", match[0])]
        if i in partners:
            yield Piece("open" if partners[i] > i else "close", tokens, element=min(i, partners[i]))
        elif match["kept"]:
            yield Piece("kept", tokens, match[0])
        elif match.lastgroup:
            yield Piece(match.lastgroup, tokens)  # type: ignore[arg-type]
        else:
            word = unescape(match[0]) if is_html else match[0]
            if syntax.has_message_quotes:  # a single one only begins or ends a quotation
                word = "'".join(part.replace("'", "") for part in word.split("''"))
            yield Piece("word", tokens, word)


@lru_cache(1000)
def _tag_name(tag: str) -> str:
    """Return the name of a tag in small letters, empty if it has none."""
    found = _NAME.match(tag)
    return found[1].lower() if found else ""


def tag_partners(tags: list[str]) -> dict[int, int]:
    """Return for each tag that begins an element the one that ends it, and the other way round.

    `tags` has empty texts between them. Others stay alone: <br>, and those that overlap.
    """
    partners: dict[int, int] = {}
    opened: list[tuple[int, str]] = []
    counts: Counter[str] = Counter()  # of the names of those that are open
    for i, tag in enumerate(tags):
        name = _tag_name(tag) if tag else ""
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
