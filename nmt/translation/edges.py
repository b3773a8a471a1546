"""The edges of a line: list marks, headings, quotes and white space stay; the model gets the rest.

A model has seen whole sentences, and hardly any with "- " or "# " before it. It would drop the mark
or make up words for it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from nmt.data.text.list_marks import inner_span
from nmt.translation.line import Line, Terminology, Translation, one_line
from nmt.translation.spans import Link, shift_span


@dataclass(frozen=True)
class EdgesTransform:
    """Cuts the edges of lines before the search, and puts them around the translations."""

    language: str
    """the code of the source language"""
    terminology: Terminology
    """constraints on all lines: with a prefix, no edge is cut"""

    def cut(self, lines: Sequence[Line]) -> list[Line]:
        """Return the lines without their edges, except those whose translation begins as asked."""
        if self.terminology.prefix:
            return list(lines)
        return [
            line if line.terminology and line.terminology.prefix else cut_edges(line, self.language)
            for line in lines
        ]

    def put_back(
        self, lines: Sequence[Line], translations: Sequence[list[Translation]]
    ) -> list[list[Translation]]:
        """Return the translations of lines, which `cut` has returned, with the edges of these."""
        return [
            [self._with_edges(line, each) for each in row] if any(line.edges) else row
            for line, row in zip(lines, translations, strict=True)
        ]

    def _with_edges(self, line: Line, translation: Translation) -> Translation:
        """Return a translation between the edges of its line, to which the alignment is shifted."""
        before, after = line.edges
        text = one_line(before) + translation.text + one_line(after)
        alignment = translation.alignment
        if alignment:
            size, tags = len(before), line.tag_length
            links = tuple(
                Link(shift_span(source, size if source[0] >= tags else 0), shift_span(target, size))
                for source, target in alignment.links  # a tag stands before the edge
            )
            alignment = replace(alignment, links=links)
        return replace(translation, text=text, alignment=alignment)


def cut_edges(line: Line, language: str) -> Line:
    """Return a line without the marks and the white space at its edges, which `Line.edges` keeps.

    `language` is the code of its language. A blank line keeps its edges.
    """
    tags = line.tag_length
    text = line.text[tags:]
    start, end = inner_span(text, language)
    if line.protected:  # what must not change cannot be cut
        start = min(start, line.protected[0][0] - tags)
        end = max(end, line.protected[-1][1] - tags)
    if start == 0 and end == len(text):
        return line
    protected = tuple(shift_span(span, -start) for span in line.protected)
    inner = line.text[:tags] + text[start:end]
    return replace(line, text=inner, protected=protected, edges=(text[:start], text[end:]))
