"""Section 6.1: beam search with a length penalty, "terminating early when possible".

At every step each sentence has its `beam_size` most probable continuations. Those that end are
stored (Sutskever et al., 2014). The others are live: they are continued, and the next best ones
replace those that ended. A beam of 1 has no next best: it is greedy search. A sentence is done when
no live hypothesis can beat the `n_best` stored ones any more, or, with `early_stopping`, when
`beam_size` hypotheses have ended.
"""

from dataclasses import dataclass, fields
from typing import Self

import torch
import torch.nn.functional as F
from torch import Tensor

from nmt.data.tokens.tokenizer import BOS, EOS
from nmt.errors import NonFiniteScoresError
from nmt.model.transformer import Transformer
from nmt.recipe.config import DecodingConfig
from nmt.search.decoding import EncodedSource, IncrementalDecoder
from nmt.search.hypothesis import IMPOSSIBLE, Hypothesis, length_penalty

BLOCK = 16
"""columns of a row of log P that share one maximum in `largest`"""
BLOCKS_PER_RESULT = 64
"""with at least this many blocks for each of the k numbers, `largest` beats `torch.topk`"""


@torch.inference_mode()
def beam_search(
    model: Transformer,
    source: Tensor,
    settings: DecodingConfig,
    n_best: int = 1,
    begins: Tensor | None = None,
) -> list[list[Hypothesis]]:
    """Translate the source ids (B, S) with a model in eval mode.

    `begins` (B,), if given, are the tokens that the translations begin with.

    Returns up to `n_best` hypotheses of each sentence, best first; `score` is log P divided by the
    length penalty. A hypothesis ends without EOS when it is as long as `max_length_factor`
    and `max_length_offset` of the settings allow for its source, EOS included in both.

    Raises:
        NonFiniteScoresError: the model's scores are NaN or infinite.
    """
    encoded = EncodedSource.encode(model, source, settings, begins)
    decoder = IncrementalDecoder(model, encoded, settings)
    beam = _Beam.begin(encoded.max_lengths, n_best)
    results: dict[int, list[Hypothesis]] = {}  # by index in the batch
    while len(beam.sentences):
        log_p = decoder.next_log_p(beam.latest, beam.tokens)  # (N * k, V)
        best = _best_continuations(log_p, beam.scores, settings.beam_size)
        parents = beam.extend(best, settings)  # (N, k) the hypothesis that each live one continues
        decoder.cache.continue_hypotheses(parents)
        done = beam.done(settings)
        if not done.any():
            continue
        # a sentence that is done may remain in the batch for some steps, without live hypotheses
        beam.scores = beam.scores.masked_fill(done[:, None], IMPOSSIBLE)
        if removal := decoder.remove_done(done):
            removed, remaining = removal  # a mask, and indices
            results |= beam.results(removed)
            beam = beam.keep(remaining)
    return [results[i] for i in range(len(source))]


def largest(x: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Return the k largest values of each row of `x` (R, V), and their columns: both (R, k).

    It does what `torch.topk` does, which is slow for wide rows on a CPU. The columns are divided
    into blocks of 16, and only the k blocks with the largest maxima are searched: a value in
    another block is not larger than any of these k maxima.

    Block b has the columns b, b + n, b + 2 n, … for n = V / 16 blocks: with V = 48, block 0 has 0,
    3, 6, …, 45. So the maxima of all blocks are one maximum over 16 contiguous slices of the row,
    which is faster than blocks of neighbours.
    """
    rows, columns = x.shape
    blocks = columns // BLOCK
    if x.device.type != "cpu" or blocks < BLOCKS_PER_RESULT * k:
        values, indices = x.topk(k)
        return values, indices
    blocked = x[:, : blocks * BLOCK].unflatten(1, (BLOCK, blocks))  # (R, 16, V / 16)
    best = blocked.amax(1).topk(k).indices  # (R, k) indices of blocks
    in_best = blocked.gather(2, best[:, None].expand(-1, BLOCK, -1))  # (R, 16, k) values
    # value i of block b is in column i * blocks + b
    offsets = torch.arange(BLOCK, device=x.device)[:, None] * blocks  # (16, 1)
    columns_in_best = offsets + best[:, None]  # (R, 16, k)
    # fewer than 16 columns at the end are in no block: all of them are candidates
    rest = torch.arange(blocks * BLOCK, columns, device=x.device)
    candidates = torch.cat((in_best.flatten(1), x[:, blocks * BLOCK :]), dim=1)
    candidate_columns = torch.cat((columns_in_best.flatten(1), rest.expand(rows, -1)), dim=1)
    values, positions = candidates.topk(k)
    return values, candidate_columns.gather(1, positions)


@dataclass
class _Continuations:
    """The most probable one-token continuations of each sentence's hypotheses, best first.

    All tensors are (N, C). C is up to twice the beam size, so that a full beam is left even if all
    of the best end.
    """

    scores: Tensor
    """log P of the hypothesis with the new token"""
    parents: Tensor
    """index of the continued hypothesis among those of its sentence"""
    tokens: Tensor
    """the new token"""

    def take(self, indices: Tensor) -> Self:
        """Return only the continuations at these indices (N, k) of the rows."""
        return type(self)(*(getattr(self, f.name).gather(1, indices) for f in fields(self)))


def _best_continuations(log_p: Tensor, scores: Tensor, beam_size: int) -> _Continuations:
    """Choose among the next tokens' log P (N * k', V) of hypotheses with log P `scores` (N, k').

    A beam of k takes at most k + 1 continuations of one hypothesis: one that ends it and k others.
    """
    per_hypothesis, per_sentence = beam_size + 1, 2 * beam_size
    if beam_size == 1:  # greedy search: the best continuation alone
        per_hypothesis, per_sentence = 1, 1
    row_best, row_tokens = largest(log_p, min(per_hypothesis, log_p.shape[1]))  # (N * k', k + 1)
    totals = (scores.view(-1, 1) + row_best).view(len(scores), -1)  # (N, k' * (k + 1))
    best, position = totals.topk(min(per_sentence, totals.shape[1]))  # (N, C)
    return _Continuations(
        scores=best,
        parents=position // row_tokens.shape[1],
        tokens=row_tokens.view(len(scores), -1).gather(1, position),
    )


@dataclass
class _Beam:
    """The N sentences in the batch, each with k live and `n_best` ended hypotheses.

    An empty slot has the score -inf.
    """

    sentences: Tensor
    """(N,) index of each in the batch"""
    max_lengths: Tensor
    """(N,)"""
    latest: Tensor
    """(N, k) tokens to decode next"""
    tokens: Tensor
    """(N, k, T) of the live hypotheses"""
    scores: Tensor
    """(N, k) log P of the live hypotheses"""
    ended_tokens: Tensor
    """(N, n_best, longest) padded with EOS"""
    ended_scores: Tensor
    """(N, n_best) penalised, best first"""
    ended_count: Tensor
    """(N,) how many hypotheses have ended so far, kept or not"""

    @classmethod
    def begin(cls, max_lengths: Tensor, n_best: int) -> Self:
        """Start with one empty live hypothesis for each sentence."""
        batch = len(max_lengths)
        longest = int(max_lengths.max()) if batch else 0
        return cls(
            sentences=torch.arange(batch, device=max_lengths.device),
            max_lengths=max_lengths,
            latest=max_lengths.new_full((batch, 1), BOS),
            tokens=max_lengths.new_empty((batch, 1, 0)),
            scores=torch.zeros((batch, 1), device=max_lengths.device),
            ended_tokens=max_lengths.new_full((batch, n_best, longest), EOS),
            ended_scores=torch.full((batch, n_best), IMPOSSIBLE, device=max_lengths.device),
            ended_count=torch.zeros_like(max_lengths),
        )

    def extend(self, best: _Continuations, settings: DecodingConfig) -> Tensor:
        """Store the continuations that end; the best of the others become the live hypotheses.

        Returns the index of the former hypothesis that each live one continues: (N, k).
        """
        length = self.tokens.shape[2] + 1
        ended = (best.tokens == EOS) | (length >= self.max_lengths)[:, None]
        if ended.any():
            self._store_ended(best, ended, settings)
        best.scores = best.scores.masked_fill(ended, IMPOSSIBLE)
        live = best.take(best.scores.topk(min(settings.beam_size, ended.shape[1])).indices)
        self.tokens = _extend_rows(self.tokens, live)
        self.scores, self.latest = live.scores, live.tokens
        return live.parents

    def _store_ended(self, best: _Continuations, ended: Tensor, settings: DecodingConfig) -> None:
        """Merge the continuations in the beam that have `ended` (N, C) into the stored ones."""
        beam = slice(0, settings.beam_size)
        in_beam = _Continuations(best.scores[:, beam], best.parents[:, beam], best.tokens[:, beam])
        ended = ended[:, beam] & (in_beam.scores > IMPOSSIBLE)
        self.ended_count = self.ended_count + ended.sum(1)
        tokens = _extend_rows(self.tokens, in_beam)  # (N, k, T)
        length, (n_best, longest) = tokens.shape[2], self.ended_tokens.shape[1:]
        scores = in_beam.scores / length_penalty(float(length), settings)
        merged = torch.cat((self.ended_scores, scores.masked_fill(~ended, IMPOSSIBLE)), dim=1)
        self.ended_scores, kept = merged.topk(n_best)
        tokens = F.pad(tokens, (0, longest - length), value=EOS)
        tokens = torch.cat((self.ended_tokens, tokens), dim=1)
        self.ended_tokens = tokens.gather(1, kept[:, :, None].expand(-1, -1, longest))

    def done(self, settings: DecodingConfig) -> Tensor:
        """Return a mask (N,): True where no live hypothesis can enter the stored ones any more.

        log P never rises, so its present value over the largest possible penalty bounds every
        future score: the rule is exact. `early_stopping` adds a rule that is not exact.
        """
        bound = self.scores.amax(1) / length_penalty(self.max_lengths, settings)
        done = ~(bound > self.ended_scores[:, -1])  # not `<=`: so NaN ends the search, as an error
        if settings.early_stopping:
            done |= self.ended_count >= settings.beam_size
        return done

    def results(self, sentences: Tensor) -> dict[int, list[Hypothesis]]:
        """Return the ended hypotheses of sentences (mask (N,)) by their index in the batch."""
        results = {}
        rows = (x[sentences] for x in (self.sentences, self.ended_tokens, self.ended_scores))
        for sentence, tokens, scores in zip(*(x.tolist() for x in rows), strict=True):
            results[sentence] = [
                Hypothesis.from_row(row, score)
                for row, score in zip(tokens, scores, strict=True)
                if score > IMPOSSIBLE
            ]
            if not results[sentence]:  # scores that are NaN are not above -inf
                raise NonFiniteScoresError()
        return results

    def keep(self, sentences: Tensor) -> Self:
        """Return a beam with only the sentences at these indices (N',)."""
        return type(self)(*(getattr(self, field.name)[sentences] for field in fields(self)))


def _extend_rows(tokens: Tensor, best: _Continuations) -> Tensor:
    """Append the new tokens to the continued ones of the hypotheses (N, k', T): (N, k, T + 1)."""
    parents = best.parents[:, :, None].expand(-1, -1, tokens.shape[2])
    return torch.cat((tokens.gather(1, parents), best.tokens[:, :, None]), dim=2)
