"""Translations drawn at random, as probable as the model holds them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from nmt.config import DecodingConfig
from nmt.device import widest_float
from nmt.errors import NonFiniteScoresError
from nmt.model.transformer import Transformer
from nmt.search.constraints import IMPOSSIBLE
from nmt.search.greedy import greedy_search
from nmt.search.hypothesis import Hypothesis

# logits divided by less are infinite, and divided by more all alike
LEAST_TEMPERATURE, LARGEST_TEMPERATURE = 1e-6, 1e6


@dataclass(frozen=True)
class Sampling:
    """From what part of the distribution to draw, and which draw."""

    temperature: float = 1.0
    """logits are divided by it: below 1 what is probable becomes more so"""
    top_k: int | None = None
    """draw among so many most probable tokens"""
    top_p: float | None = None
    """draw among the most probable tokens that together have this probability"""
    seed: int = 1
    """the draws of a sentence depend on it, on the sentence's number and on nothing else"""

    def probabilities(self, logits: Tensor) -> Tensor:
        """What tokens are drawn with: logits (R, V) -> (R, V) in float64, rows of sum 1."""
        logits = logits.to(widest_float(logits.device)) / self.temperature
        if self.top_k is not None and self.top_k < logits.shape[1]:
            least = logits.topk(self.top_k).values[:, -1:]
            logits = logits.masked_fill(logits < least, IMPOSSIBLE)
        probabilities = logits.softmax(1)
        if self.top_p is not None:
            ordered, tokens = probabilities.sort(dim=1, descending=True, stable=True)
            above = ordered.cumsum(1) - ordered  # of the tokens that are more probable
            ordered = ordered.masked_fill(above >= self.top_p, 0.0)
            probabilities = torch.zeros_like(ordered).scatter(1, tokens, ordered)
            probabilities /= probabilities.sum(1, keepdim=True)
        return probabilities


class Draws:
    """The tokens drawn for sentences, each from random numbers of its own."""

    def __init__(self, sampling: Sampling, numbers: Sequence[tuple[int, ...]]) -> None:
        """`numbers` tells the sentences of a batch apart, such as (line, sample)."""
        self._sampling = sampling
        self._random = [np.random.default_rng([sampling.seed, *number]) for number in numbers]

    def __call__(self, logits: Tensor, sentences: Tensor) -> Tensor:
        """One token for each row: logits (N, V) of sentences (N,) of the batch -> (N,).

        Raises:
            NonFiniteScoresError: the logits are not numbers.
        """
        cumulative = self._sampling.probabilities(logits).cumsum(1)
        if cumulative[:, -1].isnan().any():
            raise NonFiniteScoresError()
        drawn = [self._random[sentence].random() for sentence in sentences.tolist()]
        level = torch.tensor(drawn, dtype=cumulative.dtype, device=logits.device)[:, None]
        # the first token at which the sum exceeds the level; never one that adds nothing to it
        return torch.searchsorted(cumulative, level * cumulative[:, -1:], right=True)[:, 0]


@torch.inference_mode()
def draw(
    model: Transformer,
    source: Tensor,
    settings: DecodingConfig,
    bos: int,
    eos: int,
    sampling: Sampling,
    numbers: Sequence[int],
    count: int,
) -> list[list[Hypothesis]]:
    """`count` translations of each of the source ids (B, S), whose lines have these numbers."""
    samples = []
    memory = model.encode(source)  # once for all of them
    for sample in range(count):
        choose = Draws(sampling, [(number, sample) for number in numbers])
        samples.append(greedy_search(model, source, settings, bos, eos, choose, memory=memory))
    return [list(drawn) for drawn in zip(*samples, strict=True)]
