"""The tokens that may follow the live hypotheses of a search under constraints, and their log P."""

import math
from collections.abc import Sequence

import numpy as np

from nmt.checkpoint_files import Array
from nmt.data.tokens.tokenizer import BOS, EOS, PAD, UNK
from nmt.search.constrained_sentence import ConstraintProgress
from nmt.search.hypothesis import IMPOSSIBLE
from nmt.search.sentence_search import LiveHypotheses, SentenceSearch
from nmt.search.step_decoder import AskedTokens, StepDecoder

LOG_IMPROBABLE = math.log(0.01)
"""a token counts as improbable if its p is less than 1 % of the most probable token's"""
SPECIAL = (PAD, BOS, UNK, EOS)
"""so many of the most probable tokens may be ones that may not follow"""


class NextTokens:
    """What the model says of the tokens after each of the R live hypotheses, the rows of a step."""

    def __init__(
        self,
        decoder: StepDecoder,
        searches: Sequence[SentenceSearch],
        live: LiveHypotheses,
        in_terms: AskedTokens,
    ) -> None:
        """Compute the step; `in_terms` are the tokens that would continue or begin a term."""
        self.searches, self.live = searches, live
        self.settings = searches[0].settings
        self.word_ends = searches[0].constraints.spelling.word_ends
        unknown = () if self.settings.allow_unknown else (UNK,)
        self.excluded = [PAD, BOS, *unknown]
        self.decoder = decoder
        count, width = len(live.progress), max(search.beam for search in searches)
        asked = AskedTokens(
            np.concatenate([np.arange(count), in_terms.rows]),
            np.concatenate([np.full(count, EOS), in_terms.tokens]),
        )
        # glossary terms are placed by attention
        attention = any(search.constraints.spelled.source_spans for search in searches)
        self.scores = decoder.step(live.rows(), width + len(SPECIAL), asked, attention)
        asked_log_p = self.scores.asked_log_p.astype(np.float64)
        self.eos_log_p, self.in_terms_log_p = asked_log_p[:count], asked_log_p[count:]
        """(R,), and of each token in `in_terms`"""
        self.least_log_p = self.scores.best_log_p[:, 0].astype(np.float64) + LOG_IMPROBABLE
        """(R,) a token with less is improbable"""
        self.expects_longer_word = self.scores.end_log_p < self.least_log_p
        """(R,) whether all tokens that would end the last word are improbable"""
        self.may_end = self._may_end()

    def _may_end(self) -> Array:
        """Return a mask (R,) of the hypotheses that EOS may follow."""
        missing = self.live.missing_tokens
        if self.live.length < self.settings.min_length:
            return np.zeros(len(missing), bool)
        # With forbidden words, ending early could beat all improbable alternatives.
        forbids = np.array([bool(each.constraints.spelled.forbidden) for each in self.searches])
        is_improbable = self.eos_log_p < self.least_log_p
        may_end: Array = (missing == 0) & ~(forbids[self.live.sentences] & is_improbable)
        return may_end

    def likely_tokens(self, may_refuse: Array) -> tuple[Array, Array]:
        """Return the K most probable tokens of each row and their log P (R, K).

        -inf: the token may not follow. Rows with rules of their own get the best tokens that these
        allow. Of the constraints only those of rows that `may_refuse` (R,) tokens have such rules.
        """
        tokens, log_p = self.scores.best_tokens.copy(), self.scores.best_log_p.copy()
        log_p[np.isin(tokens, self.excluded)] = IMPOSSIBLE
        log_p[(tokens == EOS) & ~self.may_end[:, None]] = IMPOSSIBLE
        may_repeat = 0 < self.settings.no_repeat_ngram <= self.live.length
        refusing = np.flatnonzero(may_refuse | may_repeat).tolist()
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

    def _own(self, row: int) -> tuple[SentenceSearch, ConstraintProgress]:
        return self.searches[self.live.sentences[row]], self.live.progress[row]

    def _has_own_rules(self, row: int) -> bool:
        """Whether the constraints forbid more than special tokens after a hypothesis."""
        search, progress = self._own(row)
        constraints = search.constraints
        return not constraints.has_only_terms and (
            constraints.spelled.has_unknown
            or constraints.next_prefix_tokens(progress) is not None
            or progress.ends_in_forbidden
        )

    def _forbid(self, row: int, log_p: Array) -> None:
        """Set log P (V,) of the tokens that may not follow a row to -inf."""
        search, progress = self._own(row)
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
        log_p[_repetitions(tokens, self.settings.no_repeat_ngram)] = IMPOSSIBLE
        if len(tokens) < self.settings.min_length:
            log_p[EOS] = IMPOSSIBLE
        if (log_p == IMPOSSIBLE).all():
            log_p[EOS] = eos_log_p
        elif not self.may_end[row]:
            log_p[EOS] = IMPOSSIBLE
        if progress.ends_in_forbidden:
            log_p[self.word_ends] = IMPOSSIBLE
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
