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
from itertools import accumulate

import numpy as np

from nmt.checkpoint_files import Array
from nmt.data.tokens.tokenizer import BOS, EOS, PAD, UNK
from nmt.errors import DataError
from nmt.search.constrained_sentence import ConstraintProgress
from nmt.search.hypothesis import IMPOSSIBLE, Hypothesis
from nmt.search.sentence_search import Candidate, SentenceSearch
from nmt.search.step_decoder import NextScores, StepDecoder, StepRow

LOG_IMPROBABLE = math.log(0.01)
"""a token counts as improbable if its p is less than 1 % of the most probable token's"""
SPECIAL = (PAD, BOS, UNK, EOS)
"""so many of the most probable tokens may be ones that may not follow"""


def constrained_search(
    decoder: StepDecoder, searches: Sequence[SentenceSearch]
) -> list[list[Hypothesis]]:
    """Translate the sources of a decoder so that each translation meets its constraints.

    `searches` has the search of each source, with the same settings. Returns up to their `n_best`
    hypotheses of each, best first; `score` is log P divided by the length penalty.

    Raises:
        NonFiniteScoresError: the model's scores are NaN or infinite.
        DataError: no translation meets all constraints on a sentence.
    """
    # glossary terms are placed by attention
    uses_attention = any(search.constraints.spelled.source_spans for search in searches)
    width = max((search.beam for search in searches), default=0)
    unfinished = list(range(len(searches)))
    while unfinished:
        rows = [StepRow(n, h.parent, h.last_token) for n in unfinished for h in searches[n].live]
        scores = decoder.step(rows, width + len(SPECIAL), uses_attention)
        next_tokens = _NextTokens([searches[n] for n in unfinished], scores)
        for n, candidates in zip(unfinished, next_tokens.candidates(), strict=True):
            searches[n].update(searches[n].choose(candidates))
        unfinished = [n for n in unfinished if not searches[n].is_done()]
    return [[hypothesis for _, hypothesis in search.ended] for search in searches]


class _NextTokens:
    """The next token of every live hypothesis: which may follow, and how probable it is."""

    def __init__(self, searches: list[SentenceSearch], scores: NextScores) -> None:
        """Take the scores of R rows: the live hypotheses of the first sentence, of the second, ….

        Handicaps hypotheses that the model would end although terms are missing.
        """
        self.searches, self.scores = searches, scores
        self.settings = searches[0].settings
        self.spelling = searches[0].constraints.spelling
        self.hypotheses = [(search, i) for search in searches for i in range(len(search.live))]
        """of each row its sentence's search, and the index of its hypothesis there"""
        self.sentences = [n for n, search in enumerate(searches) for _ in search.live]
        """of each row the index of its sentence"""
        self.first_rows = list(accumulate((len(s.live) for s in searches[:-1]), initial=0))
        """the row of each sentence's first hypothesis"""
        self.length = len(searches[0].live[0].tokens)
        """the number of tokens that all live hypotheses have"""
        unknown = () if self.settings.allow_unknown else (UNK,)
        self.excluded = [PAD, BOS, *unknown]
        self.eos_log_p = scores.log_p[:, EOS].astype(np.float64)  # (R,)
        self.least_log_p = scores.best_log_p[:, 0].astype(np.float64) + LOG_IMPROBABLE
        """(R,) a token with less is improbable"""
        self.may_refuse = [search.may_refuse(self.length) for search in searches]
        for row in np.flatnonzero(self.eos_log_p > math.log(0.5)).tolist():
            search, i = self.hypotheses[row]
            hypothesis = search.live[i]
            prefix = search.constraints.next_prefix_tokens(hypothesis.progress)
            if hypothesis.missing_tokens and prefix is None:
                search.live[i] = hypothesis.with_handicap()
        self.may_end = self._rows_that_may_end()

    def candidates(self) -> list[list[Candidate]]:
        """Return the continuations that compete in each sentence (Post and Vilar, section 3.1).

        These are the best ones of the sentence (as many as its beam), the best of each hypothesis,
        and all that continue or begin a term.
        """
        found: list[list[Candidate]] = []
        in_terms: set[tuple[int, int]] = set()  # row and token
        for search, first in zip(self.searches, self.first_rows, strict=True):
            found.append(list(self._term_continuations(search, first)))
            in_terms.update((first + each.parent, each.token) for each in found[-1])
        tokens, log_p = self._free_tokens()
        adjusted_scores = [search.live[i].adjusted_score for search, i in self.hypotheses]
        totals = log_p + np.array(adjusted_scores)[:, None]  # of hypothesis and token together
        rows, columns = np.nonzero(self._best_free(totals))
        best = zip(
            rows.tolist(),
            tokens[rows, columns].tolist(),
            log_p[rows, columns].tolist(),
            strict=True,
        )
        for row, token, log_probability in best:
            search, i = self.hypotheses[row]
            if (row, token) in in_terms or self.may_refuse[self.sentences[row]]:
                continue
            if continued := search.continue_with(i, token, log_probability):
                found[self.sentences[row]].append(continued)
        for n, (search, first) in enumerate(zip(self.searches, self.first_rows, strict=True)):
            if self.may_refuse[n]:
                own = slice(first, first + len(search.live))
                found[n] += _best_accepted(search, found[n], tokens[own], log_p[own], totals[own])
            found[n] = found[n] or [self._any_allowed(search, first)]
        return found

    def _best_free(self, totals: Array) -> Array:
        """Return a mask (R, K) of the best of each sentence and of each hypothesis.

        `totals` are log P of a hypothesis with each of the tokens that `_free_tokens` returns.
        """
        is_best = np.arange(totals.shape[1]) == totals.argmax(1)[:, None]
        # by sentence, and within it by the total, the best one first
        sentences = np.repeat(self.sentences, totals.shape[1])
        order = np.lexsort((-totals.ravel(), sentences))
        ranks = np.arange(len(order)) - np.searchsorted(sentences, sentences)
        beams = np.array([search.beam for search in self.searches])
        is_best.ravel()[order[ranks < beams[sentences]]] = True
        return is_best & (totals > IMPOSSIBLE)

    def _rows_that_may_end(self) -> Array:
        """Return a mask (R,) of the hypotheses that EOS may follow."""
        if self.length < self.settings.min_length:
            return np.zeros(len(self.hypotheses), bool)
        is_complete = [not search.live[i].missing_tokens for search, i in self.hypotheses]
        # With forbidden words, ending early could beat all improbable alternatives.
        forbids = [bool(search.constraints.spelled.forbidden) for search, _ in self.hypotheses]
        is_improbable = self.eos_log_p < self.least_log_p
        return np.array(is_complete) & ~(np.array(forbids) & is_improbable)

    def _free_tokens(self) -> tuple[Array, Array]:
        """Return tokens and log P (R, K) of those that are no part of a term; -inf: may not follow.

        They are among the best of each row, unless a row has rules of its own.
        """
        tokens, log_p = self.scores.best_tokens.copy(), self.scores.best_log_p.copy()
        log_p[np.isin(tokens, self.excluded)] = IMPOSSIBLE
        log_p[(tokens == EOS) & ~self.may_end[:, None]] = IMPOSSIBLE
        may_repeat = 0 < self.settings.no_repeat_ngram <= self.length
        for row, (search, i) in enumerate(self.hypotheses):
            may_refuse = self.may_refuse[self.sentences[row]]
            if may_repeat or (may_refuse and self._has_own_rules(search, i)):
                allowed = self._allowed(search, i, row)
                tokens[row] = _largest(allowed, tokens.shape[1])
                log_p[row] = allowed[tokens[row]]
        return tokens, log_p

    def _has_own_rules(self, search: SentenceSearch, i: int) -> bool:
        """Whether the constraints forbid more than special tokens after hypothesis i."""
        constraints, progress = search.constraints, search.live[i].progress
        return not constraints.has_only_terms and (
            constraints.spelled.has_unknown
            or constraints.next_prefix_tokens(progress) is not None
            or constraints.ends_in_forbidden(progress)
        )

    def _allowed(self, search: SentenceSearch, i: int, row: int) -> Array:
        """Return log P (V,) of the tokens after hypothesis i; -inf for those that may not follow.

        Where the rules of the settings forbid all tokens, EOS is allowed: see
        `IncrementalDecoder.forbid`.
        """
        constraints, hypothesis = search.constraints, search.live[i]
        log_p = self.scores.log_p[row]
        required = constraints.next_prefix_tokens(hypothesis.progress)
        if required is not None:  # the prefix is incomplete: nothing else may follow
            allowed = np.full_like(log_p, IMPOSSIBLE)
            allowed[required] = log_p[required]
            return allowed
        allowed = log_p.copy()
        allowed[self.excluded] = IMPOSSIBLE
        allowed[_repetitions(hypothesis.tokens, self.settings.no_repeat_ngram)] = IMPOSSIBLE
        if self.length < self.settings.min_length:
            allowed[EOS] = IMPOSSIBLE
        if (allowed == IMPOSSIBLE).all():
            allowed[EOS] = log_p[EOS]
        elif not self.may_end[row]:
            allowed[EOS] = IMPOSSIBLE
        if constraints.ends_in_forbidden(hypothesis.progress):
            allowed[self.spelling.word_ends] = IMPOSSIBLE
        if hypothesis.missing_tokens:
            allowed[EOS] = IMPOSSIBLE
        if constraints.spelled.has_unknown:
            allowed[UNK] = IMPOSSIBLE
        return allowed

    def _term_continuations(self, search: SentenceSearch, first_row: int) -> Iterator[Candidate]:
        """Yield the continuations of a sentence whose new token is a part of a term."""
        constraints = search.constraints
        for i, hypothesis in enumerate(search.live):
            if not hypothesis.missing_tokens:
                continue
            row = first_row + i
            for token in constraints.next_term_tokens(hypothesis.progress):
                log_probability = self.scores.log_p.item(row, token)
                if not (continued := search.continue_with(i, token, log_probability)):
                    continue
                progress = continued.progress
                if progress and progress.matched == 1 and self._is_misplaced(search, progress, row):
                    continued = continued.with_handicap()
                yield continued

    def _is_misplaced(self, search: SentenceSearch, progress: ConstraintProgress, row: int) -> bool:
        """Whether a term that has just begun stands inside another word or before its turn."""
        attended = self.scores.attended[row]
        is_expected = search.constraints.is_expected(progress, attended)
        return not is_expected or self._expects_longer_word(row)

    def _expects_longer_word(self, row: int) -> bool:
        """Whether all tokens that would end the last word are improbable."""
        least = float(self.least_log_p[row])
        best_tokens = self.scores.best_tokens[row].tolist()
        best_log_p = self.scores.best_log_p[row].tolist()
        for token, log_p in zip(best_tokens, best_log_p, strict=True):
            if log_p < least:
                return True
            if self.spelling.ends_word[token]:
                return False
        is_probable = self.scores.log_p[row] >= least
        return not (is_probable & self.spelling.word_ends).any()

    def _any_allowed(self, search: SentenceSearch, first_row: int) -> Candidate:
        """Return a hypothesis's most probable allowed continuation, or raise a DataError."""
        for i in range(len(search.live)):
            allowed = self._allowed(search, i, first_row + i)
            for token in np.argsort(-allowed, kind="stable").tolist():
                value = float(allowed[token])
                if value == IMPOSSIBLE:
                    break
                if continued := search.continue_with(i, token, value):
                    return continued
        raise DataError(
            f"{search.constraints.spelled.text}: no translation meets all of this; leave out "
            "some of the terms or forbidden words"
        )


def _best_accepted(
    search: SentenceSearch, in_terms: list[Candidate], tokens: Array, log_p: Array, totals: Array
) -> list[Candidate]:
    """Return the same as `_best_free` finds, for a sentence that may refuse tokens.

    They are tried one after another, the best first, until enough are accepted. `tokens`, `log_p`
    and `totals` are (N, K) for the N hypotheses of the sentence. Those `in_terms` count, too.
    """
    are_in_terms = {(each.parent, each.token) for each in in_terms}
    accepted: list[Candidate] = []
    continued_hypotheses: set[int] = set()
    count = 0
    for position in np.argsort(-totals, axis=None, kind="stable").tolist():
        i, k = divmod(position, totals.shape[1])
        if totals[i, k] == IMPOSSIBLE:  # so are all that follow
            break
        if count >= search.beam and i in continued_hypotheses:
            continue
        token = int(tokens[i, k])
        if (i, token) not in are_in_terms:
            if not (continued := search.continue_with(i, token, float(log_p[i, k]))):
                continue
            accepted.append(continued)
        count += 1
        continued_hypotheses.add(i)
        if count >= search.beam and len(continued_hypotheses) == len(search.live):
            break
    return accepted


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
