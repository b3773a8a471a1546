"""The parts that a document is cut into: tags, text and the rest, each with its own source."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

UNWRITABLE = dict.fromkeys([*range(9), 11, 12, *range(14, 32), 127, 0xFFFE, 0xFFFF])
"""for `str.translate`: deletes characters that no page and no XML may have"""
TokenKind = Literal["start", "end", "empty", "text", "other"]


@dataclass(slots=True)
class Token:
    """A part of the source: a tag, a text, or something else.

    An "empty" tag is one of XML that is an element by itself, such as <x/>.
    """

    kind: TokenKind
    source: str
    """its characters in the document"""
    name: str = ""
    """the name of a tag, of HTML in small letters; "" for other tokens"""
    attributes: tuple[tuple[str, str | None], ...] = ()
    """name (of HTML in small letters) and value of each; None: it has no value"""

    def attribute(self, name: str) -> str | None:
        """Return the value of an attribute; None if it has no value or is missing."""
        for each, value in self.attributes:  # of several, the first one counts
            if each == name:
                return value
        return None


def source_of(tokens: Iterable[Token]) -> str:
    """Return the source of some tokens that follow each other."""
    return "".join(token.source for token in tokens)
