"""Finds sentences of the validation and test sets in other text, whole or by a run of words.

Sentences count as equal if they differ only in case, Unicode form, punctuation and spaces.
"""

import hashlib
import unicodedata
from collections.abc import Iterable, Sequence

import regex

from nmt.data.text.parallel_text import SentencePair

_NO_WORD = regex.compile(r"[\W_]+")


def normalize(text: str) -> str:
    """Return a text as it is compared: "Well, yes!" becomes "well yes".

    It is in NFKC and case folded; each run of punctuation and spaces becomes one space.
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    plain: str = _NO_WORD.sub(" ", folded)
    return plain.strip()


class HeldOutText:
    """The sentences of one language that no model may learn.

    With `words`, a text also counts as held out if it shares so many words in a row with one of the
    sentences; a shorter sentence must be equal as a whole.
    """

    def __init__(self, sentences: Iterable[str], words: int | None = None) -> None:
        self._words = words
        self._keys = {key for sentence in sentences for key in self._keys_of(sentence)}

    def occurs_in(self, text: str) -> bool:
        """Return whether a text is a held-out sentence, or shares a run of words with one."""
        return not self._keys.isdisjoint(self._keys_of(text))

    def _keys_of(self, text: str) -> list[str]:
        """Return what is compared: the normalised text, or all runs of `words` words in it."""
        normalized = normalize(text)
        if not normalized:
            return []
        words = normalized.split(" ")
        if self._words is None or len(words) < self._words:
            return [normalized]
        starts = range(len(words) - self._words + 1)
        return [" ".join(words[start : start + self._words]) for start in starts]

    @property
    def digest(self) -> str:
        """A hash of the sentences, 16 hex digits; their order does not count."""
        content = "\n".join(sorted(self._keys)).encode("utf-8", "replace")
        return hashlib.sha256(content).hexdigest()[:16]


class HeldOutPairs:
    """The validation and test pairs, whose sentences must not be in the training text.

    `words` is that of `HeldOutText`.
    """

    def __init__(self, pairs: Sequence[SentencePair], words: int | None = None) -> None:
        self._sides = [HeldOutText((pair[side] for pair in pairs), words) for side in (0, 1)]

    def occur_in(self, pair: SentencePair) -> bool:
        """Return whether the source or the target of a pair is held out."""
        return any(side.occurs_in(text) for side, text in zip(self._sides, pair, strict=True))

    @property
    def digest(self) -> str:
        """A hash of all sentences, 32 hex digits."""
        return "".join(side.digest for side in self._sides)
