"""A hash table of integers that looks up arrays of them, faster than a binary search does."""

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.int64]

_FACTOR = np.uint64(0x9E3779B97F4A7C15)  # multiplicative hashing (Knuth, volume 3, 6.4)
_SLOTS_PER_KEY = 4  # with fewer, more keys have to look into a second slot
_EMPTY = -1


class IntegerTable:
    """Maps integers from 0 to 2^63 - 1 to others; a slot that is taken leads to the next one."""

    def __init__(self, keys: Array, values: Array) -> None:
        """Take the keys, all different, and the value of each, which is not negative."""
        bits = max(1, int(len(keys) * _SLOTS_PER_KEY).bit_length())
        self._shift, self._last = np.uint64(64 - bits), (1 << bits) - 1
        self._keys: Array = np.full(1 << bits, _EMPTY, np.int64)
        self._values: Array = np.full(1 << bits, _EMPTY, np.int64)
        slots = self._first_slots(keys)
        while len(keys):
            free = self._keys[slots] == _EMPTY
            self._keys[slots[free]] = keys[free]  # of several keys in one slot, one stays
            waits = self._keys[slots] != keys
            self._values[slots[~waits]] = values[~waits]
            keys, values, slots = keys[waits], values[waits], slots[waits] + 1 & self._last

    def __getitem__(self, keys: Array) -> Array:
        """Return the value of each key; -1 where there is none."""
        slots = self._first_slots(keys)
        found = self._keys[slots]
        result = np.where(found == keys, self._values[slots], _EMPTY)
        missed = np.flatnonzero((found != keys) & (found != _EMPTY))
        while len(missed):  # look into the next slot
            slots[missed] = slots[missed] + 1 & self._last
            found, wanted = self._keys[slots[missed]], keys[missed]
            result[missed] = np.where(found == wanted, self._values[slots[missed]], _EMPTY)
            missed = missed[(found != wanted) & (found != _EMPTY)]
        return result

    def _first_slots(self, keys: Array) -> Array:
        return ((keys.astype(np.uint64) * _FACTOR) >> self._shift).astype(np.int64)
