"""The result of a search."""

from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """A translation in ids and its score."""

    tokens: tuple[int, ...]
    """target ids without BOS and EOS"""
    score: float
    """log P in nats, EOS included, divided by the length penalty where the search has one"""

    @classmethod
    def from_row(cls, row: list[int], score: float, eos: int) -> Self:
        """Keep the tokens before the first EOS; a row without EOS was cut at its limit."""
        return cls(tuple(row[: row.index(eos)] if eos in row else row), score)
