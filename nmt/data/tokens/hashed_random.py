"""Random numbers that are hashes of integers: equal integers give equal numbers in every process.

The hash is SplitMix64 (Steele et al., 2014), whose output passes the usual tests of randomness. A
generator has a state, so what it draws depends on what was drawn before; a hash has none.
"""

import numpy as np
import numpy.typing as npt

Hashes = npt.NDArray[np.uint64]
Floats = npt.NDArray[np.floating]

_STEP = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio, odd: multiples of it are far apart
_FIRST_FACTOR, _SECOND_FACTOR = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_BITS = 53  # of a float64


def hash_integers(*parts: int | npt.NDArray[np.integer]) -> Hashes:
    """Return a hash of integers from 0 to 2^64 - 1, in this order: an array of one dimension.

    A part may be an array of integers; the result then has a hash for each of them.
    """
    hashes = np.zeros(1, np.uint64)
    for part in parts:
        hashes = _mix(hashes + np.atleast_1d(np.asarray(part, np.uint64)) * _STEP + _STEP)
    return hashes


def draw_uniform(keys: Hashes, numbers: int | npt.NDArray[np.integer] = 0) -> Floats:
    """Return the random number of each key, uniform in [0, 1); each of `numbers` gives another."""
    shifts = np.atleast_1d(np.asarray(numbers, np.uint64)) * _STEP
    return (_mix(keys + shifts) >> np.uint64(64 - _BITS)) * 0.5**_BITS


def _mix(values: Hashes) -> Hashes:
    """Return SplitMix64's function of 64 bits, in which each bit depends on all bits of a value."""
    mixed = values ^ (values >> np.uint64(30))
    mixed *= _FIRST_FACTOR
    mixed ^= mixed >> np.uint64(27)
    mixed *= _SECOND_FACTOR
    mixed ^= mixed >> np.uint64(31)
    return mixed
