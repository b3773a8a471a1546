"""Where the parts of a line, which it has placeholders for, belong in its translation."""

import re
import unicodedata
from collections.abc import Sequence

from nmt.data.text.words import is_opening
from nmt.data.tokens.unknown_parts import is_invisible
from nmt.search.lexical_constraints import LexicalConstraints
from nmt.translation.line import Line
from nmt.translation.placeholders import placeholder_of
from nmt.translation.spans import Edit, Link, Span, overlap


class PartPlaces:
    """Finds the places of the parts of a line in a translation of it (see placeholders.py)."""

    def __init__(
        self,
        line: Line,
        text: str,
        links: Sequence[Link] = (),
        asked: LexicalConstraints | None = None,
    ) -> None:
        """Take a translation `text` and its links, which `needs_no_links` says it can do without.

        `asked` are the constraints on the translation: no part is put in place of its terms, nor
        before its prefix.
        """
        self._source, self._begin = line.text, line.tag_length
        self._text, self._links, self._parts = text, links, line.parts
        self._any_case = re.IGNORECASE if line.capitals else re.NOFLAG
        self._taken = asked.places(text) if asked else []
        self._prefix_length = len(asked.prefix) if asked and text.startswith(asked.prefix) else 0
        self._by_placeholder: dict[str, list[int]] = {}
        """the indices of the parts that each number or word stands for"""
        self._without_placeholder: list[int] = []
        for i, part in enumerate(line.parts):
            if written := placeholder_of(line, part):
                self._by_placeholder.setdefault(written, []).append(i)
            elif not is_invisible(part.text.strip()):  # a soft hyphen has no place
                self._without_placeholder.append(i)

    @property
    def has_each_number_once(self) -> bool:
        """Whether the translation has each number that stands for a part exactly once."""
        numbers = filter(str.isdigit, self._by_placeholder)
        return all(len(self._copies(number)) == 1 for number in numbers)

    @property
    def needs_no_links(self) -> bool:
        """Whether the places of all parts are known without links between the words.

        The translation has each placeholder as often as the source, and parts without a placeholder
        stood at an end of the source.
        """
        return all(
            len(self._copies(written)) == len(parts)
            for written, parts in self._by_placeholder.items()
            if _must_return(written)
        ) and not any(self._is_inside(i) for i in self._without_placeholder)

    def edits(self) -> list[tuple[Edit, int | None]]:
        """Return all edits in order, each with the index of its part.

        Further copies of a number are deleted; these edits have None instead of an index. A word in
        plain letters that the model has translated gets no edit, unless it has a capital.
        """
        placed: dict[int, Edit] = {}
        deleted: list[Edit] = []
        for written, indices in self._by_placeholder.items():
            copies, more = self._copies_of(written, indices)
            placed |= copies
            deleted += more
        missing = [
            i
            for written, indices in self._by_placeholder.items()
            for i in indices
            if i not in placed and _must_return(written)
        ]
        for i in sorted(missing):
            if edit := self._replace_linked_piece(i):
                placed[i] = edit
        for i in sorted(missing):
            if i not in placed:
                placed[i] = self._insert(i, self._place(i))
        for i in self._without_placeholder:
            placed[i] = self._insert_beside_words(i)
        edits: list[tuple[Edit, int | None]] = [(placed[i], i) for i in sorted(placed)]
        edits += [(edit, None) for edit in deleted]
        return sorted(edits, key=lambda each: each[0].span)

    def _copies_of(self, written: str, indices: list[int]) -> tuple[dict[int, Edit], list[Edit]]:
        """Put parts in place of the number or word that stands for them.

        Returns the edit of each part, and those that delete further copies of a number.
        """
        copies = self._copies(written)
        if len(indices) == 1:  # copies that are linked with the part in the source come first
            copies.sort(key=lambda copy: not self._is_linked(indices[0], copy))
        self._taken += copies
        deleted = []
        for start, end in copies[len(indices) :] if written.isdigit() else ():
            if self._text[:start].endswith(" "):
                start -= 1  # the space before it is deleted too
            self._taken.append((start, end))  # no part is put in its place
            deleted.append(Edit((start, end), ""))
        placed = zip(indices, copies, strict=False)
        return {i: Edit(copy, self._parts[i].text) for i, copy in placed}, deleted

    def _copies(self, written: str) -> list[Span]:
        """Return where a number or a word stands in the translation as a whole word."""
        pattern = rf"(?<!\w){re.escape(written)}(?!\w)"
        return [match.span() for match in re.finditer(pattern, self._text, self._any_case)]

    def _is_inside(self, i: int) -> bool:
        """Return whether words stand before and after part i in the source."""
        start, end = self._parts[i].span
        return _has_word(self._source[self._begin : start]) and _has_word(self._source[end:])

    def _is_linked(self, i: int, target: Span) -> bool:
        """Return whether a span of the translation is linked with what stands for part i."""
        source = self._parts[i].span
        return any(
            overlap(link.source, source) and overlap(link.target, target) for link in self._links
        )

    def _replace_linked_piece(self, i: int) -> Edit | None:
        """Put part i in place of the longest translated piece linked with its placeholder."""
        source = self._parts[i].span
        pieces: list[Span] = []
        for link in self._links:
            written = self._text[slice(*link.target)]
            is_word = _has_word(written)  # punctuation marks are aligned with anything
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
        return Edit(span, self._parts[i].text)

    def _place(self, i: int) -> int:
        """Return where part i belongs: at the same end as in the source, or beside its word."""
        start, end = self._parts[i].span
        before, after = self._source[self._begin : start], self._source[end:]
        if not _has_word(after):  # before as many punctuation marks as in the source
            return len(self._text) - _marks(self._text[::-1], len("".join(after.split())))
        if not _has_word(before):
            return _marks(self._text, len("".join(before.split())))
        previous, following = self._neighbours(i)
        if following.isalnum() and not _touches(previous):
            return self._before_next_word(i)
        return self._after_previous_word(i)

    def _after_previous_word(self, i: int) -> int:
        """Return where the translation of the last source word before part i ends."""
        start = self._parts[i].span[0]
        before = [
            link
            for link in self._links
            if link.source[1] <= start and _has_word(self._text[slice(*link.target)])
        ]
        nearest = max(before, key=lambda link: (link.source[1], link.target[1]), default=None)
        return self._word_end(nearest.target[1]) if nearest else 0

    def _before_next_word(self, i: int) -> int:
        """Return where the translation of the first source word after part i begins."""
        end = self._parts[i].span[1]
        after = [link for link in self._links if link.source[1] > end]
        nearest = min(after, key=lambda link: (link.source[1], link.target[0]), default=None)
        if nearest is None:
            return len(self._text)
        start, stop = nearest.target
        return self._word_start(stop - len(self._text[start:stop].lstrip()))

    def _insert(self, i: int, at: int) -> Edit:
        """Insert part i as a word of its own."""
        at = self._outside_taken(at)
        left, right = self._text[:at], self._text[at:]
        before = " " if left and not left.endswith(" ") else ""
        after = " " if right[:1].isalnum() or not left else ""
        return Edit((at, at), before + self._parts[i].text + after)

    def _insert_beside_words(self, i: int) -> Edit:
        """Insert part i, which touches the words around it if it does so in the source."""
        at = self._outside_taken(self._place(i))
        previous, following = self._neighbours(i)
        left, right = self._text[:at], self._text[at : at + 1]
        is_tied = _touches(previous) and following.isalnum()  # as in I♥NY
        if is_tied and right == " ":
            return Edit((at, at + 1), self._parts[i].text.strip())
        has_space = not left or left[-1].isspace() or _touches(previous)
        before = "" if has_space else " "
        needs_space = right.isalnum() or is_opening(right) or (right and not left)
        after = " " if needs_space and following.isspace() else ""
        return Edit((at, at), before + self._parts[i].text.strip() + after)

    def _neighbours(self, i: int) -> tuple[str, str]:
        """Return the characters of the source before and after part i; "": there is none."""
        (start, end), text = self._parts[i]
        before = text[: len(text) - len(text.lstrip())]
        after = text[len(text.rstrip()) :]
        previous = before[-1:] or self._source[max(self._begin, start - 1) : start]
        return previous, after[:1] or self._source[end : end + 1]

    def _outside_taken(self, at: int) -> int:
        """Return a place, or the end of the prefix or of the span that is taken around it."""
        at = max(at, self._prefix_length)
        return next((last for first, last in self._taken if first < at < last), at)

    def _is_taken(self, span: Span) -> bool:
        """Return whether another part stands somewhere in a span."""
        return any(overlap(span, taken) for taken in self._taken)

    def _word_start(self, at: int) -> int:
        """Return the start of the word that has the character before `at`, or `at` if none has."""
        while _is_of_word(self._text[max(at - 1, 0) : at]) and not self._is_taken((at - 1, at)):
            at -= 1
        return at

    def _word_end(self, at: int) -> int:
        """Return the end of the word that has the character at `at`, or `at` if none has."""
        while _is_of_word(self._text[at : at + 1]) and not self._is_taken((at, at + 1)):
            at += 1
        return at


def _must_return(written: str) -> bool:
    """Return whether a part with this placeholder must be in every translation.

    A name must; a word in small letters, "naive" for "naïve", may have been translated.
    """
    return not written[0].islower()


def _is_of_word(character: str) -> bool:
    """Return whether a character is a letter, a digit, or a sign that is written on a letter."""
    return character.isalnum() or (character != "" and unicodedata.category(character)[0] == "M")


def _has_word(text: str) -> bool:
    return any(map(str.isalnum, text))


def _touches(neighbour: str) -> bool:
    """Return whether a character is there and no white space."""
    return bool(neighbour) and not neighbour.isspace()


def _marks(text: str, most: int) -> int:
    """Return the length of the punctuation that a text begins with, `most` marks of it."""
    end = 0
    for i, character in enumerate(text):
        if most == 0 or _is_of_word(character):
            break
        if not character.isspace():
            most, end = most - 1, i + 1
    return end
