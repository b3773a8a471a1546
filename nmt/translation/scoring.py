"""Scores given translations: log P(target | source) of a model.

The target is fed to the decoder (teacher forcing), so all its positions are computed in one pass.
Pairs are taken in windows and batches of similar length, as in translation.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from nmt.config import DecodingConfig
from nmt.data.tokens.batch import Batch, collate
from nmt.data.tokens.token_store import TokenStore
from nmt.device import autocast
from nmt.errors import NonFiniteScoresError, print_warning
from nmt.model.transformer import Transformer
from nmt.run_directory import LoadedModel
from nmt.search.beam_search import length_penalty
from nmt.search.windows import WINDOW_LINES, cut_into_batches, truncate, windows
from nmt.translation.line import MAX_SOURCE_TOKENS, Progress, Warn

# longer than any translation of a source of MAX_SOURCE_TOKENS
MAX_TARGET_TOKENS = 4096
# The softmax in float32 takes this many positions at once, so as not to copy all logits.
POSITIONS_AT_ONCE = 1024


@dataclass(frozen=True, slots=True)
class TargetScore:
    """The log-probability of each token of a target."""

    tokens: tuple[int, ...]
    """target ids, the last one EOS"""
    token_log_probabilities: tuple[float, ...]
    """log p of each token after those before it, in nats"""

    @property
    def log_probability(self) -> float:
        """Return log P of the whole target in nats, EOS included."""
        return math.fsum(self.token_log_probabilities)

    @property
    def perplexity(self) -> float:
        """exp(-log P / tokens)."""
        return perplexity(self.log_probability, len(self.tokens))

    def penalised(self, settings: DecodingConfig) -> float:
        """Return log P over the length penalty: the score in a search with these settings."""
        return self.log_probability / length_penalty(float(len(self.tokens)), settings)


def perplexity(log_probability: float, tokens: int) -> float:
    """exp(-log P / tokens), log P in nats; infinite where a float cannot hold it."""
    try:
        return math.exp(-log_probability / tokens)
    except OverflowError:
        return math.inf


@torch.inference_mode()
def token_log_probabilities(model: Transformer, batch: Batch) -> Tensor:
    """Return log p of each target token by a model in eval mode: (B, T) float32; 0 at padding."""
    logits = model(batch.source, batch.target_input)  # (B, T, V)
    return target_log_probabilities(logits, batch.target_output, model.padding)


def target_log_probabilities(logits: Tensor, target: Tensor, padding: int) -> Tensor:
    """Return log p of each target token (B, T) by logits (B, T, V): (B, T); 0 at padding."""
    rows = logits.flatten(0, 1).split(POSITIONS_AT_ONCE)  # (B * T, V) in parts
    parts = []
    for x, y in zip(rows, target.flatten()[:, None].split(POSITIONS_AT_ONCE), strict=True):
        x = x.float()
        parts.append(x.gather(1, y)[:, 0] - x.logsumexp(1))
    return torch.cat(parts).view_as(target).masked_fill(target == padding, 0.0)


def pair_batches(
    sources: Sequence[Sequence[int]],
    targets: Sequence[Sequence[int]],
    batch_tokens: int,
    cost: Callable[[int], int] = lambda length: length,
) -> Iterator[tuple[list[int], Batch]]:
    """Yield batches of pairs of similar length, each with the indices of its pairs.

    `cost` is the number of tokens that the longer side of a pair counts as; a batch has at most
    `batch_tokens` of them, padding included.
    """
    if not sources:
        return
    store = TokenStore.of(sources, targets)
    longest = np.maximum(store.source.lengths, store.target.lengths).tolist()
    costs = [cost(length) for length in longest]
    for indices in cut_into_batches(range(len(store)), costs, batch_tokens):
        yield indices, collate(store, np.array(indices))


class Scorer:
    """Scores translations with a model and its tokenizer.

    A batch holds `batch_tokens` padded tokens of the longer side; None takes the setting of the
    run. `precision` bf16 computes in bfloat16 as training does; int8 is the same as fp32.
    """

    def __init__(
        self, run: LoadedModel, batch_tokens: int | None = None, precision: str = "fp32"
    ) -> None:
        self.run = run
        self.batch_tokens = batch_tokens or run.config.decoding.batch_tokens
        self.precision = precision
        self.device = next(run.model.parameters()).device

    def score(
        self,
        pairs: Iterable[tuple[str, str]],
        window_lines: int = WINDOW_LINES,
        warn: Warn = print_warning,
        progress: Progress = lambda pairs: None,
    ) -> Iterator[TargetScore]:
        """Score the target of each (source, target), in order; an empty text is EOS alone.

        A source over `MAX_SOURCE_TOKENS` and a target over `MAX_TARGET_TOKENS` are truncated, and
        `warn` is called with a message that names their number, counted from 1. With `window_lines`
        1 each pair is answered before the next is read. `progress` is called with the number of
        pairs done since its last call, before they are yielded.

        Raises:
            NonFiniteScoresError: the model's scores are NaN or infinite.
        """
        first_number = 1
        for window in windows(pairs, window_lines, lambda pair: len(pair[0]) + len(pair[1])):
            sources, targets = self._encode(window, first_number, warn)
            scores: dict[int, TargetScore] = {}
            for indices, batch in pair_batches(sources, targets, self.batch_tokens):
                with autocast(self.device, self.precision):
                    rows = token_log_probabilities(self.run.model, batch.to(self.device))
                if not rows.isfinite().all():
                    raise NonFiniteScoresError()
                for i, row in zip(indices, rows.tolist(), strict=True):
                    scores[i] = TargetScore(tuple(targets[i]), tuple(row[: len(targets[i])]))
                progress(len(indices))
            yield from (scores[i] for i in range(len(window)))
            first_number += len(window)

    def _encode(
        self, pairs: Sequence[tuple[str, str]], first_number: int, warn: Warn
    ) -> tuple[list[list[int]], list[list[int]]]:
        def warn_of(side: str, limit: int) -> Callable[[int, int], None]:
            return lambda place, length: warn(
                f"the {side} of line {first_number + place} has {length} tokens; only the first "
                f"{limit} count: split it into sentences"
            )

        sources = self.run.tokenizer.source.encode([source for source, _ in pairs])
        targets = self.run.tokenizer.target.encode([target for _, target in pairs])
        return (
            truncate(sources, MAX_SOURCE_TOKENS, warn_of("source", MAX_SOURCE_TOKENS)),
            truncate(targets, MAX_TARGET_TOKENS, warn_of("target", MAX_TARGET_TOKENS)),
        )
