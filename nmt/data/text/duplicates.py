"""Finds pairs that occurred before, exactly or almost, among tens of millions in bounded memory.

Almost equal pairs are found by MinHash (Broder, 1997). The shingles of a text are all its runs of
eight bytes. The smallest of their hashes is equal for two texts with the probability that a shingle
of either is in both. There are 32 hash functions, and so 32 minima; eight minima make one MinHash.
A pair is left out if one of its four MinHashes occurred before: for pairs that share 95 % of their
shingles the chance is 99 %, at 80 % it is 52 %, at 50 % it is 2 %.
"""

import hashlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from nmt.data.text.contamination import normalize
from nmt.data.text.parallel_text import SentencePair
from nmt.recipe.config import CleaningConfig

Hashes = npt.NDArray[np.uint64]
"""the hashes of N pairs, (N,), or (N, C) if each pair has C of them"""

_MINHASHES = 4  # of a pair
_MINIMA = 8  # in each MinHash
_SHINGLE = 8  # bytes
_random = np.random.default_rng(0)


def _odd_factors(*shape: int) -> Hashes:
    """Return random odd factors, which hash by multiplication modulo 2^64."""
    return _random.integers(0, 1 << 64, shape, np.uint64) | np.uint64(1)


_HASH_FACTORS = _odd_factors(_MINHASHES * _MINIMA, 1)  # one for each hash function of shingles
_BYTE_FACTORS = _odd_factors(_SHINGLE)  # one for each byte of a shingle
_MINIMUM_FACTORS = _odd_factors(_MINIMA)  # one for each minimum of a MinHash


def hash_pairs(pairs: Sequence[SentencePair], cleaning: CleaningConfig) -> Hashes:
    """Return the hashes (N, C) of N pairs by which `DuplicateFinder` finds them again.

    The rule `duplicates` needs one hash of a pair, `near_duplicates` four; C is 0, 1, 4 or 5.
    """
    columns = []
    if cleaning.duplicates:
        columns.append(pair_hashes(pairs)[:, None])  # (N, 1)
    if cleaning.near_duplicates:
        rows = [_minhashes(pair) for pair in pairs]
        # (N, 4), also for no pair
        columns.append(np.array(rows, np.uint64).reshape(-1, _MINHASHES))
    return np.concatenate(columns, 1) if columns else np.empty((len(pairs), 0), np.uint64)


def pair_hashes(pairs: Sequence[SentencePair]) -> Hashes:
    """Return a 64-bit hash (N,) of each of N pairs.

    Among 40 million pairs the chance that any two share a hash is 1 in 20,000.
    """
    # a sentence has no line feed, so different pairs are different texts
    texts = (f"{source}\n{target}".encode("utf-8", "surrogatepass") for source, target in pairs)
    digests = b"".join(hashlib.blake2b(text, digest_size=8).digest() for text in texts)
    return np.frombuffer(digests, np.uint64)


def _minhashes(pair: SentencePair) -> Hashes:
    """Return the MinHashes (4,) of a pair; case, punctuation and spaces do not count."""
    text = "  ".join(map(normalize, pair)).encode("utf-8", "surrogatepass").ljust(_SHINGLE)
    values = np.frombuffer(text, np.uint8).astype(np.uint64)
    shingles = np.lib.stride_tricks.sliding_window_view(values, _SHINGLE)  # (S, 8) bytes
    hashes = shingles @ _BYTE_FACTORS  # (S,)
    hashes ^= hashes >> np.uint64(29)  # so that the high bits depend on all bytes
    minima = (hashes * _HASH_FACTORS).min(1).reshape(_MINHASHES, _MINIMA)  # of 32 hash functions
    minhashes: Hashes = (minima >> np.uint64(7)) @ _MINIMUM_FACTORS
    return minhashes


class DuplicateFinder:
    """Finds pairs that occurred before, exactly or almost.

    `cleaning` says whether exact and near duplicates count; `hash_pairs` must get the same.
    """

    def __init__(self, cleaning: CleaningConfig) -> None:
        reasons = ["duplicate"] if cleaning.duplicates else []
        reasons += ["near_duplicate"] * _MINHASHES if cleaning.near_duplicates else []
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
