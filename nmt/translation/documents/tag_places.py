"""Where the tags inside a text belong in its translation, by the alignment of the words.

Each tag is placed exactly once. So the translation of an element is one run of words: the one with
the most words that are aligned with the element and the fewest that are aligned with other words.
Elements are placed from the outside to the inside, so that they stay nested. A tag between two
words goes where it crosses the fewest alignments. Hanneman and Dinu, 2020 (How Should Markup Tags
Be Translated?) compare placing by alignments with models that learn to translate tags.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from nmt.translation.documents.aligned_words import AlignedWords
from nmt.translation.documents.tokens import Token
from nmt.translation.spans import Span

MAX_COMPARISONS = 200_000
"""comparisons of words for one text, a fraction of a second; thousands of tags inside each other
would need more, and are placed in proportion"""
WORDS_AT_ONCE = 100
"""comparisons of words that numpy makes in the time of one by Python"""


@dataclass
class InlineTag:
    """An element inside a text, or a tag between two words of it."""

    span: Span
    """the characters of the text in the element; a tag between two words has none"""
    opening: list[Token]
    """the start tag, or all that stands between two words"""
    closing: list[Token] = field(default_factory=list)
    """the end tag"""
    children: list["InlineTag"] = field(default_factory=list)
    """the tags inside, in the order of the text"""
    replaces_space: bool = False
    """whether a tag between two words stands in place of the space between them"""
    needs_space: bool = False
    """whether a tag between two words is left out where the translation has no space, as a
    non-breaking space is"""

    @property
    def is_element(self) -> bool:
        """Whether it has characters of the text inside."""
        return self.span[0] < self.span[1]


@dataclass(frozen=True)
class PlacedTag:
    """A tag, and the words of the translation that are inside it: from `first` to before `end`."""

    tag: InlineTag
    first: int
    end: int


class TagPlaces:
    """Places the tags of a text, those of one element at a time."""

    def __init__(self, words: AlignedWords) -> None:
        self._words = words
        self._comparisons = 0  # of the text so far

    def inside(self, parent: PlacedTag, tags: Sequence[InlineTag]) -> list[PlacedTag]:
        """Return where the tags inside an element are, in the order of the translation.

        They are placed by the alignment, or in proportion once `MAX_COMPARISONS` are needed.
        """
        size = parent.end - parent.first
        points = sum(not tag.is_element for tag in tags)  # each is compared with all words
        # for the elements, each word of the translation and of the source is looked at once
        self._comparisons += size + len(self._words.source_words(parent.tag.span))
        self._comparisons += points * size // WORDS_AT_ONCE
        too_many = self._comparisons > MAX_COMPARISONS
        place = self._in_proportion if too_many else self._by_alignment
        return sorted(place(parent, tags), key=lambda each: (each.first, each.end, each.tag.span))

    def _by_alignment(self, parent: PlacedTag, tags: Sequence[InlineTag]) -> list[PlacedTag]:
        """Place elements around the words that translate theirs, and other tags between words."""
        words = self._words
        elements = [words.source_words(tag.span) for tag in tags if tag.is_element]
        runs = _Runs(words, parent, elements).find()
        gaps = _Gaps(words, parent, runs)
        next_run = iter(runs)
        placed = []
        for tag in tags:
            if tag.is_element:
                placed.append(PlacedTag(tag, *next(next_run)))
            else:
                gap = gaps.find(len(words.source_words((0, tag.span[0]))))
                placed.append(PlacedTag(tag, gap, gap))
        return placed

    def _in_proportion(self, parent: PlacedTag, tags: Sequence[InlineTag]) -> list[PlacedTag]:
        """Place tags where they are in the source, in proportion to its length."""
        start, end = parent.tag.span
        scale = (parent.end - parent.first) / (end - start)
        return [
            PlacedTag(tag, *(parent.first + int((at - start) * scale) for at in tag.span))
            for tag in tags
        ]


class _Gaps:
    """The gaps between the words of an element, where a tag may stand that has no words."""

    def __init__(
        self, words: AlignedWords, parent: PlacedTag, runs: Sequence[tuple[int, int]]
    ) -> None:
        """Take the gaps in the words of `parent`, without those inside of the elements' `runs`."""
        self._first = parent.first
        self._centres = words.centres[parent.first : parent.end]
        self._blocked = np.zeros(len(self._centres) + 1)
        for first, end in runs:
            self._blocked[first + 1 - self._first : max(end - self._first, 0)] = np.inf

    def find(self, source_words_before: int) -> int:
        """Return the number of target words before the gap that crosses the fewest alignments.

        An alignment is crossed if its source word is before the tag and its target word after it,
        or the other way round.
        """
        is_before = self._centres < source_words_before
        is_after = self._centres >= source_words_before  # both are false for an unaligned word
        changes = np.where(is_before, -1, np.where(is_after, 1, 0)).cumsum()
        crossed = np.append(0, changes) + self._blocked
        return self._first + int(crossed.argmin())


class _Runs:
    """The runs of words that translate the elements inside an element."""

    def __init__(self, words: AlignedWords, parent: PlacedTag, elements: Sequence[range]) -> None:
        """Find the target words of each element; `elements` are their source words."""
        self._parent, self._elements = parent, elements
        self._source = words.source_words(parent.tag.span)
        owner = {word: i for i, element in enumerate(elements) for word in element}
        has_marks = [any(words.source_marks[i] for i in element) for element in elements]
        self._own: list[list[int]] = [[] for _ in elements]
        """for each element: the target words that have at least half of their source words in it"""
        self._shared: list[list[int]] = [[] for _ in elements]
        """for each element: the target words that have fewer of their source words in it"""
        self._aligned_before = [0]
        """how many of the first words of the parent are aligned"""
        for word in range(parent.first, parent.end):
            sources = words.sources[word]
            votes = Counter(owner[source] for source in sources if source in owner)
            # An element without punctuation marks has none in the translation, or in its middle.
            is_unlikely = words.marks[word] and not any(has_marks[element] for element in votes)
            for element, count in votes.items() if not (votes and is_unlikely) else ():
                is_own = 2 * count >= len(sources) and count == max(votes.values())
                (self._own if is_own else self._shared)[element].append(word)
            is_aligned = bool(sources) and not (votes and is_unlikely)
            self._aligned_before.append(self._aligned_before[-1] + is_aligned)
        self._kept = {
            word: owner.get(words.sources[word][0])
            for word in range(parent.first, parent.end)
            if words.target[word] in words.kept
        }
        """the target words that are kept, and the element of each; no other may be around it"""
        self._taken = [0] * (parent.end - parent.first)
        """for each word of the parent: the number of the run that it belongs to, from 1; 0: none"""
        self._count = 0  # of runs
        self._taken_count = 0  # of words

    def find(self) -> list[tuple[int, int]]:
        """Return (first word, end) of the run of each element; an element may get no word.

        The elements with the clearest runs choose first.
        """
        runs: dict[int, tuple[int, int]] = {}
        scores = [self._best_run(i)[0] for i in range(len(self._elements))]
        for i in sorted(range(len(scores)), key=lambda i: -scores[i]):
            score, run = self._best_run(i)
            if score > 0:
                runs[i] = self._take(*run)
        for i in range(len(scores)):
            if i not in runs:
                runs[i] = self._take(*self._next_best(i))
        return [runs[i] for i in range(len(scores))]

    def _take(self, first: int, end: int) -> tuple[int, int]:
        """Take the words from `first` to before `end` for a run, and return both."""
        self._count += 1
        for word in range(first, end):
            self._taken[word - self._parent.first] = self._count
        self._taken_count += end - first
        return first, end

    def _is_free(self, word: int, element: int) -> bool:
        """Return whether the run of an element may contain a word."""
        is_other = self._kept.get(word, element) != element
        return not (self._taken[word - self._parent.first] or is_other)

    def _best_run(self, element: int) -> tuple[int, tuple[int, int]]:
        """Return the best score of a run and the run.

        A run scores a point for each word of the element, and loses one for each aligned word of
        others. What is kept counts for more than all words together.
        """
        best, best_run = (0, 0), (0, 0)  # score and number of words of the element
        score, count, first, last = -1, 0, 0, 0
        for word in self._own[element]:
            if not self._is_free(word, element):
                score = -1
                continue
            if score >= 0 and all(self._is_free(w, element) for w in range(last + 1, word)):
                score -= self._aligned_between(last, word)
            else:
                score = -1
            if score < 0:
                score, count, first = 0, 0, word
            score += len(self._taken) if word in self._kept else 1
            count, last = count + 1, word
            if (score, count) > best:
                best, best_run = (score, count), (first, word + 1)
        return best[0], best_run

    def _aligned_between(self, last: int, word: int) -> int:
        """Return how many words after `last` and before `word` are aligned."""
        start = self._parent.first
        return self._aligned_before[word - start] - self._aligned_before[last + 1 - start]

    def _next_best(self, element: int) -> tuple[int, int]:
        """Return the run of an element that has no free word of its own.

        That is a word which translates a part of it, or none beside a word that another element has
        taken, or, if nothing is aligned with it, words that are about where it is in the source.
        """
        free = [word for word in self._shared[element] if self._is_free(word, element)]
        if free:
            return free[0], free[0] + 1
        taken = self._own[element] or self._shared[element]
        if taken:
            return self._nearest_gap(taken[0] + 1)
        source, first, end = self._elements[element], self._parent.first, self._parent.end
        if not self._source:  # the parent has no words, but a space such as U+00A0
            return self._nearest_gap(first)
        scale = (end - first) / len(self._source)
        middle = (source.start + source.stop) / 2 - self._source.start
        target = first + int(middle * scale)
        if self._taken_count == end - first:
            return self._nearest_gap(target)
        words = _outwards(target, first, end)
        start = next((word for word in words if self._is_free(word, element)), end)
        stop = start
        while stop < end and self._is_free(stop, element):
            stop += 1
            if stop - start >= round(len(source) * scale):
                break
        return start, stop

    def _nearest_gap(self, target: int) -> tuple[int, int]:
        """Return a run without words between two other runs, or at an end of the parent."""
        first, end = self._parent.first, self._parent.end

        def is_between(gap: int) -> bool:
            taken, i = self._taken, gap - first
            return i in (0, len(taken)) or taken[i - 1] != taken[i] or not taken[i]

        gap = next(gap for gap in _outwards(target, first, end + 1) if is_between(gap))
        return gap, gap


def _outwards(middle: int, first: int, end: int) -> Iterator[int]:
    """Yield the numbers from `first` to before `end`, those that are nearest to `middle` first."""
    for distance in range(end - first + 1):
        for number in {middle - distance, middle + distance}:
            if first <= number < end:
                yield number
