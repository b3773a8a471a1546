"""Translators for tests of markup whose alignments are known: one copies, one reverses words."""

import re
from collections.abc import Sequence
from dataclasses import replace

from nmt.data.text.icu_messages import find_messages
from nmt.translation.documents.document import ANY_LANGUAGE, LanguagePair
from nmt.translation.documents.html import html_document
from nmt.translation.documents.translate import TranslateTexts, translate_document
from nmt.translation.line import Alignment, Line, Translation
from nmt.translation.spans import Edit, Link, Span, apply_edits


def units(line: Line) -> list[Span]:
    """The words of a line, and its protected parts and ICU messages, each of which is one."""
    found: list[Span] = []
    at = 0
    messages = [message.span for message in find_messages(line.text)]
    for start, end in [*sorted([*line.protected, *messages]), (len(line.text), len(line.text))]:
        found += [word.span() for word in re.compile(r"\S+").finditer(line.text, at, start)]
        found.append((start, end))
        at = end
    return found[:-1]


def reversing(lines: Sequence[Line], with_links: bool) -> list[Translation]:
    """Return each text with its words in the opposite order, and a link for each word."""
    return [_joined(line, units(line)[::-1]) for line in lines]


def copying(lines: Sequence[Line], with_links: bool) -> list[Translation]:
    """Return each text with its words, spaces around the protected ones, and a link for each."""
    return [_joined(line, units(line)) for line in lines]


def unchanged(lines: Sequence[Line], with_links: bool) -> list[Translation]:
    """Return each text character by character, and a link for each word."""
    found = []
    for line in lines:
        words = [token for unit in units(line) for token in _tokens(line, unit)]
        links = tuple(Link(word, word) for word in words)
        found.append(Translation(line.text, 0.0, alignment=Alignment(links=links)))
    return found


def uppercase(lines: Sequence[Line], with_links: bool) -> list[Translation]:
    """Return each text in capitals, but for ICU messages, with the links of a copy."""
    return [replace(found, text=_in_capitals(found.text)) for found in copying(lines, with_links)]


def _in_capitals(text: str) -> str:
    spans = [message.span for message in find_messages(text)]
    return apply_edits(text.upper(), [Edit(span, text[slice(*span)]) for span in spans])


def guessing(lines: Sequence[Line], with_links: bool) -> list[Translation]:
    """Return each text in capitals and without any link, but those of the protected parts."""
    return [
        Translation(
            line.text.upper(),
            0.0,
            alignment=Alignment(links=tuple(map(Link, *[line.protected] * 2))),
        )
        for line in lines
    ]


def _joined(line: Line, words: Sequence[Span]) -> Translation:
    text, links = "", []
    for start, end in words:
        text += " " if text else ""
        moved = len(text) - start
        for a, b in _tokens(line, (start, end)):
            links.append(Link((a, b), (a + moved, b + moved)))
        text += line.text[start:end]
    return Translation(text, 0.0, alignment=Alignment(links=tuple(links)))


def _tokens(line: Line, unit: Span) -> list[Span]:
    """The parts of a unit that are linked one by one: words, marks, spaces, or a protected part."""
    if unit in line.protected:
        return [unit]
    return [token.span() for token in re.compile(r"\w+|\s+|\W").finditer(line.text, *unit)]


def translate_html(
    html: str, translate: TranslateTexts, languages: LanguagePair = ANY_LANGUAGE
) -> str:
    """The translation of a page, or of a part of one."""
    return translate_document(html_document(html, languages), translate).decode()
