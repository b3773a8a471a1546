"""Protected parts of a line, such as addresses and placeholders, arrive exactly as they were.

No model copies an address reliably that it has never seen. So a number takes the place of each part
on the way in: models of every language have learnt to copy numbers. On the way out, the part takes
the place of its number. Where a translation has not exactly one copy of a number, the alignment
says where the part belongs: in place of what was made of the number, or else after the translation
of the word before it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from nmt.data.text.protected_text import ProtectedText
from nmt.data.tokens.tokenizer import SubwordModel
from nmt.search.lexical_constraints import LexicalConstraints
from nmt.search.searcher import Searcher
from nmt.translation.hidden_parts import (
    HiddenPart,
    find_numbers,
    has_other_words,
    hidden_parts,
    hide,
)
from nmt.translation.line import Alignment, EncodedLine, Line, Terminology, Translation
from nmt.translation.spans import Edit, Link, Span, apply_edits, linked_words, overlap, span_after


@dataclass(frozen=True)
class ProtectionStage:
    """Before the search, hides the protected parts of lines; after it, restores them."""

    searcher: Searcher
    patterns: ProtectedText
    """what is protected in every line, in addition to the spans that a line names"""
    terminology: Terminology = field(default_factory=Terminology)
    """the constraints on all lines; no number in them stands for a part"""

    def hide(self, lines: Sequence[Line]) -> list[Line]:
        """Return the lines with a number in place of each protected part.

        A line without any other word will be copied. So it loses the tags that it begins with,
        such as `>>fr<<`, which ask for a language and belong to no translation.

        Raises:
            DataError: a pattern takes too long.
        """
        source = self.searcher.loaded.tokenizer.source
        return [hide_protected(line, self.patterns, source, self.terminology) for line in lines]

    def restore(
        self, lines: Sequence[EncodedLine], translations: list[list[Translation]]
    ) -> list[list[Translation]]:
        """Return the translations with the protected parts of their lines, each exactly once."""
        restored = list(translations)
        unclear: list[int] = []  # lines with a translation whose numbers do not tell the places
        for i, encoded in enumerate(lines):
            if not encoded.line.hidden:
                continue
            if all(t.alignment or _is_clear(encoded.line, t.text) for t in translations[i]):
                restored[i] = [_restore_parts(encoded, t, t.alignment) for t in translations[i]]
            else:
                unclear.append(i)
        if unclear:
            from nmt.translation.aligner import align  # it imports PyTorch

            rows = [translations[i] for i in unclear]
            aligned = align([lines[i] for i in unclear], rows, self.searcher)
            for i, row in zip(unclear, aligned, strict=True):
                restored[i] = [
                    _restore_parts(lines[i], translation, with_links.alignment)
                    for translation, with_links in zip(translations[i], row, strict=True)
                ]
        return restored


def hide_protected(
    line: Line,
    patterns: ProtectedText,
    source: SubwordModel,
    terminology: Terminology | None = None,
) -> Line:
    """Return a line with a number in place of each protected part, as `ProtectionStage.hide`.

    `terminology` are constraints in addition to those of the line.

    Raises:
        DataError: a pattern takes too long.
    """
    text, spans = line.text, list(line.protected)
    spans += [
        span
        for span in patterns.find(text)
        if not any(overlap(span, other) for other in line.protected)
    ]
    if not spans:
        return line
    # a term that has such a number would lose it, and a glossary would translate it
    reserved = frozenset[str]().union(*(t.numbers for t in (terminology, line.terminology) if t))
    # `protected` is emptied, because its spans count characters of the old text
    hidden = hide(replace(line, protected=()), sorted(spans), reserved)
    _tags, untagged = source.divide_tags(hidden.text)
    without_tags = replace(hidden, text=untagged)
    if has_other_words(without_tags):
        return hidden
    return without_tags  # it will be copied, and its tags would be copied with it


def _is_clear(line: Line, text: str) -> bool:
    """Return whether a translation has the number of each protected part exactly once."""
    found = find_numbers(text)
    return all(len(found.get(part.number, ())) == 1 for part in hidden_parts(line))


def _restore_parts(
    encoded: EncodedLine, translation: Translation, alignment: Alignment | None
) -> Translation:
    """Return a translation with the protected parts of its line in place of their numbers."""
    line = encoded.line
    parts = hidden_parts(line)
    links = alignment.links if alignment else ()
    placed: list[tuple[Edit, int | None]]
    if translation.text == line.text:  # a copy has the same places
        placed = [(part.edit, i) for i, part in enumerate(parts)]
    else:
        asked = encoded.constraints.text if encoded.constraints else LexicalConstraints()
        fixed = _first_places((asked.prefix, *asked.terms), translation.text)
        placed = _PlaceFinder(translation.text, links, parts, fixed).edits()
    edits = [edit for edit, _ in placed]
    text = apply_edits(translation.text, edits)
    if translation.alignment is None:
        return replace(translation, text=text)
    source_edits = [part.edit for part in parts]
    new_links = [
        Link(span_after(link.source, source_edits), span_after(link.target, edits))
        for link in links
        if not any(overlap(link.source, edit.span) for edit in source_edits)
        and not any(overlap(link.target, edit.span) for edit in edits)
    ]
    growth = 0
    for edit, i in placed:
        if i is not None:
            part = parts[i].edit
            start, _ = span_after(part.span, source_edits[:i])
            target_start = edit.span[0] + growth + edit.text.index(part.text)
            size = len(part.text)
            source_span, target_span = (start, start + size), (target_start, target_start + size)
            new_links.append(Link(source_span, target_span))
        growth += edit.growth
    new_links.sort(key=lambda link: link.target)
    words = linked_words(new_links, apply_edits(line.text, source_edits), text)
    moved_alignment = replace(translation.alignment, words=words, links=tuple(new_links))
    return replace(translation, text=text, alignment=moved_alignment)


def _first_places(words: Sequence[str], text: str) -> list[Span]:
    """Return where each of the words occurs first in a text; nothing for those that do not."""
    starts = [(text.find(word), len(word)) for word in words]
    return [(start, start + length) for start, length in starts if start >= 0 and length]


class _PlaceFinder:
    """Finds the places of the protected parts of a line in a translation."""

    def __init__(
        self,
        text: str,
        links: Sequence[Link],
        parts: Sequence[HiddenPart],
        fixed: Sequence[Span],
    ) -> None:
        """Take a translation and its links; without links it must have each number once.

        `fixed` are the prefix and the terms in it: no part is put in place of them.
        """
        self._text, self._links, self._parts = text, links, parts
        self._taken: list[Span] = [*fixed]

    def edits(self) -> list[tuple[Edit, int | None]]:
        """Return all edits in order, each with the index of its part.

        Further copies of a number are deleted; these edits have None instead of an index.
        """
        placed: dict[int, Edit] = {}
        deleted: list[Edit] = []
        found = find_numbers(self._text)
        for i, part in enumerate(self._parts):
            copies = found.get(part.number, [])
            # copies that are linked with the number in the source come first
            copies = sorted(copies, key=lambda copy: not self._is_linked(i, copy))
            self._taken += copies
            if copies:
                placed[i] = Edit(copies[0], part.edit.text)
            for start, end in copies[1:]:
                if self._text[:start].endswith(" "):
                    start -= 1  # the space before it is deleted too
                self._taken.append((start, end))  # no part is put in its place
                deleted.append(Edit((start, end), ""))
        for i in range(len(self._parts)):
            if i not in placed and (edit := self._replace_linked_piece(i)):
                placed[i] = edit
        for i in range(len(self._parts)):
            if i not in placed:
                placed[i] = self._insert_after_previous_word(i)
        edits: list[tuple[Edit, int | None]] = [(placed[i], i) for i in sorted(placed)]
        edits += [(edit, None) for edit in deleted]
        return sorted(edits, key=lambda each: each[0].span)

    def _is_linked(self, i: int, target: Span) -> bool:
        """Return whether a span of the translation is linked with the number of part i."""
        source = self._parts[i].edit.span
        return any(
            overlap(link.source, source) and overlap(link.target, target) for link in self._links
        )

    def _replace_linked_piece(self, i: int) -> Edit | None:
        """Put part i in place of the longest piece of the translation linked with its number."""
        source = self._parts[i].edit.span
        pieces: list[Span] = []
        for link in self._links:
            written = self._text[slice(*link.target)]
            is_word = any(map(str.isalnum, written))  # punctuation marks are aligned with anything
            if is_word and overlap(link.source, source) and not self._is_taken(link.target):
                start, end = link.target
                if pieces and pieces[-1][1] == start:
                    start = pieces.pop()[0]
                pieces.append((start, end))
        if not pieces:
            return None
        start, end = max(pieces, key=lambda piece: piece[1] - piece[0])
        start = end - len(self._text[start:end].lstrip())
        span = self._word_start(start), self._word_end(end)
        self._taken.append(span)
        return Edit(span, self._parts[i].edit.text)

    def _insert_after_previous_word(self, i: int) -> Edit:
        """Insert part i after the translation of the last source word before it."""
        start = self._parts[i].edit.span[0]
        before = [link for link in self._links if link.source[1] <= start]
        nearest = max(before, key=lambda link: (link.source[1], link.target[1]), default=None)
        at = self._word_end(nearest.target[1]) if nearest else 0
        # not inside a span that is taken, but at its end
        at = next((last for first, last in self._taken if first < at < last), at)
        left, right = self._text[:at], self._text[at:]
        text = self._parts[i].edit.text
        text = f" {text}" if left and not left.endswith(" ") else text
        text = f"{text} " if right[:1].isalnum() or not left else text
        return Edit((at, at), text)

    def _is_taken(self, span: Span) -> bool:
        return any(overlap(span, taken) for taken in self._taken)

    def _word_start(self, at: int) -> int:
        while self._text[max(at - 1, 0) : at].isalnum() and not self._is_taken((at - 1, at)):
            at -= 1
        return at

    def _word_end(self, at: int) -> int:
        while self._text[at : at + 1].isalnum() and not self._is_taken((at, at + 1)):
            at += 1
        return at
