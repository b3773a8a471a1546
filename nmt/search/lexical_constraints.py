"""What a translation must contain, must not contain and must begin with.

How far a hypothesis has come is a function of its tokens alone: no two hypotheses of the same
tokens differ in it, and what a finished translation fulfils can be read from it again.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from nmt.data.text.words import is_unspaced, opens
from nmt.data.tokens.tokenizer import EOS, UNK
from nmt.search.forbidden_words import ForbiddenWords
from nmt.search.spelling import Spelling
from nmt.search.target_prefix import TargetPrefix

_APOSTROPHES = ("'", "’")


@dataclass(frozen=True)
class LexicalConstraints:
    """On the translation of one sentence; text, as the user has written it."""

    terms: tuple[str, ...] = ()
    """stand in it as whole words, one that is named twice at two places"""
    forbidden: tuple[str, ...] = ()
    """words and phrases that are not in it; in small letters they mean every casing"""
    prefix: str = ""
    """it begins with this; the last word may go on unless a space follows it"""
    places: tuple[range, ...] = ()
    """of the first terms, which characters of the source each translates, white space aside"""

    def __bool__(self) -> bool:
        return bool(self.terms or self.forbidden or self.prefix)


@dataclass(frozen=True, slots=True)
class Way:
    """One sequence of ids that spells a term."""

    term: int
    """its place among the terms"""
    ids: tuple[int, ...]
    spaced: bool
    """whether it brings the space in front of it"""


@dataclass(frozen=True, slots=True)
class Placed:
    """A term in a hypothesis: its tokens are those from `start` to before `end`."""

    term: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a hypothesis has come in meeting its constraints."""

    length: int = 0
    """tokens so far"""
    text: bytes = b""
    """what they spell, a space in front"""
    met: tuple[Placed, ...] = ()
    """the terms that stand in it"""
    ways: tuple[Way, ...] = ()
    """what the latest tokens may be the beginning of, or all of until the next token ends the word
    """
    matched: int = 0
    """how many tokens that is"""


class ConstrainedSentence:
    """The constraints on one sentence, in ids."""

    def __init__(
        self,
        constraints: LexicalConstraints,
        spelling: Spelling,
        source: Sequence[str] = (),
    ) -> None:
        """Spell the constraints; `source` are the pieces of the source text.

        Raises:
            DataError: they contradict each other, or cannot be spelled.
        """
        self.constraints = constraints
        self.spelling = spelling
        self.terms = [spelling.ids(term) for term in constraints.terms]
        self.ways = [way for i in range(len(self.terms)) for way in self._ways(i)]
        self.forbidden = ForbiddenWords(constraints.forbidden, spelling.has_inner_pieces)
        self.places = [source_tokens(place, source) for place in constraints.places if source]
        """of the first terms, which source tokens each translates, if that is known"""
        self.forbidden.refuse_what_is_asked_for((*constraints.terms, constraints.prefix))
        self.prefix = TargetPrefix(constraints.prefix, spelling)

    @property
    def total(self) -> int:
        """The tokens of all terms."""
        return sum(map(len, self.terms))

    @property
    def room(self) -> int:
        """The most tokens that all constraints together may take."""
        return self.total + len(self.prefix.text)

    @property
    def takes_unknown(self) -> bool:
        """Whether the unknown symbol stands for a term, and so for nothing else."""
        return any(UNK in ids for ids in self.terms)

    def is_expected(self, progress: Progress, attended: int) -> bool:
        """Whether a term that has just begun translates the source token that is attended to."""
        terms = [way.term for way in progress.ways]
        known = [self.places[i] for i in terms if i < len(self.places) and self.places[i]]
        return len(known) < len(terms) or any(attended in places for places in known)

    def needed(self, progress: Progress) -> int:
        """The fewest tokens that meet the rest of the terms."""
        met = {placed.term for placed in progress.met}
        rest = sum(len(ids) for i, ids in enumerate(self.terms) if i not in met)
        return rest - max(0, *(self._credit(way, progress) for way in progress.ways), 0)

    def wanted(self, progress: Progress) -> list[int]:
        """The tokens that bring a term nearer to being met; none before the prefix is written."""
        if self.required(progress) is not None:
            return []
        going_on = (
            way.ids[progress.matched] for way in progress.ways if progress.matched < len(way.ids)
        )
        beginning = (way.ids[0] for way in self._beginnings(self._settled(progress)))
        return list(dict.fromkeys((*going_on, *beginning)))

    def required(self, progress: Progress) -> list[int] | None:
        """The only tokens that go on with the prefix; None when it is written."""
        return self.prefix.required(progress.length, progress.text)

    def is_pending(self, progress: Progress) -> bool:
        """Whether a forbidden word stands there unless the next token makes it a longer one."""
        return self.forbidden.are_in(progress.text)

    def advance(self, progress: Progress, token: int, last: bool = False) -> Progress | None:
        """One token further; None where the constraints do not let it follow.

        `last`: no other token follows it.
        """
        required = self.required(progress)
        if required is not None and token not in required:
            return None
        after = self._step(progress, token)
        if self.forbidden.are_in(after.text, goes_on=not last and token != EOS):
            return None
        return after

    def restore(self, text: str, tokens: Sequence[int]) -> str:
        """Write the constraints to the letter into the `text` that `tokens` are decoded to.

        A vocabulary may lack a character of theirs, or know it by another form.
        """
        decode = self.spelling.tokenizer.decode
        begun = self.prefix.decoded()
        for placed in sorted(self._follow(tokens).met, key=lambda placed: -placed.start):
            before, until = map(len, decode([tokens[: placed.start], tokens[: placed.end]]))
            if before < len(begun):
                break
            space = " " if text[before:until].startswith(" ") else ""
            text = text[:before] + space + self.constraints.terms[placed.term] + text[until:]
        return self.constraints.prefix + text[len(begun) :]

    def _follow(self, tokens: Sequence[int]) -> Progress:
        progress = Progress()
        for token in (*tokens, EOS):
            progress = self._step(progress, token)
        return progress

    def _step(self, progress: Progress, token: int) -> Progress:
        text = progress.text + self.spelling.bytes[token]
        length = progress.length + 1
        if token == UNK and progress.length < len(self.prefix.ids):
            return Progress(length, text, progress.met)  # it stands for no term there
        going_on = tuple(
            way
            for way in progress.ways
            if progress.matched < len(way.ids) and way.ids[progress.matched] == token
        )
        if going_on:
            return Progress(length, text, progress.met, going_on, progress.matched + 1)
        settled = self._settled(progress, token)
        begun = tuple(way for way in self._beginnings(settled) if way.ids[0] == token)
        return Progress(length, text, settled.met, begun, 1 if begun else 0)

    def _settled(self, progress: Progress, token: int | None = None) -> Progress:
        """With the term met that has just been written, if `token` (or any) ends its last word."""
        for way in progress.ways:
            if len(way.ids) == progress.matched and (
                token is None
                or self.spelling.closes_term(token)
                or is_unspaced(self.constraints.terms[way.term][-1])
            ):
                placed = Placed(way.term, progress.length - progress.matched, progress.length)
                return replace(progress, met=(*progress.met, placed), ways=(), matched=0)
        return progress

    def _beginnings(self, progress: Progress) -> list[Way]:
        """The ways to begin a term that is not met, right behind the text so far."""
        met = {placed.term for placed in progress.met}
        unmet = [way for way in self.ways if way.term not in met]
        behind_mark = any(not way.spaced for way in unmet) and _ends_in_mark(progress.text)
        allowed = []
        for way in unmet:
            if is_unspaced(self.constraints.terms[way.term][0]):
                fits = way.spaced == (progress.length == 0) or not self._has_both(way.term)
            else:
                fits = way.spaced or behind_mark
            if fits:
                allowed.append(way)
        return allowed

    def _ways(self, term: int) -> list[Way]:
        spaced = Way(term, self.terms[term], True)
        close = self.spelling.without_space(self.constraints.terms[term])
        return [spaced, Way(term, close, False)] if close else [spaced]

    def _has_both(self, term: int) -> bool:
        return sum(way.term == term for way in self.ways) == 2

    def _credit(self, way: Way, progress: Progress) -> int:
        return len(self.terms[way.term]) - (len(way.ids) - progress.matched)


def source_tokens(place: range, pieces: Sequence[str]) -> range:
    """The tokens that spell these characters of a text, white space aside."""
    ends = list(accumulate(len(piece.replace("▁", "").replace(" ", "")) for piece in pieces))
    return range(bisect_right(ends, place.start), bisect_left(ends, place.stop) + 1)


def _ends_in_mark(text: bytes) -> bool:
    """Whether a word may follow without a space: behind an opening mark, "l'" or white space."""
    word = text.decode("utf-8", errors="replace").rsplit(" ", 1)[-1]
    if not text or is_unspaced(word[-1:]):
        return bool(text)
    return word.endswith(_APOSTROPHES) or all(map(opens, word))
