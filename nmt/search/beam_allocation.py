"""The hypotheses of a constrained sentence, and how they share its beam."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

from nmt.config import DecodingConfig
from nmt.data.tokens.tokenizer import EOS
from nmt.search.beam_search import length_penalty
from nmt.search.constrained_sentence import ConstrainedSentence, ConstraintProgress
from nmt.search.decoding import Hypothesis
from nmt.search.lexical_constraints import SpelledConstraints

WIDEST_BEAM = 32
MISPLACED = 10.0
"""handicap in nats of a term that begins inside another word or after the probable end; without it
a term that the model does not expect would be as probable there as at its right place"""


def beam_width(constraints: SpelledConstraints, beam_size: int) -> int:
    """How many hypotheses of a sentence are kept: at least one for each bank, within reason."""
    return max(beam_size, min(WIDEST_BEAM, constraints.total + 1))


@dataclass(frozen=True, slots=True)
class Partial:
    """A hypothesis that is extended or has just ended."""

    tokens: tuple[int, ...]
    score: float
    """log P"""
    progress: ConstraintProgress
    needed: int
    """how many tokens complete its terms"""
    row: int = 0
    """its row in the decoder; of a continuation, the row that it continues"""
    handicap: float = 0.0
    """subtracted from log P when hypotheses are compared"""

    @property
    def worth(self) -> float:
        """The value by which hypotheses are compared."""
        return self.score - self.handicap

    def handicapped(self) -> Self:
        """The same hypothesis with the handicap of a misplaced term."""
        return replace(self, handicap=self.handicap + MISPLACED)


class SentenceSearch:
    """The search of one sentence: its live hypotheses, and the best that have ended."""

    def __init__(
        self, constraints: ConstrainedSentence, limit: int, settings: DecodingConfig, n_best: int
    ) -> None:
        """Start with one empty hypothesis; the limit grows by what the constraints may take."""
        self.constraints = constraints
        self.limit = limit + constraints.spelled.room
        self.settings = settings
        self.n_best = n_best
        self.beam = beam_width(constraints.spelled, settings.beam_size)
        self.live = [Partial((), 0.0, ConstraintProgress(), constraints.spelled.total)]
        self.ended: list[tuple[float, Hypothesis]] = []
        """the best ended hypotheses, each with its worth divided by the length penalty"""

    def continued(self, live: Partial, token: int, log_probability: float) -> Partial | None:
        """Extend a hypothesis by one token; None if its constraints could not be met any more."""
        length = len(live.tokens) + 1
        progress = self.constraints.advance(live.progress, token, length == self.limit)
        if progress is None:
            return None
        needed = self.constraints.needed(progress)
        if needed + self.constraints.is_pending(progress) > self.limit - length:
            return None
        score = live.score + log_probability
        found = Partial((*live.tokens, token), score, progress, needed, live.row, live.handicap)
        # It had begun a term, probably on purpose, and has now left it.
        return found.handicapped() if needed > live.needed + 1 else found

    def choose(self, candidates: Sequence[Partial]) -> list[Partial]:
        """Choose hypotheses from each bank in turns; the bank that has met the most comes first."""
        turns: Counter[int] = Counter()
        ranked = []
        for candidate in sorted(candidates, key=lambda candidate: -candidate.worth):
            ranked.append((turns[candidate.needed], candidate.needed, candidate))
            turns[candidate.needed] += 1
        ranked.sort(key=lambda entry: entry[:2])
        return [candidate for _, _, candidate in ranked[: self.beam]]

    def extend(self, chosen: list[Partial]) -> None:
        """Continue these hypotheses, and store those that end, the best first."""
        length = len(chosen[0].tokens)
        penalty = length_penalty(float(length), self.settings)
        self.live = []
        for live in chosen:
            if live.tokens[-1] == EOS or length == self.limit:
                found = Hypothesis.from_row(list(live.tokens), live.score / penalty)
                self.ended.append((live.worth / penalty, found))
            else:
                self.live.append(live)
        self.ended = sorted(self.ended, key=lambda end: -end[0])[: self.n_best]

    def is_done(self) -> bool:
        """Whether no live hypothesis can become one of the best any more, as in `beam_search`."""
        if not self.live or len(self.ended) < self.n_best:
            return not self.live
        best = max(live.worth for live in self.live)
        return best / length_penalty(float(self.limit), self.settings) <= self.ended[-1][0]
