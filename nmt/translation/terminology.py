"""What a user asks of the words of translations: of all of them, or of one line's."""

import hashlib
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Self

from nmt.data.text.glossary import Glossary, check_term
from nmt.data.tokens.tokenizer import Tokenizer
from nmt.errors import DataError
from nmt.run_directory import LoadedModel
from nmt.search.lexical_constraints import ConstrainedSentence, LexicalConstraints
from nmt.search.spelling import Spelling

SHOWN = 80


@dataclass(frozen=True)
class Terminology:
    """Terms, forbidden words and a beginning."""

    glossary: Glossary = field(default_factory=Glossary)
    """where the source has a term of it, the translation has what it becomes"""
    terms: tuple[str, ...] = ()
    """the translation has these, whatever the source is"""
    forbidden: tuple[str, ...] = ()
    """the translation has none of these"""
    prefix: str = ""
    """the translation begins so"""

    @classmethod
    def of(
        cls,
        glossary: Mapping[str, str] | None = None,
        terms: Iterable[str] = (),
        forbidden: Iterable[str] = (),
        prefix: str = "",
    ) -> Self:
        """Take what a user has written.

        Raises:
            DataError: a term that is blank or no text on one line, or such a beginning.
        """
        terms, forbidden = tuple(terms), tuple(forbidden)
        for text in terms:
            check_term(text, "the terms")
        for text in forbidden:
            check_term(text, "the forbidden words")
        if prefix.strip():
            check_term(prefix, "the beginning")
        own, never = ([text.strip() for text in texts] for texts in (terms, forbidden))
        beginning = prefix if prefix.strip() else ""
        return cls(Glossary(glossary), tuple(own), tuple(dict.fromkeys(never)), beginning)

    def __or__(self, other: "Terminology") -> Self:
        """Both together; where they disagree, the other's."""
        return type(self)(
            self.glossary | other.glossary,
            self.terms + other.terms,
            tuple(dict.fromkeys(self.forbidden + other.forbidden)),
            other.prefix or self.prefix,
        )

    def constraints(self, source: str) -> LexicalConstraints:
        """What that means for the translation of one text."""
        found = self.glossary.occurrences(source)
        return LexicalConstraints(
            tuple(occurrence.target for occurrence in found) + self.terms,
            self.forbidden,
            self.prefix,
            tuple(occurrence.place for occurrence in found),
        )

    @property
    def digest(self) -> str:
        """The same for the same demands, in whatever order."""
        asked = (
            sorted(self.glossary.terms.items()),
            sorted(self.terms),
            sorted(self.forbidden),
            self.prefix,
        )
        return hashlib.sha256(repr(asked).encode("utf-8", "surrogatepass")).hexdigest()[:16]

    def without_beginning(self) -> Self:
        """What holds for the further sentences of a line."""
        return type(self)(self.glossary, (), self.forbidden)


def in_ids(asked: Terminology, text: str, run: LoadedModel) -> ConstrainedSentence | None:
    """What is asked of the translation of a text, in the ids of a run; None where nothing is.

    Raises:
        DataError: as `ConstraintSpeller.spell`.
    """
    constraints = asked.constraints(text)
    if not constraints:
        return None
    return speller(run.tokenizer, run.config.data.tokenized).spell(constraints, text)


@lru_cache(maxsize=4)
def speller(tokenizer: Tokenizer, tokenized: bool) -> "ConstraintSpeller":
    """The same one for the same tokenizer: to read a vocabulary takes a while."""
    return ConstraintSpeller(tokenizer, tokenized)


class ConstraintSpeller:
    """Puts what is asked of a text into the ids of a vocabulary."""

    def __init__(self, tokenizer: Tokenizer, tokenized: bool) -> None:
        """`tokenized`: the text has spaces between words and marks."""
        self.tokenizer = tokenizer
        self.spelling = Spelling(tokenizer, tokenized)

    def spell(self, constraints: LexicalConstraints, text: str) -> ConstrainedSentence:
        """What is asked of the translation of a text.

        Raises:
            DataError: naming the text: demands that exclude each other or cannot be spelled.
        """
        pieces = self._source_pieces(text) if constraints.places else ()
        try:
            return ConstrainedSentence(constraints, self.spelling, pieces)
        except DataError as error:
            shown = text if len(text) < SHOWN else f"{text[:SHOWN]}…"
            raise DataError(f"the line {shown!r}: {error}") from error

    def _source_pieces(self, text: str) -> Sequence[str]:
        """The pieces of a text; none where its normal form is another, and places would differ."""
        pieces = self.tokenizer.source_spellings(text)
        spelled = "".join(pieces).replace("▁", "")
        same = "".join(spelled.split()) == "".join(unicodedata.normalize("NFC", text).split())
        return pieces if same else ()
