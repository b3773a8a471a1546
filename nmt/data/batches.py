"""The order of training as a pure function of (seed, step), and batches padded as little as can be.

Section 5.1: "Sentence pairs were batched together by approximate sequence length. Each training
batch contained a set of sentence pairs containing approximately 25000 source tokens and 25000
target tokens." A plan answers for any step at once, so resuming costs nothing.

How an epoch is laid out, so that steps hold similar lengths and yet other company each time:

1. Sort by target length plus noise of up to two tokens.
2. Cut the sorted pairs into bands worth four steps, the first cut at a random place. Sort each
   band by source length plus noise, every other band downwards, so that neighbours across a
   border have similar source lengths too.
3. Cut into steps, each as full as the budget allows. How many come out varies a little with the
   noise; the plan promises a fixed number, slightly above that of the noiseless order, and halves
   the fullest steps until it is reached. Should the noise need more steps than promised, the next
   draw is tried, and at last the noiseless order, whose number is known.
4. Shuffle the steps.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import torch

from nmt.data.token_store import Indices, Lengths, Sentences, TokenStore
from nmt.data.tokenizer import BOS, PAD

_NOISE = 2.0  # tokens
_BAND = 4.0  # steps
_DRAWS = 5


@dataclass(frozen=True)
class Batch:
    """Sentence pairs as rows of ids, shorter rows filled with PAD."""

    source: torch.Tensor
    """(B, S) int64, each sentence ends with EOS"""
    target_input: torch.Tensor
    """(B, T) int64, each sentence begins with BOS"""
    target_output: torch.Tensor
    """(B, T) int64, each sentence ends with EOS: what follows each position of the input"""
    tokens: int
    """target tokens to predict, padding not counted"""

    def to(self, device: torch.device) -> "Batch":
        """The same batch on another device."""
        return Batch(
            self.source.to(device, non_blocking=True),
            self.target_input.to(device, non_blocking=True),
            self.target_output.to(device, non_blocking=True),
            self.tokens,
        )


@dataclass(frozen=True)
class Share:
    """How often consecutive pairs of the store, those of one text, come in an epoch."""

    pairs: int
    weight: float = 1.0
    """2: every pair twice; 0.25: every pair once in four epochs, a quarter of them in each"""


class BatchPlan:
    """Which pairs make up each optimiser step; every pair comes once in each epoch.

    Where texts have weights, a pair comes as often as the weight of its text says.

    The tokens of a step add up to at most `batch_tokens` on either side (padding not counted); a
    single longer pair stands alone.
    """

    def __init__(
        self,
        source_lengths: Lengths,
        target_lengths: Lengths,
        batch_tokens: int,
        seed: int,
        shares: Sequence[Share] = (),
    ) -> None:
        self._source, self._target = source_lengths, target_lengths
        self._budget, self._seed = batch_tokens, seed
        self._shares = [] if all(share.weight == 1 for share in shares) else shares
        pool = self._pool(0)
        steps = len(self._cut(self._tidy_order(pool))) - 1
        if steps > 1:
            # an epoch that draws a part of a text may need more steps than the first one
            slack = 64 if any(share.weight % 1 for share in self._shares) else 256
            steps = min(steps + 1 + steps // slack, len(pool))
        self.steps_per_epoch = steps
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

    def _lay_out(self, epoch: int) -> list[Indices]:
        """All steps of an epoch, in order."""
        random = np.random.default_rng([self._seed, epoch])
        pool = self._pool(epoch)
        for _ in range(_DRAWS):
            order = self._noisy_order(pool, random)
            cuts = self._cut(order)
            if len(cuts) - 1 <= self.steps_per_epoch:
                break
        else:
            order = self._tidy_order(random.permutation(pool))
            cuts = self._cut(order)
        cuts = self._halve_fullest(cuts)
        steps = [order[start:end] for start, end in pairwise(cuts)]
        # more steps than promised come of a text drawn in part; its pairs come another time
        return [steps[i] for i in random.permutation(len(steps))[: self.steps_per_epoch]]

    def _pool(self, epoch: int) -> Indices:
        """The pairs of an epoch, each as often as it comes."""
        if not self._shares:
            return np.arange(len(self._source))
        parts, first = [], 0
        for number, share in enumerate(self._shares):
            pairs = np.arange(first, first + share.pairs)
            parts += [pairs] * int(share.weight)
            if fraction := share.weight % 1:
                # each pair's turn comes whenever its clock, started at random, passes a whole hour
                random = np.random.default_rng([self._seed, number])
                clock = (random.permutation(share.pairs) + 0.5) / share.pairs + epoch * fraction
                parts.append(pairs[np.floor(clock + fraction) > np.floor(clock)])
            first += share.pairs
        return np.concatenate(parts)

    def _tidy_order(self, pool: Indices) -> Indices:
        """Sort by target length, then by source length; what ties keeps its order."""
        return pool[np.lexsort((self._source[pool], self._target[pool]))]

    def _noisy_order(self, pool: Indices, random: np.random.Generator) -> Indices:
        """Sort by target length, then in bands by source length, each with noise."""
        order = pool[np.argsort(self._target[pool] + _NOISE * random.random(len(pool)))]
        tokens = np.cumsum(np.maximum(self._source[order], self._target[order]))
        band = np.floor(tokens / (self._budget * _BAND) + random.random())
        source = self._source[order] + _NOISE * random.random(len(pool))
        source[band % 2 == 1] *= -1
        width = 2 * (self._source.max() + _NOISE)
        return order[np.argsort(band * width + source)]

    def _cut(self, order: Indices) -> list[int]:
        """Positions between steps, first 0 and last the number of pairs, each step filled up."""
        source_ends = np.cumsum(self._source[order])
        target_ends = np.cumsum(self._target[order])
        cuts = [0]
        while (start := cuts[-1]) < len(order):
            used_source = source_ends[start - 1] if start else 0
            used_target = target_ends[start - 1] if start else 0
            end = min(
                np.searchsorted(source_ends, used_source + self._budget, "right"),
                np.searchsorted(target_ends, used_target + self._budget, "right"),
            )
            cuts.append(max(int(end), start + 1))
        return cuts

    def _halve_fullest(self, cuts: list[int]) -> list[int]:
        """Cut the step with the most pairs in two until there are as many as promised."""
        ends = np.array(cuts)
        while len(ends) - 1 < self.steps_per_epoch:
            sizes = np.diff(ends)
            fullest = int(sizes.argmax())
            ends = np.insert(ends, fullest + 1, ends[fullest] + sizes[fullest] // 2)
        return list(ends)


def micro_batches(
    indices: Indices, source_lengths: Lengths, target_lengths: Lengths, micro_batch_tokens: int
) -> list[Indices]:
    """Cut a step into parts that fit in memory, similar lengths together.

    In each part, rows times the longest source and rows times the longest target (what padding
    makes of them) are at most `micro_batch_tokens`; a single longer pair stands alone.
    """
    source, target = source_lengths[indices], target_lengths[indices]
    order = np.lexsort((source, target))
    longer = np.maximum(source, target)[order]
    parts = []
    start = 0
    while start < len(order):
        rows = np.arange(1, len(order) - start + 1)
        padded = rows * np.maximum.accumulate(longer[start:])
        size = max(int(np.searchsorted(padded, micro_batch_tokens, "right")), 1)
        parts.append(indices[order[start : start + size]])
        start += size
    return parts


def collate(store: TokenStore, indices: Indices, pad_multiple: int = 1) -> Batch:
    """Gather pairs into a batch; lengths are padded up to a multiple of `pad_multiple`."""
    source, target = store.source.gather(indices), store.target.gather(indices)
    output, is_real = _padded(target, pad_multiple)
    shifted = np.roll(output, 1, axis=1)  # what precedes each position
    shifted[:, 0] = BOS
    return Batch(
        source=torch.from_numpy(_padded(source, pad_multiple)[0]),
        target_input=torch.from_numpy(np.where(is_real, shifted, PAD)),
        target_output=torch.from_numpy(output),
        tokens=len(target.ids),
    )


def collate_source(rows: Sequence[Sequence[int]]) -> torch.Tensor:
    """Gather source sentences of ids into (B, S) int64, filled up with PAD."""
    return torch.from_numpy(_padded(Sentences.of(rows), 1)[0])


def _padded(
    sentences: Sentences, multiple: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Rows of ids, shorter ones filled up with PAD, and where the ids are: both (B, L)."""
    longest = int(sentences.lengths.max())
    width = -(-longest // multiple) * multiple
    is_real = np.arange(width) < sentences.lengths[:, None]
    padded = np.full(is_real.shape, PAD, np.int64)
    padded[is_real] = sentences.ids
    return padded, is_real
