"""A line on its way to its translation."""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from nmt.search.lexical_constraints import SpelledConstraints
from nmt.translation.terminology import Terminology
from nmt.translation.word_alignment import Alignment

Warn = Callable[[str], None]
"""takes a warning, one sentence"""
Progress = Callable[[int], object]
"""takes the number of lines that have been done since the last call"""


@dataclass(frozen=True, slots=True)
class Line:
    """A text to translate, and what is asked of its translation."""

    number: int
    """counted from 1; warnings name it, and what is drawn for the line depends on it"""
    text: str
    terminology: Terminology | None = None
    """constraints on this line's translation, in addition to those on all lines"""
    ids: Sequence[int] = ()
    """its source ids with EOS, if they are known already"""


@dataclass(frozen=True, slots=True)
class EncodedLine:
    """A line in ids, as the search takes it."""

    line: Line
    ids: list[int]
    """source ids, the last one EOS; empty if the line is copied instead of translated"""
    constraints: SpelledConstraints | None = None


@dataclass(frozen=True, slots=True)
class Translation:
    """One translation of a line."""

    text: str
    """a single line, without line feed and carriage return"""
    score: float
    """log P in nats over the length penalty; 0 for a line that is copied"""
    tokens: tuple[int, ...] = ()
    """target ids without BOS and EOS; empty for a line that is copied"""
    is_truncated: bool = False
    """whether it ended at the length limit, without EOS"""
    utility: float | None = None
    """how well it agrees with the other candidates, if they were compared"""
    alignment: Alignment | None = None
    """its words and those of the source that belong together, if that was asked for"""


def print_warning(message: str) -> None:
    """Write a warning to stderr."""
    print(f"warning: {message}", file=sys.stderr)


def characters(line: Line) -> int:
    """The length of its text."""
    return len(line.text)


def numbered(texts: Iterable[str], first: int = 1) -> Iterator[Line]:
    """Yield a line for each text, numbered from `first`."""
    return (Line(number, text) for number, text in enumerate(texts, first))


def has_words(text: str) -> bool:
    """Whether a text has any letter or digit."""
    return any(map(str.isalnum, text))


def one_line(text: str) -> str:
    """Replace line ends by spaces: a vocabulary of bytes can spell them."""
    return text.replace("\n", " ").replace("\r", " ")
