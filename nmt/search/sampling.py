"""Searches with one hypothesis a sentence: greedy search, and sampling at random."""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from nmt.errors import NonFiniteScoresError
from nmt.machine.device import widest_float
from nmt.model.transformer import Transformer
from nmt.recipe.config import DecodingConfig, Sampling
from nmt.search.decoding import EncodedSource, IncrementalDecoder
from nmt.search.hypothesis import IMPOSSIBLE, Hypothesis, length_penalty

ChooseTokens = Callable[[Tensor, Tensor], Tensor]
"""maps log P (N, V) and its rows' sentences, indices (N,) in the batch, to the next tokens (N,)"""


def most_probable(log_p: Tensor, sentences: Tensor) -> Tensor:
    """Return the most probable token of each row of log P (N, V): (N,). `sentences` is unused."""
    return log_p.argmax(1)


def probabilities(logits: Tensor, sampling: Sampling) -> Tensor:
    """Apply temperature, top_k and top_p (0 for other tokens): logits (R, V) -> p (R, V)."""
    logits = logits.to(widest_float(logits.device)) / sampling.temperature
    if sampling.top_k is not None and sampling.top_k < logits.shape[1]:
        least = logits.topk(sampling.top_k).values[:, -1:]  # (R, 1)
        logits = logits.masked_fill(logits < least, IMPOSSIBLE)
    p = logits.softmax(1)
    if sampling.top_p is not None:
        ordered, tokens = p.sort(dim=1, descending=True, stable=True)
        before = ordered.cumsum(1) - ordered  # sum of p of the more probable tokens
        ordered = ordered.masked_fill(before >= sampling.top_p, 0.0)
        p = torch.zeros_like(ordered).scatter(1, tokens, ordered)
        p /= p.sum(1, keepdim=True)
    return p


def draw_tokens(sampling: Sampling, seeds: Sequence[tuple[int, ...]]) -> ChooseTokens:
    """Return what draws the tokens of each sentence with a random generator of its own.

    `sampling.seed` and the sentence's tuple of `seeds` seed it. The function that is returned
    raises a NonFiniteScoresError if a log P is NaN or +infinity.
    """
    generators = [np.random.default_rng([sampling.seed, *seed]) for seed in seeds]

    def choose(log_p: Tensor, sentences: Tensor) -> Tensor:
        # log P are logits, too: their softmax is P
        cumulative = probabilities(log_p, sampling).cumsum(1)
        if cumulative[:, -1].isnan().any():
            raise NonFiniteScoresError()
        drawn = [generators[sentence].random() for sentence in sentences.tolist()]
        level = torch.tensor(drawn, dtype=cumulative.dtype, device=log_p.device)[:, None]
        # The first token at which the sum of p exceeds the level; never a token with p = 0. The
        # last sum is 1 up to rounding; the level is scaled by it, so that some sum exceeds it.
        return torch.searchsorted(cumulative, level * cumulative[:, -1:], right=True)[:, 0]

    return choose


@torch.inference_mode()
def draw(
    model: Transformer,
    source: Tensor,
    settings: DecodingConfig,
    sampling: Sampling,
    numbers: Sequence[int],
    count: int,
    begins: Tensor | None = None,
) -> list[list[Hypothesis]]:
    """Draw `count` translations of each row of source ids (B, S): a list, unsorted, for each row.

    `numbers` are the rows' line numbers: what is drawn depends on the number, not on the batch.
    `begins` (B,), if given, are the tokens that the translations begin with.

    Raises:
        NonFiniteScoresError: the model's scores are NaN or infinite.
    """
    encoded = EncodedSource.encode(model, source, settings, begins)  # once for all samples
    samples = []  # for each sample, a hypothesis of each sentence
    for sample in range(count):
        choose = draw_tokens(sampling, [(number, sample) for number in numbers])
        samples.append(single_hypotheses(model, encoded, settings, choose))
    return [list(of_sentence) for of_sentence in zip(*samples, strict=True)]


@torch.inference_mode()
def greedy_search(
    model: Transformer, source: Tensor, settings: DecodingConfig, begins: Tensor | None = None
) -> list[Hypothesis]:
    """Return the greedy translation of each row of source ids (B, S), with a model in eval mode.

    `begins` (B,), if given, are the tokens that the translations begin with.

    Raises:
        NonFiniteScoresError: the model's scores are NaN or infinite.
    """
    encoded = EncodedSource.encode(model, source, settings, begins)
    return single_hypotheses(model, encoded, settings, most_probable)


@torch.inference_mode()
def single_hypotheses(
    model: Transformer, encoded: EncodedSource, settings: DecodingConfig, choose: ChooseTokens
) -> list[Hypothesis]:
    """Decode one translation of each source; at every step `choose` picks the next tokens.

    `score` is the model's log P divided by the length penalty, also if tokens are drawn.

    Raises:
        NonFiniteScoresError: the model's scores are NaN or infinite.
    """
    decoder = IncrementalDecoder(model, encoded, settings)
    max_lengths, count = encoded.max_lengths, len(encoded.source)
    sentences = torch.arange(count, device=max_lengths.device)  # (N,) index of each row's sentence
    done = torch.zeros_like(sentences, dtype=torch.bool)
    latest = torch.full_like(sentences, encoded.bos)
    tokens = latest.new_empty((count, 0))  # (N, T)
    scores = torch.zeros(count, device=max_lengths.device)
    results: dict[int, Hypothesis] = {}  # by index in the batch
    while len(sentences):
        log_p = decoder.next_log_p(latest[:, None], tokens[:, None])  # (N, V)
        latest = choose(log_p, sentences)
        scores = scores + log_p.gather(1, latest[:, None])[:, 0]
        tokens = torch.cat((tokens, latest[:, None]), dim=1)
        ended = ~done & ((latest == encoded.eos) | (tokens.shape[1] >= max_lengths))
        if not ended.any():
            continue
        penalised = scores[ended] / length_penalty(float(tokens.shape[1]), settings)
        if penalised.isnan().any():
            raise NonFiniteScoresError()
        rows = (sentences[ended].tolist(), tokens[ended].tolist(), penalised.tolist())
        for sentence, row, score in zip(*rows, strict=True):
            results[sentence] = Hypothesis.from_row(row, score, encoded.eos)
        done |= ended
        # sentences that are done remain in the batch, unused, until enough can be removed at once
        if removal := decoder.remove_done(done):
            _, rows_left = removal  # (N',) indices; the removed ones have their results already
            sentences, latest, tokens = sentences[rows_left], latest[rows_left], tokens[rows_left]
            scores, max_lengths, done = scores[rows_left], max_lengths[rows_left], done[rows_left]
    return [results[i] for i in range(count)]
