"""Spans of characters: edits of a text, and links between two texts that move with the edits."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from nmt.data.text.words import spaced_word_spans

Span = tuple[int, int]
"""characters of a text, from the first index to before the second"""


class Link(NamedTuple):
    """A piece of a translation, and the piece of the source that it translates."""

    source: Span
    """characters of the line's text; white space before them may be included"""
    target: Span
    """characters of the translation's text, likewise"""


class Edit(NamedTuple):
    """A change of a text: `text` takes the place of the characters of `span`."""

    span: Span
    text: str

    @property
    def growth(self) -> int:
        """How many characters longer the text becomes; negative if it becomes shorter."""
        return len(self.text) - (self.span[1] - self.span[0])


def apply_edits(text: str, edits: Sequence[Edit]) -> str:
    """Return a text after some edits, which are in order and do not overlap."""
    parts, at = [], 0
    for (start, end), new in edits:
        parts += [text[at:start], new]
        at = end
    return "".join([*parts, text[at:]])


def span_after(span: Span, edits: Sequence[Edit]) -> Span:
    """Return where a span is after some edits, which may be inside it or outside it."""
    start, end = span
    before_start = sum(edit.growth for edit in edits if edit.span[1] <= start)
    before_end = sum(edit.growth for edit in edits if edit.span[0] < end)
    # an insertion at an empty span moves its start; the end must not stay before the start
    return start + before_start, end + max(before_start, before_end)


def shift_span(span: Span, distance: int) -> Span:
    """Return a span that begins and ends `distance` characters later."""
    return span[0] + distance, span[1] + distance


def overlap(one: Span, other: Span) -> bool:
    """Return whether two spans have a character in common."""
    return max(one[0], other[0]) < min(one[1], other[1])


def links_after(links: Sequence[Link], length: int) -> tuple[Link, ...]:
    """Return the links to the source without its first `length` characters, such as a tag."""
    return tuple(
        Link(shift_span(source, -length), target) for source, target in links if source[0] >= length
    )


def compose_links(first: Sequence[Link], second: Sequence[Link]) -> tuple[Link, ...]:
    """Return the links between a text and the translation of its translation.

    `first` are the links between the text and its translation, `second` those between this and the
    translation of it.
    """
    first = sorted(first, key=lambda link: link.target)
    starts = [link.target[0] for link in first]
    composed = []
    for link in second:
        at = max(bisect_right(starts, link.source[0]) - 1, 0)
        for before in first[at : bisect_left(starts, link.source[1])]:
            if overlap(before.target, link.source):
                composed.append(Link(before.source, link.target))
    return tuple(composed)


def linked_words(links: Sequence[Link], source: str, target: str) -> tuple[tuple[int, int], ...]:
    """Return sorted pairs (index of a source word, index of a target word) that have a link.

    Words are those of `spaced_word_spans`, counted from 0.
    """
    source_words, target_words = _Words(source), _Words(target)
    pairs = {
        (i, j)
        for link in links
        for i in source_words.inside(link.source)
        for j in target_words.inside(link.target)
    }
    return tuple(sorted(pairs))


def pharaoh(links: Sequence[Link], source: str, target: str) -> str:
    """Return the linked words in the format of Pharaoh and other word aligners: `0-0 1-2`."""
    return " ".join(f"{i}-{j}" for i, j in linked_words(links, source, target))


class _Words:
    def __init__(self, text: str) -> None:
        self._spans = spaced_word_spans(text)
        self._starts = [start for start, _ in self._spans]

    def inside(self, span: Span) -> range:
        """The indices of the words that have a character in a span."""
        first = max(bisect_right(self._starts, span[0]) - 1, 0)
        while first < len(self._spans) and self._spans[first][1] <= span[0]:
            first += 1
        end = first
        while end < len(self._spans) and self._spans[end][0] < span[1]:
            end += 1
        return range(first, end)
