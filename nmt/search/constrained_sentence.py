"""The search of one sentence under lexical constraints.

A `ConstrainedSentence` follows hypotheses token by token and says which constraints they meet. How
far a hypothesis has come is a function of its tokens alone: two hypotheses of the same tokens have
the same progress, and the tokens of a finished translation tell where its terms are. A
`SentenceSearch` shares the beam between the hypotheses.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

from nmt.config import DecodingConfig
from nmt.data.text.words import is_opening, is_unspaced
from nmt.data.tokens.tokenizer import EOS, UNK
from nmt.search.beam_search import length_penalty
from nmt.search.decoding import Hypothesis
from nmt.search.lexical_constraints import (
    SpelledConstraints,
    Spelling,
    TermTokenization,
    contains_any,
)

_APOSTROPHES = ("'", "’")
WIDEST_BEAM = 32
MISPLACED = 10.0
"""handicap in nats of a term that begins inside another word or after the probable end; without it
a term that the model does not expect would be as probable there as at its right place"""


@dataclass(frozen=True, slots=True)
class PlacedTerm:
    """A term in a hypothesis: its tokens are those from `start` to before `end`."""

    term: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class ConstraintProgress:
    """How far a hypothesis has come in meeting its constraints."""

    length: int = 0
    """number of tokens"""
    text: bytes = b""
    """what the tokens spell, with a space in front"""
    met: tuple[PlacedTerm, ...] = ()
    """the terms that it contains"""
    begun: tuple[TermTokenization, ...] = ()
    """the terms that the latest tokens begin, or spell if the next token ends the word"""
    matched: int = 0
    """how many of the latest tokens belong to them"""


class ConstrainedSentence:
    """The constraints on one sentence, which say what may follow a hypothesis."""

    def __init__(self, spelled: SpelledConstraints, spelling: Spelling) -> None:
        self.spelled = spelled
        self.spelling = spelling

    def is_expected(self, progress: ConstraintProgress, attended: int) -> bool:
        """Whether the term that has just begun translates the source token that is attended to."""
        terms = [option.term for option in progress.begun]
        places = self.spelled.places
        known = [places[i] for i in terms if i < len(places) and places[i]]
        return len(known) < len(terms) or any(attended in place for place in known)

    def needed(self, progress: ConstraintProgress) -> int:
        """The smallest number of tokens that complete all terms."""
        met = {placed.term for placed in progress.met}
        rest = sum(len(ids) for i, ids in enumerate(self.spelled.terms) if i not in met)
        whole = self.spelled.terms
        begun = (len(whole[t.term]) - len(t.ids) + progress.matched for t in progress.begun)
        return rest - max((0, *begun))

    def wanted(self, progress: ConstraintProgress) -> list[int]:
        """The next tokens of the terms; empty until the prefix is written."""
        if self.required(progress) is not None:
            return []
        going_on = (
            option.ids[progress.matched]
            for option in progress.begun
            if progress.matched < len(option.ids)
        )
        beginning = (option.ids[0] for option in self._beginnings(self._settled(progress)))
        return list(dict.fromkeys((*going_on, *beginning)))

    def required(self, progress: ConstraintProgress) -> list[int] | None:
        """The only tokens that continue the prefix; None when it is written."""
        known = self.spelled.prefix_ids
        if progress.length < len(known):
            return [known[progress.length]]
        rest = self.spelled.prefix_text[len(progress.text) :]
        if not rest:
            return None
        spelled, can_spell = self.spelling.bytes, self.spelling.can_spell
        return [
            i
            for i in self.spelling.beginnings(rest)
            if len(spelled[i]) >= len(rest) or can_spell(rest[len(spelled[i]) :])
        ]

    def is_pending(self, progress: ConstraintProgress) -> bool:
        """Whether the text ends in a forbidden word, unless the next token lengthens that word."""
        return contains_any(self.spelled.forbidden, progress.text)

    def advance(
        self, progress: ConstraintProgress, token: int, last: bool = False
    ) -> ConstraintProgress | None:
        """Add one token; None if the constraints do not allow it.

        `last` says that no other token follows.
        """
        required = self.required(progress)
        if required is not None and token not in required:
            return None
        after = self._step(progress, token)
        goes_on = self.spelling.has_inner_pieces and not last and token != EOS
        return None if contains_any(self.spelled.forbidden, after.text, goes_on) else after

    def restore(self, text: str, tokens: Sequence[int]) -> str:
        """Spell terms and prefix exactly as the user did in the `text` that `tokens` decode to.

        A vocabulary may lack one of their characters, or normalise it to another form.
        """
        decode = self.spelling.tokenizer.target.decode
        known = self.spelled.prefix_ids
        begun = self.spelled.prefix_text[len(self.spelling.spelled(known)) :].decode("utf-8")
        begun = decode([known])[0] + begun if known else begun[1:]
        progress = ConstraintProgress()
        for token in (*tokens, EOS):
            progress = self._step(progress, token)
        for placed in sorted(progress.met, key=lambda placed: -placed.start):
            before, until = map(len, decode([tokens[: placed.start], tokens[: placed.end]]))
            if before < len(begun):
                break
            space = " " if text[before:until].startswith(" ") else ""
            text = text[:before] + space + self.spelled.text.terms[placed.term] + text[until:]
        return self.spelled.text.prefix + text[len(begun) :]

    def _step(self, progress: ConstraintProgress, token: int) -> ConstraintProgress:
        text = progress.text + self.spelling.bytes[token]
        length = progress.length + 1
        if token == UNK and progress.length < len(self.spelled.prefix_ids):
            return ConstraintProgress(length, text, progress.met)  # it stands for no term there
        going_on = tuple(
            option
            for option in progress.begun
            if progress.matched < len(option.ids) and option.ids[progress.matched] == token
        )
        if going_on:
            return ConstraintProgress(length, text, progress.met, going_on, progress.matched + 1)
        settled = self._settled(progress, token)
        begun = tuple(option for option in self._beginnings(settled) if option.ids[0] == token)
        return ConstraintProgress(length, text, settled.met, begun, 1 if begun else 0)

    def _settled(
        self, progress: ConstraintProgress, token: int | None = None
    ) -> ConstraintProgress:
        """Count the term just written as met if `token` (None: any) ends its last word."""
        for option in progress.begun:
            if len(option.ids) == progress.matched and (
                token is None
                or self.spelling.closes_term(token)
                or is_unspaced(self.spelled.text.terms[option.term][-1])
            ):
                start = progress.length - progress.matched
                placed = PlacedTerm(option.term, start, progress.length)
                return replace(progress, met=(*progress.met, placed), begun=(), matched=0)
        return progress

    def _beginnings(self, progress: ConstraintProgress) -> list[TermTokenization]:
        """The tokenizations of missing terms that may begin right behind the text so far."""
        met = {placed.term for placed in progress.met}
        unmet = [t for t in self.spelled.tokenizations if t.term not in met]
        both_ways = {option.term for option in unmet if not option.spaced}
        behind_mark = bool(both_ways) and _ends_in_mark(progress.text)
        allowed = []
        for option in unmet:
            if is_unspaced(self.spelled.text.terms[option.term][0]):
                fits = option.spaced == (progress.length == 0) or option.term not in both_ways
            else:
                fits = option.spaced or behind_mark
            if fits:
                allowed.append(option)
        return allowed


def _ends_in_mark(text: bytes) -> bool:
    """Whether a word may follow without a space: behind an opening mark, "l'" or white space."""
    word = text.decode("utf-8", errors="replace").rsplit(" ", 1)[-1]
    if not text or is_unspaced(word[-1:]):
        return bool(text)
    return word.endswith(_APOSTROPHES) or all(map(is_opening, word))


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
        self.limit = limit + constraints.spelled.most_tokens
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
