"""A validation and a test set taken out of text that has none, so that nothing of them is learnt.

Which part a sentence belongs to follows from a hash of its words alone: however often a sentence is
repeated or translated, all its copies fall together, and a corpus is split alike everywhere. Only
what is held out is in memory.
"""

import hashlib
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from nmt.data.text.parallel_text import SentencePair

LARGEST = 3000
"""pairs of a held-out set, as many as newstest has: scoring more takes long"""

_SHARE = 0.02  # of the source sentences, for each set; less of a large corpus
_MIN_WORDS = 3
_MIN_LETTERS = 8


@dataclass(frozen=True)
class HeldOut:
    """Sets to watch and to score."""

    sets: dict[str, list[SentencePair]]
    sources: frozenset[str]
    targets: frozenset[str]
    """the words of every held-out sentence"""

    def may_be_learnt(self, pair: SentencePair) -> bool:
        """Whether neither side of a pair repeats a held-out sentence."""
        return _key(pair.source) not in self.sources and _key(pair.target) not in self.targets


def hold_out(pairs: Iterable[SentencePair], total: int, names: Sequence[str]) -> HeldOut:
    """Choose the sets called `names` from `total` pairs, no sentence being in two of them.

    Sentences count as the same if they differ in case, punctuation or spaces only. A set has one
    translation a sentence, the first, and only sentences of three words or more.
    """
    share = min(_SHARE, LARGEST / max(total, 1))
    sets: dict[str, list[SentencePair]] = {name: [] for name in names}
    sources: set[str] = set()
    targets: set[str] = set()
    for pair in pairs:
        source = _key(pair.source)
        place = int(_fraction(source) / share)
        if place >= len(names) or not _is_sentence(pair, source):
            continue
        target = _key(pair.target)
        if source not in sources and target not in targets:
            sets[names[place]].append(pair)
            sources.add(source)
            targets.add(target)
    return HeldOut(sets, frozenset(sources), frozenset(targets))


def _is_sentence(pair: SentencePair, key: str) -> bool:
    """Three words or more; where neither side has spaces, as many letters as these may have."""
    if " " in pair.source or " " in pair.target:
        return len(pair.source.split()) >= _MIN_WORDS
    return len(key) >= _MIN_LETTERS


def _key(text: str) -> str:
    """Letters and digits alone, case folded."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return "".join(character for character in folded if character.isalnum())


def _fraction(key: str) -> float:
    """A number from 0 to 1 that follows from the words."""
    digest = hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest) / 2**64
