"""Parts of a line that the model must not see: protected ones, and what it cannot know.

No model copies an address reliably that it has never seen. So a number takes the place of each part
on the way in: most models have learnt to copy numbers. On the way out, the part takes the place of
its number. Where a translation has not each number exactly once, the line is searched again without
the parts, and the alignment says where they belong: after the translation of the word before them.
Emoji and other symbols that the vocabulary lacks are left out from the beginning.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from nmt.data.text.protected_text import ProtectedText
from nmt.data.tokens.unknown_parts import has_unknown, unknown_parts
from nmt.search.searcher import Searcher
from nmt.translation.line import Alignment, EncodedLine, Line, Terminology, Translation, encode
from nmt.translation.part_places import PartPlaces
from nmt.translation.placeholders import put_placeholders, without_numbers
from nmt.translation.spans import (
    Edit,
    Link,
    apply_edits,
    overlap,
    shift_span,
    span_after,
)

_PART_AND_SPACES = re.compile(r"\A\s+|\s+\Z|\S(?:.*\S)?", re.DOTALL)
"""a part, and the white space before and behind it"""


@dataclass(frozen=True)
class ProtectionTransform:
    """Puts placeholders for what a model must not or cannot translate, and restores it afterwards.

    These are the protected parts of lines, and always what the vocabulary lacks, such as emoji.
    """

    searcher: Searcher
    patterns: ProtectedText
    """what is protected in every line, in addition to the spans that a line names"""
    terminology: Terminology = field(default_factory=Terminology)
    """the constraints on all lines; no number in them stands for a part"""

    def protect(self, lines: Sequence[Line]) -> list[Line]:
        """Return the lines with a number in place of each protected part.

        Raises:
            DataError: a pattern takes too long.
        """
        return [replace_protected(line, self.patterns, self.terminology) for line in lines]

    def replace_unknown(self, lines: list[EncodedLine]) -> None:
        """Put placeholders for what the vocabulary lacks, and encode those lines that change again.

        Terms of a glossary stay, as their translations are in the search.
        """
        source = self.searcher.loaded.tokenizer.source
        for i, encoded in enumerate(lines):
            if has_unknown(source, encoded.ids):
                line = self._without_unknown(encoded.line)
                if line is not encoded.line:
                    [lines[i]] = encode(source, [line], lambda _: None, self.searcher.languages)

    def _without_unknown(self, line: Line) -> Line:
        """Return a line with placeholders in place of what the vocabulary lacks.

        Terms of the glossary and what has a placeholder already stay. If nothing is replaced, it is
        the same object.
        """
        source = self.searcher.loaded.tokenizer.source
        added = line.tag_length
        terms = self.terminology | line.terminology
        kept = [*terms.glossary.spans(line.text), *(span for span, _ in line.parts)]
        placeholders = {
            shift_span(part.span, added): part.placeholder
            for part in unknown_parts(source, line.text[added:])
        }
        spans = [s for s in placeholders if not any(overlap(s, other) for other in kept)]
        if not spans:
            return line
        changed = put_placeholders(line, spans, terms.numbers, placeholders)
        if not line.capitals:
            return changed
        protected = {text for _, text in line.parts}
        parts = [
            Edit(span, text if text in protected else text.upper()) for span, text in changed.parts
        ]
        return replace(changed, parts=tuple(parts))

    def lines_to_search_again(
        self, lines: Sequence[EncodedLine], translations: list[list[Translation]]
    ) -> dict[int, Line]:
        """Return the lines to search again, without numbers in place of parts, by their indices.

        Their best translations do not have each number exactly once: the model has not learnt to
        copy numbers, or not here, and they have disturbed the rest.
        """
        again: dict[int, Line] = {}
        for i, (encoded, row) in enumerate(zip(lines, translations, strict=True)):
            is_searched = encoded.line.parts and encoded.ids and row
            if is_searched and not self._places(encoded, row[0]).has_each_number_once:
                again[i] = without_numbers(encoded.line)
        return again

    def _places(
        self, encoded: EncodedLine, translation: Translation, links: Sequence[Link] = ()
    ) -> PartPlaces:
        """Return the places of a line's parts in a translation, by its text and its `links`."""
        asked = encoded.constraints.text if encoded.constraints else None
        return PartPlaces(encoded.line, translation.text, links, asked)

    def restore(
        self, lines: Sequence[EncodedLine], translations: list[list[Translation]]
    ) -> list[list[Translation]]:
        """Return the translations with the parts of their lines, each exactly once."""
        restored = list(translations)
        unclear: list[int] = []  # lines with a translation whose text does not tell the places
        for i, encoded in enumerate(lines):
            if not encoded.line.parts:
                continue
            if all(t.alignment or self._needs_no_alignment(encoded, t) for t in translations[i]):
                restored[i] = [self._restore(encoded, t, t.alignment) for t in translations[i]]
            else:
                unclear.append(i)
        if unclear:
            from nmt.translation.aligner import align

            rows = [translations[i] for i in unclear]
            aligned = align([lines[i] for i in unclear], rows, self.searcher)
            for i, row in zip(unclear, aligned, strict=True):
                restored[i] = [
                    self._restore(lines[i], translation, with_links.alignment)
                    for translation, with_links in zip(translations[i], row, strict=True)
                ]
        return restored

    def _needs_no_alignment(self, encoded: EncodedLine, translation: Translation) -> bool:
        """Return whether a translation tells where all parts of its line belong."""
        is_copy = translation.text == encoded.line.text
        return is_copy or self._places(encoded, translation).needs_no_links

    def _restore(
        self, encoded: EncodedLine, translation: Translation, alignment: Alignment | None
    ) -> Translation:
        """Return a translation with the parts of its line."""
        line = encoded.line
        links = alignment.links if alignment else ()
        placed: list[tuple[Edit, int | None]]
        if translation.text == line.text:  # a copy has the same places
            placed = [(part, i) for i, part in enumerate(line.parts)]
        else:
            placed = self._places(encoded, translation, links).edits()
        edits = [edit for edit, _ in placed]
        text = apply_edits(translation.text, edits)
        if translation.alignment is None:
            return replace(translation, text=text)
        links = _moved_links(line, links, placed)
        moved_alignment = replace(translation.alignment, links=links)
        return replace(translation, text=text, alignment=moved_alignment)


def replace_protected(
    line: Line, patterns: ProtectedText, terminology: Terminology | None = None
) -> Line:
    """Return a line with a number in place of each protected part, as `protect` puts it.

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
    return put_placeholders(replace(line, protected=()), sorted(spans), reserved)


def _moved_links(
    line: Line, links: Sequence[Link], placed: Sequence[tuple[Edit, int | None]]
) -> tuple[Link, ...]:
    """Return the links between both texts with the parts, each part linked with itself."""
    edits = [edit for edit, _ in placed]
    parts = line.parts
    replaced = [parts[i].span for _, i in placed if i is not None]
    moved = [
        Link(span_after(link.source, parts), span_after(link.target, edits))
        for link in links
        if not any(overlap(link.source, span) for span in replaced)
        and not any(overlap(link.target, edit.span) for edit in edits)
    ]
    source_starts: list[int] = []
    growth = 0
    for part in parts:
        source_starts.append(part.span[0] + growth)
        growth += part.growth
    growth = 0
    for edit, i in placed:
        if i is not None:
            whole = parts[i].text
            written = whole if whole in edit.text else whole.strip()
            source = source_starts[i] + whole.index(written)
            target = edit.span[0] + growth + edit.text.index(written)
            # a part that was taken out has the space beside it, which belongs to no word
            for piece in _PART_AND_SPACES.finditer(written):
                moved.append(Link(*(shift_span(piece.span(), at) for at in (source, target))))
        growth += edit.growth
    return tuple(sorted(moved, key=lambda link: link.target))
