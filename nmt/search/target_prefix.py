"""The given beginning of a translation, in ids and in letters."""

import re

from nmt.data.tokens.tokenizer import UNK
from nmt.search.spelling import Spelling


class TargetPrefix:
    """A beginning whose complete words are cut into ids as ever, and whose last word may go on.

    The last word is followed letter by letter: "Ein Hu" may become "Ein Hund", and "Ein Hund "
    nothing but "Ein Hund" and another word. Where the vocabulary lacks one of its letters, it is
    complete, too.
    """

    def __init__(self, prefix: str, spelling: Spelling) -> None:
        """Spell the prefix; a blank one is none.

        Raises:
            DataError: it leaves no id, or the vocabulary does not mark where words begin.
        """
        self.spelling = spelling
        self.ids: tuple[int, ...] = ()
        """of the complete words"""
        self.text = b""
        """all of it, as a hypothesis spells it, a space in front"""
        if not prefix.strip():
            return
        complete, _, begun = re.sub(r"\s+", " ", prefix.lstrip()).rpartition(" ")
        [known] = spelling.tokenizer.encode_target([begun])
        [begun] = spelling.tokenizer.decode([known])
        rest = f" {begun}".encode()
        if UNK in known or not spelling.can_spell(rest):
            complete, rest = prefix, b""
        if complete:
            self.ids = spelling.ids(complete)
        self.text = spelling.spelled(self.ids) + rest

    def required(self, length: int, text: bytes) -> list[int] | None:
        """The only ids that go on with it after `length` ids that spell `text`; None at its end."""
        if length < len(self.ids):
            return [self.ids[length]]
        rest = self.text[len(text) :]
        if not rest:
            return None
        spelled = self.spelling.bytes
        return [
            i
            for i in self.spelling.beginnings(rest)
            if len(spelled[i]) >= len(rest) or self.spelling.can_spell(rest[len(spelled[i]) :])
        ]

    def decoded(self) -> str:
        """How a translation that begins with it begins when it is decoded."""
        rest = self.text[len(self.spelling.spelled(self.ids)) :].decode("utf-8")
        if not self.ids:
            return rest[1:]
        return self.spelling.tokenizer.decode([self.ids])[0] + rest
