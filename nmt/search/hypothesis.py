"""A hypothesis, what a search returns, and the length penalty of its score (section 6.1)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self, TypeVar

from nmt.data.tokens.tokenizer import EOS
from nmt.recipe.config import DecodingConfig

if TYPE_CHECKING:
    from torch import Tensor

IMPOSSIBLE = float("-inf")
"""log P of a token that may not follow"""
Length = TypeVar("Length", float, "Tensor")


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """A translation in ids and its score: what a search returns."""

    tokens: tuple[int, ...]
    """target ids without BOS and EOS"""
    score: float
    """log P in nats, EOS included, divided by the length penalty where the search has one"""

    @classmethod
    def from_row(cls, row: list[int], score: float, eos: int = EOS) -> Self:
        """Take the ids before the first EOS, or all if the length limit came before an EOS."""
        return cls(tuple(row[: row.index(eos)] if eos in row else row), score)


def length_penalty(length: Length, settings: DecodingConfig) -> Length:
    """Return the divisor of log P, ((5 + length) / 6)^alpha (Wu et al., 2016, Eq. 14; section 6.1).

    `length` counts the tokens with EOS. log P only falls with length, and without the penalty
    (alpha = 0) beam search prefers translations that are too short. If
    `settings.length_normalization` is "average", the result is `length`; if "none", it is 1.
    """
    if settings.length_normalization == "average":
        return length
    alpha = settings.length_penalty if settings.length_normalization == "gnmt" else 0.0
    penalty: Length = ((5.0 + length) / 6.0) ** alpha
    return penalty
