"""What a translation memory holds, and what it finds."""

from dataclasses import dataclass


@dataclass(frozen=True)
class MemoryPair:
    """A sentence and its translation, with what is known about them."""

    source: str
    target: str
    time: int = 0
    """seconds since 1970; 0: when it is added"""
    author: str = ""
    domain: str = ""
    context: str = ""
    """the source of the sentence before"""


@dataclass(frozen=True)
class Match:
    """A pair that was translated before, and how near its source is to a text."""

    source: str
    target: str
    """numbers and placeholders of the text are in place of those of the stored pair"""
    score: float
    """0 to 1; 1 only if the sources are equal, but for spaces and what `target` has replaced"""
    identity: int
    """the number of the pair in its memory"""
    same_context: bool = False
    """whether the sentence before is the same as well"""
