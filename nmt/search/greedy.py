"""One hypothesis a sentence: at every step the most probable token, or one that is drawn."""

from collections.abc import Callable

import torch
from torch import Tensor

from nmt.config import DecodingConfig
from nmt.errors import NonFiniteScoresError
from nmt.model.cache import leaving_sentences, remaining_sentences
from nmt.model.transformer import Transformer
from nmt.search.beam_search import length_limits, length_penalty, log_probabilities
from nmt.search.constraints import forbid
from nmt.search.hypothesis import Hypothesis


def most_probable(log_p: Tensor, sentences: Tensor) -> Tensor:
    """log P of the next token (N, V) -> the best token (N,)."""
    return log_p.argmax(1)


@torch.inference_mode()
def greedy_search(
    model: Transformer,
    source: Tensor,
    settings: DecodingConfig,
    bos: int,
    eos: int,
    choose: Callable[[Tensor, Tensor], Tensor] = most_probable,
    max_lengths: Tensor | None = None,
    memory: Tensor | None = None,
) -> list[Hypothesis]:
    """Translate the source ids (B, S) with a model in eval mode; as beam search with a beam of 1.

    `choose` picks a token for each row of log P (N, V), whose sentences (N,) it is told; `score`
    is the model's own log P over the length penalty, however the tokens were chosen. `max_lengths`
    (B,) are limits other than those of `settings`, EOS included; `memory` (B, S, D) is what the
    model encodes the source as, where that is known.

    Raises:
        NonFiniteScoresError: the model's scores are not numbers.
    """
    cache = model.start(model.encode(source) if memory is None else memory, source)
    if max_lengths is None:
        max_lengths = length_limits(source, model.padding, settings)
    sentences = torch.arange(len(source), device=source.device)  # (N,) those in the batch
    done = torch.zeros_like(sentences, dtype=torch.bool)
    latest = torch.full_like(sentences, bos)
    tokens = latest.new_empty((len(source), 0))  # (N, T)
    scores = torch.zeros(len(source), device=source.device)
    found: dict[int, Hypothesis] = {}
    while len(sentences):
        log_p = log_probabilities(model.step(latest[:, None], cache)[:, 0])  # (N, V)
        forbid(log_p, tokens, settings, (model.padding, bos), eos)
        latest = choose(log_p, sentences)
        scores = scores + log_p.gather(1, latest[:, None])[:, 0]
        tokens = torch.cat((tokens, latest[:, None]), dim=1)
        ended = ~done & ((latest == eos) | (tokens.shape[1] >= max_lengths))
        if not ended.any():
            continue
        penalised = scores[ended] / length_penalty(float(tokens.shape[1]), settings)
        if penalised.isnan().any():
            raise NonFiniteScoresError()
        rows = zip(
            sentences[ended].tolist(), tokens[ended].tolist(), penalised.tolist(), strict=True
        )
        found |= {i: Hypothesis.from_row(row, score, eos) for i, row, score in rows}
        done |= ended
        leaving = leaving_sentences(done)
        if leaving.any():
            stay = remaining_sentences(leaving)
            sentences, latest, tokens = sentences[stay], latest[stay], tokens[stay]
            scores, max_lengths, done = scores[stay], max_lengths[stay], done[stay]
            cache.keep_sentences(stay)
    return [found[i] for i in range(len(source))]
