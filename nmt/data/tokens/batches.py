"""The order of the training pairs as a pure function of (seed, step), laid out for little padding.

Section 5.1: "Sentence pairs were batched together by approximate sequence length. Each training
batch contained a set of sentence pairs containing approximately 25000 source tokens and 25000
target tokens." A plan returns the pairs of any step directly, so resuming costs nothing.

An epoch is laid out so that a step holds pairs of similar lengths, and other pairs than in the
epoch before:

1. Sort the pairs by target length plus noise of up to two tokens.
2. Cut the sorted pairs into bands of a few steps each, the first cut at a random place. Sort each
   band by source length plus noise, every other band in descending order, so that pairs on both
   sides of a border between bands have similar source lengths.
3. Cut the pairs into steps, each as full as `training.batch_tokens` allows. Every epoch must have
   the same number of steps: slightly more than the first layout took. If a layout takes fewer, its
   fullest steps are halved. If it takes more, other noise is drawn; after `_ATTEMPTS` layouts the
   pairs are sorted without noise.
4. Shuffle the steps.

A training may have stages, each with a mixture of the texts and a plan of its own, as OpusTrainer
has (Bogoychev et al., 2023, arXiv 2311.14838).
"""

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from nmt.data.tokens.token_store import Indices, Lengths
from nmt.errors import DataError

_NOISE = 2  # tokens
# A band has _BAND_FACTOR * sqrt(steps of the epoch) steps. More steps in a band mean less padding
# of the source and more of the target; in a longer epoch more steps share a target length.
_BAND_FACTOR = 0.375
_ATTEMPTS = 5
_EIGHTHS = 8  # sort keys are lengths in eighths of a token, so that noise can be a fraction of one
_MAX_LENGTH = 8000  # tokens; longer sentences sort as if they had it, so that keys fit in 16 bits
_MAX_KEY = np.uint16((_MAX_LENGTH + _NOISE) * _EIGHTHS)
_LAST_BAND = (1 << 16) - 1  # only an epoch of over 600 million steps has more bands

_Keys = npt.NDArray[np.uint16]  # sort keys of pairs: lengths in eighths of a token, or band numbers
_Steps = list[Indices]  # a layout of an epoch: the pairs of each step


@dataclass(frozen=True)
class CorpusWeight:
    """How often the pairs of one training text occur in an epoch."""

    pair_count: int
    """the number of pairs of the text, which are consecutive in the token store"""
    weight: float = 1.0
    """2: every pair twice; 0.25: every pair once in four epochs, a quarter of them in each; 0:
    never"""

    @property
    def pairs_per_epoch(self) -> float:
        """How many pairs of the text an epoch has on average; repeats count."""
        return self.pair_count * self.weight


class BatchPlan:
    """Decides which pairs make up each optimiser step; depends on its arguments alone.

    An epoch has each pair once, or as often as the weight of its text in `corpus_weights`. The
    tokens of a step add up to at most `step_tokens` on either side (padding not counted); a single
    longer pair forms a step of its own. With fractional weights a few steps hold more.
    """

    def __init__(
        self,
        source_lengths: Lengths,
        target_lengths: Lengths,
        step_tokens: int,
        seed: int,
        corpus_weights: Sequence[CorpusWeight] = (),
    ) -> None:
        """Lay out the first epoch, which decides how many steps every epoch has.

        The lengths, in tokens, are those of all pairs of the token store.

        Raises:
            DataError: the weights are so small that an epoch may have no pair.
        """
        self._source, self._target = source_lengths, target_lengths
        self._step_tokens, self._seed = step_tokens, seed
        each_once = all(corpus.weight == 1 for corpus in corpus_weights)
        self._corpora = [] if each_once else corpus_weights  # empty: each pair once in an epoch
        if self._corpora and self._fewest_pairs() == 0:
            raise DataError(
                "the weights of data.train leave epochs without a single pair; raise them"
            )
        self._first_layout: _Steps | None = self._noisy_layout(epoch=0, attempt=0)
        self.steps_per_epoch = self._count_steps(self._first_layout)
        """the number of optimiser steps, the same in every epoch"""
        self._epoch = -1  # the epoch of `_steps`; -1: none yet
        self._steps: _Steps = []

    def step(self, step: int) -> Indices:
        """Return the indices of the pairs of a step; steps count from 1, over all epochs."""
        epoch, position = divmod(step - 1, self.steps_per_epoch)
        if epoch != self._epoch:
            self._steps = self._lay_out_epoch(epoch)
            self._epoch = epoch
        return self._steps[position]

    def _count_steps(self, first: _Steps) -> int:
        """Return slightly more steps than `first` has; few layouts need more than that.

        A step has at least one pair, so there are never more steps than pairs in an epoch.
        """
        pairs = np.concatenate(first)
        noiseless_steps = len(self._noiseless_layout(pairs))
        needed = max(len(first), noiseless_steps)
        if any(corpus.weight % 1 for corpus in self._corpora):
            # a larger margin: other epochs may have more pairs than the first one, or fewer
            margin = 1 + len(first) // 64
            return max(1, min(needed + margin, self._fewest_pairs()))
        if noiseless_steps == 1:
            return 1
        margin = 1 + len(first) // 256
        return min(needed + margin, len(pairs))

    def _lay_out_epoch(self, epoch: int) -> _Steps:
        """Return the pairs of each step of an epoch, in training order."""
        first, self._first_layout = self._first_layout, None  # used once, to save memory
        layout = first if first and epoch == 0 else self._noisy_layout(epoch, attempt=0)
        for attempt in range(1, _ATTEMPTS):
            if len(layout) > self.steps_per_epoch:
                layout = self._noisy_layout(epoch, attempt)
        if len(layout) > self.steps_per_epoch:
            pairs = self._generator(epoch).permutation(self._pairs_of_epoch(epoch))
            layout = self._noiseless_layout(pairs)
        steps = self._fit_step_count(layout)
        return [steps[i] for i in self._generator(epoch).permutation(len(steps))]

    def _generator(self, *key: int) -> np.random.Generator:
        """Return a random generator; equal keys give equal numbers."""
        return np.random.default_rng([self._seed, *key])

    def _noisy_layout(self, epoch: int, attempt: int) -> _Steps:
        """Return a layout of an epoch, sorted with noise; each attempt draws other noise.

        It has bands of similar target length, and inside each the pairs stand by source length.
        """
        pairs, random = self._pairs_of_epoch(epoch), self._generator(epoch, attempt)
        target_keys = _sort_keys(self._target[pairs], random)
        order = pairs[_argsort(target_keys)]
        bands = self._bands(order, random)
        source_keys = _sort_keys(self._source[order], random)
        is_descending = bands % 2 == 1
        np.subtract(_MAX_KEY, source_keys, out=source_keys, where=is_descending)
        return self._cut(order[_argsort(bands, source_keys)])

    def _noiseless_layout(self, pairs: Indices) -> _Steps:
        """Return a layout sorted by target length, then by source length; ties keep their order."""
        target_keys, source_keys = _sort_keys(self._target[pairs]), _sort_keys(self._source[pairs])
        return self._cut(pairs[_argsort(target_keys, source_keys)])

    def _pairs_of_epoch(self, epoch: int) -> Indices:
        """Return the indices of the pairs of an epoch, each as many times as it occurs."""
        if not self._corpora:
            return np.arange(len(self._source), dtype=np.uint32)
        occurrences, first = [], 0
        for number, corpus in enumerate(self._corpora):
            count = corpus.pair_count
            pairs = np.arange(first, first + count, dtype=np.uint32)
            occurrences += [pairs] * int(corpus.weight)
            if fraction := corpus.weight % 1:
                # Each pair has a clock that starts at a random time below 1 and gains `fraction`
                # in each epoch; the pair occurs whenever its clock passes a whole number.
                start = (self._generator(number).permutation(count) + 0.5) / count
                clock = start + epoch * fraction
                occurs = np.floor(clock + fraction) > np.floor(clock)
                occurrences.append(pairs[occurs])
            first += count
        return np.concatenate(occurrences)

    def _bands(self, order: Indices, random: np.random.Generator) -> _Keys:
        """Return the number of the band of each pair in `order`, from 0.

        All bands have about equally many tokens; only the first has fewer, at random.
        """
        lengths = np.maximum(self._source[order], self._target[order])
        steps = int(lengths.sum(dtype=np.int64)) / self._step_tokens
        steps_per_band = max(2.0, _BAND_FACTOR * steps**0.5)
        tokens_per_band = max(1, int(self._step_tokens * steps_per_band))
        numbers = np.cumsum(lengths, dtype=np.int64)  # in place, to save memory
        numbers += random.integers(tokens_per_band)
        numbers //= tokens_per_band
        return np.minimum(numbers, _LAST_BAND).astype(np.uint16)

    def _cut(self, order: Indices) -> _Steps:
        """Cut pairs, which stay in this order, into steps that are as full as possible."""
        source_sums = np.cumsum(self._source[order], dtype=np.int64)  # tokens up to each pair
        target_sums = np.cumsum(self._target[order], dtype=np.int64)
        cuts, used_source, used_target = [0], 0, 0
        while (start := cuts[-1]) < len(order):
            if start:
                used_source, used_target = source_sums[start - 1], target_sums[start - 1]
            end = min(
                np.searchsorted(source_sums, used_source + self._step_tokens, "right"),
                np.searchsorted(target_sums, used_target + self._step_tokens, "right"),
            )
            cuts.append(max(int(end), start + 1))  # a longer pair is a step of its own
        return [order[start:end] for start, end in pairwise(cuts)]

    def _fewest_pairs(self) -> int:
        """Return a lower bound of an epoch's number of pairs; a fractional weight may add one."""
        return sum(math.floor(corpus.pairs_per_epoch) for corpus in self._corpora)

    def _fit_step_count(self, layout: _Steps) -> _Steps:
        """Return a layout changed so that there are `steps_per_epoch` steps.

        The steps with the most pairs are halved, or the neighbours with the fewest pairs joined.
        There are too many steps only with fractional weights.
        """
        sizes = np.array([len(step) for step in layout])
        while len(sizes) != self.steps_per_epoch:
            if len(sizes) < self.steps_per_epoch:
                fullest = int(sizes.argmax())
                half = sizes[fullest] // 2
                sizes[fullest] -= half
                sizes = np.insert(sizes, fullest, half)
            else:
                first = int((sizes[:-1] + sizes[1:]).argmin())
                sizes[first + 1] += sizes[first]
                sizes = np.delete(sizes, first)
        return np.split(np.concatenate(layout), np.cumsum(sizes)[:-1])


def _sort_keys(lengths: Lengths, random: np.random.Generator | None = None) -> _Keys:
    """Return lengths as sort keys, in eighths of a token, plus up to `_NOISE` random tokens."""
    keys = np.minimum(lengths, _MAX_LENGTH).astype(np.uint16) * np.uint16(_EIGHTHS)
    if random:
        keys += random.integers(0, _NOISE * _EIGHTHS, len(keys), dtype=np.uint16)
    return keys


def _argsort(*keys: _Keys) -> Indices:
    """Return the permutation that sorts by one key, or by two (the first counts more).

    Ties keep their order. A 64-bit number holds the keys (16 bits each) above the index of a pair
    (32 bits). numpy sorts such numbers several times as fast as its `argsort` finds the
    permutation.
    """
    assert len(keys) <= 2
    packed = np.zeros(len(keys[0]), np.uint64)
    for key in keys:
        packed <<= np.uint64(16)
        packed |= key
    packed <<= np.uint64(32)
    packed |= np.arange(len(packed), dtype=np.uint32)
    packed.sort()
    return packed.astype(np.uint32)  # the low half: the indices


@dataclass(frozen=True)
class Stage:
    """Steps in which the mixture of the training texts stays the same."""

    start: int = 0
    """how many steps come before its first one"""
    corpus_weights: Sequence[CorpusWeight] = ()
    """one for each training text, weight 0 if it is not learnt; empty: each pair once an epoch"""


class StagedPlan:
    """Decides which pairs make up each optimiser step; depends on its arguments alone.

    Each stage has a `BatchPlan` of its own, so its first epoch begins with the stage.
    """

    def __init__(
        self,
        source_lengths: Lengths,
        target_lengths: Lengths,
        step_tokens: int,
        seed: int,
        stages: Sequence[Stage] = (),
    ) -> None:
        """Lay out all stages once, to know the steps of their epochs.

        `stages` are in order, and the first starts at 0; empty: one stage with each pair once an
        epoch. The lengths, in tokens, are those of all pairs of the token store.

        Raises:
            DataError: a stage has epochs without any pair.
        """
        self._lengths = source_lengths, target_lengths
        self._step_tokens, self._seed = step_tokens, seed
        self._stages = list(stages) or [Stage()]
        self._starts = [stage.start for stage in self._stages]
        self.steps_per_epoch = [0] * len(self._stages)
        """the number of optimiser steps in each epoch of each stage"""
        for number in reversed(range(len(self._stages))):  # so that the first plan is kept at last
            self._number, self._plan = number, self._lay_out(number)
            self.steps_per_epoch[number] = self._plan.steps_per_epoch

    def step(self, step: int) -> Indices:
        """Return the indices of the pairs of a step; steps count from 1, over all stages."""
        number = bisect_left(self._starts, step) - 1
        if number != self._number:  # a plan takes memory, so only one is kept
            self._number, self._plan = number, self._lay_out(number)
        return self._plan.step(step - self._starts[number])

    def epochs(self, steps: int) -> float:
        """Return how many epochs the first `steps` steps are, over all stages."""
        ends = [*self._starts[1:], steps]  # a stage ends where the next one starts
        epochs = 0.0
        for start, end, per_epoch in zip(self._starts, ends, self.steps_per_epoch, strict=True):
            if start < steps:  # later stages have not begun
                epochs += (min(end, steps) - start) / per_epoch
        return epochs

    def _lay_out(self, number: int) -> BatchPlan:
        """Return the plan of a stage, counted from 0."""
        # another seed, so that a text of two stages comes in another order
        seed = self._seed + number
        weights = self._stages[number].corpus_weights
        return BatchPlan(*self._lengths, self._step_tokens, seed, weights)


def micro_batches(
    indices: Indices,
    source_lengths: Lengths,
    target_lengths: Lengths,
    micro_batch_tokens: int,
    pad_multiple: int = 1,
) -> list[Indices]:
    """Split the pairs `indices` of a step into micro-batches of similar lengths that fit in memory.

    In a micro-batch, the number of pairs times the greatest length, rounded up to a multiple of
    `pad_multiple`, is at most `micro_batch_tokens`. A longer pair forms a micro-batch alone.
    `source_lengths` and `target_lengths` are those of all pairs of the store, in tokens.
    """
    source, target = source_lengths[indices], target_lengths[indices]
    order = np.lexsort((source, target))  # by target length, pairs of equal ones by source length
    lengths = -(-np.maximum(source, target)[order] // pad_multiple) * pad_multiple  # rounded up
    batches, start = [], 0
    while start < len(order):
        sizes = np.arange(1, len(order) - start + 1)  # possible numbers of pairs
        tokens = sizes * np.maximum.accumulate(lengths[start:])  # with padding, for each size
        fitting = int(np.searchsorted(tokens, micro_batch_tokens, "right"))
        size = max(fitting, 1)  # a pair that is too long stands alone
        batches.append(indices[order[start : start + size]])
        start += size
    return batches
