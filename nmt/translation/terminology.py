"""What a user asks of the words of translations: of all lines, or of a single one."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Self

from nmt.data.text.glossary import Glossary, check_term
from nmt.search.lexical_constraints import LexicalConstraints


@dataclass(frozen=True)
class Terminology:
    """Terms, forbidden words and a beginning."""

    glossary: Glossary = field(default_factory=Glossary)
    """source terms and the words that translations have for them"""
    terms: tuple[str, ...] = ()
    """words that the translation has for any source"""
    forbidden: tuple[str, ...] = ()
    """words that the translation does not have"""
    prefix: str = ""
    """how the translation begins"""

    @classmethod
    def of(
        cls,
        glossary: Mapping[str, str] | None = None,
        terms: Iterable[str] = (),
        forbidden: Iterable[str] = (),
        prefix: str = "",
    ) -> Self:
        """Check and clean what a user has written.

        Raises:
            DataError: a term or beginning that is blank, not text, or longer than one line.
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

    def __bool__(self) -> bool:
        return bool(self.glossary.terms or self.terms or self.forbidden or self.prefix)

    def __or__(self, other: "Terminology") -> Self:
        """Combine both; where they disagree, the other one counts."""
        return type(self)(
            self.glossary | other.glossary,
            self.terms + other.terms,
            tuple(dict.fromkeys(self.forbidden + other.forbidden)),
            other.prefix or self.prefix,
        )

    def constraints(self, source: str) -> LexicalConstraints:
        """The constraints on the translation of one text."""
        found = self.glossary.occurrences(source)
        return LexicalConstraints(
            tuple(occurrence.target for occurrence in found) + self.terms,
            self.forbidden,
            self.prefix,
            tuple(occurrence.place for occurrence in found),
        )

    @property
    def digest(self) -> str:
        """A digest that does not depend on the order."""
        asked = (
            sorted(self.glossary.terms.items()),
            sorted(self.terms),
            sorted(self.forbidden),
            self.prefix,
        )
        return hashlib.sha256(repr(asked).encode("utf-8", "surrogatepass")).hexdigest()[:16]

    def without_beginning(self) -> Self:
        """The part that holds for the second and later sentences of a line."""
        return type(self)(self.glossary, (), self.forbidden)
