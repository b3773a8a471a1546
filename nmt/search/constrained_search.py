"""Beam search under lexical constraints: grid beam search with dynamic beam allocation.

Post and Vilar, 2018 (Fast Lexically Constrained Decoding with Dynamic Beam Allocation for Neural
Machine Translation): hypotheses that contain equally many tokens of the terms form a bank and
compete only with each other; at every step each bank gets a part of the beam. Hu et al., 2019
(Improved Lexically Constrained Decoding for Translation and Monolingual Rewriting): the banks take
turns, the best hypothesis of each bank first, and a hypothesis that abandons a term changes banks.

A sentence does not end before it contains all its terms. When the terms need all tokens that are
left, nothing else may follow. So the terms are always in the translation.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from nmt.config import DecodingConfig
from nmt.data.tokens.tokenizer import BOS, EOS, UNK
from nmt.errors import DataError, NonFiniteScoresError
from nmt.model.attention import AttentionRecord
from nmt.model.transformer import Transformer
from nmt.search.constrained_sentence import ConstrainedSentence, Partial, SentenceSearch
from nmt.search.decoding import IMPOSSIBLE, Decoding, EncodedSource, log_probabilities
from nmt.search.hypothesis import Hypothesis
from nmt.search.source_attention import attention_of_step, most_attended

LOG_IMPROBABLE = math.log(0.01)
"""a token counts as improbable if its p is less than 1 % of the most probable token's"""


@torch.inference_mode()
def constrained_search(
    model: Transformer,
    source: Tensor,
    settings: DecodingConfig,
    constraints: Sequence[ConstrainedSentence],
    n_best: int = 1,
) -> list[list[Hypothesis]]:
    """Translate source ids (B, S) so that each translation meets the constraints on its sentence.

    Returns up to `n_best` hypotheses of each sentence, best first; `score` is log P divided by the
    length penalty. They may be longer than in `beam_search`, by `most_tokens` of the constraints.

    Raises:
        NonFiniteScoresError: the model's scores are NaN or infinite.
        DataError: no translation meets all constraints on a sentence.
    """
    encoded = EncodedSource.of(model, source, settings)
    decoding = Decoding(model, encoded, settings)
    pairs = zip(constraints, encoded.max_lengths.tolist(), strict=True)
    searches = unfinished = [SentenceSearch(c, limit, settings, n_best) for c, limit in pairs]
    uses_attention = any(c.spelled.source_spans for c in constraints)  # to place glossary terms
    width = max((sentence.beam for sentence in searches), default=0)  # k
    latest = torch.full((len(source), 1), BOS, device=source.device)  # (N, k)
    while unfinished:
        record = AttentionRecord() if uses_attention else None  # collects the weights
        logits = model.step(latest, decoding.cache, record).flatten(0, 1).float()
        attended = [0] * len(logits)  # source position that each row attends to most, if used
        if record is not None:
            weights = attention_of_step(model, record.cross)  # (N, k, S)
            attended = most_attended(weights, source, model.padding).flatten().tolist()
        next_tokens = _NextTokens(unfinished, logits, attended)
        next_tokens.mask_forbidden(decoding)
        for sentence, candidates in zip(unfinished, next_tokens.candidates(width), strict=True):
            sentence.update(sentence.choose(candidates))
        remaining = [n for n, sentence in enumerate(unfinished) if not sentence.is_done()]
        if len(remaining) < len(unfinished):
            if not remaining:
                break
            unfinished = [unfinished[n] for n in remaining]
            indices = torch.tensor(remaining, device=source.device)
            source = source[indices]
            decoding.cache.keep_sentences(indices)
        live = [_repeated(sentence.live, width) for sentence in unfinished]
        rows_each = latest.shape[1]  # rows of each sentence in this step: 1 in the first, then k
        # `row` counts over the whole batch, the cache among the hypotheses of a sentence
        parents = [[h.row % rows_each for h in of_sentence] for of_sentence in live]
        decoding.cache.continue_hypotheses(torch.tensor(parents, device=source.device))
        tokens = [[h.tokens[-1] for h in of_sentence] for of_sentence in live]
        latest = torch.tensor(tokens, device=source.device)
    return [[hypothesis for _, hypothesis in search.ended] for search in searches]


def _repeated(hypotheses: list[Partial], width: int) -> list[Partial]:
    """Return `width` hypotheses: these, and then their repetitions, whose results are ignored."""
    return (hypotheses * width)[:width]


class _NextTokens:
    """The next token of every live hypothesis: which may follow, and how probable it is."""

    def __init__(
        self, sentences: list[SentenceSearch], logits: Tensor, attended: list[int]
    ) -> None:
        """Take logits (R, V): k rows for each sentence, of which the first are its live hypotheses.

        `attended` is the source position that each row attends to most. Sets the `row` of each live
        hypothesis, and handicaps those that the model would end although terms are missing.
        """
        self.sentences, self.attended = sentences, attended
        self.log_p = log_probabilities(logits)
        if self.log_p.isnan().any():
            raise NonFiniteScoresError()
        self.free = self.log_p.clone()
        """log P of tokens that are not a part of a term; -inf where one may not follow"""
        would_end = (self.log_p[:, EOS] > math.log(0.5)).tolist()  # EOS has more than half of p
        slots = len(logits) // len(sentences)
        for n, sentence in enumerate(sentences):
            prefix = sentence.constraints.next_prefix_tokens
            sentence.live = [replace(h, row=n * slots + i) for i, h in enumerate(sentence.live)]
            for i, h in enumerate(sentence.live):
                if would_end[h.row] and h.missing_tokens and prefix(h.progress) is None:
                    sentence.live[i] = h.with_handicap()

    def mask_forbidden(self, decoding: Decoding) -> None:
        """Set `free` to -inf for tokens that the settings or the constraints do not allow."""
        live = [h for sentence in self.sentences for h in sentence.live]
        rows = [h.row for h in live]
        histories = torch.zeros(len(self.free), len(live[0].tokens), dtype=torch.long)
        # the other rows only repeat hypotheses, and are ignored
        histories[rows] = torch.tensor([h.tokens for h in live], dtype=torch.long)
        decoding.forbid(self.free, histories.to(self.free.device))
        for sentence in self.sentences:
            for hypothesis in sentence.live:
                self._mask_row(sentence.constraints, hypothesis)

    def _mask_row(self, constraints: ConstrainedSentence, hypothesis: Partial) -> None:
        free, log_p = self.free[hypothesis.row], self.log_p[hypothesis.row]
        required = constraints.next_prefix_tokens(hypothesis.progress)
        if required is not None:  # the prefix is incomplete: nothing else may follow
            free.fill_(IMPOSSIBLE)
            free[required] = log_p[required]
            return
        # With forbidden words, ending early could beat all improbable alternatives.
        if constraints.spelled.forbidden and free[EOS] < log_p.max() + LOG_IMPROBABLE:
            free[EOS] = IMPOSSIBLE
        if constraints.ends_in_forbidden(hypothesis.progress):
            free.masked_fill_(constraints.spelling.word_ends.to(free.device), IMPOSSIBLE)
        if hypothesis.missing_tokens:
            free[EOS] = IMPOSSIBLE
        if constraints.spelled.has_unknown:
            free[UNK] = IMPOSSIBLE

    def candidates(self, width: int) -> list[list[Partial]]:
        """Return the continuations that compete in each sentence (Post and Vilar, section 3.1).

        These are the best ones of the sentence (about as many as its beam), the best of each
        hypothesis, and all that continue or begin a term. `width` is the widest beam in the batch.
        """
        best = self.free.topk(min(width, self.free.shape[1]))
        tokens, values = best.indices.tolist(), best.values.tolist()
        candidates = []
        for sentence, in_terms in zip(self.sentences, self._term_continuations(), strict=True):
            free = [
                (h, token, log_probability)
                for h in sentence.live
                for token, log_probability in zip(tokens[h.row], values[h.row], strict=True)
                if log_probability > IMPOSSIBLE
            ]
            # by the score of hypothesis and token together, best first
            free.sort(key=lambda entry: -(entry[0].adjusted_score + entry[2]))
            distinct = list(_distinct(sentence, free, in_terms))
            candidates.append(distinct or [self._any_allowed(sentence)])
        return candidates

    def _term_continuations(self) -> list[list[Partial]]:
        """Return the continuations of each sentence whose new token is a part of a term."""
        pairs = [  # index of the sentence, hypothesis, new token
            (n, h, token)
            for n, sentence in enumerate(self.sentences)
            for h in sentence.live
            if h.missing_tokens
            for token in sentence.constraints.next_term_tokens(h.progress)
        ]
        rows, tokens = [h.row for _, h, _ in pairs], [token for _, _, token in pairs]
        values = self.log_p[rows, tokens].tolist()
        word_ends = self.sentences[0].constraints.spelling.word_ends.to(self.free.device)
        ending = self.log_p.masked_fill(~word_ends, IMPOSSIBLE).amax(1)
        # for each row whether the model expects the last word to become longer
        inside = (ending < self.log_p.amax(1) + LOG_IMPROBABLE).tolist()
        continuations: list[list[Partial]] = [[] for _ in self.sentences]
        for (n, h, token), value in zip(pairs, values, strict=True):
            constraints = self.sentences[n].constraints
            if continued := self.sentences[n].continue_with(h, token, value):
                progress = continued.progress
                expected = constraints.is_expected(progress, self.attended[h.row])
                if progress.matched == 1 and (inside[h.row] or not expected):  # a term begins here
                    continued = continued.with_handicap()
                continuations[n].append(continued)
        return continuations

    def _any_allowed(self, sentence: SentenceSearch) -> Partial:
        """Return a hypothesis's most probable allowed continuation, or raise a DataError."""
        for hypothesis in sentence.live:
            values, tokens = self.free[hypothesis.row].sort(descending=True)
            for value, token in zip(values.tolist(), tokens.tolist(), strict=True):
                if value == IMPOSSIBLE:
                    break
                if continued := sentence.continue_with(hypothesis, token, value):
                    return continued
        raise DataError(
            f"{sentence.constraints.spelled.text}: no translation meets all of this; leave out "
            "some of the terms or forbidden words"
        )


def _distinct(
    sentence: SentenceSearch, free: list[tuple[Partial, int, float]], in_terms: list[Partial]
) -> Iterator[Partial]:
    """Yield `in_terms`, the best of `free` (sorted) and the best of each row, each once."""
    seen = {(live.row, live.tokens[-1]) for live in in_terms}
    yield from in_terms
    rows: set[int] = set()
    count = 0
    for hypothesis, token, log_probability in free:
        row = hypothesis.row
        if count >= sentence.beam and row in rows:
            continue
        if (row, token) not in seen:
            if not (continued := sentence.continue_with(hypothesis, token, log_probability)):
                continue
            yield continued
        count += 1
        rows.add(row)
