"""Beam search under lexical constraints: grid beam search with dynamic beam allocation.

Post and Vilar, 2018 (Fast Lexically Constrained Decoding with Dynamic Beam Allocation for Neural
Machine Translation): hypotheses that contain equally many tokens of the terms form a bank and
compete only with each other; at every step each bank gets a part of the beam. Hu et al., 2019
(Improved Lexically Constrained Decoding for Translation and Monolingual Rewriting): the banks take
turns, the best hypothesis of each bank first, and a hypothesis that abandons a term changes banks.

A sentence does not end before it contains all its terms. When the terms need all tokens that are
left, nothing else may follow. So the terms are always in the translation.

A step of all sentences is computed at once, in arrays with one element for each live hypothesis.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from nmt.errors import DataError
from nmt.run.checkpoint_files import Array
from nmt.search.cancellation import check_not_cancelled
from nmt.search.hypothesis import IMPOSSIBLE, Hypothesis
from nmt.search.next_tokens import NextTokens
from nmt.search.sentence_search import MISPLACED, Candidates, LiveHypotheses, SentenceSearch
from nmt.search.step_decoder import StepDecoder
from nmt.search.term_states import TermState


def constrained_search(
    decoder: StepDecoder, searches: Sequence[SentenceSearch]
) -> list[list[Hypothesis]]:
    """Translate the sources of a decoder so that each translation meets its constraints.

    `searches` has the search of each source, with the same settings. Returns up to their `n_best`
    hypotheses of each, best first; `score` is log P divided by the length penalty.

    Without constraints the results may differ from those of `beam_search`: when a hypothesis ends,
    its place in the beam stays empty for a step here, and there the next best one takes it. Also,
    `early_stopping` has no effect here.

    Raises:
        NonFiniteScoresError: the model's scores are NaN or infinite.
        DataError: no translation meets all constraints on a sentence.
        SearchCancelled: nobody waits for the results.
    """
    live = LiveHypotheses.without_tokens(searches)
    while live.progress:
        check_not_cancelled()
        candidates = _SearchStep.compute(decoder, live).candidates()
        live = live.continue_with(candidates, choose(candidates, live.beams))
    return [[hypothesis for _, hypothesis in search.ended] for search in searches]


def choose(candidates: Candidates, beams: Array) -> Array:
    """Choose up to beams[n] candidates of sentence n: the best of each bank, then the second, ….

    In each round the bank with the fewest missing tokens is the first. Returns indices.
    """
    sentences, missing = candidates.sentences, candidates.missing_tokens
    # bank by bank, and in each the best one first
    order = np.lexsort((-candidates.adjusted_scores, missing, sentences))
    sentences, missing = sentences[order], missing[order]
    rounds = _ranks(sentences * (missing.max() + 1) + missing)
    in_turns = np.lexsort((missing, rounds, sentences))
    order, sentences = order[in_turns], sentences[in_turns]
    chosen: Array = order[_ranks(sentences) < beams[sentences]]
    return chosen


def _ranks(groups: Array) -> Array:
    """Return the rank of each number, from 0, among those equal to it; they stand side by side."""
    return np.arange(len(groups)) - np.searchsorted(groups, groups)


TermToken = tuple[int, int, TermState]
"""the row of a live hypothesis, a token that continues or begins a missing term after it, and the
state after the token"""


def _term_tokens(live: LiveHypotheses) -> list[TermToken]:
    """Return the tokens after all rows that continue or begin a missing term."""
    found = []
    for row in np.flatnonzero(live.missing_tokens).tolist():
        search, progress = live.hypotheses[row]
        for token, after in search.constraints.next_term_tokens(progress).items():
            if not live.may_refuse[row] or search.accepts(progress, token):
                found.append((row, token, after))
    return found


@dataclass(frozen=True)
class _SearchStep:
    """One step of all sentences: what competes to follow their R live hypotheses."""

    live: LiveHypotheses
    term_tokens: list[TermToken]
    """the tokens after all rows that continue or begin a missing term"""
    next: NextTokens

    @classmethod
    def compute(cls, decoder: StepDecoder, live: LiveHypotheses) -> Self:
        """Compute what the model says of the next tokens, a step of the decoder."""
        term_tokens = _term_tokens(live)
        rows = np.array([row for row, _, _ in term_tokens], np.int64)
        tokens = np.array([token for _, token, _ in term_tokens], np.int64)
        return cls(live, term_tokens, NextTokens.compute(decoder, live, rows, tokens))

    @cached_property
    def handicaps(self) -> Array:
        """(R,) those of `live`, and one more where the model would end while terms are missing."""
        ends_early = (self.live.missing_tokens > 0) & (self.next.eos_log_p > math.log(0.5))
        for row in np.flatnonzero(ends_early & self.live.may_refuse).tolist():
            search, progress = self.live.hypotheses[row]
            ends_early[row] = search.constraints.next_prefix_tokens(progress) is None
        return self.live.handicaps + MISPLACED * ends_early

    def candidates(self) -> Candidates:
        """Return the continuations that compete in each sentence (Post and Vilar, section 3.1).

        These are the best ones of the sentence (as many as its beam), the best of each hypothesis,
        and all that continue or begin a term.
        """
        likely_tokens, likely_log_p = self.next.likely_tokens()  # (R, K)
        is_in_term = np.zeros(likely_tokens.shape, bool)
        term_rows, term_tokens = self.next.term_rows, self.next.term_tokens
        found, columns = np.nonzero(likely_tokens[term_rows] == term_tokens[:, None])
        is_in_term[term_rows[found], columns] = True
        totals = likely_log_p + (self.live.scores - self.handicaps)[:, None]
        is_best = self._best_of_each(totals)
        # of these sentences only what is accepted may be among the best
        for n in set(self.live.sentences[self.live.may_refuse].tolist()):
            own = self._rows_of(n)
            own_arrays = likely_tokens[own], totals[own], is_in_term[own]
            is_best[own] = self._best_accepted(own, *own_arrays)
        free_rows, columns = np.nonzero(is_best & ~is_in_term)
        rows = np.concatenate([term_rows, free_rows])
        tokens = np.concatenate([term_tokens, likely_tokens[free_rows, columns]])
        log_p = np.concatenate([self.next.term_log_p, likely_log_p[free_rows, columns]])
        without = set(self.live.sentences.tolist()) - set(self.live.sentences[rows].tolist())
        for n in sorted(without):
            row, token, value = self._any_allowed(self._rows_of(n))
            rows, tokens = np.append(rows, row), np.append(tokens, token)
            log_p = np.append(log_p, value)
        return self._as_candidates(rows, tokens, log_p)

    def _as_candidates(self, rows: Array, tokens: Array, log_p: Array) -> Candidates:
        """Return tokens and their log P after these rows as candidates; first `term_tokens`."""
        in_terms = len(self.term_tokens)
        before = self.live.missing_tokens[rows]
        missing = before.copy()  # a token that concerns no term leaves as many missing
        missing[:in_terms] = [after.missing_tokens for _, _, after in self.term_tokens]
        has_begun = np.array([bool(progress.terms.begun) for progress in self.live.progress])
        is_concerned = (has_begun | self.live.may_refuse)[rows]
        is_concerned[:in_terms] = False  # these are done
        for i in np.flatnonzero(is_concerned).tolist():
            search, progress = self.live.hypotheses[rows[i]]
            missing[i] = search.constraints.terms_after(progress, int(tokens[i])).missing_tokens
        handicaps = self.handicaps[rows]
        handicaps[missing > before + 1] += MISPLACED  # abandons a term that it has begun
        handicaps[:in_terms][self._are_misplaced()] += MISPLACED
        scores = self.live.scores[rows] + log_p
        return Candidates(self.live.sentences[rows], rows, tokens, scores, handicaps, missing)

    def _are_misplaced(self) -> list[bool]:
        """Whether each of `term_tokens` begins a term inside another word or before its turn."""
        expects_longer_word = self.next.expects_longer_word.tolist()
        attended = self.next.scores.attended.tolist()
        found = []
        for row, _, after in self.term_tokens:
            search, _ = self.live.hypotheses[row]
            is_expected = search.constraints.is_expected(after, attended[row])
            found.append(after.matched == 1 and (expects_longer_word[row] or not is_expected))
        return found

    def _rows_of(self, sentence: int) -> slice:
        first, end = np.searchsorted(self.live.sentences, [sentence, sentence + 1]).tolist()
        return slice(first, end)

    def _best_of_each(self, totals: Array) -> Array:
        """Return a mask (R, K) of the best of each sentence and of each hypothesis.

        `totals` are log P of a hypothesis with each of its free tokens.
        """
        sentences = self.live.sentences
        in_sentence = _ranks(sentences)  # the index of each row among those of its sentence
        shape = (len(self.live.searches), in_sentence.max() + 1, totals.shape[1])
        padded = np.full(shape, IMPOSSIBLE)
        padded[sentences, in_sentence] = totals
        ranked = np.sort(padded.reshape(len(self.live.searches), -1))  # ascending
        last = np.maximum(ranked.shape[1] - self.live.beams, 0)  # the worst of those in the beam
        least = np.take_along_axis(ranked, last[:, None], 1)[sentences]  # (R, 1)
        is_best_of_row = np.arange(totals.shape[1]) == totals.argmax(1)[:, None]
        return (is_best_of_row | (totals >= least)) & (totals > IMPOSSIBLE)

    def _best_accepted(self, rows: slice, tokens: Array, totals: Array, is_in_term: Array) -> Array:
        """Return the same mask (N, K) as `_best_of_each`, for a sentence that may refuse tokens.

        They are tried one after another, the best first, until enough are accepted. The arrays are
        (N, K) for the N rows of the sentence. Those in terms count, too.
        """
        accepted = np.zeros(tokens.shape, bool)
        wanted, continued = self.live.hypotheses[rows.start][0].beam, set[int]()
        for position in np.argsort(-totals, axis=None, kind="stable").tolist():
            i, k = divmod(position, totals.shape[1])
            if totals[i, k] == IMPOSSIBLE:  # so are all that follow
                break
            if wanted <= 0 and len(continued) == len(tokens):
                break
            if wanted <= 0 and i in continued:
                continue
            search, progress = self.live.hypotheses[rows.start + i]
            if is_in_term[i, k] or search.accepts(progress, int(tokens[i, k])):
                accepted[i, k] = True
                wanted -= 1
                continued.add(i)
        return accepted

    def _any_allowed(self, rows: slice) -> tuple[int, int, float]:
        """Return a row of a sentence, its most probable allowed token and log P of that.

        Raises:
            DataError: there is none.
        """
        for row in range(rows.start, rows.stop):
            search, progress = self.live.hypotheses[row]
            [allowed] = self.next.allowed([row])
            for token in np.argsort(-allowed, kind="stable").tolist():
                if allowed[token] == IMPOSSIBLE:
                    break
                if search.accepts(progress, token):
                    return row, token, float(allowed[token])
        raise DataError(
            f"{search.constraints.spelled.text}: no translation meets all of this; leave out "
            "some of the terms or forbidden words"
        )
