"""The hypotheses of one sentence in a search under lexical constraints.

The beam is divided between banks: hypotheses with equally many missing tokens of the terms.
"""

from collections.abc import Sequence
from itertools import islice, zip_longest
from typing import NamedTuple, Self

from nmt.config import DecodingConfig
from nmt.data.tokens.tokenizer import BOS, EOS
from nmt.search.constrained_sentence import ConstrainedSentence, ConstraintProgress
from nmt.search.hypothesis import Hypothesis, length_penalty
from nmt.search.lexical_constraints import SpelledConstraints

WIDEST_BEAM = 32  # unless the settings ask for a wider one
MISPLACED = 10.0
"""handicap in nats of a term that begins inside another word or after the probable end; without it
a term that the model does not expect would be as probable there as at its right place"""


def beam_width(constraints: SpelledConstraints, beam_size: int) -> int:
    """Return a sentence's beam: room for all banks (`WIDEST_BEAM` at most), or `beam_size`."""
    return max(beam_size, min(WIDEST_BEAM, constraints.term_length + 1))


class Partial(NamedTuple):
    """A live hypothesis, with its progress."""

    tokens: tuple[int, ...]
    score: float
    """log P"""
    progress: ConstraintProgress
    missing_tokens: int
    """how many further tokens complete all terms; equal for all hypotheses of a bank"""
    parent: int = 0
    """the index of the hypothesis that it continues, among the live ones of the step before"""
    handicap: float = 0.0
    """nats subtracted from log P when hypotheses are compared"""

    @property
    def last_token(self) -> int:
        """The last token; BOS before the first."""
        return self.tokens[-1] if self.tokens else BOS

    @property
    def adjusted_score(self) -> float:
        """The value by which hypotheses are compared: log P minus the handicap."""
        return self.score - self.handicap

    def with_handicap(self) -> Self:
        """Return a copy with the handicap of one more misplaced term (`MISPLACED`)."""
        return self._replace(handicap=self.handicap + MISPLACED)


class Candidate(NamedTuple):
    """A live hypothesis with one more token; most candidates are not chosen."""

    parent: int
    """the index of the live hypothesis"""
    token: int
    score: float
    """log P with the token"""
    missing_tokens: int
    handicap: float
    progress: ConstraintProgress | None
    """with the token; None if the token does not concern the constraints"""

    @property
    def adjusted_score(self) -> float:
        """The value by which candidates are compared: log P minus the handicap."""
        return self.score - self.handicap

    def with_handicap(self) -> Self:
        """Return a copy with the handicap of one more misplaced term (`MISPLACED`)."""
        return self._replace(handicap=self.handicap + MISPLACED)


class SentenceSearch:
    """The search of one sentence: its live hypotheses, and the best that have ended."""

    def __init__(
        self, constraints: ConstrainedSentence, limit: int, settings: DecodingConfig, n_best: int
    ) -> None:
        """Start with an empty hypothesis; without constraints it could have `limit` tokens."""
        self.constraints = constraints
        self.limit = limit + constraints.spelled.most_tokens
        self.settings = settings
        self.n_best = n_best
        self.beam = beam_width(constraints.spelled, settings.beam_size)
        term_length = constraints.spelled.term_length
        self.live = [Partial((), 0.0, ConstraintProgress(), missing_tokens=term_length)]
        self.ended: list[tuple[float, Hypothesis]] = []
        """the best ended hypotheses, each with its `adjusted_score` over the length penalty"""

    def may_refuse(self, length: int) -> bool:
        """Whether `continue_with` may return None for hypotheses with `length` tokens."""
        tokens_left = self.limit - length - 1
        spelled = self.constraints.spelled
        return not self.constraints.has_only_terms or spelled.term_length > tokens_left

    def continue_with(self, parent: int, token: int, log_probability: float) -> Candidate | None:
        """Return hypothesis live[parent] with one more token; None if it cannot meet all terms."""
        live = self.live[parent]
        constraints, handicap = self.constraints, live.handicap
        score, tokens_left = live.score + log_probability, self.limit - len(live.tokens) - 1
        if not constraints.concerns(live.progress, token):
            if live.missing_tokens > tokens_left:
                return None
            return Candidate(parent, token, score, live.missing_tokens, handicap, progress=None)
        progress = constraints.advance(live.progress, token, last=not tokens_left)
        if progress is None:
            return None
        missing = constraints.missing_tokens(progress)
        # a forbidden word at the end needs one token more, which makes it another word
        if missing + constraints.ends_in_forbidden(progress) > tokens_left:
            return None
        if missing > live.missing_tokens + 1:  # a term was begun and then abandoned
            handicap += MISPLACED
        return Candidate(parent, token, score, missing, handicap, progress)

    def choose(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """Choose up to `beam` hypotheses: the best of each bank, then the second of each, …."""
        banks: dict[int, list[Candidate]] = {}  # by missing tokens; each has its best first
        for candidate in sorted(candidates, key=lambda each: each.adjusted_score, reverse=True):
            banks.setdefault(candidate.missing_tokens, []).append(candidate)
        # in each round the bank with the fewest missing tokens is the first
        rounds = zip_longest(*(banks[missing] for missing in sorted(banks)))
        in_turns = (candidate for best in rounds for candidate in best if candidate)
        return list(islice(in_turns, self.beam))

    def update(self, chosen: list[Candidate]) -> None:
        """Set `live` to the chosen hypotheses that go on; `ended` keeps the `n_best` that ended."""
        before, self.live = self.live, []
        length = len(before[0].tokens) + 1  # equal for all
        has_ended = False
        for parent, token, score, missing, handicap, progress in chosen:
            tokens = (*before[parent].tokens, token)
            if token == EOS or length == self.limit:
                penalty = length_penalty(float(length), self.settings)
                hypothesis = Hypothesis.from_row(list(tokens), score / penalty)
                rank_by = (score - handicap) / penalty  # a handicap is not part of the score
                self.ended.append((rank_by, hypothesis))
                has_ended = True
                continue
            if progress is None:
                progress = self.constraints.lengthen(before[parent].progress, token)
            self.live.append(Partial(tokens, score, progress, missing, parent, handicap))
        if has_ended:
            self.ended = sorted(self.ended, key=lambda entry: -entry[0])[: self.n_best]

    def is_done(self) -> bool:
        """Whether no live hypothesis can still become one of the `n_best` that have ended."""
        if not self.live:
            return True
        if len(self.ended) < self.n_best:  # then any live one can enter
            return False
        # log P never rises, so the best that a live one can reach is this over the highest penalty
        best = max(live.adjusted_score for live in self.live)
        worst_ended, _ = self.ended[-1]
        return best / length_penalty(float(self.limit), self.settings) <= worst_ended
