"""The texts in ICU messages: lines of their own, whose translations are put into the messages.

A message is one protected part of its line, so it stands in the translation as it is. There, the
best translations of its texts take their places. A text may have messages itself.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from nmt.data.text.icu_messages import BranchText, Message, find_messages
from nmt.data.text.protected_text import ProtectedText
from nmt.translation.line import Line, Translation, has_words
from nmt.translation.spans import (
    Edit,
    Span,
    apply_edits,
    overlap,
    shift_span,
    span_after,
)

_TAG = re.compile(r"</?[A-Za-z][^<>]*>")


@dataclass
class _Parts:
    """What stays as it is in one line, and the texts of the messages among it."""

    branch: BranchText | None = None
    """the text of a message that the line is; None: it is a line of the input"""
    are_doubled: bool = False
    """whether the apostrophes of `branch` were written twice"""
    kept: list[str] = field(default_factory=list)
    messages: dict[str, list[tuple[Span, int]]] = field(default_factory=dict)
    """each message: the spans of its texts, counted from its start, and the lines they became"""
    tags: list[str] = field(default_factory=list)
    """the tags in the text of a message, such as <b>, which must stay in order"""


class MessageTexts:
    """The lines of a window, and after them the texts in their messages."""

    def __init__(self, lines: Sequence[Line], protected: ProtectedText) -> None:
        """Find the messages with the patterns of `protected`; their texts get the line's tags."""
        self._count = len(lines)
        self._parts: dict[int, _Parts] = {}
        self.lines = list(lines)
        for i, line in enumerate(lines):
            for message in protected.find_messages(line.text):
                if not any(overlap(message.span, span) for span in line.protected):
                    self._add(self._parts.setdefault(i, _Parts()), message, line)

    def _add(self, parts: _Parts, message: Message, line: Line) -> None:
        """Add the texts of a message to the lines; `line` is that of the input."""
        first, end = message.span
        line_tags = line.text[: line.tag_length]
        places: list[tuple[Span, int]] = []
        for branch in message.texts:
            text = line.text[slice(*branch.span)]
            if not has_words(text):
                continue
            places.append((shift_span(branch.span, -first), len(self.lines)))
            kept = [shift_span(span, -branch.span[0]) for span in branch.kept]
            tags = [tag.span() for tag in _TAG.finditer(text)]
            tags = [tag for tag in tags if not any(overlap(tag, span) for span in kept)]
            kept = sorted([*kept, *tags])
            # two apostrophes are one outside what is kept
            pairs = [
                Edit(pair.span(), "'")
                for pair in re.finditer("''", text)
                if not any(overlap(pair.span(), span) for span in kept)
            ]
            in_text = [text[slice(*span)] for span in kept]
            inner = _Parts(branch, bool(pairs), in_text, tags=[text[slice(*tag)] for tag in tags])
            protected = [shift_span(span_after(span, pairs), len(line_tags)) for span in kept]
            terms = line.terminology
            if terms:  # as with the sentences of a line, these hold for its beginning alone
                terms = replace(terms, terms=(), prefix="")
            self._parts[len(self.lines)] = inner
            self.lines.append(
                Line(
                    line.number,
                    line_tags + apply_edits(text, pairs),
                    terms,
                    protected=tuple(protected),
                    tag_length=line.tag_length,
                )
            )
            for nested in branch.messages:
                self._add(inner, nested, line)
        whole = line.text[first:end]
        parts.messages[whole] = places
        if whole not in parts.kept:
            parts.kept.append(whole)

    @property
    def count(self) -> int:
        """How many lines there are without the texts of messages."""
        return self._count

    @property
    def are_none(self) -> bool:
        """Whether no line has a message."""
        return not self._parts

    def has_message(self, i: int) -> bool:
        """Return whether line i has a message."""
        return i in self._parts

    def put_back(self, rows: Sequence[list[Translation]]) -> list[list[Translation]]:
        """Return the translations of the lines, whose messages have translated texts."""
        done = list(rows)
        # a text in a message stands after the line that it is a part of
        for i in sorted(self._parts, reverse=True):
            done[i] = [self._filled(i, each, done) for each in done[i]]
        return done[: self._count]

    def _filled(
        self, i: int, translation: Translation, done: Sequence[list[Translation]]
    ) -> Translation:
        """Return a translation of line i after the texts of its messages are in their places."""
        parts = self._parts[i]
        edits: list[Edit] = []
        end = 0  # of the last part that is kept
        text = translation.text
        kept = sorted(parts.kept, key=len, reverse=True)  # a part may begin with another one
        found = list(re.finditer("|".join(map(re.escape, kept)), text)) if kept else []
        for match in found:
            edits += _escaped(parts, text, (end, match.start()), match[0])
            if places := parts.messages.get(match[0]):
                new = [
                    Edit(span, done[index][0].text)
                    for span, index in places
                    if self._has_tags_in_order(index, done[index][0].text)
                ]
                edits.append(Edit(match.span(), apply_edits(match[0], new)))
            end = match.end()
        edits += _escaped(parts, text, (end, len(text)), "}" if parts.branch else "")
        if not edits:
            return translation
        new_text = apply_edits(text, edits)
        alignment = translation.alignment
        if alignment:
            links = tuple(
                link._replace(target=span_after(link.target, edits)) for link in alignment.links
            )
            alignment = replace(alignment, links=links)
        return replace(translation, text=new_text, alignment=alignment)

    def _has_tags_in_order(self, i: int, text: str) -> bool:
        """Return whether a translation of line i, a text of a message, has the tags of its source.

        They must be in the same order. Tags in a message inside of it are not looked at.
        """
        messages = [message.span for message in find_messages(text)]
        found = [
            tag[0]
            for tag in _TAG.finditer(text)
            if not any(overlap(tag.span(), span) for span in messages)
        ]
        return self._parts[i].tags == found


def _escaped(parts: _Parts, text: str, span: Span, following: str) -> list[Edit]:
    """Return the edits that keep a translated text between two parts from becoming syntax.

    In a line of the input, only an apostrophe directly before a message would change its meaning.
    """
    start, end = span
    written = text[start:end]
    if parts.branch is None:
        size = len(written) - len(written.rstrip("'"))
        return [Edit((end, end), "'")] if size % 2 and following[:1] == "{" else []
    special = "{}#" if parts.branch.in_plural else "{}"
    edits = []
    for mark in re.finditer(rf"[{special}]+|'+", written):
        place = shift_span(mark.span(), start)
        if mark[0][0] != "'":
            edits.append(Edit(place, f"'{mark[0]}'"))
            continue
        after_quote = mark.start() == 0 and text[max(start - 1, 0) : start] == "'"
        after = written[mark.end() : mark.end() + 1] or following[:1]
        if (
            parts.are_doubled
            or after_quote
            or len(mark[0]) > 1
            or (after and after in special + "'")
        ):
            edits.append(Edit(place, mark[0] * 2))
    return edits
