"""The hypotheses of one sentence in a search under lexical constraints.

The beam is divided between banks: hypotheses with equally many missing tokens of the terms.
"""

from collections import Counter
from collections.abc import Sequence
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
    """A hypothesis during the search, with its progress."""

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

    def continue_with(self, parent: int, token: int, log_probability: float) -> Partial | None:
        """Return hypothesis live[parent] with one more token; None if it cannot meet all terms."""
        live = self.live[parent]
        length = len(live.tokens) + 1
        progress = self.constraints.advance(live.progress, token, last=length == self.limit)
        if progress is None:
            return None
        missing = self.constraints.missing_tokens(progress)
        # a forbidden word at the end needs one token more, which makes it another word
        needed = missing + self.constraints.ends_in_forbidden(progress)
        if needed > self.limit - length:  # too few tokens are left
            return None
        tokens, score = (*live.tokens, token), live.score + log_probability
        continued = Partial(tokens, score, progress, missing, parent, live.handicap)
        # At least two tokens more are missing than before: a term was begun and then abandoned.
        return continued.with_handicap() if missing > live.missing_tokens + 1 else continued

    def choose(self, candidates: Sequence[Partial]) -> list[Partial]:
        """Choose up to `beam` hypotheses: the best of each bank, then the second of each, …."""
        bank_sizes: Counter[int] = Counter()  # {missing tokens: number of hypotheses so far}
        ranked = []  # (rank in its bank, bank, candidate)
        for candidate in sorted(candidates, key=lambda candidate: -candidate.adjusted_score):
            bank = candidate.missing_tokens
            ranked.append((bank_sizes[bank], bank, candidate))
            bank_sizes[bank] += 1
        ranked.sort(key=lambda entry: entry[:2])  # by rank; of equal rank the fewest missing first
        return [candidate for _, _, candidate in ranked[: self.beam]]

    def update(self, chosen: list[Partial]) -> None:
        """Set `live` to the chosen hypotheses that go on; `ended` keeps the `n_best` that ended."""
        length = len(chosen[0].tokens)  # equal for all
        penalty = length_penalty(float(length), self.settings)
        self.live = []
        for partial in chosen:
            if partial.tokens[-1] == EOS or length == self.limit:
                hypothesis = Hypothesis.from_row(list(partial.tokens), partial.score / penalty)
                rank_by = partial.adjusted_score / penalty  # a handicap is not part of the score
                self.ended.append((rank_by, hypothesis))
            else:
                self.live.append(partial)
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
