"""What a search under lexical constraints knows of its sentences, hypotheses and candidates."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from nmt.data.tokens.tokenizer import BOS, EOS
from nmt.recipe.config import DecodingConfig
from nmt.run.checkpoint_files import Array
from nmt.search.constrained_sentence import ConstrainedSentence, ConstraintProgress
from nmt.search.hypothesis import IMPOSSIBLE, Hypothesis, length_penalty
from nmt.search.lexical_constraints import SpelledConstraints

WIDEST_BEAM = 32  # unless the settings ask for a wider one
MISPLACED = 10.0
"""handicap in nats of a term that begins inside another word or after the probable end; without it
a term that the model does not expect would be as probable there as at its right place"""


def beam_width(constraints: SpelledConstraints, beam_size: int) -> int:
    """Return a sentence's beam: room for all banks (`WIDEST_BEAM` at most), or `beam_size`."""
    return max(beam_size, min(WIDEST_BEAM, constraints.term_length + 1))


class SentenceSearch:
    """The search of one sentence: its constraints, its limits, and the best that have ended."""

    def __init__(
        self, constraints: ConstrainedSentence, limit: int, settings: DecodingConfig, n_best: int
    ) -> None:
        """Without constraints a hypothesis could have `limit` tokens."""
        self.constraints = constraints
        self.limit = limit + constraints.spelled.most_tokens
        self.settings = settings
        self.n_best = n_best
        self.beam = beam_width(constraints.spelled, settings.beam_size)
        self.ended: list[tuple[float, Hypothesis]] = []
        """the best ended hypotheses, each with its adjusted score over the length penalty"""

    def may_refuse(self, length: int) -> bool:
        """Whether `accepts` may be False for hypotheses with `length` tokens."""
        tokens_left = self.limit - length - 1
        spelled = self.constraints.spelled
        return not self.constraints.has_only_terms or spelled.term_length > tokens_left

    def accepts(self, progress: ConstraintProgress, token: int) -> bool:
        """Whether a hypothesis can still meet all constraints with one more token."""
        tokens_left = self.limit - progress.length - 1
        advanced = self.constraints.advance(progress, token, last=not tokens_left)
        if advanced is None:
            return False
        # a forbidden word at the end needs one token more, which makes it another word
        needed = advanced.terms.missing_tokens + advanced.ends_in_forbidden
        return needed <= tokens_left

    def end(self, tokens: list[int], score: float, handicap: float) -> None:
        """Take a hypothesis that has ended into the `n_best` if it is among them."""
        penalty = length_penalty(float(len(tokens)), self.settings)
        hypothesis = Hypothesis.from_row(tokens, score / penalty)
        rank_by = (score - handicap) / penalty  # a handicap is not part of the score
        self.ended.append((rank_by, hypothesis))
        self.ended = sorted(self.ended, key=lambda entry: -entry[0])[: self.n_best]

    def is_done(self, best_live: float) -> bool:
        """Whether no live hypothesis can still become one of the `n_best` that have ended.

        `best_live` is the best adjusted score of the live ones.
        """
        if len(self.ended) < self.n_best:  # then any live one can enter
            return False
        # log P never rises, so the best that a live one can reach is this over the highest penalty
        worst_ended, _ = self.ended[-1]
        return best_live / length_penalty(float(self.limit), self.settings) <= worst_ended


@dataclass(frozen=True)
class Candidates:
    """C continuations by one token, each of a live hypothesis; most of them are not chosen."""

    sentences: Array
    """(C,) the index of the sentence"""
    rows: Array
    """(C,) the index of the live hypothesis"""
    tokens: Array
    """(C,) the token that follows it"""
    scores: Array
    """(C,) log P with the token"""
    handicaps: Array
    """(C,) nats subtracted from log P when candidates are compared"""
    missing_tokens: Array
    """(C,) how many further tokens complete all terms; equal for all of a bank"""

    @property
    def adjusted_scores(self) -> Array:
        """(C,) the values by which candidates are compared."""
        return self.scores - self.handicaps


@dataclass(frozen=True)
class LiveHypotheses:
    """The R live hypotheses of N sentences: first those of the first sentence, and so on.

    All have the same number of tokens, T.
    """

    searches: Sequence[SentenceSearch]
    """of the N sentences"""
    sentences: Array
    """(R,) the index of the sentence of each"""
    parents: Array
    """(R,) the index of the hypothesis that it continues, among those of its sentence before"""
    tokens: Array
    """(R, T)"""
    scores: Array
    """(R,) log P"""
    handicaps: Array
    """(R,) nats subtracted from log P when hypotheses are compared"""
    progress: list[ConstraintProgress]

    @classmethod
    def without_tokens(cls, searches: Sequence[SentenceSearch]) -> Self:
        """Return a hypothesis without tokens for each sentence."""
        count = len(searches)
        none = np.zeros((count, 0), np.int32)
        parents, scores = np.zeros(count, np.int32), np.zeros(count)
        progress = [search.constraints.start for search in searches]
        return cls(searches, np.arange(count), parents, none, scores, np.zeros(count), progress)

    @property
    def length(self) -> int:
        """T, the number of tokens of each."""
        return self.tokens.shape[1]

    @property
    def settings(self) -> DecodingConfig:
        """The settings of all N searches."""
        return self.searches[0].settings

    @cached_property
    def beams(self) -> Array:
        """(N,) the beam of each sentence."""
        return np.array([search.beam for search in self.searches])

    @cached_property
    def hypotheses(self) -> list[tuple[SentenceSearch, ConstraintProgress]]:
        """For each of the R hypotheses, the search of its sentence, and its progress."""
        of_rows = [self.searches[n] for n in self.sentences.tolist()]
        return list(zip(of_rows, self.progress, strict=True))

    @cached_property
    def may_refuse(self) -> Array:
        """(R,) whether a token may follow only if `SentenceSearch.accepts` it."""
        may_refuse = np.array([search.may_refuse(self.length) for search in self.searches])
        of_rows: Array = may_refuse[self.sentences]
        return of_rows

    @cached_property
    def missing_tokens(self) -> Array:
        """(R,) how many further tokens complete all terms."""
        return np.array([progress.terms.missing_tokens for progress in self.progress])

    @property
    def latest(self) -> Array:
        """(R,) the last token of each; BOS at first."""
        return self.tokens[:, -1] if self.length else np.full(len(self.scores), BOS)

    def continue_with(self, candidates: Candidates, chosen: Array) -> Self:
        """Return those of the chosen candidates that go on, and end the others."""
        rows, sentences = candidates.rows[chosen], candidates.sentences[chosen]
        scores, handicaps = candidates.scores[chosen], candidates.handicaps[chosen]
        latest = candidates.tokens[chosen]
        tokens = np.concatenate([self.tokens[rows], latest[:, None]], axis=1)
        limits = np.array([search.limit for search in self.searches])
        goes_on = (latest != EOS) & (limits[sentences] > self.length + 1)
        for i in np.flatnonzero(~goes_on).tolist():
            search = self.searches[sentences[i]]
            search.end(tokens[i].tolist(), float(scores[i]), float(handicaps[i]))
        best_live = np.full(len(self.searches), IMPOSSIBLE)
        np.maximum.at(best_live, sentences[goes_on], (scores - handicaps)[goes_on])
        pairs = zip(self.searches, best_live.tolist(), strict=True)
        is_done = np.array([search.is_done(best) for search, best in pairs])
        goes_on &= ~is_done[sentences]
        progress = []
        for row, token in zip(rows[goes_on].tolist(), latest[goes_on].tolist(), strict=True):
            search, before = self.hypotheses[row]
            progress.append(search.constraints.lengthen(before, token))
        first_rows = np.searchsorted(self.sentences, sentences)
        return type(self)(
            self.searches,
            sentences[goes_on],
            (rows - first_rows)[goes_on],
            tokens[goes_on],
            scores[goes_on],
            handicaps[goes_on],
            progress,
        )
