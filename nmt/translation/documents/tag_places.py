"""Where the tags inside a text belong in its translation, by the alignment of the words.

Each tag is placed exactly once. So the translation of an element is one run of words: the one with
the most words that are aligned with the element and the fewest that are aligned with other words.
Where two elements want the same words, they divide them: one is without words only if the
translation has too few. Elements are placed from the outside to the inside, so that they stay
nested. A tag between two words goes where it crosses the fewest alignments. Hanneman and Dinu, 2020
(How Should Markup Tags Be Translated?) compare placing by alignments with models that learn to
translate tags.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

import numpy as np

from nmt.translation.documents.aligned_words import AlignedWords
from nmt.translation.documents.tokens import Token
from nmt.translation.spans import Span

MAX_COMPARISONS = 200_000
"""comparisons of words for one text, a fraction of a second; thousands of tags inside each other
would need more, and are placed in proportion"""
WORDS_AT_ONCE = 100
"""comparisons of words that numpy makes in the time of one by Python"""
REACH = 200
"""how many words are looked at for an element that no free word is aligned with: to look at all for
each element would take the square of the time"""


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
    needs_content: bool = False
    """whether an element is left out, with a warning, if nothing is inside of it"""

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
        self._marks, self._has_marks = words.marks, has_marks
        self._own: list[list[int]] = [[] for _ in elements]
        """for each element: the target words that have at least half of their source words in it"""
        self._shared: list[list[int]] = [[] for _ in elements]
        """for each element: the target words that have fewer of their source words in it"""
        self._aligned_before = [0]
        """how many of the first words of the parent are aligned"""
        for word in range(parent.first, parent.end):
            sources = words.sources[word]
            owners = [owner[source] for source in sources if source in owner]
            votes: Mapping[int, int] = Counter(owners) if owners else {}
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
        self._kept_words = list(self._kept)  # in order
        self._taken = [0] * (parent.end - parent.first)
        """for each word of the parent: the number of the run that it belongs to, from 1; 0: none"""
        self._runs: dict[int, tuple[int, int]] = {}
        """(first word, end) of the run of each element that has chosen"""

    def find(self) -> list[tuple[int, int]]:
        """Return (first word, end) of the run of each element.

        The elements with the clearest runs choose first. The others get words that are left, or
        divide a run; an element gets no word only if there are too few.
        """
        scores = [self._best_run(i)[0] for i in range(len(self._elements))]
        for i in sorted(range(len(scores)), key=lambda i: -scores[i]):
            score, run = self._best_run(i)
            if score > 0:
                self._take(i, run)
        for i in range(len(scores)):
            if i not in self._runs:
                self._take(i, self._next_best(i))
        return [self._runs[i] for i in range(len(scores))]

    def _take(self, element: int, run: tuple[int, int]) -> None:
        """Give an element the words of a run."""
        self._runs[element] = run
        for word in range(*run):
            self._taken[word - self._parent.first] = element + 1

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

        That is a word which translates a part of it, or a part of the run of another element, or,
        if nothing is aligned with it, words that are about where it is in the source.
        """
        shared, source = self._shared[element], self._elements[element]
        free = [word for word in shared if self._is_free(word, element)]
        if free:
            return free[0], free[0] + 1
        linked = [*self._own[element], *shared]
        for word in linked[:REACH]:
            run = self._part_with(word, element)
            if run:
                return run
        first, end = self._parent.first, self._parent.end
        if linked:
            is_after = self._taken[linked[0] - first] - 1 < element  # the one that has the word
            run = self._nearest_words(element, linked[0] + (1 if is_after else -1), 1)
            return run or self._nearest_gap(linked[0] + 1)
        if not self._source:  # the parent has no words, but a space such as U+00A0
            return self._nearest_gap(first)
        scale = (end - first) / len(self._source)
        middle = (source.start + source.stop) / 2 - self._source.start
        target = first + int(middle * scale)
        run = self._spare_of_neighbour(element)
        run = run or self._nearest_words(element, target, len(source) * scale)
        return run or self._nearest_gap(target)

    def _part_with(self, word: int, element: int) -> tuple[int, int] | None:
        """Return the part of another element's run from a word to one end, and take it away.

        That is the end where both elements have the most words that are aligned with them, or the
        one on the element's side of the other in the source. None: the other needs the whole run.
        """
        other = self._taken[word - self._parent.first] - 1
        first, end = self._runs.get(other, (0, 0))
        if end - first < 2:
            return None
        links = sorted(self._own[element] + self._shared[element])
        own = self._own[other]
        best, best_parts = -1.0, None
        for part, rest in (((first, word + 1), (word + 1, end)), ((word, end), (first, word))):
            if rest[0] == rest[1] or self._has_kept_of_others(part, element):
                continue
            in_order = (part < rest) == (element < other)
            score = _count(links, part) + _count(own, rest) + in_order / 2
            if score > best:
                best, best_parts = score, (part, rest)
        if not best_parts:
            return None
        part, (start, stop) = best_parts
        if _count(own, (start, stop)):  # as before, the run begins and ends with words of its own
            start, stop = own[bisect_left(own, start)], own[bisect_left(own, stop) - 1] + 1
        self._runs[other] = start, stop
        for each in (*range(first, start), *range(stop, end)):
            self._taken[each - self._parent.first] = 0
        return part

    def _has_kept_of_others(self, run: tuple[int, int], element: int) -> bool:
        """Return whether a run has a kept word that is not of an element."""
        kept = self._kept_words[slice(*(bisect_left(self._kept_words, word) for word in run))]
        return any(self._kept[word] != element for word in kept)

    def _spare_of_neighbour(self, element: int) -> tuple[int, int] | None:
        """Return a word of an element beside this one that has more words than in the source.

        One of them probably translates this element. The word is taken away from the other.
        """
        source = self._elements[element]
        for other in (element + 1, element - 1):
            first, end = self._runs.get(other, (0, 0))
            if end - first < 2 or end - first <= len(self._elements[other]):
                continue
            beside = self._elements[other]
            if source.stop == beside.start or beside.stop == source.start:
                return self._part_with(first if element < other else end - 1, element)
        return None

    def _nearest_words(self, element: int, target: int, count: float) -> tuple[int, int] | None:
        """Return the nearest free words, about `count`, or else the nearest end of a longer run."""
        end = self._parent.end
        words = list(islice(_outwards(target, self._parent.first, end), REACH))
        for start in words:
            stop = start
            while stop < end and self._is_free(stop, element) and self._suits(stop, element):
                stop += 1
                if stop - start >= round(count):
                    break
            if stop > start:
                return start, stop
        for word in words:
            other = self._taken[word - self._parent.first] - 1
            first, end = self._runs.get(other, (0, 0))
            for each in (first, end - 1) if end - first > 1 else ():
                run = self._part_with(each, element) if self._suits(each, element) else None
                if run:
                    return run
        return None

    def _suits(self, word: int, element: int) -> bool:
        """Return whether a word is no punctuation mark, or the element has some."""
        return self._has_marks[element] or not self._marks[word]

    def _nearest_gap(self, target: int) -> tuple[int, int]:
        """Return a run without words between two other runs, or at an end of the parent."""
        first, end = self._parent.first, self._parent.end

        def is_between(gap: int) -> bool:
            taken, i = self._taken, gap - first
            return i in (0, len(taken)) or taken[i - 1] != taken[i] or not taken[i]

        gap = next(gap for gap in _outwards(target, first, end + 1) if is_between(gap))
        return gap, gap


def _count(words: Sequence[int], run: tuple[int, int]) -> int:
    """Return how many of some words, which are in order, are in a run."""
    return bisect_left(words, run[1]) - bisect_left(words, run[0])


def _outwards(middle: int, first: int, end: int) -> Iterator[int]:
    """Yield the numbers from `first` to before `end`, those that are nearest to `middle` first."""
    for distance in range(end - first + 1):
        for number in {middle - distance, middle + distance}:
            if first <= number < end:
                yield number
