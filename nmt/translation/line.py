"""A line on its way to its translation: what is asked of it, its text, its ids, its translation."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

from nmt.data.text.glossary import Glossary, check_term
from nmt.search.lexical_constraints import LexicalConstraints, SpelledConstraints

MAX_SOURCE_TOKENS = 1024
"""longer sources are truncated, or divided in a document"""
Warn = Callable[[str], None]
"""takes a warning, one sentence"""
Progress = Callable[[int], object]
"""takes the number of lines that have been done since the last call"""


@dataclass(frozen=True)
class Terminology:
    """What a user asks of the words of translations, of all lines or of one."""

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
        """Check what a user has written, and strip white space; a blank prefix means none.

        Raises:
            DataError: a term is blank, or a term or the prefix is not text or not one line.
        """
        terms, forbidden, prefix = list(terms), list(forbidden), prefix if prefix.strip() else ""
        for term in terms:
            check_term(term, "the terms")
        for word in forbidden:
            check_term(word, "the forbidden words")
        if prefix:
            check_term(prefix, "the beginning")
        never = dict.fromkeys(text.strip() for text in forbidden)
        return cls(Glossary(glossary), tuple(map(str.strip, terms)), tuple(never), prefix)

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
            tuple(occurrence.characters for occurrence in found),
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
class Alignment:
    """A translation word by word and piece by piece."""

    words: tuple[tuple[int, int], ...] = ()
    """positions of a source word and a target word that belong together, from 0, in order"""
    pieces: tuple[str, ...] = ()
    """the spelling of each target token, the last one `</s>` unless it was cut at its limit"""
    log_probabilities: tuple[float, ...] = ()
    """log P of each token given those before it, in nats"""

    def pharaoh(self) -> str:
        """Return `source-target` pairs with spaces between, as word aligners write them."""
        return " ".join(f"{source}-{target}" for source, target in self.words)


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
    """which of its words belong to which words of the source, if that was asked for"""


def numbered(texts: Iterable[str], first: int = 1) -> Iterator[Line]:
    """Yield a line for each text, numbered from `first`."""
    return (Line(number, text) for number, text in enumerate(texts, first))


def has_words(text: str) -> bool:
    """Return whether a text has any letter or digit."""
    return any(map(str.isalnum, text))


def one_line(text: str) -> str:
    """Replace line ends by spaces: a vocabulary of bytes can spell them."""
    return text.replace("\n", " ").replace("\r", " ")
