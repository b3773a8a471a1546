"""Stages of a training: each learns its own mixture of the texts, in an order of its own.

OpusTrainer (Bogoychev et al., 2023, arXiv 2311.14838) has such stages, too.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from nmt.data.tokens.batches import BatchPlan, CorpusWeight
from nmt.data.tokens.token_store import Indices, Lengths


@dataclass(frozen=True)
class Stage:
    """Steps in which the mixture of the training texts stays the same."""

    start: int = 0
    """the index of its first step: how many steps come before it"""
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
        batch_tokens: int,
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
        self._batch_tokens, self._seed = batch_tokens, seed
        self._stages = list(stages) or [Stage()]
        self._starts = [stage.start for stage in self._stages]
        self.steps_per_epoch = [0] * len(self._stages)
        """the number of optimiser steps in each epoch of each stage"""
        for number in reversed(range(len(self._stages))):  # so that the first plan is kept at last
            self._number, self._plan = number, self._lay_out(number)
            self.steps_per_epoch[number] = self._plan.steps_per_epoch

    def step(self, index: int) -> Indices:
        """Return the indices of a step's pairs; `index` counts from 0 on, over all stages."""
        number = bisect_right(self._starts, index) - 1
        if number != self._number:  # a plan takes memory, so only one is kept
            self._number, self._plan = number, self._lay_out(number)
        return self._plan.step(index - self._starts[number])

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
        return BatchPlan(*self._lengths, self._batch_tokens, seed, weights)
