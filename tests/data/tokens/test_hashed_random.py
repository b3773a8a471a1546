"""Hashes of integers are as good as random numbers."""

import numpy as np

from nmt.data.tokens.hashed_random import draw_uniform, hash_integers

MASK = (1 << 64) - 1


def split_mix(value: int) -> int:
    """The next number of SplitMix64 after the state `value`, with Python's integers."""
    value = value + 0x9E3779B97F4A7C15 & MASK
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & MASK
    value = (value ^ value >> 27) * 0x94D049BB133111EB & MASK
    return value ^ value >> 31


def test_hashes_are_those_of_split_mix() -> None:
    assert split_mix(0) == 0xE220A8397B1DCDAF  # the first number that is published for the seed 0
    for parts in [(0,), (0, 0), (7, 2**64 - 1, 3)]:
        expected = 0
        for part in parts:
            expected = split_mix(expected + part * 0x9E3779B97F4A7C15)
        assert hash_integers(*parts).tolist() == [expected]


def test_each_part_and_its_place_count() -> None:
    parts = [(1,), (1, 0), (0, 1), (1, 1), (2, 1), (1, 2), (2**63 - 1, 1)]
    assert len({int(hash_integers(*each)[0]) for each in parts}) == len(parts)


def test_numbers_of_neighbouring_integers_are_uniform_and_independent() -> None:
    count = 200_000
    for draws in (
        draw_uniform(hash_integers(1, 2, np.arange(count))),  # the keys differ
        draw_uniform(hash_integers(7), np.arange(count)),  # only the numbers do
        draw_uniform(hash_integers(np.arange(count), 2, 3), np.arange(count)),
    ):
        assert draws.min() >= 0 and draws.max() < 1
        error = 4.5 / count**0.5  # of a mean of numbers with variance 1
        centred = (draws - 0.5) * 12**0.5
        assert abs(centred.mean()) < error
        for distance in (1, 2, 64):
            assert abs((centred[distance:] * centred[:-distance]).mean()) < error
        expected = count / 64
        frequencies = np.histogram(draws, 64, (0, 1))[0]
        assert ((frequencies - expected) ** 2 / expected).sum() < 63 + 4.5 * (2 * 63) ** 0.5
