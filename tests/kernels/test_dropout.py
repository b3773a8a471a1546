"""Dropout keeps each element with probability 1 - p and divides by it.

Its random numbers are even, independent, and a function of the generator's state.
"""

import functools
import math

import pytest
import torch
from torch import Tensor

from nmt.kernels import dropout
from nmt.kernels.dropout import FastDropout, draw_levels

N = 1 << 20


def dropped(x: torch.Tensor, p: float, seed: int = 1) -> torch.Tensor:
    torch.manual_seed(seed)
    return FastDropout(p)(x)


@pytest.mark.parametrize("p", [0.1, 0.3, 0.5])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_elements_are_dropped_as_often_as_asked_and_the_others_scaled(
    p: float, dtype: torch.dtype
) -> None:
    y = dropped(torch.ones(N, dtype=dtype), p)
    used = round(p * 65536) / 65536  # p is a multiple of 2^-16
    assert y.dtype == dtype
    assert set(y.unique().tolist()) == {0.0, torch.tensor(1 / (1 - used), dtype=dtype).item()}
    assert abs((y != 0).double().mean().item() - (1 - p)) < 5 * math.sqrt(p * (1 - p) / N)


def test_neighbours_are_dropped_independently() -> None:
    """Four elements share one draw of the generator and must not share their fate."""
    kept = (dropped(torch.ones(N), 0.5).view(-1, 4) != 0).double()
    correlation = torch.corrcoef(kept.T) - torch.eye(4)
    assert correlation.abs().max() < 5 / math.sqrt(N / 4)


def test_the_mask_depends_on_the_seed_and_on_the_shape_but_not_on_the_layout_in_memory() -> None:
    for shape in ((1,), (3,), (2, 3), (5, 1, 7)):
        assert dropped(torch.ones(shape), 0.2).shape == shape
    x = torch.randn(60, 4)
    assert torch.equal(dropped(x.T.contiguous(), 0.5), dropped(x.T, 0.5))
    assert not torch.equal(dropped(x, 0.5, seed=1), dropped(x, 0.5, seed=2))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_add_is_the_sum_of_a_residual_and_what_dropout_leaves(dtype: torch.dtype) -> None:
    residual, x = (torch.randn(50, 7, dtype=dtype, requires_grad=True) for _ in range(2))
    rtol, atol = (2**-7, 2**-6) if dtype == torch.bfloat16 else (None, None)
    assert_close = functools.partial(torch.testing.assert_close, rtol=rtol, atol=atol)
    torch.manual_seed(1)
    added, left = FastDropout(0.3).add(residual, x), dropped(x, 0.3)
    mask = dropped(torch.ones_like(x), 0.3)
    assert_close(left, x * mask)
    assert_close(added, residual + x * mask)
    upstream = torch.randn(50, 7, dtype=dtype)
    (gradient,) = torch.autograd.grad(left, x, upstream)
    assert_close(gradient, upstream * mask)
    gradients = torch.autograd.grad(added, (residual, x), upstream)
    assert_close(gradients, (upstream, upstream * mask))
    assert torch.equal(FastDropout(0.3).eval().add(residual, x), residual + x)


def drawn(count: int, seed: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return draw_levels(torch.empty(count, dtype=dtype), torch.Generator().manual_seed(seed))


def test_every_level_is_as_frequent() -> None:
    counts = torch.bincount(drawn(N, 1).long() + 2**15, minlength=1 << 16).double()
    expected = N / (1 << 16)
    chi_square = ((counts - expected) ** 2 / expected).sum().item()
    degrees = (1 << 16) - 1
    assert abs(chi_square - degrees) < 5 * math.sqrt(2 * degrees)


@pytest.mark.parametrize("distance", [1, 2, 31, 32, 33, 512])
def test_neighbouring_levels_are_independent(distance: int) -> None:
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
    monkeypatch.setattr(dropout, "kernel_library", lambda dtype: None)
    assert torch.equal(drawn(10, 1, dtype), in_float64)
