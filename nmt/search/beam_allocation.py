"""How wide the beam of a constrained sentence is, and how its hypotheses share the beam."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import ceil
from typing import Self

from nmt.config import DecodingConfig
from nmt.search.beam_search import length_penalty
from nmt.search.constrained_sentence import ConstrainedSentence, ConstraintProgress
from nmt.search.hypothesis import Hypothesis
from nmt.search.lexical_constraints import SpelledConstraints
from nmt.search.windows import batches

WIDEST_BEAM = 32
MISPLACED = 10.0
"""handicap in nats of a term that begins inside another word or after the probable end; without it
a term that the model does not expect would be as probable there as at its right place"""


def beam_width(constraints: SpelledConstraints, beam_size: int) -> int:
    """How many hypotheses of a sentence are kept: at least one for each bank, within reason."""
    return max(beam_size, min(WIDEST_BEAM, constraints.total + 1))


def batches_by_beam(
    indices: Sequence[int],
    lengths: Sequence[int],
    constraints: Sequence[SpelledConstraints | None],
    settings: DecodingConfig,
) -> Iterator[list[int]]:
    """Yield batches of the lines without constraints, then of the others, whose beam is wider."""
    free = [i for i in indices if constraints[i] is None]
    yield from batches(free, lengths, settings.batch_tokens)
    wide = {i: own for i in indices if (own := constraints[i])}
    beam = settings.beam_size
    counted = list(lengths)
    for i, own in wide.items():
        counted[i] *= ceil(beam_width(own, beam) / beam)
    yield from batches(list(wide), counted, settings.batch_tokens)


@dataclass(frozen=True, slots=True)
class Partial:
    """A hypothesis that is extended or has just ended."""

    tokens: tuple[int, ...]
    score: float
    """log P"""
    progress: ConstraintProgress
    needed: int = 0
    """how many tokens complete its terms"""
    row: int = 0
    """the row of the decoder that it continues"""
    handicap: float = 0.0
    """subtracted from log P when hypotheses are compared"""

    @property
    def worth(self) -> float:
        """The value by which hypotheses are compared."""
        return self.score - self.handicap

    def handicapped(self) -> Self:
        """The same hypothesis with the handicap of a misplaced term."""
        return replace(self, handicap=self.handicap + MISPLACED)


@dataclass
class SentenceSearch:
    """The search of one sentence."""

    place: int
    limit: int
    beam: int
    constraints: ConstrainedSentence
    live: list[Partial] = field(default_factory=list)
    ended: list[tuple[float, Hypothesis]] = field(default_factory=list)
    """the best ended hypotheses, each with its worth divided by the length penalty"""

    @classmethod
    def begin(cls, place: int, limit: int, beam: int, constraints: ConstrainedSentence) -> Self:
        """Start with one empty hypothesis; the limit grows by what the constraints may take."""
        start = Partial((), 0.0, ConstraintProgress(), constraints.spelled.total)
        width = beam_width(constraints.spelled, beam)
        return cls(place, limit + constraints.spelled.room, width, constraints, [start])

    def continued(
        self, row: int, live: Partial, token: int, log_probability: float
    ) -> Partial | None:
        """Extend a hypothesis by one token; None if its constraints could not be met any more."""
        length = len(live.tokens) + 1
        progress = self.constraints.advance(live.progress, token, length == self.limit)
        if progress is None:
            return None
        needed = self.constraints.needed(progress)
        if needed + self.constraints.is_pending(progress) > self.limit - length:
            return None
        score = live.score + log_probability
        found = Partial((*live.tokens, token), score, progress, needed, row, live.handicap)
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

    def extend(
        self, chosen: list[Partial], settings: DecodingConfig, eos: int, n_best: int
    ) -> None:
        """Continue these hypotheses, and store those that end, the best first."""
        length = len(chosen[0].tokens)
        penalty = length_penalty(float(length), settings)
        self.live = []
        for live in chosen:
            if live.tokens[-1] == eos or length == self.limit:
                found = Hypothesis.from_row(list(live.tokens), live.score / penalty, eos)
                self.ended.append((live.worth / penalty, found))
            else:
                self.live.append(live)
        self.ended = sorted(self.ended, key=lambda end: -end[0])[:n_best]

    def is_done(self, settings: DecodingConfig, n_best: int) -> bool:
        """Whether no live hypothesis can become one of the best any more, as in `beam_search`."""
        if not self.live or len(self.ended) < n_best:
            return not self.live
        best = max(live.worth for live in self.live)
        return best / length_penalty(float(self.limit), settings) <= self.ended[-1][0]
