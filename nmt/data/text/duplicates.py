"""Finds pairs that occurred before, exactly or almost, among tens of millions in bounded memory.

Almost equal pairs are found by MinHash (Broder, 1997): the smallest of the hashes of all pieces of
eight bytes is equal for two texts with the probability that a piece of either is in both. Eight of
32 such minima make one hash, and a pair is left out if one of its four hashes occurred before: for
pairs that share 95 % of their pieces the chance is 99 %, at 80 % it is 52 %, at 50 % it is 2 %.
"""

import hashlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from nmt.config import CleaningConfig
from nmt.data.text.contamination import normalize
from nmt.data.text.parallel_text import SentencePair

Hashes = npt.NDArray[np.uint64]
"""the hashes of N pairs, (N,), or (N, C) if each pair has C of them"""

_BANDS, _ROWS = 4, 8  # MinHashes of a pair, and minima in each of them
_PIECE = 8  # bytes
# odd random factors that hash by multiplication modulo 2^64
_random = np.random.default_rng(0)
_FACTORS = _random.integers(0, 1 << 64, (_BANDS * _ROWS, 1), np.uint64) | np.uint64(1)
_POWERS = _random.integers(0, 1 << 64, _PIECE, np.uint64) | np.uint64(1)
_MIX = _random.integers(0, 1 << 64, _ROWS, np.uint64) | np.uint64(1)


def hash_pairs(pairs: Sequence[SentencePair], cleaning: CleaningConfig) -> Hashes:
    """Return the hashes (N, C) of N pairs by which `DuplicateFinder` finds them again.

    The rule `duplicates` needs one hash of a pair, `near_duplicates` four; C is 0, 1, 4 or 5.
    """
    columns = []
    if cleaning.duplicates:
        columns.append(pair_hashes(pairs)[:, None])  # (N, 1)
    if cleaning.near_duplicates:
        rows = [_near_hashes(pair) for pair in pairs]
        columns.append(np.array(rows, np.uint64).reshape(-1, _BANDS))  # (N, 4), also for no pair
    return np.concatenate(columns, 1) if columns else np.empty((len(pairs), 0), np.uint64)


def pair_hashes(pairs: Sequence[SentencePair]) -> Hashes:
    """Return a 64-bit hash (N,) of each of N pairs.

    Among 40 million pairs the chance that any two share a hash is 1 in 20,000.
    """
    # a sentence has no line feed, so different pairs are different texts
    texts = (f"{source}\n{target}".encode("utf-8", "surrogatepass") for source, target in pairs)
    digests = b"".join(hashlib.blake2b(text, digest_size=8).digest() for text in texts)
    return np.frombuffer(digests, np.uint64)


def _near_hashes(pair: SentencePair) -> Hashes:
    """Return the four MinHashes of a pair; case, punctuation and spaces do not count."""
    text = "  ".join(map(normalize, pair)).encode("utf-8", "surrogatepass").ljust(_PIECE)
    values = np.frombuffer(text, np.uint8).astype(np.uint64)
    pieces = np.lib.stride_tricks.sliding_window_view(values, _PIECE) @ _POWERS  # a hash of each
    pieces ^= pieces >> np.uint64(29)  # so that the high bits depend on all bytes
    minima = (pieces * _FACTORS).min(1).reshape(_BANDS, _ROWS)  # of 32 hash functions
    hashes: Hashes = (minima >> np.uint64(7)) @ _MIX
    return hashes


class DuplicateFinder:
    """Finds pairs that occurred before, exactly or almost.

    `cleaning` says whether exact and near duplicates count; `hash_pairs` must get the same.
    """

    def __init__(self, cleaning: CleaningConfig) -> None:
        reasons = ["duplicate"] if cleaning.duplicates else []
        reasons += ["near_duplicate"] * _BANDS if cleaning.near_duplicates else []
        self._columns = [(reason, SeenHashes()) for reason in reasons]
        """the reason that each column of hashes is for, and its hashes so far"""

    def reasons(self, hashes: Hashes) -> list[str | None]:
        """Return why to leave out each of N pairs, or None; then add the pairs to those seen.

        `hashes` (N, C) are those of `hash_pairs`.
        """
        reasons: list[str | None] = [None] * len(hashes)
        for (reason, seen), column in zip(self._columns, hashes.T, strict=True):
            is_repeated = seen.add(np.ascontiguousarray(column))
            for i in np.flatnonzero(is_repeated):
                if reasons[i] is None:  # the first reason counts
                    reasons[i] = reason
        return reasons


class SeenHashes:
    """A set of 64-bit hashes for tens of millions of pairs, at 8 to 16 bytes a hash.

    It consists of sorted arrays, each at least twice as long as the next one; a new array is
    merged with shorter ones.
    """

    def __init__(self) -> None:
        self._arrays: list[Hashes] = []

    def add(self, hashes: Hashes) -> npt.NDArray[np.bool_]:
        """Add `hashes` (N,); return a mask (N,), True where an equal hash was added before.

        That also holds for an equal hash further to the left in `hashes`.
        """
        # the different values, where each stands first in `hashes`, and the value of each hash
        values, first, inverse = np.unique(hashes, return_index=True, return_inverse=True)
        value_is_seen = np.zeros(len(values), bool)
        for array in self._arrays:
            indices = np.searchsorted(array, values)
            indices[indices == len(array)] = 0  # larger than all: compared with one that differs
            value_is_seen |= array[indices] == values
        seen = value_is_seen[inverse]
        seen |= first[inverse] != np.arange(len(hashes))  # an equal hash stands further left
        if not value_is_seen.all():
            new = values[~value_is_seen]
            while self._arrays and len(self._arrays[-1]) < 2 * len(new):
                new = np.concatenate((self._arrays.pop(), new))
                new.sort(kind="stable")  # merges two sorted arrays
            self._arrays.append(new)
        return seen
