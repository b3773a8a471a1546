"""Numbers in a line that stand for hidden parts of it, which are put back later.

`Line.hidden` lists them: each number as a word, with the spaces that were added around it, and the
part. Sentences of a line have the list of the whole line.
"""

import re
from collections.abc import Sequence, Set
from dataclasses import replace
from itertools import count, islice
from typing import NamedTuple

from nmt.translation.line import Line, has_words
from nmt.translation.spans import Edit, Span, apply_edits

_NUMBER = re.compile(r"(?<!\w)\d+(?!\w)")
_WORD_CHARACTER = re.compile(r"\w")  # a letter, a digit or an underscore


class HiddenPart(NamedTuple):
    """A part of a line, and the number that stands for it."""

    number: str
    edit: Edit
    """puts the part back into the text of the line"""


def hide(line: Line, spans: Sequence[Span], reserved: Set[str] = frozenset()) -> Line:
    """Return the line with a number that it does not contain in place of each span.

    `spans` are in order and do not overlap. `reserved` numbers stand for no part.
    """
    text = line.text
    all_numbers = map(str, count(1))  # without end
    unused = (number for number in all_numbers if number not in text and number not in reserved)
    numbers = islice(unused, len(spans))
    starts = {start for start, _ in spans}
    ends = {end for _, end in spans}
    edits, hidden = [], []
    for (start, end), number in zip(spans, numbers, strict=True):
        # one space where the number would touch a character of a word, or another number; the
        # space between two numbers is put before the second one
        previous, following = text[max(start - 1, 0) : start], text[end : end + 1]  # characters
        before = " " if start in ends or _WORD_CHARACTER.match(previous) else ""
        after = " " if end not in starts and _WORD_CHARACTER.match(following) else ""
        word = before + number + after
        edits.append(Edit((start, end), word))
        hidden.append((word, text[start:end]))
    return replace(line, text=apply_edits(text, edits), hidden=tuple(hidden))


def hidden_parts(line: Line) -> list[HiddenPart]:
    """Return the hidden parts of a line, or of a sentence of it, in order."""
    found, parts = find_numbers(line.text), []
    for word, part in line.hidden:
        number = word.strip()
        if number in found:
            start, end = found[number][0]  # `hide` has chosen a number that is there only once
            # the spaces that were added around the number are removed with it
            if word.startswith(" ") and line.text[:start].endswith(" "):
                start -= 1
            if word.endswith(" ") and line.text[end : end + 1] == " ":
                end += 1
            parts.append(HiddenPart(number, Edit((start, end), part)))
    return parts


def has_other_words(line: Line) -> bool:
    """Return whether a line has any letter or digit outside of its hidden parts."""
    numbers = {word.strip() for word, _ in line.hidden}

    def without_hidden(found: re.Match[str]) -> str:
        return "" if found[0] in numbers else found[0]

    text = _NUMBER.sub(without_hidden, line.text) if numbers else line.text
    return has_words(text)


def find_numbers(text: str) -> dict[str, list[Span]]:
    """Return where each number occurs in a text as a whole word."""
    found: dict[str, list[Span]] = {}
    for match in _NUMBER.finditer(text):
        found.setdefault(match[0], []).append(match.span())
    return found
