"""A validation and a test set taken out of text that has none, so that nothing of them is learnt.

Which part a sentence belongs to follows from a hash of its words alone. The same corpus is split
alike everywhere, and however often a sentence is repeated or translated, all its copies fall
together.
"""

import hashlib
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field

from nmt.data.parallel_text import SentencePair

_HELD_OUT_PERCENT = 2  # of the source sentences, for each of the two sets
_MIN_WORDS = 3


@dataclass(frozen=True)
class Parts:
    """Pairs to learn from, to watch and to score."""

    train: list[SentencePair] = field(default_factory=list)
    validation: list[SentencePair] = field(default_factory=list)
    test: list[SentencePair] = field(default_factory=list)


def hold_out(pairs: Iterable[SentencePair]) -> Parts:
    """Split pairs so that no source and no target sentence is in two parts.

    Sentences count as the same if they differ in case, punctuation or spaces only. The held-out
    sets have one translation a sentence, the first, and only sentences of three words or more; a
    pair that would repeat a held-out sentence elsewhere is left out.
    """
    parts = Parts()
    keyed = [(pair, _key(pair.source), _key(pair.target)) for pair in pairs]
    sources: set[str] = set()
    targets: set[str] = set()
    for pair, source, target in keyed:
        part = _part(source)
        if part == "train" or len(pair.source.split()) < _MIN_WORDS:
            continue
        if source not in sources and target not in targets:
            (parts.validation if part == "validation" else parts.test).append(pair)
            sources.add(source)
            targets.add(target)
    for pair, source, target in keyed:
        if source not in sources and target not in targets:
            parts.train.append(pair)
    return parts


def _key(text: str) -> str:
    """Letters and digits alone, case folded."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return "".join(character for character in folded if character.isalnum())


def _part(key: str) -> str:
    percent = int.from_bytes(hashlib.sha256(key.encode()).digest()[:8]) % 100
    if percent < _HELD_OUT_PERCENT:
        return "validation"
    return "test" if percent < 2 * _HELD_OUT_PERCENT else "train"
