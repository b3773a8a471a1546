"""Words and phrases that a translation must not contain, however they are split into ids."""

import codecs
import unicodedata
from collections.abc import Iterable, Sequence

from nmt.data.text.words import any_of
from nmt.errors import DataError

_DECODER = codecs.getincrementaldecoder("utf-8")


class ForbiddenWords:
    """Finds forbidden words in the text that a hypothesis spells."""

    def __init__(self, words: Sequence[str], has_inner_pieces: bool) -> None:
        """`has_inner_pieces` says that a word may consist of several tokens."""
        self.words = words
        self.has_inner_pieces = has_inner_pieces
        composed = tuple(unicodedata.normalize("NFC", word) for word in words)
        self.pattern = any_of(composed) if words else None

    def __bool__(self) -> bool:
        return self.pattern is not None

    def are_in(self, text: bytes, goes_on: bool = False) -> bool:
        """Whether the text contains a forbidden word.

        With `goes_on` the last word may still become a longer one, and does not count.
        """
        if self.pattern is None:
            return False
        open_ended = goes_on and self.has_inner_pieces
        # Invalid bytes separate words; the first bytes of an incomplete character do not.
        written = _DECODER("replace").decode(text, final=not open_ended)
        composed = unicodedata.normalize("NFC", written)
        return self.pattern.search(composed + "x" * open_ended) is not None

    def check_demanded(self, texts: Iterable[str]) -> None:
        """Raise a DataError if a demanded text has a forbidden word; the last one may go on."""
        *terms, prefix = texts
        for text, goes_on in (*((term, False) for term in terms), (prefix, True)):
            if self.are_in(text.encode("utf-8"), goes_on):
                raise DataError(
                    f"{text!r} is asked for, and {', '.join(map(repr, self.words))} is forbidden; "
                    "leave out one of them"
                )
