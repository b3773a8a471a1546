"""Lexical constraints: a translation's terms, forbidden words and prefix, as text and as ids."""

import codecs
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate

import numpy as np

from nmt.data.text.words import (
    continues_cluster,
    continues_word,
    find_term,
    has_any,
    is_unspaced,
    may_grow_after,
)
from nmt.data.tokens.tokenizer import EOS, UNK, Tokenizer
from nmt.errors import DataError
from nmt.run.checkpoint_files import Array
from nmt.search.cancellation import check_not_cancelled

_DECODER = codecs.getincrementaldecoder("utf-8")
_BYTE_AFTER_ANY = b"\xff"
"""sorts after every byte of UTF-8"""
_RARE_SIGN = "\N{COMBINING GRAPHEME JOINER}"
"""a sign that is in no forbidden word, and that lengthens any word or cluster"""
_MARKS = ('"', "(", "。")
"""some punctuation marks that come right before a word, without a space"""
MAX_TERM_TOKENS = 1024
"""tokens that the terms of a sentence may have together; the time of a search grows with them"""


class Spelling:
    """The text that each target id of a tokenizer adds to a translation, and its inverse."""

    def __init__(self, tokenizer: Tokenizer, tokenized: bool = False) -> None:
        """Read the texts; `tokenized`: translations have spaces between words and punctuation."""
        self.tokenizer = tokenizer
        self.tokenized = tokenized
        self.bytes = tokenizer.target.piece_bytes()
        """the UTF-8 text that each id adds"""

    @cached_property
    def word_ends(self) -> Array:
        """A mask (V,): True for tokens, EOS included, before which a word is complete."""
        return np.array([self._ends_word(i) for i in range(len(self.bytes))])

    def closes_term(self, token: int) -> bool:
        """Whether a term at the end of the text is a whole word if this token follows it."""
        if token == EOS or self.bytes[token].startswith(b" "):
            return True
        # In tokenized text only a space ends a word.
        return not self.tokenized and bool(self.word_ends[token])

    def closes_cluster(self, token: int) -> bool:
        """Whether a term of an unspaced script may end before this token, so not before a sign."""
        return not continues_cluster(self.bytes[token].decode("utf-8", errors="ignore"))

    @cached_property
    def has_inner_pieces(self) -> bool:
        """Whether a word may have several ids; False for a vocabulary of whole words."""
        return any(text and not self.word_ends[i] for i, text in enumerate(self.bytes))

    def ids(self, text: str) -> tuple[int, ...]:
        """Return the ids, without EOS, of a text with a space in front of it.

        Raises:
            DataError: the text has no id, or the vocabulary does not mark where words begin.
        """
        ids = self.tokenizer.target.encode([text])[0][:-1]  # without EOS
        if not ids:
            raise DataError(
                f"{text!r} leaves nothing behind when it is cut into pieces; leave it out"
            )
        first = self.bytes[ids[0]]
        if first.startswith(b" "):
            return tuple(ids)
        if (spaced_first := self._id_of_bytes.get(b" " + first)) is not None:
            return (spaced_first, *ids[1:])  # the first piece exists with a space, too
        if (space := self._id_of_bytes.get(b" ")) is not None:
            return (space, *ids)  # the space is an id by itself
        if is_unspaced(text[0]):  # such as Chinese: no space between words
            return tuple(ids)
        raise DataError(
            f"{text!r} cannot be forced: the vocabulary of the model does not mark where words "
            "begin; use a tokenizer that puts a space in front of a text (add_dummy_prefix)"
        )

    def ids_without_space(self, text: str) -> tuple[int, ...]:
        """Return the ids of a text that follows a mark directly, such as "("; () if unknown."""
        if self.tokenized:  # no word follows a mark without a space
            return ()
        for mark in _MARKS:
            ids = self.tokenizer.target.encode([mark + text])[0][:-1]  # without EOS
            for mark_ids in (1, 2):  # the mark is one id, or a space and an id
                if self.text_of(ids[:mark_ids]) == f" {mark}".encode():
                    return tuple(ids[mark_ids:])
        return ()

    def prefix(self, text: str) -> tuple[tuple[int, ...], bytes]:
        """Return the ids of a prefix's complete words, and the bytes of all its words.

        The last word may become longer, so it has no fixed ids: "Ein Hu" may become "Ein Hund",
        but "Ein Hund " only "Ein Hund" and another word. If the vocabulary lacks a letter of the
        last word, that word counts as complete. The bytes begin with a space. A blank text has no
        ids and no bytes.

        Raises:
            DataError: the prefix has no id, or the vocabulary does not mark where words begin.
        """
        if not text.strip():
            return (), b""
        single_spaced = re.sub(r"\s+", " ", text.lstrip())
        complete, _, last_word = single_spaced.rpartition(" ")
        [last_ids] = self.tokenizer.target.encode([last_word])
        [decoded] = self.tokenizer.target.decode([last_ids])  # as the vocabulary normalises it
        last_bytes = f" {decoded}".encode()
        if UNK in last_ids or not self.can_spell(last_bytes):  # the last word counts as complete
            complete, last_bytes = text, b""
        ids = self.ids(complete) if complete else ()
        return ids, self.text_of(ids) + last_bytes

    def text_of(self, ids: Sequence[int]) -> bytes:
        """Return the UTF-8 text of a sequence of ids."""
        return b"".join(self.bytes[i] for i in ids)

    def continuations(self, text: bytes) -> list[list[int]]:
        """Return for each position of a text the ids that may follow what is spelled up to there.

        An id spells the next bytes of the text, or all that is left and more. After it, the rest of
        the text can be spelled, too; a position without such an id has none. A text is looked
        through once, in time linear in its length, and the latest ones are kept.
        """
        return self._kept_continuations(text)

    @cached_property
    def _kept_continuations(self) -> Callable[[bytes], list[list[int]]]:
        """`_find_continuations` with a cache of the latest texts."""
        return lru_cache(maxsize=16)(self._find_continuations)

    def _find_continuations(self, text: bytes) -> list[list[int]]:
        """Compute `continuations`, from the last position of the text to the first."""
        found: list[list[int]] = [[]] * len(text)
        for start in reversed(range(len(text))):
            check_not_cancelled()
            ids = []
            for i in self._beginnings(text, start):
                end = start + len(self.bytes[i])
                if end >= len(text) or found[end]:  # the rest can be spelled
                    ids.append(i)
            found[start] = ids
        return found

    def can_spell(self, text: bytes) -> bool:
        """Whether some sequence of ids spells this text, or a longer one that begins with it."""
        return not text or bool(self.continuations(text)[0])

    def _beginnings(self, text: bytes, start: int) -> list[int]:
        """Return the ids that spell the text from `start` on in part, or all of it and more."""
        last = min(len(text), start + self._longest + 1)
        parts = [self._id_of_bytes.get(text[start:end]) for end in range(start + 1, last)]
        shorter = [i for i in parts if i is not None]
        if len(text) - start > self._longest:
            return shorter
        # ids that begin with all of the rest are next to each other when sorted by their bytes
        rest = text[start:]
        low = bisect_left(self._bytes_and_ids, (rest, -1))  # -1 sorts before all ids
        high = bisect_left(self._bytes_and_ids, (rest + _BYTE_AFTER_ANY, -1))
        return shorter + [i for _, i in self._bytes_and_ids[low:high]]

    @cached_property
    def _longest(self) -> int:
        """The number of bytes of the longest id."""
        return max((len(text) for text, _ in self._bytes_and_ids), default=0)

    @cached_property
    def _id_of_bytes(self) -> dict[bytes, int]:
        """The id of each spelled text; of several, the lowest."""
        # reversed: of several ids with the same bytes, the lowest one stays
        return {text: i for text, i in reversed(self._bytes_and_ids)}

    @cached_property
    def _bytes_and_ids(self) -> list[tuple[bytes, int]]:
        """(text in UTF-8, id) of each id that spells something, sorted."""
        # Decoding drops the first space of a text, but not one that is spelled as a byte.
        spelled = enumerate(zip(self.bytes, self.tokenizer.target.pieces, strict=True))
        return sorted(
            (text, i)
            for i, (text, piece) in spelled
            if text and i != UNK and (text != b" " or piece == "▁")
        )

    def _ends_word(self, i: int) -> bool:
        """Return whether the word before an id is complete, because the id does not continue it."""
        if i == EOS:
            return True
        text = self.bytes[i].decode("utf-8", errors="ignore")
        if i == UNK and not text.startswith(" "):
            return False  # UNK may stand for a letter of the same word
        return bool(text) and not continues_word(text)


@dataclass(frozen=True)
class LexicalConstraints:
    """Constraints on the translation of one sentence, as text."""

    terms: tuple[str, ...] = ()
    """must occur as whole words or phrases; a term that is listed twice must occur twice"""
    forbidden: tuple[str, ...] = ()
    """words and phrases that must not occur; one in small letters forbids every casing"""
    prefix: str = ""
    """the translation begins with this; its last word may be longer unless a space follows"""
    source_spans: tuple[range, ...] = ()
    """source characters of each glossary term, spaces not counted; `terms` begins with these"""
    forms: tuple[tuple[str, ...], ...] = ()
    """other forms of each of the first terms, any of which may stand in its place"""

    def __bool__(self) -> bool:
        return bool(self.terms or self.forbidden or self.prefix)

    def ways(self, term: int) -> tuple[str, ...]:
        """Return what may stand for a term (an index): itself first, then its other forms."""
        return (self.terms[term], *(self.forms[term] if term < len(self.forms) else ()))

    def places(self, text: str) -> list[tuple[int, int]]:
        """Return the characters of a translation that are its prefix, and those of each term.

        Each is looked for once; there is no place of what is not found.
        """
        found = (
            max((way for way in self.ways(term) if way in text), key=len, default=self.terms[term])
            for term in range(len(self.terms))
        )
        starts = [(text.find(word), len(word)) for word in (self.prefix, *found)]
        return [(start, start + length) for start, length in starts if start >= 0 and length]


@dataclass(frozen=True, slots=True)
class TermTokenization:
    """One sequence of ids that spells a term."""

    term: int
    """index of the term"""
    ids: tuple[int, ...]
    spaced: bool
    """whether the ids include a space in front; if not, the term directly follows other text"""
    text: str
    """the term, or the form of it, as the user wrote it"""


@dataclass(frozen=True)
class SpelledConstraints:
    """Constraints on the translation of one sentence, in the ids of a vocabulary."""

    text: LexicalConstraints
    terms: tuple[tuple[int, ...], ...]
    """the ids of each term, with the space in front of it"""
    tokenizations: tuple[TermTokenization, ...]
    """all ways to spell each term: with a space in front, and if possible without"""
    source_tokens: tuple[range, ...]
    """the source tokens of each glossary term (first in `terms`); () if they are unknown"""
    prefix_ids: tuple[int, ...]
    """the ids of the complete words of the prefix; its last word may become longer"""
    prefix_text: bytes
    """UTF-8 text with which a hypothesis must begin: the whole prefix, with a space in front"""
    context_ids: tuple[int, ...] = ()
    """the ids that come before all of it, which are no part of the translation; no other constraint
    concerns them"""

    @classmethod
    def spell(
        cls, text: LexicalConstraints, spelling: Spelling, source: Sequence[str] = ()
    ) -> "SpelledConstraints":
        """Turn the constraints into ids; `source`: the pieces of the source, empty if unknown.

        Raises:
            DataError: constraints that contradict each other, cannot be spelled or are too long.
        """
        terms = tuple(spelling.ids(term) for term in text.terms)
        if (length := sum(map(len, terms))) > MAX_TERM_TOKENS:
            raise DataError(
                f"its {len(terms)} terms have {length} tokens, and {MAX_TERM_TOKENS} are allowed; "
                "ask for fewer or shorter terms, or divide the sentence"
            )
        tokenizations = []
        for i, form, ids in _ways(text, terms, spelling):
            tokenizations.append(TermTokenization(i, ids, True, form))
            if unspaced_ids := spelling.ids_without_space(form):
                tokenizations.append(TermTokenization(i, unspaced_ids, False, form))
        demands = [(term, False) for term in text.terms]  # (text, whether its last word may grow)
        demands.append((text.prefix, spelling.has_inner_pieces))
        for demanded, may_grow in demands:
            if contains_any(text.forbidden, demanded.encode("utf-8"), may_grow):
                raise DataError(
                    f"{demanded!r} is asked for, and {', '.join(map(repr, text.forbidden))} is "
                    "forbidden; leave out one of them"
                )
        known_spans = text.source_spans if source else ()
        spans = tuple(source_token_range(span, source) for span in known_spans)
        prefix_ids, prefix_text = spelling.prefix(text.prefix)
        return cls(text, terms, tuple(tokenizations), spans, prefix_ids, prefix_text)

    @property
    def forbidden(self) -> tuple[str, ...]:
        """The words and phrases that must not occur."""
        return self.text.forbidden

    @cached_property
    def term_length(self) -> int:
        """The number of tokens of all terms together, each in its longest form."""
        return sum(max(lengths) for lengths in self._lengths)

    @cached_property
    def shortest(self) -> list[int]:
        """The number of tokens of each term in its shortest form, with the space in front."""
        return [min(lengths) for lengths in self._lengths]

    @cached_property
    def _lengths(self) -> list[list[int]]:
        lengths: list[list[int]] = [[] for _ in self.terms]
        for way in self.tokenizations:
            if way.spaced:
                lengths[way.term].append(len(way.ids))
        return lengths

    @property
    def most_tokens(self) -> int:
        """An upper bound of the number of tokens that terms and prefix have together."""
        # a token of the prefix has a byte or more
        return self.term_length + len(self.prefix_text) + len(self.context_ids)

    @property
    def has_unknown(self) -> bool:
        """Whether a term contains UNK; then UNK must occur in terms only, to be replaced."""
        return any(UNK in ids for ids in self.terms)

    @property
    def needs_search(self) -> bool:
        """Whether only a search under constraints can meet them: see `are_met_by`."""
        return bool(self.text.prefix or self.context_ids) or self.has_unknown

    def are_met_by(self, text: str) -> bool:
        """Whether a text has every term, each in a place of its own, and no forbidden word.

        Terms are whole words. Always False if there is a prefix, or a term with UNK among its ids:
        this method does not check those two, and only the constrained search produces them.
        """
        if self.needs_search or contains_any(self.forbidden, text.encode("utf-8")):
            return False
        unused = " ".join(text.split())  # the text without the terms that are found already
        indices = range(len(self.text.terms))
        for term in sorted(indices, key=lambda i: len(self.text.terms[i]), reverse=True):
            ways = (" ".join(way.split()) for way in self.text.ways(term))
            places = ((find_term(way, unused), way) for way in ways)
            start, spelled = next((each for each in places if each[0] >= 0), (-1, ""))
            if start < 0:
                return False
            unused = f"{unused[:start]} {unused[start + len(spelled) :]}"
        return True


def _ways(
    text: LexicalConstraints, terms: Sequence[tuple[int, ...]], spelling: Spelling
) -> Iterator[tuple[int, str, tuple[int, ...]]]:
    """Yield index, text and ids of each term and of each form that can be spelled and may occur."""
    for i, ids in enumerate(terms):
        yield i, text.terms[i], ids
        for form in text.ways(i)[1:] if UNK not in ids else ():
            of_form = spelling.ids(form)
            if UNK not in of_form and not contains_any(text.forbidden, form.encode()):
                yield i, form, of_form


def contains_any(words: tuple[str, ...], text: bytes, may_grow: bool = False) -> bool:
    """Whether a text in UTF-8 contains one of `words`.

    With `may_grow` the last word does not count, because it may still become a longer one.
    """
    if not words:
        return False
    # Invalid bytes separate words. If the last word may grow, the decoding is not `final`: then it
    # leaves out the first bytes of an incomplete character at the end.
    written = _DECODER("replace").decode(text, final=not may_grow)
    if may_grow and may_grow_after(written[-1:]):
        written += _RARE_SIGN  # makes the last word another word, so that it is not found
    return has_any(words, written)


def source_token_range(span: range, pieces: Sequence[str]) -> range:
    """Return the indices of the `pieces` that spell characters `span` (spaces are not counted)."""
    lengths = [len(piece.replace("▁", "").replace(" ", "")) for piece in pieces]
    ends = list(accumulate(lengths))  # for each piece, the number of characters up to its end
    first = bisect_right(ends, span.start)  # the first piece that ends after the span's start
    last = bisect_left(ends, span.stop)  # the first piece that reaches the span's end
    return range(first, last + 1)
