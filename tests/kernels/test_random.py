"""The library's random numbers are even, independent, and a function of the generator's state."""

import math

import pytest
import torch
from torch import Tensor

from nmt.kernels import random
from nmt.kernels.random import draw_levels

N = 1 << 20


def drawn(count: int, seed: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return draw_levels(torch.empty(count, dtype=dtype), torch.Generator().manual_seed(seed))


def test_every_level_is_as_frequent() -> None:
    counts = torch.bincount(drawn(N, 1).long() + 2**15, minlength=1 << 16).double()
    expected = N / (1 << 16)
    chi_square = ((counts - expected) ** 2 / expected).sum().item()
    degrees = (1 << 16) - 1
    assert abs(chi_square - degrees) < 5 * math.sqrt(2 * degrees)


@pytest.mark.parametrize("distance", [1, 2, 31, 32, 33, 512])
def test_neighbours_are_independent(distance: int) -> None:
    levels = drawn(N, 1).double()
    pairs = torch.stack((levels[:-distance], levels[distance:]))
    assert torch.corrcoef(pairs)[0, 1].abs() < 5 / math.sqrt(N)


def xoshiro(seed: int, rounds: int) -> list[int]:
    """The 16-bit halves of the numbers of 16 generators, as their authors' programs define them."""

    def rotate(x: int, bits: int) -> int:
        return (x << bits | x >> (32 - bits)) & 0xFFFFFFFF

    words = []
    for _ in range(64):  # SplitMix64
        seed = (seed + 0x9E3779B97F4A7C15) % 2**64
        x = (seed ^ seed >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        x = (x ^ x >> 27) * 0x94D049BB133111EB % 2**64
        words.append((x ^ x >> 31) >> 32)
    states = [words[lane::16] for lane in range(16)]
    halves = []
    for _ in range(rounds):  # xoshiro128++
        for s in states:
            number = (rotate((s[0] + s[3]) & 0xFFFFFFFF, 7) + s[0]) & 0xFFFFFFFF
            halves += [number & 0xFFFF, number >> 16]
            shifted = s[1] << 9 & 0xFFFFFFFF
            s[2] ^= s[0]
            s[3] ^= s[1]
            s[1] ^= s[2]
            s[0] ^= s[3]
            s[2] ^= shifted
            s[3] = rotate(s[3], 11)
    return halves


@pytest.mark.parametrize("count", [0, 1, 31, 32, 33, 1000])
def test_a_seed_gives_the_numbers_of_xoshiro_on_every_processor(
    count: int, dtype: torch.dtype
) -> None:
    seed = torch.empty(1, dtype=torch.int64)
    seed.random_(-(2**63), None, generator=torch.Generator().manual_seed(5))
    levels = drawn(count, 5, dtype)
    assert levels.dtype == torch.int16 and levels.shape == (count,)
    assert (levels.int() & 0xFFFF).tolist() == xoshiro(int(seed) % 2**64, 32)[:count]


def test_each_draw_takes_other_numbers_of_the_generator() -> None:
    generator, x = torch.Generator().manual_seed(1), torch.empty(100)
    assert not torch.equal(draw_levels(x, generator), draw_levels(x, generator))


def test_without_the_library_pytorch_draws(
    dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_float64 = drawn(10, 1, torch.float64)  # for which there is no library
    monkeypatch.setattr(random, "kernel_library", lambda dtype: None)
    assert torch.equal(drawn(10, 1, dtype), in_float64)
