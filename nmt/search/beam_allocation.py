"""How wide the beam of a sentence is, and how hypotheses that have met more or less share it."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import ceil
from typing import Self

from nmt.config import DecodingConfig
from nmt.search.beam_search import length_penalty
from nmt.search.hypothesis import Hypothesis
from nmt.search.lexical_constraints import ConstrainedSentence, Progress
from nmt.search.windows import batches

WIDEST_BEAM = 32
MISPLACED = 10.0
"""nats for a term that begins in the middle of another word, or behind what the model holds to be
the end; a term that it does not expect is as improbable there as at its right place"""


def beam_width(constraints: ConstrainedSentence, beam_size: int) -> int:
    """How many hypotheses of a sentence are kept: one for each bank at least, within reason."""
    return max(beam_size, min(WIDEST_BEAM, constraints.total + 1))


def batches_by_beam(
    indices: Sequence[int],
    lengths: Sequence[int],
    constraints: Sequence[ConstrainedSentence | None],
    settings: DecodingConfig,
) -> Iterator[list[int]]:
    """Batches of lines of which nothing is asked, then of the others, whose beam is wider."""
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
    """A hypothesis, as it goes on or ends."""

    tokens: tuple[int, ...]
    score: float
    """log P"""
    progress: Progress
    needed: int = 0
    """tokens that its terms still need"""
    row: int = 0
    """which row of the decoder it continues"""
    handicap: float = 0.0
    """what it counts for less than its log P"""

    @property
    def worth(self) -> float:
        """What hypotheses are compared by."""
        return self.score - self.handicap

    def handicapped(self) -> Self:
        """The same one, a term standing where none should."""
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
    """the best so far, each with its worth over the length penalty"""

    @classmethod
    def begin(cls, place: int, limit: int, beam: int, constraints: ConstrainedSentence) -> Self:
        """One empty hypothesis, and room for what the constraints take."""
        start = Partial((), 0.0, Progress(), constraints.total)
        width = beam_width(constraints, beam)
        return cls(place, limit + constraints.room, width, constraints, [start])

    def continued(
        self, row: int, live: Partial, token: int, log_probability: float
    ) -> Partial | None:
        """A hypothesis one token further; None where its constraints could then not be met."""
        length = len(live.tokens) + 1
        progress = self.constraints.advance(live.progress, token, length == self.limit)
        if progress is None:
            return None
        needed = self.constraints.needed(progress)
        if needed + self.constraints.is_pending(progress) > self.limit - length:
            return None
        score = live.score + log_probability
        found = Partial((*live.tokens, token), score, progress, needed, row, live.handicap)
        # the second piece of a term was hardly written by chance, and now it is another word
        return found.handicapped() if needed > live.needed + 1 else found

    def choose(self, candidates: Sequence[Partial]) -> list[Partial]:
        """Share the beam out among the banks, in turns from the one that has met the most."""
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
        """Go on with these hypotheses, and set those aside that end, the best first."""
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
        """Whether no live hypothesis can come among the best any more, as in `beam_search`."""
        if not self.live or len(self.ended) < n_best:
            return not self.live
        best = max(live.worth for live in self.live)
        return best / length_penalty(float(self.limit), settings) <= self.ended[-1][0]
