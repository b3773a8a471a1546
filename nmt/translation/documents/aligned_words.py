"""The words of a text and of its translation, aligned by the links between their characters."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from nmt.data.text.words import word_spans
from nmt.translation.spans import Link, Span, overlap, shift_span


@dataclass(frozen=True)
class AlignedText:
    """A text, its translation, and the links between them."""

    source: str
    target: str
    links: Sequence[Link]


class AlignedWords:
    """Words, and the source words that each word of the translation is aligned with.

    Punctuation marks are words, too. Words are counted from 0.
    """

    def __init__(
        self, text: AlignedText, cuts: Iterable[int] = (), kept: Sequence[Span] = ()
    ) -> None:
        """Cut source words at `cuts`, characters of the source; a span of `kept` is one word.

        Each of `kept` should have a link of its own, as protected parts have. A word that the
        translation has copied is cut like the source word.
        """
        exact = {link.source: link.target for link in text.links}
        self.kept = {exact[span]: span for span in kept if span in exact}
        """for each span of the translation that is a copy of one of `kept`: that one"""
        whole = _words(text.source, kept)
        self._source = _cut(whole, sorted(set(cuts)))
        self._starts = [start for start, _ in self._source]
        self.target = _words(text.target, self.kept)
        """the characters of each word of the translation"""
        self.sources = self._source_words_of_targets(text)
        """the source words of each word of the translation; one may be there several times"""
        if len(self._source) > len(whole):
            self._cut_copies(text, whole)
        self.source_marks = [_is_mark(text.source, span) for span in self._source]
        """whether each source word is a punctuation mark or another symbol"""
        self.marks = [_is_mark(text.target, span) for span in self.target]
        """whether each word of the translation is such a mark"""
        self.centres = np.array(
            [sum(each) / len(each) if each else np.nan for each in self.sources]
        )
        """the mean of the source words of each word of the translation; NaN if there are none"""

    def source_words(self, span: Span) -> range:
        """Return the source words that have a character in a span."""
        first = bisect_right(self._starts, span[0]) - 1  # the last word that begins no later
        if first < 0 or self._source[first][1] <= span[0]:  # there is none, or it ends before
            first += 1
        end = bisect_left(self._starts, span[1])  # the first word that begins after the span
        return range(first, max(first, end))

    def _source_words_of_targets(self, text: AlignedText) -> list[list[int]]:
        """Return for each target word the source words that links join to it.

        In a copy without links, these are the words at the same characters.
        """
        sources: list[list[int]] = [[] for _ in self.target]
        if not text.links and text.source == text.target:  # a copy
            return [list(self.source_words(span)) for span in self.target]
        starts = [start for start, _ in self.target]
        for link in text.links:
            words = self.source_words(link.source)
            first = max(bisect_right(starts, link.target[0]) - 1, 0)
            for i in range(first, bisect_left(starts, link.target[1])):
                if overlap(self.target[i], link.target):
                    sources[i] += words
        return sources

    def _cut_copies(self, text: AlignedText, whole: Sequence[Span]) -> None:
        """Cut each target word that is the copy of a source word with cuts as that one is."""
        target, sources = self.target, self.sources
        self.target, self.sources = [], []
        whole_starts = [start for start, _ in whole]
        for span, words in zip(target, sources, strict=True):
            copied = text.target[slice(*span)]
            for word in words:
                start, end = whole[bisect_right(whole_starts, self._starts[word]) - 1]
                parts = self.source_words((start, end))
                if len(parts) > 1 and text.source[start:end] == copied:
                    self.sources += [[part] for part in parts]
                    bounds = [self._source[part][0] - start for part in parts]
                    moved = [span[0] + bound for bound in bounds]
                    self.target += pairwise([*moved, span[1]])
                    break
            else:
                self.target.append(span)
                self.sources.append(words)


def _is_mark(text: str, span: Span) -> bool:
    return not any(map(str.isalnum, text[slice(*span)]))


def _words(text: str, wholes: Iterable[Span]) -> list[Span]:
    """Return the words of a text; each of `wholes` is one word, and ends the words around it."""
    words: list[Span] = []
    at = 0
    for whole in [*sorted(wholes), (len(text), len(text))]:
        words += [shift_span(span, at) for span in word_spans(text[at : whole[0]])]
        words.append(whole)
        at = whole[1]
    return words[:-1]


def _cut(words: Sequence[Span], cuts: Sequence[int]) -> list[Span]:
    """Return the words, divided at the cuts inside them."""
    parts: list[Span] = []
    for start, end in words:
        inside = cuts[bisect_right(cuts, start) : bisect_left(cuts, end)]
        parts += pairwise([start, *inside, end])
    return parts
