"""The lexical constraints on one sentence: what a hypothesis has met, and what may follow it.

A `ConstrainedSentence` follows a hypothesis token by token and computes its `ConstraintProgress`:
which constraints the hypothesis has met. This depends on the tokens alone, so the tokens of a
finished translation also tell where its terms are.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from nmt.data.text.words import is_opening, is_unspaced
from nmt.data.tokens.tokenizer import EOS, UNK
from nmt.search.lexical_constraints import (
    SpelledConstraints,
    Spelling,
    TermTokenization,
    contains_any,
)

_APOSTROPHES = ("'", "’")


class PlacedTerm(NamedTuple):
    """A term in a hypothesis, whose tokens are `tokens[start:end]`."""

    term: int  # index of the term in the constraints
    start: int
    end: int


class ConstraintProgress(NamedTuple):
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
        self._first_ids = frozenset(option.ids[0] for option in spelled.tokenizations)
        self.has_only_terms = not (spelled.forbidden or spelled.prefix_text or spelled.has_unknown)
        """whether any token may follow any hypothesis, as far as the constraints matter"""
        self._both_ways = {option.term for option in spelled.tokenizations if not option.spaced}
        """terms with a way to spell them without a space in front, too"""
        self._begins_unspaced = [is_unspaced(term[0]) for term in spelled.text.terms]

    def is_expected(self, progress: ConstraintProgress, attended: int) -> bool:
        """Whether a term that was just begun may translate source token `attended` (an index)."""
        spans = self.spelled.source_spans  # of glossary terms; they come first in the terms
        if not spans:
            return True
        begun = [option.term for option in progress.begun]  # indices of terms
        known_spans = [spans[i] for i in begun if i < len(spans) and spans[i]]
        # a term without a known span is expected anywhere
        return len(known_spans) < len(begun) or any(attended in span for span in known_spans)

    def missing_tokens(self, progress: ConstraintProgress) -> int:
        """Return the least number of further tokens after which all terms are complete."""
        terms, unmet = self.spelled.terms, self.spelled.term_length
        for placed in progress.met:
            unmet -= len(terms[placed.term])
        if not progress.begun:
            return unmet
        # a begun term needs fewer tokens than `unmet` counts: some are matched, and without a space
        # in front it may have fewer ids
        saved = [progress.matched + len(terms[t.term]) - len(t.ids) for t in progress.begun]
        return unmet - max(0, *saved)

    def next_term_tokens(self, progress: ConstraintProgress) -> list[int]:
        """Return the tokens that continue or begin a missing term; none before the prefix ends."""
        if not self.has_only_terms and self.next_prefix_tokens(progress) is not None:
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

    def concerns(self, progress: ConstraintProgress, token: int) -> bool:
        """Whether a token may change more than the length and the text of a hypothesis.

        Nearly all tokens do not if there are only terms: they neither begin nor continue one.
        """
        return bool(progress.begun) or token in self._first_ids or not self.has_only_terms

    def lengthen(self, progress: ConstraintProgress, token: int) -> ConstraintProgress:
        """Return the progress with one more token that does not concern it (`concerns`)."""
        text = progress.text + self.spelling.bytes[token]
        return ConstraintProgress(progress.length + 1, text, progress.met)

    def advance(
        self, progress: ConstraintProgress, token: int, last: bool = False
    ) -> ConstraintProgress | None:
        """Return the progress with one more token; None if the constraints do not allow it.

        `last` says that `token` is the last one that the length limit allows.
        """
        if self.has_only_terms:
            return self._progress_after(progress, token)
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
        length, text = progress.length + 1, progress.text + self.spelling.bytes[token]
        if token == UNK and progress.length < len(self.spelled.prefix_ids):
            return ConstraintProgress(length, text, progress.met)  # this UNK is in the prefix
        before = progress
        if progress.begun:
            continuing = tuple(
                option
                for option in progress.begun
                if progress.matched < len(option.ids) and option.ids[progress.matched] == token
            )
            if continuing:
                matched = progress.matched + 1
                return ConstraintProgress(length, text, progress.met, continuing, matched)
            before = self._with_completed_term(progress, token)
        if token not in self._first_ids:  # of any term: so for nearly all tokens
            return ConstraintProgress(length, text, before.met)
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
                return progress._replace(met=(*progress.met, placed), begun=(), matched=0)
        return progress

    def _may_begin(self, progress: ConstraintProgress) -> list[TermTokenization]:
        """Return the tokenizations of missing terms that may begin right after the text so far."""
        met = {placed.term for placed in progress.met}
        unmet = [option for option in self.spelled.tokenizations if option.term not in met]
        if not self._both_ways:  # each term has one way, which fits everywhere
            return unmet
        last_word = progress.text.rsplit(b" ", 1)[-1]
        after_mark = bool(progress.text) and _ends_in_mark(last_word)
        allowed = []
        for option in unmet:
            if self._begins_unspaced[option.term]:
                fits = option.spaced == (progress.length == 0) or option.term not in self._both_ways
            else:
                fits = option.spaced or after_mark
            if fits:
                allowed.append(option)
        return allowed


@lru_cache(maxsize=4096)
def _ends_in_mark(last_word: bytes) -> bool:
    """Whether a word may follow a text that ends in this without a space.

    So it is after an opening bracket, after "l'", after a space, and in unspaced scripts.
    """
    word = last_word.decode("utf-8", errors="replace")
    if is_unspaced(word[-1:]):
        return True
    return word.endswith(_APOSTROPHES) or all(map(is_opening, word))
