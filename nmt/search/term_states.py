"""The terms of one sentence as a finite automaton: which of them a translation contains so far.

A state says which terms are met, and which of them the last tokens have begun. Few states occur in
the search of a sentence, so each is made once and keeps the states that follow it.
"""

from dataclasses import dataclass, field
from enum import Enum

from nmt.data.text.words import is_unspaced
from nmt.search.lexical_constraints import SpelledConstraints, Spelling, TermTokenization

_ENDS_WORD, _ENDS_CLUSTER, _ENDS_NOTHING = -1, -2, -3
"""stand for all tokens that are in no term, by what is complete before them"""


class Place(Enum):
    """Where the next token stands, as far as it matters to the ways in which a term is spelled."""

    START = "no token comes before it"
    AFTER_MARK = "a word may begin there without a space"
    ELSEWHERE = "a word begins with a space there"


@dataclass(eq=False, slots=True)
class TermState:
    """A state: which terms a hypothesis contains, and which it has begun."""

    met: tuple[int, ...]
    """the terms (indices) that it contains as whole words"""
    begun: tuple[TermTokenization, ...]
    """spellings of terms that begin with the last `matched` tokens; a term with all its tokens is
    met when the next token ends its last word"""
    matched: int
    """how many tokens of each spelling in `begun` the hypothesis has"""
    place: Place
    missing_tokens: int
    """the least number of further tokens after which all terms are complete"""
    place_matters: bool
    """whether `TermStates.after_mark` may want other tokens than this state"""
    cached_wanted: "dict[int, TermState] | None" = None
    """what `TermStates.wanted` has returned for this state; None: it was not called yet"""
    cached_after: "dict[int, TermState]" = field(default_factory=dict)
    """the states after tokens that `TermStates.after` has been asked for"""


class TermStates:
    """The states of the terms of one sentence."""

    def __init__(self, spelled: SpelledConstraints, spelling: Spelling) -> None:
        self._spelled, self._spelling = spelled, spelling
        self._lengths = spelled.shortest  # in tokens
        self._ids = frozenset(token for way in spelled.tokenizations for token in way.ids)
        self._both_ways = {way.term for way in spelled.tokenizations if not way.spaced}
        """terms with a way to spell them without a space in front, too"""
        self._begins_unspaced = [is_unspaced(term[0]) for term in spelled.text.terms]
        self._ends_unspaced = [is_unspaced(term[-1]) for term in spelled.text.terms]
        self._states: dict[tuple[object, ...], TermState] = {}
        self.start = self._state((), place=Place.START)
        """the state before the first token"""

    def after(self, state: TermState, token: int) -> TermState:
        """Return the state after one more token.

        If a term may follow that token without a space, the caller must use its `after_mark`.
        """
        if token in self._ids:
            key = token
        elif state.place is Place.ELSEWHERE and not state.begun:
            return state  # so for nearly all tokens
        else:
            key = _ENDS_NOTHING
            if self._spelling.closes_term(token):
                key = _ENDS_WORD
            elif self._spelling.closes_cluster(token):
                key = _ENDS_CLUSTER
        if (after := state.cached_after.get(key)) is None:
            after = state.cached_after[key] = self._compute_after(state, token)
        return after

    def wanted(self, state: TermState) -> dict[int, TermState]:
        """Return the tokens that continue or begin a missing term, and the state after each."""
        if state.cached_wanted is None:
            matched = state.matched
            tokens = [way.ids[matched] for way in state.begun if matched < len(way.ids)]
            tokens += [way.ids[0] for way in self._may_begin(state, self._met_after(state))]
            state.cached_wanted = {token: self.after(state, token) for token in tokens}
        return state.cached_wanted

    def after_mark(self, state: TermState) -> TermState:
        """Return the same state where a term may follow without a space."""
        return self._state(state.met, state.begun, state.matched, Place.AFTER_MARK)

    def without_begun(self, state: TermState) -> TermState:
        """Return the state after a token that belongs to no term."""
        return self._state(state.met)

    def _state(
        self,
        met: tuple[int, ...],
        begun: tuple[TermTokenization, ...] = (),
        matched: int = 0,
        place: Place = Place.ELSEWHERE,
    ) -> TermState:
        """Return the one object for a state."""
        key = (met, begun, matched, place)
        if key not in self._states:
            missing = sum(self._lengths) - sum(self._lengths[term] for term in met)
            # a begun term needs fewer tokens than that: some are matched, and without a space in
            # front it may have fewer ids
            saved = [matched + self._lengths[way.term] - len(way.ids) for way in begun]
            missing -= max(0, *saved, 0)
            place_matters = missing > 0 and bool(self._both_ways)
            self._states[key] = TermState(met, begun, matched, place, missing, place_matters)
        return self._states[key]

    def _compute_after(self, state: TermState, token: int) -> TermState:
        """Return the state after `token`, which continues terms, or may complete and begin some."""
        matched = state.matched
        continuing = tuple(
            way for way in state.begun if matched < len(way.ids) and way.ids[matched] == token
        )
        if continuing:
            return self._state(state.met, continuing, matched + 1)
        met = self._met_after(state, token)
        begun = tuple(way for way in self._may_begin(state, met) if way.ids[0] == token)
        return self._state(met, begun, matched=1 if begun else 0)

    def _met_after(self, state: TermState, token: int | None = None) -> tuple[int, ...]:
        """Return the terms that are met if `token` follows; None: a token that ends a word."""
        for way in state.begun:
            if len(way.ids) == state.matched and (
                token is None or self._may_close(way.term, token)
            ):
                return tuple(sorted((*state.met, way.term)))
        return state.met

    def _may_close(self, term: int, token: int) -> bool:
        """Return whether a term may end before a token."""
        if self._ends_unspaced[term]:
            return self._spelling.closes_cluster(token)
        return self._spelling.closes_term(token)

    def _may_begin(self, state: TermState, met: tuple[int, ...]) -> list[TermTokenization]:
        """Return the tokenizations of missing terms that may begin after a state.

        A term that begins in a script with spaces is spelled with a space in front of it, except
        behind an opening bracket, a quotation mark and the like. One of a script without spaces is
        spelled without a space, except at the start of the translation, where SentencePiece has
        put one. A term that has only one way to be spelled takes that.
        """
        unmet = [way for way in self._spelled.tokenizations if way.term not in met]
        if not self._both_ways:  # each term has one way, which fits everywhere
            return unmet
        allowed = []
        for way in unmet:
            if self._begins_unspaced[way.term]:
                is_first = state.place is Place.START
                fits = way.spaced == is_first or way.term not in self._both_ways
            else:
                fits = way.spaced or state.place is Place.AFTER_MARK
            if fits:
                allowed.append(way)
        return allowed
