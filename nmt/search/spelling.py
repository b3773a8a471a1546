"""The text that each target id adds, and how the beginning of a translation is spelled."""

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import torch
from torch import Tensor

from nmt.data.text.words import continues_word, is_unspaced
from nmt.data.tokens.tokenizer import EOS, UNK, Tokenizer
from nmt.errors import DataError

_BYTE_AFTER_ANY = b"\xff"
"""sorts after every byte of UTF-8"""
_MARKS = ('"', "(", "。")
"""some of the marks that come right before a word, without a space"""


class Spelling:
    """The target side of a tokenizer, id by id."""

    def __init__(self, tokenizer: Tokenizer, tokenized: bool = False) -> None:
        """`tokenized` says that the text also has spaces between words and marks."""
        self.tokenizer = tokenizer
        self.tokenized = tokenized
        self.bytes = tokenizer.target.piece_bytes()
        """the UTF-8 text that each id adds"""

    @cached_property
    def ends_word(self) -> list[bool]:
        """For each id, including EOS, whether it ends the word before it."""
        return [self._ends_word(i) for i in range(len(self.bytes))]

    def closes_term(self, token: int) -> bool:
        """Whether a term just written is a whole word if this token follows."""
        spaced = token == EOS or self.bytes[token].startswith(b" ")
        return spaced or (self.ends_word[token] and not self.tokenized)

    @cached_property
    def word_ends(self) -> Tensor:
        """`ends_word` as (V,) booleans."""
        return torch.tensor(self.ends_word)

    @cached_property
    def has_inner_pieces(self) -> bool:
        """Whether a word may have several ids; in a vocabulary of words it never does."""
        return any(text and not self.ends_word[i] for i, text in enumerate(self.bytes))

    def ids(self, text: str) -> tuple[int, ...]:
        """The ids that spell a text with the space in front of it; no EOS.

        Raises:
            DataError: the text leaves no id, or the vocabulary does not mark where words begin.
        """
        ids = self.tokenizer.target.encode([text])[0][:-1]
        if not ids:
            raise DataError(
                f"{text!r} leaves nothing behind when it is cut into pieces; leave it out"
            )
        first = self.bytes[ids[0]]
        if first.startswith(b" "):
            return tuple(ids)
        if (joined := self._by_bytes.get(b" " + first)) is not None:
            return (joined, *ids[1:])
        if (space := self._by_bytes.get(b" ")) is not None:
            return (space, *ids)
        if is_unspaced(text[0]):
            return tuple(ids)
        raise DataError(
            f"{text!r} cannot be forced: the vocabulary of the model does not mark where words "
            "begin; use a tokenizer that puts a space in front of a text (add_dummy_prefix)"
        )

    def without_space(self, text: str) -> tuple[int, ...]:
        """The ids that spell a text right behind a mark; empty if there is no such spelling."""
        if self.tokenized:
            return ()
        for mark in _MARKS:
            ids = self.tokenizer.target.encode([mark + text])[0][:-1]
            for end in (1, 2):
                if self.spelled(ids[:end]) == f" {mark}".encode():
                    return tuple(ids[end:])
        return ()

    def spelled(self, ids: Sequence[int]) -> bytes:
        """The text that the ids add together."""
        return b"".join(self.bytes[i] for i in ids)

    def beginnings(self, text: bytes) -> list[int]:
        """The ids that spell a beginning of this text, or all of it and possibly more."""
        parts = (self._by_bytes.get(text[:end]) for end in range(1, len(text)))
        low = bisect_left(self._sorted, (text, -1))
        high = bisect_left(self._sorted, (text + _BYTE_AFTER_ANY, -1))
        return [*(i for i in parts if i is not None), *(i for _, i in self._sorted[low:high])]

    def can_spell(self, text: bytes) -> bool:
        """Whether some sequence of ids spells a text that begins with this one."""
        reached = {len(text)}
        for start in reversed(range(len(text))):
            rest = text[start:]
            if any(
                len(self.bytes[i]) >= len(rest) or start + len(self.bytes[i]) in reached
                for i in self.beginnings(rest)
            ):
                reached.add(start)
        return 0 in reached

    @cached_property
    def _by_bytes(self) -> dict[bytes, int]:
        return {text: i for text, i in reversed(self._sorted)}

    @cached_property
    def _sorted(self) -> list[tuple[bytes, int]]:
        # Decoding drops the first space of a text, but not one that is spelled as a byte.
        spelled = enumerate(zip(self.bytes, self.tokenizer.target.pieces, strict=True))
        return sorted(
            (text, i)
            for i, (text, piece) in spelled
            if text and i != UNK and (text != b" " or piece == "▁")
        )

    def _ends_word(self, i: int) -> bool:
        if i == EOS:
            return True
        text = self.bytes[i].decode("utf-8", errors="ignore")
        if i == UNK and not text.startswith(" "):
            return False  # it may stand for a letter
        return bool(text) and not continues_word(text)


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
