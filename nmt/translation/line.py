"""A line on its way to its translation."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from nmt.translation.terminology import Terminology


@dataclass(frozen=True, slots=True)
class Line:
    """What is to be translated, and what is asked of it."""

    number: int
    """counted from 1: warnings name it, and what is drawn for the line depends on it"""
    text: str
    terminology: Terminology | None = None
    """what is asked of this line's translation, besides what is asked of all"""


def characters(line: Line) -> int:
    """How long its text is."""
    return len(line.text)


def numbered(texts: Iterable[str], first: int = 1) -> Iterator[Line]:
    """Lines of which nothing is asked."""
    return (Line(number, text) for number, text in enumerate(texts, first))
