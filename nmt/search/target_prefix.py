"""The given beginning of a translation, in ids and in letters."""

import re
from dataclasses import dataclass
from typing import Self

from nmt.data.tokens.tokenizer import UNK
from nmt.search.spelling import Spelling


@dataclass(frozen=True)
class TargetPrefix:
    """A beginning whose complete words have fixed ids, and whose last word may be longer.

    The last word is followed letter by letter: "Ein Hu" may become "Ein Hund", but "Ein Hund " only
    "Ein Hund" and another word. If the vocabulary lacks a letter of the last word, that word is
    taken as complete.
    """

    ids: tuple[int, ...] = ()
    """the ids of the complete words"""
    text: bytes = b""
    """the whole prefix as a hypothesis spells it, with a space in front"""

    @classmethod
    def spell(cls, prefix: str, spelling: Spelling) -> Self:
        """Spell the prefix; a blank one is empty.

        Raises:
            DataError: it leaves no id, or the vocabulary does not mark where words begin.
        """
        if not prefix.strip():
            return cls()
        complete, _, begun = re.sub(r"\s+", " ", prefix.lstrip()).rpartition(" ")
        [known] = spelling.tokenizer.target.encode([begun])
        [begun] = spelling.tokenizer.target.decode([known])
        rest = f" {begun}".encode()
        if UNK in known or not spelling.can_spell(rest):
            complete, rest = prefix, b""
        ids = spelling.ids(complete) if complete else ()
        return cls(ids, spelling.spelled(ids) + rest)

    def required(self, spelling: Spelling, length: int, text: bytes) -> list[int] | None:
        """The only ids that continue it after `length` ids that spell `text`; None at its end."""
        if length < len(self.ids):
            return [self.ids[length]]
        rest = self.text[len(text) :]
        if not rest:
            return None
        spelled = spelling.bytes
        return [
            i
            for i in spelling.beginnings(rest)
            if len(spelled[i]) >= len(rest) or spelling.can_spell(rest[len(spelled[i]) :])
        ]

    def decoded(self, spelling: Spelling) -> str:
        """The text with which a decoded translation begins if it has this prefix."""
        rest = self.text[len(spelling.spelled(self.ids)) :].decode("utf-8")
        if not self.ids:
            return rest[1:]
        return spelling.tokenizer.target.decode([self.ids])[0] + rest
