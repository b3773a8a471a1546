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
from nmt.search.hypothesis import IMPOSSIBLE, Hypothesis
from nmt.search.sentence_search import Partial, SentenceSearch
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
        self.first_rows = list(accumulate((len(s.live) for s in searches), initial=0))
        """the row of each sentence's first hypothesis, and R"""
        self.spelling = searches[0].constraints.spelling
        unknown = () if self.settings.allow_unknown else (UNK,)
        self.excluded = [PAD, BOS, *unknown]
        self.eos_log_p: list[float] = scores.log_p[:, EOS].tolist()
        self.best_tokens: list[list[int]] = scores.best_tokens.tolist()
        self.best_log_p: list[list[float]] = scores.best_log_p.tolist()
        for row, search, i in self._rows():
            hypothesis = search.live[i]
            would_end = self.eos_log_p[row] > math.log(0.5)  # EOS has more than half of p
            prefix = search.constraints.next_prefix_tokens
            if would_end and hypothesis.missing_tokens and prefix(hypothesis.progress) is None:
                search.live[i] = hypothesis.with_handicap()

    def candidates(self) -> Iterator[list[Partial]]:
        """Yield the continuations that compete in each sentence (Post and Vilar, section 3.1).

        These are the best ones of the sentence (about as many as its beam), the best of each
        hypothesis, and all that continue or begin a term.
        """
        tokens, log_p = self._free_tokens()
        adjusted_scores = [h.adjusted_score for search in self.searches for h in search.live]
        totals = log_p + np.array(adjusted_scores)[:, None]  # (R, K)
        best = totals.shape[1]  # K
        sizes = np.diff(self.first_rows)
        sentences = np.repeat(np.arange(len(sizes)), sizes * best)
        # by sentence, and within it by the score of hypothesis and token together, best first
        order = np.lexsort((-totals.ravel(), sentences))
        ranked = list(
            zip(
                (order // best).tolist(),  # row
                tokens.ravel()[order].tolist(),
                log_p.ravel()[order].tolist(),
                strict=True,
            )
        )
        pairs = zip(self.first_rows, self.first_rows[1:], strict=False)
        for search, (first, end) in zip(self.searches, pairs, strict=True):
            in_terms = list(self._term_continuations(search, first))
            free = ranked[first * best : end * best]
            distinct = list(_distinct(search, free, first, in_terms))
            yield distinct or [self._any_allowed(search, first)]

    def _rows(self) -> Iterator[tuple[int, SentenceSearch, int]]:
        """Yield each row, its sentence's search and the index of its hypothesis there."""
        for first, search in zip(self.first_rows, self.searches, strict=False):
            for i in range(len(search.live)):
                yield first + i, search, i

    def _free_tokens(self) -> tuple[Array, Array]:
        """Return tokens and log P (R, K) of those that are no part of a term; -inf: may not follow.

        They are among the best of each row, unless a row has rules of its own.
        """
        tokens, log_p = self.scores.best_tokens.copy(), self.scores.best_log_p.copy()
        no_eos = np.zeros(len(tokens), bool)  # rows that may not end now
        special: list[tuple[int, SentenceSearch, int]] = []
        for row, search, i in self._rows():
            if self._has_own_rules(search, i):
                special.append((row, search, i))
            no_eos[row] = not self._may_end(search, i, row)
        log_p[np.isin(tokens, self.excluded)] = IMPOSSIBLE
        log_p[(tokens == EOS) & no_eos[:, None]] = IMPOSSIBLE
        for row, search, i in special:
            allowed = self._allowed(search, i, row)
            tokens[row] = _largest(allowed, tokens.shape[1])
            log_p[row] = allowed[tokens[row]]
        return tokens, log_p

    def _has_own_rules(self, search: SentenceSearch, i: int) -> bool:
        """Whether more than special tokens may be forbidden after hypothesis i of a sentence."""
        constraints, progress = search.constraints, search.live[i].progress
        return (
            constraints.spelled.has_unknown
            or constraints.next_prefix_tokens(progress) is not None
            or constraints.ends_in_forbidden(progress)
            or 0 < self.settings.no_repeat_ngram <= progress.length
        )

    def _may_end(self, search: SentenceSearch, i: int, row: int) -> bool:
        hypothesis = search.live[i]
        if hypothesis.missing_tokens or hypothesis.progress.length < self.settings.min_length:
            return False
        # With forbidden words, ending early could beat all improbable alternatives.
        is_improbable = self.eos_log_p[row] < self.best_log_p[row][0] + LOG_IMPROBABLE
        return not (search.constraints.spelled.forbidden and is_improbable)

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
        if hypothesis.progress.length < self.settings.min_length:
            allowed[EOS] = IMPOSSIBLE
        if (allowed == IMPOSSIBLE).all():
            allowed[EOS] = log_p[EOS]
        elif not self._may_end(search, i, row):
            allowed[EOS] = IMPOSSIBLE
        if constraints.ends_in_forbidden(hypothesis.progress):
            allowed[self.spelling.word_ends] = IMPOSSIBLE
        if hypothesis.missing_tokens:
            allowed[EOS] = IMPOSSIBLE
        if constraints.spelled.has_unknown:
            allowed[UNK] = IMPOSSIBLE
        return allowed

    def _term_continuations(self, search: SentenceSearch, first_row: int) -> Iterator[Partial]:
        """Yield the continuations of a sentence whose new token is a part of a term."""
        constraints = search.constraints
        for i, hypothesis in enumerate(search.live):
            if not hypothesis.missing_tokens:
                continue
            row = first_row + i
            for token in constraints.next_term_tokens(hypothesis.progress):
                log_probability = float(self.scores.log_p[row, token])
                if not (continued := search.continue_with(i, token, log_probability)):
                    continue
                if continued.progress.matched == 1 and self._is_misplaced(search, continued, row):
                    continued = continued.with_handicap()
                yield continued

    def _is_misplaced(self, search: SentenceSearch, continued: Partial, row: int) -> bool:
        """Whether a term that has just begun stands inside another word or before its turn."""
        attended = self.scores.attended[row]
        is_expected = search.constraints.is_expected(continued.progress, attended)
        return not is_expected or self._expects_longer_word(row)

    def _expects_longer_word(self, row: int) -> bool:
        """Whether all tokens that would end the last word are improbable."""
        least = self.best_log_p[row][0] + LOG_IMPROBABLE
        for token, log_p in zip(self.best_tokens[row], self.best_log_p[row], strict=True):
            if log_p < least:
                return True
            if self.spelling.ends_word[token]:
                return False
        return bool(self.scores.log_p[row].take(self.spelling.word_ends).max() < least)

    def _any_allowed(self, search: SentenceSearch, first_row: int) -> Partial:
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


def _distinct(
    search: SentenceSearch,
    free: list[tuple[int, int, float]],
    first_row: int,
    in_terms: list[Partial],
) -> Iterator[Partial]:
    """Yield `in_terms`, the best of `free` and the best of each hypothesis, each once.

    `free` are row, token and log P, the best continuation first; `first_row` is the row of the
    sentence's first hypothesis.
    """
    yield from in_terms
    seen = {(continued.parent, continued.last_token) for continued in in_terms}
    continued_hypotheses: set[int] = set()
    count = 0
    for row, token, log_probability in free:
        i = row - first_row
        if log_probability == IMPOSSIBLE:  # so are all that follow
            return
        if count >= search.beam and i in continued_hypotheses:
            continue
        if (i, token) not in seen:
            if not (continued := search.continue_with(i, token, log_probability)):
                continue
            yield continued
        count += 1
        continued_hypotheses.add(i)
        if count >= search.beam and len(continued_hypotheses) == len(search.live):
            return


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
