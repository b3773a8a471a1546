"""The ends of a line: list marks, headings, quotes and white space stay; the model gets the rest.

A model has seen whole sentences, and hardly any with "- " or "# " before it. It would drop the mark
or make up words for it.
"""

from dataclasses import replace
from typing import NamedTuple

from nmt.data.text.list_marks import inner_span
from nmt.data.tokens.tokenizer import SubwordModel
from nmt.translation.line import Line, Translation, one_line
from nmt.translation.spans import Link, linked_words, shift_span


class LineEnds(NamedTuple):
    """What stands before and after the text of a line that is translated."""

    line: Line
    """the line with its ends"""
    before: str
    after: str
    tag_length: int
    """characters of the tags, such as `>>fr<<`, that stand before all of this"""

    def add_to(self, translation: Translation) -> Translation:
        """Return the translation of the line with its ends, from that of the text between them."""
        if not self.before and not self.after:
            return translation
        text = one_line(self.before) + translation.text + one_line(self.after)
        alignment = translation.alignment
        if alignment:
            links = tuple(self._move(link) for link in alignment.links)
            words = linked_words(links, self.line.text, text)
            alignment = replace(alignment, words=words, links=links)
        return replace(translation, text=text, alignment=alignment)

    def _move(self, link: Link) -> Link:
        size = len(self.before)
        in_text = link.source[0] >= self.tag_length  # else it links a tag
        source = shift_span(link.source, size) if in_text else link.source
        return Link(source, shift_span(link.target, size))


def cut_ends(line: Line, model: SubwordModel, language: str) -> tuple[Line, LineEnds]:
    """Return a line without the marks and the white space at its ends, and these.

    `model` knows the tags of the source, `language` is its code. A blank line keeps its ends.
    """
    tag_length = model.tag_length(line.text)
    tags, text = line.text[:tag_length], line.text[tag_length:]
    start, end = inner_span(text, language)
    if line.protected:  # what must not change cannot be cut
        start = min(start, line.protected[0][0] - len(tags))
        end = max(end, line.protected[-1][1] - len(tags))
    ends = LineEnds(line, text[:start], text[end:], len(tags))
    if start == 0 and end == len(text):
        return line, ends
    protected = tuple(shift_span(span, -start) for span in line.protected)
    return replace(line, text=tags + text[start:end], protected=protected), ends
