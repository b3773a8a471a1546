"""Translations drawn at random from the distribution that the model predicts."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from nmt.config import DecodingConfig
from nmt.data.tokens.tokenizer import BOS, EOS
from nmt.device import widest_float
from nmt.errors import NonFiniteScoresError
from nmt.model.transformer import Transformer
from nmt.search.constraints import IMPOSSIBLE
from nmt.search.decoding import EncodedSource
from nmt.search.greedy import single_hypotheses
from nmt.search.hypothesis import Hypothesis

# A smaller divisor makes logits infinite, a larger one makes them all equal.
LEAST_TEMPERATURE, LARGEST_TEMPERATURE = 1e-6, 1e6


@dataclass(frozen=True)
class Sampling:
    """Which part of the distribution tokens are drawn from, and the seed."""

    temperature: float = 1.0
    """divides the logits; lower is more deterministic"""
    top_k: int | None = None
    """draw only among this many most probable tokens; None: among all"""
    top_p: float | None = None
    """draw only among the most probable tokens whose probabilities add up to this; None: all"""
    seed: int = 1
    """the draws of a sentence depend on the seed and the sentence's number, and on nothing else"""

    def probabilities(self, logits: Tensor) -> Tensor:
        """The distribution to draw from: logits (R, V) -> (R, V) in float64, each row sums to 1."""
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
    """Draws the tokens of each sentence with a random generator of its own."""

    def __init__(self, sampling: Sampling, numbers: Sequence[tuple[int, ...]]) -> None:
        """`numbers` seed the generator of each sentence, for example (line, sample)."""
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
    sampling: Sampling,
    numbers: Sequence[int],
    count: int,
) -> list[list[Hypothesis]]:
    """Draw `count` translations of each of the source ids (B, S), whose lines have these numbers.

    Raises:
        NonFiniteScoresError: the model's scores are not numbers.
    """
    encoded = EncodedSource.of(model, source, settings)  # once for all samples
    samples = []
    for sample in range(count):
        choose = Draws(sampling, [(number, sample) for number in numbers])
        samples.append(single_hypotheses(model, encoded, settings, BOS, EOS, choose))
    return [list(drawn) for drawn in zip(*samples, strict=True)]
