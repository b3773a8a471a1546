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

    With `run_length`, a text also counts as held out if it shares so many words in a row with one
    of the sentences; a shorter sentence must be equal as a whole.
    """

    def __init__(self, sentences: Iterable[str], run_length: int | None = None) -> None:
        self._run_length = run_length
        self._keys: set[str] = set()
        for sentence in sentences:
            self._keys.update(self._keys_of(sentence))

    def occurs_in(self, text: str) -> bool:
        """Return whether a text is a held-out sentence, or shares a run of words with one."""
        return not self._keys.isdisjoint(self._keys_of(text))

    def _keys_of(self, text: str) -> list[str]:
        """Return what is compared: the normalised text, or all runs of `run_length` words in it."""
        normalized = normalize(text)
        if not normalized:
            return []
        words = normalized.split(" ")
        if self._run_length is None or len(words) < self._run_length:
            return [normalized]
        starts = range(len(words) - self._run_length + 1)
        return [" ".join(words[start : start + self._run_length]) for start in starts]

    @property
    def digest(self) -> str:
        """A hash of the sentences, 16 hex digits; their order does not count."""
        content = "\n".join(sorted(self._keys)).encode("utf-8", "replace")
        return hashlib.sha256(content).hexdigest()[:16]


class HeldOutPairs:
    """The validation and test pairs, whose sentences must not be in the training text.

    `run_length` is that of `HeldOutText`.
    """

    def __init__(self, pairs: Sequence[SentencePair], run_length: int | None = None) -> None:
        self._sources = HeldOutText([pair.source for pair in pairs], run_length)
        self._targets = HeldOutText([pair.target for pair in pairs], run_length)

    def occur_in(self, pair: SentencePair) -> bool:
        """Return whether the source or the target of a pair is held out."""
        return self._sources.occurs_in(pair.source) or self._targets.occurs_in(pair.target)

    @property
    def digest(self) -> str:
        """A hash of all sentences, 32 hex digits."""
        return self._sources.digest + self._targets.digest
