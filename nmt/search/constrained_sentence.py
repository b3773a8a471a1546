"""The search of one sentence under lexical constraints.

A `ConstrainedSentence` follows a hypothesis token by token and computes its `ConstraintProgress`:
which constraints the hypothesis has met. This depends on the tokens alone, so the tokens of a
finished translation also tell where its terms are. A `SentenceSearch` holds the hypotheses of one
sentence, and divides the beam between banks: hypotheses with equally many missing tokens.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

from nmt.config import DecodingConfig
from nmt.data.text.words import is_opening, is_unspaced
from nmt.data.tokens.tokenizer import EOS, UNK
from nmt.search.hypothesis import Hypothesis, length_penalty
from nmt.search.lexical_constraints import (
    SpelledConstraints,
    Spelling,
    TermTokenization,
    contains_any,
)

_APOSTROPHES = ("'", "’")
WIDEST_BEAM = 32  # unless the settings ask for a wider one
MISPLACED = 10.0
"""handicap in nats of a term that begins inside another word or after the probable end; without it
a term that the model does not expect would be as probable there as at its right place"""


@dataclass(frozen=True, slots=True)
class PlacedTerm:
    """A term in a hypothesis, whose tokens are `tokens[start:end]`."""

    term: int  # index of the term in the constraints
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class ConstraintProgress:
    """How far a hypothesis has come in meeting its constraints."""

    length: int = 0
    """number of tokens of the hypothesis"""
    text: bytes = b""
    """UTF-8 text of the tokens, with a space in front"""
    met: tuple[PlacedTerm, ...] = ()
    """the terms that the hypothesis contains as whole words"""
    begun: tuple[TermTokenization, ...] = ()
    """spellings of terms that begin with the last `matched` tokens; a term with all its tokens
    goes to `met` when the next token ends its last word"""
    matched: int = 0
    """how many of the last tokens belong to `begun`"""


class ConstrainedSentence:
    """The constraints on one sentence; decides which tokens may follow a hypothesis."""

    def __init__(self, spelled: SpelledConstraints, spelling: Spelling) -> None:
        self.spelled = spelled
        self.spelling = spelling

    def is_expected(self, progress: ConstraintProgress, attended: int) -> bool:
        """Whether a term that was just begun may translate source token `attended` (an index)."""
        begun = [option.term for option in progress.begun]  # indices of terms
        spans = self.spelled.source_spans  # of glossary terms; they come first in the terms
        known_spans = [spans[i] for i in begun if i < len(spans) and spans[i]]
        # a term without a known span is expected anywhere
        return len(known_spans) < len(begun) or any(attended in span for span in known_spans)

    def missing_tokens(self, progress: ConstraintProgress) -> int:
        """Return the least number of further tokens after which all terms are complete."""
        terms, met = self.spelled.terms, {placed.term for placed in progress.met}
        unmet = sum(len(ids) for i, ids in enumerate(terms) if i not in met)
        # a begun term needs fewer tokens than `unmet` counts: some are matched, and without a space
        # in front it may have fewer ids
        saved = [progress.matched + len(terms[t.term]) - len(t.ids) for t in progress.begun]
        return unmet - max([0, *saved])

    def next_term_tokens(self, progress: ConstraintProgress) -> list[int]:
        """Return the tokens that continue or begin a missing term; none before the prefix ends."""
        if self.next_prefix_tokens(progress) is not None:
            return []
        matched = progress.matched
        continuing = [term.ids[matched] for term in progress.begun if matched < len(term.ids)]
        completed = self._with_completed_term(progress)
        beginning = [term.ids[0] for term in self._may_begin(completed)]
        return list(dict.fromkeys([*continuing, *beginning]))  # each token once

    def next_prefix_tokens(self, progress: ConstraintProgress) -> list[int] | None:
        """Return all tokens that may continue the prefix; None if the prefix is complete."""
        fixed_ids = self.spelled.prefix_ids
        if progress.length < len(fixed_ids):
            return [fixed_ids[progress.length]]
        rest = self.spelled.prefix_text[len(progress.text) :]  # what is missing of its last word
        if not rest:
            return None
        text_of, can_spell = self.spelling.bytes, self.spelling.can_spell
        candidates = self.spelling.beginnings(rest)  # each spells the beginning, or more
        # What is missing after a token (nothing after a longer one) must be spellable, too.
        return [token for token in candidates if can_spell(rest[len(text_of[token]) :])]

    def ends_in_forbidden(self, progress: ConstraintProgress) -> bool:
        """Whether the text ends in a forbidden word; then the next token must lengthen the word."""
        return contains_any(self.spelled.forbidden, progress.text)

    def advance(
        self, progress: ConstraintProgress, token: int, last: bool = False
    ) -> ConstraintProgress | None:
        """Return the progress with one more token; None if the constraints do not allow it.

        `last` says that `token` is the last one that the length limit allows.
        """
        required = self.next_prefix_tokens(progress)
        if required is not None and token not in required:
            return None
        advanced = self._progress_after(progress, token)
        word_may_grow = self.spelling.has_inner_pieces and not last and token != EOS
        is_forbidden = contains_any(self.spelled.forbidden, advanced.text, word_may_grow)
        return None if is_forbidden else advanced

    def restore(self, text: str, tokens: Sequence[int]) -> str:
        """Return `text`, decoded from `tokens`, with terms and prefix as the user wrote them.

        Decoding may change these: a vocabulary may lack a character, or normalise it.
        """
        decode = self.spelling.tokenizer.target.decode
        ids = self.spelled.prefix_ids  # of the prefix without its last word
        last_word = self.spelled.prefix_text[len(self.spelling.text_of(ids)) :].decode("utf-8")
        # the prefix as it is in `text`, which does not start with the space of `last_word`
        prefix = (decode([ids])[0] + last_word) if ids else last_word.removeprefix(" ")
        progress = ConstraintProgress()
        for token in (*tokens, EOS):
            progress = self._progress_after(progress, token)
        # from the last term to the first: positions of earlier ones in `text` stay valid
        for placed in sorted(progress.met, key=lambda placed: -placed.start):
            before, up_to_end = decode([tokens[: placed.start], tokens[: placed.end]])
            start, end = len(before), len(up_to_end)
            if start < len(prefix):
                break  # this term and those before it are in the prefix
            space = " " if text[start:end].startswith(" ") else ""
            text = text[:start] + space + self.spelled.text.terms[placed.term] + text[end:]
        return self.spelled.text.prefix + text[len(prefix) :]

    def _progress_after(self, progress: ConstraintProgress, token: int) -> ConstraintProgress:
        text = progress.text + self.spelling.bytes[token]
        length = progress.length + 1
        if token == UNK and progress.length < len(self.spelled.prefix_ids):
            return ConstraintProgress(length, text, progress.met)  # this UNK is in the prefix
        continuing = tuple(
            option
            for option in progress.begun
            if progress.matched < len(option.ids) and option.ids[progress.matched] == token
        )
        if continuing:
            return ConstraintProgress(length, text, progress.met, continuing, progress.matched + 1)
        before = self._with_completed_term(progress, token)
        begun = tuple(option for option in self._may_begin(before) if option.ids[0] == token)
        return ConstraintProgress(length, text, before.met, begun, matched=1 if begun else 0)

    def _with_completed_term(
        self, progress: ConstraintProgress, token: int | None = None
    ) -> ConstraintProgress:
        """Return the progress in which a complete term is met if `token` ends it (None: always)."""
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

    def _may_begin(self, progress: ConstraintProgress) -> list[TermTokenization]:
        """Return the tokenizations of missing terms that may begin right after the text so far."""
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
    """Whether a word may follow without a space: after an opening bracket, "l'" or white space."""
    word = text.decode("utf-8", errors="replace").rsplit(" ", 1)[-1]
    if not text or is_unspaced(word[-1:]):
        return bool(text)
    return word.endswith(_APOSTROPHES) or all(map(is_opening, word))


def beam_width(constraints: SpelledConstraints, beam_size: int) -> int:
    """Return a sentence's beam: room for all banks (`WIDEST_BEAM` at most), or `beam_size`."""
    return max(beam_size, min(WIDEST_BEAM, constraints.term_length + 1))


@dataclass(frozen=True, slots=True)
class Partial:
    """A hypothesis during the search, with its progress."""

    tokens: tuple[int, ...]
    score: float
    """log P"""
    progress: ConstraintProgress
    missing_tokens: int
    """how many further tokens complete all terms; equal for all hypotheses of a bank"""
    row: int = 0
    """its row in the decoder's batch; of a continuation, the row of the continued hypothesis"""
    handicap: float = 0.0
    """nats subtracted from log P when hypotheses are compared"""

    @property
    def adjusted_score(self) -> float:
        """The value by which hypotheses are compared: log P minus the handicap."""
        return self.score - self.handicap

    def with_handicap(self) -> Self:
        """Return a copy with the handicap of one more misplaced term (`MISPLACED`)."""
        return replace(self, handicap=self.handicap + MISPLACED)


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

    def continue_with(self, live: Partial, token: int, log_probability: float) -> Partial | None:
        """Return hypothesis `live` with one more token; None if it cannot meet all constraints."""
        length = len(live.tokens) + 1
        progress = self.constraints.advance(live.progress, token, last=length == self.limit)
        if progress is None:
            return None
        missing = self.constraints.missing_tokens(progress)
        # a forbidden word at the end needs one token more, which makes it another word
        needed = missing + int(self.constraints.ends_in_forbidden(progress))
        if needed > self.limit - length:  # too few tokens are left
            return None
        tokens, score = (*live.tokens, token), live.score + log_probability
        continued = Partial(tokens, score, progress, missing, live.row, live.handicap)
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
