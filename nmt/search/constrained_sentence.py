"""Follows a hypothesis token by token and says which constraints it meets.

How far a hypothesis has come is a function of its tokens alone: two hypotheses of the same tokens
have the same progress, and the tokens of a finished translation tell where its terms are.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from nmt.data.text.words import is_unspaced, opens
from nmt.data.tokens.tokenizer import EOS, UNK
from nmt.search.lexical_constraints import SpelledConstraints, TermTokenization, contains_any
from nmt.search.spelling import Spelling

_APOSTROPHES = ("'", "’")


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
        return self.spelled.prefix.required(self.spelling, progress.length, progress.text)

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
        begun = self.spelled.prefix.decoded(self.spelling)
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
        if token == UNK and progress.length < len(self.spelled.prefix.ids):
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
        behind_mark = any(not option.spaced for option in unmet) and _ends_in_mark(progress.text)
        allowed = []
        for option in unmet:
            if is_unspaced(self.spelled.text.terms[option.term][0]):
                fits = option.spaced == (progress.length == 0) or not self._has_both(option.term)
            else:
                fits = option.spaced or behind_mark
            if fits:
                allowed.append(option)
        return allowed

    def _has_both(self, term: int) -> bool:
        return sum(option.term == term for option in self.spelled.tokenizations) == 2


def _ends_in_mark(text: bytes) -> bool:
    """Whether a word may follow without a space: behind an opening mark, "l'" or white space."""
    word = text.decode("utf-8", errors="replace").rsplit(" ", 1)[-1]
    if not text or is_unspaced(word[-1:]):
        return bool(text)
    return word.endswith(_APOSTROPHES) or all(map(opens, word))
