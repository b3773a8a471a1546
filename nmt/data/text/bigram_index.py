"""Finds the sentences that may be similar to another one, by the pairs of neighbouring words.

An inverted index names for each bigram the sentences that have it. A sentence of n words has n + 1
bigrams, with its beginning and its end. Sentences that share the most bigrams with a text, for
their length, are compared with it word by word. Bigrams find more of the nearest sentences in the
same time than single words, which are mostly too frequent (measured in nmt/memory/README.md).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.uint32]

MOST_SENTENCES = 1 << 20
"""the most sentences of one index, so that an entry has 32 bits"""
_LENGTH_BITS = 12
_LONGEST = (1 << _LENGTH_BITS) - 1
"""longer sentences count as so long in an index"""
_MOST_ENTRIES = 1 << 13
"""of a more frequent bigram only the last sentences are in an index"""
_FACTORS = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F], np.uint64)


@dataclass(frozen=True)
class BigramIndex:
    """The sentences that have each bigram; a bigram is known by a hash of 32 bits."""

    bigrams: Numbers
    """(B,), sorted"""
    ends: npt.NDArray[np.int64]
    """(B + 1,): the entries of bigram i are `entries[ends[i] : ends[i + 1]]`"""
    entries: Numbers
    """for each sentence with a bigram its number, from 0, times 2^12, plus its length in words"""

    @classmethod
    def of(cls, signatures: Sequence[str]) -> "BigramIndex":
        """Return the index of at most `MOST_SENTENCES` sentences."""
        lengths = np.array([len(each) for each in signatures], np.int64)  # (N,)
        keys = bigrams_of(signatures).astype(np.uint64) << np.uint64(32)  # (E,)
        numbers = np.arange(len(signatures), dtype=np.uint64) << np.uint64(_LENGTH_BITS)
        numbers |= np.minimum(lengths, _LONGEST).astype(np.uint64)
        keys |= np.repeat(numbers, lengths + 1)
        keys.sort()
        keys = keys[_starts(keys)]  # each bigram of a sentence once
        bigrams = (keys >> np.uint64(32)).astype(np.uint32)
        starts = np.flatnonzero(_starts(bigrams))
        counts = np.diff(np.append(starts, len(keys)))
        places = np.arange(len(keys)) - np.repeat(starts, counts)  # within each bigram
        is_kept = places >= np.repeat(counts - _MOST_ENTRIES, counts)
        ends = np.append(0, np.cumsum(np.minimum(counts, _MOST_ENTRIES)))
        return cls(bigrams[starts], ends, keys[is_kept].astype(np.uint32))

    def lists(self, bigrams: Numbers) -> list[Numbers]:
        """Return the entries of each of some bigrams that the index has."""
        places = np.searchsorted(self.bigrams, bigrams)
        places[places == len(self.bigrams)] = 0
        places = places[self.bigrams[places] == bigrams] if len(self.bigrams) else places[:0]
        bounds = zip(self.ends[places].tolist(), self.ends[places + 1].tolist(), strict=True)
        return [self.entries[start:end] for start, end in bounds]


def bigrams_of(signatures: Sequence[str]) -> Numbers:
    """Return the bigrams of all sentences, one after another: n + 1 for a sentence of n words."""
    text = "\0" + "\0".join(signatures) + "\0" if signatures else ""
    codes = np.frombuffer(text.encode("utf-32-le"), np.uint32).astype(np.uint64)
    mixed = codes[:-1] * _FACTORS[0] + codes[1:] * _FACTORS[1]
    return (mixed >> np.uint64(32)).astype(np.uint32)


def likely_sentences(
    lists: Iterable[Numbers], length: int, minimum: float, most_entries: int, most: int
) -> tuple[Numbers, npt.NDArray[np.floating[Any]]]:
    """Return the numbers of sentences that are likely to be similar to a text, and how likely.

    Args:
        lists: The entries of each bigram of the text, as `BigramIndex.lists`.
        length: The number of words of the text.
        minimum: The lowest score that is looked for; much longer or shorter sentences cannot
            reach it.
        most_entries: Only the rarest bigrams are read, with about so many entries together.
        most: The most sentences.
    """
    chosen: list[Numbers] = []
    count = 0
    for entries in sorted(lists, key=len):
        if count and count + len(entries) > most_entries:
            break
        chosen.append(entries)
        count += len(entries)
    keys = np.concatenate(chosen) if chosen else np.empty(0, np.uint32)
    keys.sort()
    starts = np.flatnonzero(_starts(keys))
    shared = np.diff(starts, append=len(keys))
    shares_several = np.flatnonzero(shared > 1)
    if len(shares_several) >= most:  # the others are most of them, and less likely
        starts, shared = starts[shares_several], shared[shares_several]
    keys = keys[starts]
    lengths = (keys & np.uint32(_LONGEST)).astype(np.float32)
    longer = np.maximum(lengths, np.float32(length))
    estimates = shared.astype(np.float32) / (longer + np.float32(1))
    estimates[np.minimum(lengths, length) < minimum * longer] = 0
    best = np.flatnonzero(estimates)
    if len(best) > most:
        best = np.argpartition(-estimates, most)[:most]
    numbers: Numbers = keys[best] >> np.uint32(_LENGTH_BITS)
    return numbers, estimates[best]


def _starts(values: npt.NDArray[np.unsignedinteger]) -> npt.NDArray[np.bool_]:
    """Return where a value of a sorted array differs from the one before it."""
    is_start = np.ones(len(values), bool)
    np.not_equal(values[1:], values[:-1], out=is_start[1:])
    return is_start
