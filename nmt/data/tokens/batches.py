"""The order of training as a pure function of (seed, step), laid out for little padding.

Section 5.1: "Sentence pairs were batched together by approximate sequence length. Each training
batch contained a set of sentence pairs containing approximately 25000 source tokens and 25000
target tokens." A plan answers for any step at once, so resuming costs nothing.

How an epoch is laid out, so that steps hold similar lengths and yet other company each time:

1. Sort by target length plus noise of up to two tokens.
2. Cut the sorted pairs into bands worth a few steps, the first cut at a random place. Sort each
   band by source length plus noise, every other band downwards, so that neighbours across a
   border have similar source lengths too.
3. Cut into steps, each as full as the budget allows. How many come out varies a little with the
   noise; the plan promises a fixed number, slightly above that of one draw, and halves the fullest
   steps until it is reached. Should the noise need more steps than promised, the next draw is
   tried, and at last the noiseless order, whose number is known.
4. Shuffle the steps.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from nmt.data.tokens.token_store import Indices, Lengths
from nmt.errors import DataError

_NOISE = 2  # tokens
# Steps a band, over the root of the steps an epoch: the more steps a band has, the less source
# padding and the more target padding; in an epoch of more steps more of them share a target length.
_BAND = 0.375
_DRAWS = 5
_EIGHTHS = 8
_LONGEST = 8000  # tokens; longer sentences sort as if they had so many
_LONGEST_KEY = np.uint16((_LONGEST + _NOISE) * _EIGHTHS)
_LAST_BAND = (1 << 16) - 1  # an epoch of 600 million steps has more bands; they end up in one
_WINDOW = 1 << 20  # pairs cut into steps at once

_Keys = npt.NDArray[np.uint16]


@dataclass(frozen=True)
class CorpusWeight:
    """How often consecutive pairs of the store, those of one text, come in an epoch."""

    pairs: int
    weight: float = 1.0
    """2: every pair twice; 0.25: every pair once in four epochs, a quarter of them in each"""


class BatchPlan:
    """Which pairs make up each optimiser step; every pair comes once in each epoch.

    Where texts have weights, a pair comes as often as the weight of its text says.

    The tokens of a step add up to at most `batch_tokens` on either side (padding not counted); a
    single longer pair stands alone. With weights that are no whole numbers a few steps hold more.
    """

    def __init__(
        self,
        source_lengths: Lengths,
        target_lengths: Lengths,
        batch_tokens: int,
        seed: int,
        corpus_weights: Sequence[CorpusWeight] = (),
    ) -> None:
        self._source, self._target = source_lengths, target_lengths
        self._budget, self._seed = batch_tokens, seed
        self._weights = [] if all(text.weight == 1 for text in corpus_weights) else corpus_weights
        if self._weights and self._smallest_pool() == 0:
            raise DataError(
                "the weights of data.train leave epochs without a single pair; raise them"
            )
        self._ready: tuple[Indices, list[int]] | None = None
        self.steps_per_epoch = self._promise()
        """the same in every epoch"""
        self._epoch = -1
        self._steps: list[Indices] = []

    def step(self, step: int) -> Indices:
        """The pairs of optimiser step `step`, counted from 0 over all epochs."""
        epoch, position = divmod(step, self.steps_per_epoch)
        if epoch != self._epoch:
            self._steps = self._lay_out(epoch)
            self._epoch = epoch
        return self._steps[position]

    def _promise(self) -> int:
        """As many steps as an epoch takes with noise, and a few more: none takes quite as many."""
        self._ready = order, cuts = self._draw(epoch=0, attempt=0)
        noisy, tidy = len(cuts) - 1, len(self._cut(self._tidy_order(order))) - 1
        if any(text.weight % 1 for text in self._weights):
            # an epoch that draws a part of a text may be longer than the first one, or shorter
            return max(1, min(max(noisy, tidy) + 1 + noisy // 64, self._smallest_pool()))
        return 1 if tidy == 1 else min(max(noisy, tidy) + 1 + noisy // 256, len(order))

    def _lay_out(self, epoch: int) -> list[Indices]:
        """All steps of an epoch, in order."""
        for attempt in range(_DRAWS):
            order, cuts = self._draw(epoch, attempt)
            if len(cuts) - 1 <= self.steps_per_epoch:
                break
        else:
            order = self._tidy_order(self._random(epoch).permutation(self._pool(epoch)))
            cuts = self._cut(order)
        cuts = self._join_emptiest(self._halve_fullest(cuts))
        steps = [order[start:end] for start, end in pairwise(cuts)]
        return [steps[i] for i in self._random(epoch).permutation(len(steps))]

    def _random(self, *place: int) -> np.random.Generator:
        return np.random.default_rng([self._seed, *place])

    def _draw(self, epoch: int, attempt: int) -> tuple[Indices, list[int]]:
        """An order with noise and where its steps end; the very first was drawn for the promise."""
        if (epoch, attempt) == (0, 0) and self._ready is not None:
            ready, self._ready = self._ready, None
            return ready
        order = self._noisy_order(self._pool(epoch), self._random(epoch, attempt))
        return order, self._cut(order)

    def _pool(self, epoch: int) -> Indices:
        """The pairs of an epoch, each as often as it comes."""
        if not self._weights:
            return np.arange(len(self._source), dtype=np.uint32)
        parts, first = [], 0
        for number, text in enumerate(self._weights):
            pairs = np.arange(first, first + text.pairs, dtype=np.uint32)
            parts += [pairs] * int(text.weight)
            if fraction := text.weight % 1:
                # each pair's turn comes whenever its clock, started at random, passes a whole hour
                clock = (
                    self._random(number).permutation(text.pairs) + 0.5
                ) / text.pairs + epoch * fraction
                parts.append(pairs[np.floor(clock + fraction) > np.floor(clock)])
            first += text.pairs
        return np.concatenate(parts)

    def _tidy_order(self, pool: Indices) -> Indices:
        """Sort by target length, then by source length; what ties keeps its order."""
        return pool[_sorting(_key(self._target[pool]), _key(self._source[pool]))]

    def _noisy_order(self, pool: Indices, random: np.random.Generator) -> Indices:
        """Sort by target length, then in bands by source length, each with noise."""
        order = pool[_sorting(_noise(random, len(pool)) + _key(self._target[pool]))]
        bands = self._bands(order, random)
        source = _noise(random, len(pool)) + _key(self._source[order])
        np.subtract(_LONGEST_KEY, source, out=source, where=bands % 2 == 1)
        return order[_sorting(bands, source)]

    def _bands(self, order: Indices, random: np.random.Generator) -> _Keys:
        """The number of the band that each pair of an order falls into."""
        longer = np.maximum(self._source[order], self._target[order])
        steps = int(longer.sum(dtype=np.int64)) / self._budget
        width = max(1, int(self._budget * max(2.0, _BAND * steps**0.5)))
        before = np.cumsum(longer, dtype=np.int64)
        before += random.integers(width)
        before //= width
        return np.minimum(before, _LAST_BAND).astype(np.uint16)

    def _cut(self, order: Indices) -> list[int]:
        """Positions between steps, first 0 and last the number of pairs, each step filled up."""
        cuts = [0]
        while cuts[-1] < len(order):
            # a step has at most as many pairs as tokens, so each window holds a whole one
            window = order[cuts[-1] : cuts[-1] + max(_WINDOW, self._budget + 1)]
            ends = self._cut_window(window)
            if cuts[-1] + len(window) < len(order):
                ends = ends[:-1]  # the last step may go on beyond the window
            cuts += [cuts[-1] + end for end in ends]
        return cuts

    def _cut_window(self, order: Indices) -> list[int]:
        """Where the steps of an order end."""
        source_ends = np.cumsum(self._source[order], dtype=np.int64)
        target_ends = np.cumsum(self._target[order], dtype=np.int64)
        ends: list[int] = []
        while (start := ends[-1] if ends else 0) < len(order):
            used_source = source_ends[start - 1] if start else 0
            used_target = target_ends[start - 1] if start else 0
            end = min(
                np.searchsorted(source_ends, used_source + self._budget, "right"),
                np.searchsorted(target_ends, used_target + self._budget, "right"),
            )
            ends.append(max(int(end), start + 1))
        return ends

    def _smallest_pool(self) -> int:
        """Pairs that every epoch has at least; one more than that may come of each part."""
        return sum(math.floor(text.pairs * text.weight) for text in self._weights)

    def _join_emptiest(self, cuts: list[int]) -> list[int]:
        """Join neighbouring steps where a text drawn in part gives more than promised."""
        while len(cuts) - 1 > self.steps_per_epoch:
            sizes = np.diff(cuts)
            del cuts[int((sizes[:-1] + sizes[1:]).argmin()) + 1]
        return cuts

    def _halve_fullest(self, cuts: list[int]) -> list[int]:
        """Cut the step with the most pairs in two until there are as many as promised."""
        ends = np.array(cuts)
        while len(ends) - 1 < self.steps_per_epoch:
            sizes = np.diff(ends)
            fullest = int(sizes.argmax())
            ends = np.insert(ends, fullest + 1, ends[fullest] + sizes[fullest] // 2)
        return list(ends)


def _key(lengths: Lengths) -> _Keys:
    """Lengths in eighths of a token, as keys to sort by."""
    return np.minimum(lengths, _LONGEST).astype(np.uint16) * np.uint16(_EIGHTHS)


def _noise(random: np.random.Generator, count: int) -> _Keys:
    """Up to `_NOISE` tokens to add to such keys."""
    return random.integers(0, _NOISE * _EIGHTHS, count, dtype=np.uint16)


def _sorting(*keys: _Keys) -> Indices:
    """The permutation that sorts by one key or by two; what ties keeps its order.

    Keys and places fit in 64 bits together, and numpy sorts such numbers several times as fast as
    it finds the permutation that sorts them.
    """
    assert len(keys) <= 2
    packed = np.zeros(len(keys[0]), np.uint64)
    for key in keys:
        packed <<= np.uint64(16)
        packed |= key
    packed <<= np.uint64(32)
    packed |= np.arange(len(packed), dtype=np.uint32)
    packed.sort()
    return packed.astype(np.uint32)  # the low half: the places


def micro_batches(
    indices: Indices,
    source_lengths: Lengths,
    target_lengths: Lengths,
    micro_batch_tokens: int,
    pad_multiple: int = 1,
) -> list[Indices]:
    """Cut a step into parts that fit in memory, similar lengths together.

    In each part, rows times the longest source and rows times the longest target (what padding
    makes of them, up to a multiple of `pad_multiple`) are at most `micro_batch_tokens`; a single
    longer pair stands alone.
    """
    source, target = source_lengths[indices], target_lengths[indices]
    order = np.lexsort((source, target))
    longer = -(-np.maximum(source, target)[order] // pad_multiple) * pad_multiple
    parts = []
    start = 0
    while start < len(order):
        rows = np.arange(1, len(order) - start + 1)
        padded = rows * np.maximum.accumulate(longer[start:])
        size = max(int(np.searchsorted(padded, micro_batch_tokens, "right")), 1)
        parts.append(indices[order[start : start + size]])
        start += size
    return parts
