"""Greedy search: at every step the most probable token. Beam search with one hypothesis."""

import torch
from torch import Tensor

from nmt.decoding.beam_search import length_penalty
from nmt.decoding.hypothesis import Hypothesis
from nmt.model.transformer import Transformer


@torch.inference_mode()
def greedy_search(
    model: Transformer, source: Tensor, bos: int, eos: int, max_lengths: Tensor, alpha: float = 0.0
) -> list[Hypothesis]:
    """Translate the source ids (B, S) with a model in eval mode; `score` is as in beam search.

    Sentence i ends with EOS or after `max_lengths[i]` >= 1 tokens, EOS included: (B,).
    """
    cache = model.start(model.encode(source), source)
    sentences = torch.arange(len(source), device=source.device)  # (N,) those not yet ended
    latest = torch.full_like(sentences, bos)
    tokens = latest.new_empty((len(source), 0))  # (N, T)
    scores = torch.zeros(len(source), device=source.device)
    found: dict[int, Hypothesis] = {}
    while len(sentences):
        logits = model.decode(latest[:, None], cache)[:, 0].float()  # (N, V)
        log_normaliser = logits.logsumexp(1)
        logits[:, [model.padding, bos]] = float("-inf")
        best, latest = logits.max(1)
        scores = scores + best - log_normaliser
        tokens = torch.cat((tokens, latest[:, None]), dim=1)
        ended = (latest == eos) | (tokens.shape[1] >= max_lengths)
        if not ended.any():
            continue
        penalised = scores[ended] / length_penalty(float(tokens.shape[1]), alpha)
        rows = zip(
            sentences[ended].tolist(), tokens[ended].tolist(), penalised.tolist(), strict=True
        )
        found |= {i: Hypothesis.from_row(row, score, eos) for i, row, score in rows}
        live = (~ended).nonzero()[:, 0]
        sentences, latest, tokens = sentences[live], latest[live], tokens[live]
        scores, max_lengths = scores[live], max_lengths[live]
        cache.keep_sentences(live)
        cache.reorder(live)
    return [found[i] for i in range(len(source))]
