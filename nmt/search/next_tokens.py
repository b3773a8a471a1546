"""The tokens that may follow the live hypotheses of a search under constraints, and their log P."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from nmt.data.tokens.tokenizer import BOS, EOS, PAD, UNK
from nmt.run.checkpoint_files import Array
from nmt.search.hypothesis import IMPOSSIBLE
from nmt.search.sentence_search import LiveHypotheses
from nmt.search.step_decoder import NextScores, StepDecoder, StepRows

LOG_IMPROBABLE = math.log(0.01)
"""a token counts as improbable if its p is less than 1 % of the most probable token's"""
SPECIAL = (PAD, BOS, UNK, EOS)
"""so many of the most probable tokens may be ones that may not follow"""


@dataclass(frozen=True)
class NextTokens:
    """What the model says of the tokens after each of the R live hypotheses, the rows of a step."""

    decoder: StepDecoder
    """a decoder whose last step gave these tokens"""
    live: LiveHypotheses
    term_rows: Array
    """the rows after which a token would continue or begin a term"""
    term_tokens: Array
    """these tokens"""
    scores: NextScores
    """the log probabilities asked for are those of EOS after each row, then of `term_tokens`"""

    @classmethod
    def compute(
        cls, decoder: StepDecoder, live: LiveHypotheses, term_rows: Array, term_tokens: Array
    ) -> Self:
        """Compute a step of the decoder."""
        count = len(live.progress)
        rows = StepRows(
            live.sentences,
            live.parents,
            live.latest,
            asked_rows=np.concatenate([np.arange(count), term_rows]),
            asked_tokens=np.concatenate([np.full(count, EOS), term_tokens]),
        )
        best = int(live.beams.max()) + len(SPECIAL)
        # glossary terms are placed by attention
        attention = any(search.constraints.spelled.source_tokens for search in live.searches)
        scores = decoder.step(rows, best, attention)
        return cls(decoder, live, term_rows, term_tokens, scores)

    @cached_property
    def eos_log_p(self) -> Array:
        """(R,) log P of EOS."""
        return self.scores.asked_log_p[: len(self.live.progress)].astype(np.float64)

    @property
    def term_log_p(self) -> Array:
        """Log P of each of `term_tokens`."""
        return self.scores.asked_log_p[len(self.live.progress) :].astype(np.float64)

    @cached_property
    def least_log_p(self) -> Array:
        """(R,) a token with less is improbable."""
        return self.scores.best_log_p[:, 0].astype(np.float64) + LOG_IMPROBABLE

    @property
    def expects_longer_word(self) -> Array:
        """(R,) whether all tokens that would end the last word are improbable."""
        is_longer: Array = self.scores.end_log_p < self.least_log_p
        return is_longer

    @cached_property
    def may_end(self) -> Array:
        """(R,) whether EOS may follow."""
        missing = self.live.missing_tokens
        if self.live.length < self.live.settings.min_length:
            return np.zeros(len(missing), bool)
        # With forbidden words, ending early could beat all improbable alternatives.
        searches = self.live.searches
        forbids = np.array([bool(each.constraints.spelled.forbidden) for each in searches])
        is_improbable = self.eos_log_p < self.least_log_p
        may_end: Array = (missing == 0) & ~(forbids[self.live.sentences] & is_improbable)
        return may_end

    @property
    def excluded(self) -> list[int]:
        """Tokens that never follow, except in the prefix and in terms."""
        unknown = () if self.live.settings.allow_unknown else (UNK,)
        return [PAD, BOS, *unknown]

    def likely_tokens(self) -> tuple[Array, Array]:
        """Return the K most probable tokens of each row and their log P (R, K).

        -inf: the token may not follow. Rows with rules of their own get the best tokens that these
        allow. Of the constraints only those of rows that may refuse tokens have such rules.
        """
        tokens, log_p = self.scores.best_tokens.copy(), self.scores.best_log_p.copy()
        log_p[np.isin(tokens, self.excluded)] = IMPOSSIBLE
        log_p[(tokens == EOS) & ~self.may_end[:, None]] = IMPOSSIBLE
        may_repeat = 0 < self.live.settings.no_repeat_ngram <= self.live.length
        refusing = np.flatnonzero(self.live.may_refuse | may_repeat).tolist()
        with_rules = [row for row in refusing if may_repeat or self._has_own_rules(row)]
        if with_rules:
            for row, allowed in zip(with_rules, self.allowed(with_rules), strict=True):
                tokens[row] = _largest(allowed, tokens.shape[1])
                log_p[row] = allowed[tokens[row]]
        return tokens, log_p

    def allowed(self, rows: Sequence[int]) -> Array:
        """Return log P (N, V) of the tokens after these N rows; -inf for those that may not follow.

        Where the rules of the settings forbid all tokens, EOS is allowed: see
        `IncrementalDecoder.forbid`.
        """
        log_p = self.decoder.log_p(rows)
        for row, own in zip(rows, log_p, strict=True):
            self._forbid(row, own)
        return log_p

    def _has_own_rules(self, row: int) -> bool:
        """Whether the constraints forbid more than special tokens after a hypothesis."""
        search, progress = self.live.hypotheses[row]
        constraints = search.constraints
        return not constraints.has_only_terms and (
            constraints.spelled.has_unknown
            or constraints.next_prefix_tokens(progress) is not None
            or progress.ends_in_forbidden
        )

    def _forbid(self, row: int, log_p: Array) -> None:
        """Set log P (V,) of the tokens that may not follow a row to -inf."""
        search, progress = self.live.hypotheses[row]
        constraints = search.constraints
        required = constraints.next_prefix_tokens(progress)
        if required is not None:  # the prefix is incomplete: nothing else may follow
            of_required = log_p[required]
            log_p[:] = IMPOSSIBLE
            log_p[required] = of_required
            return
        log_p[self.excluded] = IMPOSSIBLE
        eos_log_p = log_p[EOS]
        tokens = self.live.tokens[row].tolist()
        log_p[_repetitions(tokens, search.settings.no_repeat_ngram)] = IMPOSSIBLE
        if len(tokens) < search.settings.min_length:
            log_p[EOS] = IMPOSSIBLE
        if (log_p == IMPOSSIBLE).all():
            log_p[EOS] = eos_log_p
        elif not self.may_end[row]:
            log_p[EOS] = IMPOSSIBLE
        if progress.ends_in_forbidden:
            log_p[constraints.spelling.word_ends] = IMPOSSIBLE
        if progress.terms.missing_tokens:
            log_p[EOS] = IMPOSSIBLE
        if constraints.spelled.has_unknown:
            log_p[UNK] = IMPOSSIBLE


def _largest(values: Array, count: int) -> Array:
    """Return the indices of the `count` largest values (V,), the largest first."""
    indices = np.argpartition(-values, count - 1)[:count]
    ranks = np.argsort(-values[indices], kind="stable")
    return indices[ranks]


def _repetitions(tokens: Sequence[int], size: int) -> list[int]:
    """Return the tokens after which a sequence of `size` tokens would stand there twice."""
    if not 0 < size <= len(tokens):
        return []
    latest = tokens[len(tokens) - size + 1 :]
    starts = range(len(tokens) - size + 1)
    return [tokens[i + size - 1] for i in starts if tokens[i : i + size - 1] == latest]
