"""Places the tags inside a text around the translation of the words that they were around.

Each tag is placed exactly once. So the translation of an element is one run of words: the one with
the most words that are aligned with the element and the fewest that are aligned with other words.
Elements are placed from the outside to the inside, so that they stay nested. A tag between two
words goes where it crosses the fewest alignments. Hanneman and Dinu, 2020 (How Should Markup Tags
Be Translated?) compare placing by alignments with models that learn to translate tags.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from nmt.translation.aligned_words import AlignedText, AlignedWords
from nmt.translation.html_source import Token, source_of
from nmt.translation.spans import Span


@dataclass
class InlineTag:
    """An element inside a text, or a tag between two words of it."""

    span: Span
    """its characters in the text; a tag between two words has none"""
    opening: list[Token]
    """the start tag, or all that stands between two words"""
    closing: list[Token] = field(default_factory=list)
    """the end tag"""
    children: list["InlineTag"] = field(default_factory=list)
    """the tags inside, in the order of the text"""
    replaces_space: bool = False
    """of a tag between two words: whether it stands in place of the space between them"""
    needs_space: bool = False
    """of such a tag: whether it is left out if there is no space; a non-breaking space is"""

    @property
    def is_element(self) -> bool:
        """Whether it has characters of the text inside."""
        return self.span[0] < self.span[1]


@dataclass(frozen=True)
class _Placed:
    """A tag, and the words of the translation that are inside it: from `first` to before `end`."""

    tag: InlineTag
    first: int
    end: int


def place_tags(
    text: AlignedText,
    tags: Sequence[InlineTag],
    kept: Mapping[Span, list[Token]],
    escape: Callable[[str], str],
) -> str:
    """Return the translation of a text with all its tags.

    `kept` are spans of the source text, each with the tokens that stand in place of its copy in the
    translation. `escape` turns all other text into HTML.
    """
    cuts: list[int] = []
    pending = list(tags)
    while pending:
        tag = pending.pop()
        cuts += tag.span
        pending += tag.children
    words = AlignedWords(text, cuts, list(kept))
    lost = [InlineTag((span[0], span[0]), kept[span]) for span in kept.keys() - words.kept.values()]
    tags = sorted([*tags, *lost], key=lambda tag: tag.span)
    writer = _Writer(text.target, words, kept, escape)
    whole = _Placed(InlineTag((0, len(text.source)), []), 0, len(words.target))
    open_elements = [(whole, iter(_place_children(words, whole, tags)))]
    while open_elements:
        element, children = open_elements[-1]
        placed = next(children, None)
        if placed is None:
            writer.close(element)
            open_elements.pop()
        elif placed.tag.is_element or placed.tag.children:
            writer.open(placed)
            inside = _place_children(words, placed, placed.tag.children)
            open_elements.append((placed, iter(inside)))
        else:
            writer.write_between(placed)
    return writer.finish()


class _Writer:
    """Writes the words of a translation and the tags between them."""

    def __init__(
        self,
        text: str,
        words: AlignedWords,
        kept: Mapping[Span, list[Token]],
        escape: Callable[[str], str],
    ) -> None:
        self._text, self._words, self._escape = text, words.target, escape
        self._kept = [(span, kept[source]) for span, source in words.kept.items()]
        self._kept.sort(reverse=True)  # the next one last
        self._at = 0  # characters that are written
        self._parts: list[str] = []

    def open(self, element: _Placed) -> None:
        """Write the start tag before the first word of an element."""
        if element.first < element.end:
            self._write_until(self._words[element.first][0])
        elif element.first:
            self._write_until(self._words[element.first - 1][1])
        self._parts.append(source_of(element.tag.opening))

    def close(self, element: _Placed) -> None:
        """Write the end tag behind the last word of an element."""
        if element.first < element.end:
            self._write_until(self._words[element.end - 1][1])
        self._parts.append(source_of(element.tag.closing))

    def write_between(self, placed: _Placed) -> None:
        """Write a tag between two words."""
        if placed.first:
            self._write_until(self._words[placed.first - 1][1])
        tag = placed.tag
        is_space = tag.replaces_space and self._text[self._at : self._at + 1].isspace()
        self._at += is_space
        if is_space or not tag.needs_space:
            self._parts.append(source_of(tag.opening))

    def finish(self) -> str:
        """Write the rest, and return everything."""
        self._write_until(len(self._text))
        return "".join(self._parts)

    def _write_until(self, end: int) -> None:
        while self._kept and self._kept[-1][0][1] <= end:
            (start, stop), tokens = self._kept.pop()
            self._parts += [self._escape(self._text[self._at : start]), source_of(tokens)]
            self._at = stop
        if self._at < end:
            self._parts.append(self._escape(self._text[self._at : end]))
            self._at = end


def _place_children(
    words: AlignedWords, parent: _Placed, tags: Sequence[InlineTag]
) -> list[_Placed]:
    """Return where the tags inside an element are, in the order of the translation."""
    elements = [tag for tag in tags if tag.is_element]
    runs = _Runs(words, parent, [words.source_words(tag.span) for tag in elements]).find()
    placed = [_Placed(tag, *run) for tag, run in zip(elements, runs, strict=True)]
    points = [tag for tag in tags if not tag.is_element]
    if points:
        gaps = _Gaps(words, parent, runs)
        for tag in points:
            gap = gaps.find(len(words.source_words((0, tag.span[0]))))
            placed.append(_Placed(tag, gap, gap))
    return sorted(placed, key=lambda each: (each.first, each.end, each.tag.span))


class _Gaps:
    """The gaps between the words of an element, where a tag may stand that has no words."""

    def __init__(
        self, words: AlignedWords, parent: _Placed, runs: Sequence[tuple[int, int]]
    ) -> None:
        """Take the runs of words of the elements inside, which a tag must not be put into."""
        self._first = parent.first
        self._centres = words.centres[parent.first : parent.end]
        self._blocked = np.zeros(len(self._centres) + 1)
        for first, end in runs:
            self._blocked[first + 1 - self._first : max(end - self._first, 0)] = np.inf

    def find(self, source_words_before: int) -> int:
        """Return the number of target words before the gap that crosses the fewest alignments.

        An alignment is crossed if its source word is before the tag and its target word behind it,
        or the other way round.
        """
        is_before = self._centres < source_words_before
        is_behind = self._centres >= source_words_before  # both are false for an unaligned word
        changes = np.where(is_before, -1, np.where(is_behind, 1, 0)).cumsum()
        crossed = np.append(0, changes) + self._blocked
        return self._first + int(crossed.argmin())


class _Runs:
    """The runs of words that translate the elements inside an element."""

    def __init__(self, words: AlignedWords, parent: _Placed, elements: Sequence[range]) -> None:
        """Take the source words of each element."""
        self._parent, self._elements = parent, elements
        self._source = words.source_words(parent.tag.span)
        owner = {word: i for i, element in enumerate(elements) for word in element}
        self._own: list[list[int]] = [[] for _ in elements]
        """the target words that are aligned with each element, at least by half"""
        self._shared: list[list[int]] = [[] for _ in elements]
        """those that are aligned with a smaller part of it, such as with a syllable"""
        self._aligned_before = [0]
        """how many of the first words of the parent are aligned"""
        for word in range(parent.first, parent.end):
            sources = words.sources[word]
            votes = Counter(owner[source] for source in sources if source in owner)
            for element, count in votes.items():
                is_own = 2 * count >= len(sources) and count == max(votes.values())
                (self._own if is_own else self._shared)[element].append(word)
            self._aligned_before.append(self._aligned_before[-1] + bool(sources))
        self._kept = {
            word: owner.get(words.sources[word][0])
            for word in words.kept_words
            if parent.first <= word < parent.end
        }
        """the target words that are kept, and the element of each; no other may be around it"""
        self._taken = [0] * (parent.end - parent.first)
        """for each word of the parent: the number of the run that it belongs to, from 1; 0: none"""
        self._count = 0  # of runs

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
                shared = [word for word in self._shared[i] if self._is_free(word, i)]
                run = (shared[0], shared[0] + 1) if shared else self._run_in_proportion(i)
                runs[i] = self._take(*run)
        return [runs[i] for i in range(len(scores))]

    def _take(self, first: int, end: int) -> tuple[int, int]:
        self._count += 1
        for word in range(first, end):
            self._taken[word - self._parent.first] = self._count
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
        best, best_run = 0, (0, 0)
        score = first = last = 0
        for word in self._own[element]:
            if not self._is_free(word, element):
                score = 0
                continue
            if score and all(self._is_free(w, element) for w in range(last + 1, word)):
                score -= self._aligned_between(last, word)
            else:
                score = 0
            if score <= 0:
                score, first = 0, word
            score += len(self._taken) if word in self._kept else 1
            last = word
            if score > best:
                best, best_run = score, (first, word + 1)
        return best, best_run

    def _aligned_between(self, last: int, word: int) -> int:
        start = self._parent.first
        return self._aligned_before[word - start] - self._aligned_before[last + 1 - start]

    def _run_in_proportion(self, element: int) -> tuple[int, int]:
        """Return free words that are about where the element is in the source, or else none."""
        source, first, end = self._elements[element], self._parent.first, self._parent.end
        scale = (end - first) / max(len(self._source), 1)
        middle = (source.start + source.stop) / 2 - self._source.start
        target = first + int(middle * scale)
        free = [word for word in range(first, end) if self._is_free(word, element)]
        if not free:
            return self._nearest_gap(target)
        start = min(free, key=lambda word: abs(word - target))
        stop = start + 1
        while stop in free and stop - start < round(len(source) * scale):
            stop += 1
        return start, stop

    def _nearest_gap(self, target: int) -> tuple[int, int]:
        """Return a run without words between two other runs, or at an end of the parent."""
        runs = [-1, *self._taken, -2]  # run i is between gaps i and i + 1
        gaps = [self._parent.first + i for i in range(len(runs) - 1) if runs[i] != runs[i + 1]]
        gap = min(gaps, key=lambda gap: abs(gap - target))
        return gap, gap
