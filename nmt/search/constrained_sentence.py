"""The lexical constraints on one sentence: what a hypothesis has met, and what may follow it.

A `ConstrainedSentence` follows a hypothesis token by token and computes its `ConstraintProgress`:
which constraints the hypothesis has met. This depends on the tokens alone, so the tokens of a
finished translation also tell where its terms are.
"""

from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import NamedTuple

from nmt.data.text.words import is_opening, is_unspaced
from nmt.data.tokens.tokenizer import EOS, UNK
from nmt.search.lexical_constraints import SpelledConstraints, Spelling, contains_any
from nmt.search.term_states import TermState, TermStates

_APOSTROPHES = ("'", "’")


class ConstraintProgress(NamedTuple):
    """How far a hypothesis has come in meeting its constraints."""

    length: int
    """number of tokens of the hypothesis"""
    text: bytes
    """UTF-8 text of the tokens, with a space in front"""
    terms: TermState
    """which terms it contains"""
    ends_in_forbidden: bool
    """whether the text ends in a forbidden word; then the next token must lengthen the word"""


class ConstrainedSentence:
    """The constraints on one sentence; decides which tokens may follow a hypothesis."""

    def __init__(self, spelled: SpelledConstraints, spelling: Spelling) -> None:
        self.spelled = spelled
        self.spelling = spelling
        self.has_only_terms = not (spelled.forbidden or spelled.prefix_text or spelled.has_unknown)
        self.has_only_terms &= not spelled.context_ids
        """whether any token may follow any hypothesis, as far as the constraints matter"""
        self._terms = TermStates(spelled, spelling)
        self._last_word = len(spelling.text_of(spelled.prefix_ids))
        """where the last word of the prefix begins in its bytes"""
        self.start = ConstraintProgress(0, b"", self._terms.start, ends_in_forbidden=False)
        """the progress of a hypothesis without tokens"""

    def is_expected(self, terms: TermState, attended: int) -> bool:
        """Whether a term that was just begun may translate source token `attended` (an index)."""
        spans = self.spelled.source_tokens  # of glossary terms; they come first in the terms
        if not spans:
            return True
        begun = [option.term for option in terms.begun]  # indices of terms
        known_spans = [spans[i] for i in begun if i < len(spans) and spans[i]]
        # a term without a known span is expected anywhere
        return len(known_spans) < len(begun) or any(attended in span for span in known_spans)

    def next_term_tokens(self, progress: ConstraintProgress) -> dict[int, TermState]:
        """Return the tokens that continue or begin a missing term, and the state after each.

        There are none before the prefix ends.
        """
        if not self.has_only_terms and self.next_prefix_tokens(progress) is not None:
            return {}
        return self._terms.wanted(progress.terms)

    def next_prefix_tokens(self, progress: ConstraintProgress) -> list[int] | None:
        """Return all tokens that may continue the prefix; None if the prefix is complete."""
        fixed_ids = (*self.spelled.context_ids, *self.spelled.prefix_ids)
        if progress.length < len(fixed_ids):
            return [fixed_ids[progress.length]]
        if len(progress.text) >= len(self.spelled.prefix_text):
            return None
        return self._in_last_word[len(progress.text) - self._last_word]

    @cached_property
    def _in_last_word(self) -> list[list[int]]:
        """For each byte of the last word of the prefix, the tokens that may spell it and more."""
        return self.spelling.continuations(self.spelled.prefix_text[self._last_word :])

    def terms_after(self, progress: ConstraintProgress, token: int) -> TermState:
        """Return which terms a hypothesis contains with one more token."""
        context = len(self.spelled.context_ids)
        if progress.length < context:
            return self._terms.start
        if token == UNK and progress.length < context + len(self.spelled.prefix_ids):
            return self._terms.without_begun(progress.terms)  # this UNK is in the prefix
        return self._terms.after(progress.terms, token)

    def lengthen(self, progress: ConstraintProgress, token: int) -> ConstraintProgress:
        """Return the progress with one more token, whether or not the constraints allow it."""
        if progress.length < len(self.spelled.context_ids):  # it meets nothing
            return self.start._replace(length=progress.length + 1)
        text = progress.text + self.spelling.bytes[token]
        terms = self.terms_after(progress, token)
        if terms.place_matters and text and _ends_in_mark(text.rsplit(b" ", 1)[-1]):
            terms = self._terms.after_mark(terms)
        ends_in_forbidden = contains_any(self.spelled.forbidden, text)
        return ConstraintProgress(progress.length + 1, text, terms, ends_in_forbidden)

    def advance(
        self, progress: ConstraintProgress, token: int, last: bool = False
    ) -> ConstraintProgress | None:
        """Return the progress with one more token; None if the constraints do not allow it.

        `last` says that `token` is the last one that the length limit allows.
        """
        required = self.next_prefix_tokens(progress)
        if required is not None and token not in required:
            return None
        advanced = self.lengthen(progress, token)
        word_may_grow = self.spelling.has_inner_pieces and not last and token != EOS
        is_forbidden = contains_any(self.spelled.forbidden, advanced.text, word_may_grow)
        return None if is_forbidden else advanced

    def restore(self, text: str, tokens: Sequence[int]) -> str:
        """Return `text`, decoded from `tokens`, with terms and prefix as the user wrote them.

        Decoding may change these: a vocabulary may lack a character, or normalise it.
        """
        written = self.spelled.text
        is_as_written = all(
            any(way in text for way in written.ways(term)) for term in range(len(written.terms))
        )
        if is_as_written and self.spelled.are_met_by(text):  # as nearly always
            return text
        decode = self.spelling.tokenizer.target.decode
        ids = self.spelled.prefix_ids  # of the prefix without its last word
        last_word = self.spelled.prefix_text[len(self.spelling.text_of(ids)) :].decode("utf-8")
        # the prefix as it is in `text`, which does not start with the space of `last_word`
        prefix = (decode([ids])[0] + last_word) if ids else last_word.removeprefix(" ")
        # from the last term to the first: positions of earlier ones in `text` stay valid
        for term, first, after in reversed(self._placed_terms(tokens)):
            before, up_to_end = decode([tokens[:first], tokens[:after]])
            start, end = len(before), len(up_to_end)
            if start < len(prefix):
                break  # this term and those before it are in the prefix
            space = " " if text[start:end].startswith(" ") else ""
            text = text[:start] + space + self._written(term, tokens[first:after]) + text[end:]
        return self.spelled.text.prefix + text[len(prefix) :]

    def _written(self, term: int, ids: Sequence[int]) -> str:
        """Return the term, or the form of it, that some ids spell."""
        ways = (way for way in self.spelled.tokenizations if way.term == term)
        return next(way.text for way in ways if way.ids == tuple(ids))

    def _placed_terms(self, tokens: Sequence[int]) -> list[tuple[int, int, int]]:
        """Return the terms that a translation contains, in the order of their places.

        Of each: its index in the constraints, that of its first token, and that after its last.
        """
        progress, placed = self.start, list[tuple[int, int, int]]()
        for token in (*tokens, EOS):
            before, progress = progress, self.lengthen(progress, token)
            start = before.length - before.terms.matched
            for term in set(progress.terms.met) - set(before.terms.met):
                placed.append((term, start, before.length))
        return placed


@lru_cache(maxsize=4096)
def _ends_in_mark(last_word: bytes) -> bool:
    """Whether a word may follow a text that ends in this without a space.

    So it is after an opening bracket, after "l'", after a space, and in unspaced scripts.
    """
    word = last_word.decode("utf-8", errors="replace")
    if is_unspaced(word[-1:]):
        return True
    return word.endswith(_APOSTROPHES) or all(map(is_opening, word))
