"""What a translation must contain, must not contain and must begin with: as text and in ids."""

import codecs
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from nmt.data.text.words import any_of
from nmt.data.tokens.tokenizer import UNK
from nmt.errors import DataError
from nmt.search.spelling import Spelling, TargetPrefix

_DECODER = codecs.getincrementaldecoder("utf-8")


@dataclass(frozen=True)
class LexicalConstraints:
    """Constraints on the translation of one sentence, as text."""

    terms: tuple[str, ...] = ()
    """must occur as whole words; a term that is listed twice must occur twice"""
    forbidden: tuple[str, ...] = ()
    """words and phrases that must not occur; one in small letters stands for every casing"""
    prefix: str = ""
    """the translation begins with this; its last word may be longer unless a space follows"""
    places: tuple[range, ...] = ()
    """for the first terms: the characters of the source that each translates, without spaces"""

    def __bool__(self) -> bool:
        return bool(self.terms or self.forbidden or self.prefix)


@dataclass(frozen=True, slots=True)
class TermTokenization:
    """One sequence of ids that spells a term."""

    term: int
    """index of the term"""
    ids: tuple[int, ...]
    spaced: bool
    """whether the ids include the space in front of the term"""


@dataclass(frozen=True)
class SpelledConstraints:
    """Constraints on the translation of one sentence, in the ids of a vocabulary."""

    text: LexicalConstraints
    terms: tuple[tuple[int, ...], ...]
    """the ids of each term, with the space in front of it"""
    tokenizations: tuple[TermTokenization, ...]
    """all ways to spell each term"""
    places: tuple[range, ...]
    """for the first terms: the source tokens that each translates; empty if unknown"""
    forbidden: tuple[str, ...]
    """the forbidden words in Unicode's composed form (NFC)"""
    prefix: TargetPrefix

    @classmethod
    def spell(
        cls, text: LexicalConstraints, spelling: Spelling, source: Sequence[str] = ()
    ) -> "SpelledConstraints":
        """Spell the constraints; `source` holds the pieces of the source text.

        Raises:
            DataError: constraints that contradict each other or cannot be spelled.
        """
        terms = tuple(spelling.ids(term) for term in text.terms)
        tokenizations = []
        for i, ids in enumerate(terms):
            tokenizations.append(TermTokenization(i, ids, True))
            if close := spelling.without_space(text.terms[i]):
                tokenizations.append(TermTokenization(i, close, False))
        forbidden = tuple(unicodedata.normalize("NFC", word) for word in text.forbidden)
        may_go_on = spelling.has_inner_pieces
        for demanded, goes_on in (
            *((term, False) for term in text.terms),
            (text.prefix, may_go_on),
        ):
            if contains_any(forbidden, demanded.encode("utf-8"), goes_on):
                raise DataError(
                    f"{demanded!r} is asked for, and {', '.join(map(repr, text.forbidden))} is "
                    "forbidden; leave out one of them"
                )
        places = tuple(source_tokens(place, source) for place in text.places if source)
        prefix = TargetPrefix.spell(text.prefix, spelling)
        return cls(text, terms, tuple(tokenizations), places, forbidden, prefix)

    @property
    def total(self) -> int:
        """The number of tokens of all terms."""
        return sum(map(len, self.terms))

    @property
    def room(self) -> int:
        """The most tokens that all constraints together may take."""
        return self.total + len(self.prefix.text)

    @property
    def takes_unknown(self) -> bool:
        """Whether the unknown symbol is part of a term; then it may occur nowhere else."""
        return any(UNK in ids for ids in self.terms)

    def are_met_by(self, text: str) -> bool:
        """Whether nothing must be added to this text, and it has no forbidden word."""
        if self.text.terms or self.text.prefix:
            return False
        return not contains_any(self.forbidden, text.encode("utf-8"))


def contains_any(words: tuple[str, ...], text: bytes, goes_on: bool = False) -> bool:
    """Whether a text in UTF-8 contains one of these words in composed form (NFC).

    With `goes_on` the last word may still become a longer one, and does not count.
    """
    if not words:
        return False
    # Invalid bytes separate words; the first bytes of an incomplete character do not.
    written = unicodedata.normalize("NFC", _DECODER("replace").decode(text, final=not goes_on))
    return any_of(words).search(written + "x" * goes_on) is not None


def source_tokens(place: range, pieces: Sequence[str]) -> range:
    """The source tokens that spell these characters of a text without its spaces."""
    ends = list(accumulate(len(piece.replace("▁", "").replace(" ", "")) for piece in pieces))
    return range(bisect_right(ends, place.start), bisect_left(ends, place.stop) + 1)
