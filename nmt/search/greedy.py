"""One hypothesis a sentence: at every step the most probable token, or one that is drawn."""

from collections.abc import Callable

import torch
from torch import Tensor

from nmt.config import DecodingConfig
from nmt.errors import NonFiniteScoresError
from nmt.model.transformer import Transformer
from nmt.search.beam_search import length_penalty
from nmt.search.decoding import Decoding, EncodedSource
from nmt.search.hypothesis import Hypothesis

ChooseTokens = Callable[[Tensor, Tensor], Tensor]
"""picks a token for each row of log P (N, V) of the sentences (N,) of a batch: (N,)"""


def most_probable(log_p: Tensor, sentences: Tensor) -> Tensor:
    """Return the best token (N,) by log P of the next token (N, V)."""
    return log_p.argmax(1)


@torch.inference_mode()
def greedy_search(
    model: Transformer,
    source: Tensor,
    settings: DecodingConfig,
    bos: int,
    eos: int,
    choose: ChooseTokens = most_probable,
) -> list[Hypothesis]:
    """Translate the source ids (B, S) with a model in eval mode; as beam search with a beam of 1.

    `choose` may pick other tokens than the most probable ones.

    Raises:
        NonFiniteScoresError: the model's scores are not numbers.
    """
    encoded = EncodedSource.of(model, source, settings)
    return single_hypotheses(model, encoded, settings, bos, eos, choose)


@torch.inference_mode()
def single_hypotheses(
    model: Transformer,
    encoded: EncodedSource,
    settings: DecodingConfig,
    bos: int,
    eos: int,
    choose: ChooseTokens,
) -> list[Hypothesis]:
    """Write one translation of each encoded source, token by token, as `choose` decides.

    `score` is the model's own log P over the length penalty, however the tokens were chosen.

    Raises:
        NonFiniteScoresError: the model's scores are not numbers.
    """
    decoding = Decoding(model, encoded, settings, bos, eos)
    max_lengths, count = encoded.max_lengths, len(encoded.source)
    sentences = torch.arange(count, device=max_lengths.device)  # (N,) those in the batch
    done = torch.zeros_like(sentences, dtype=torch.bool)
    latest = torch.full_like(sentences, bos)
    tokens = latest.new_empty((count, 0))  # (N, T)
    scores = torch.zeros(count, device=max_lengths.device)
    found: dict[int, Hypothesis] = {}
    while len(sentences):
        log_p = decoding.next_log_p(latest[:, None], tokens[:, None])  # (N, V)
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
        if departure := decoding.drop(done):
            stay = departure.remaining
            sentences, latest, tokens = sentences[stay], latest[stay], tokens[stay]
            scores, max_lengths, done = scores[stay], max_lengths[stay], done[stay]
    return [found[i] for i in range(count)]
