"""Finds whole words in text of any script.

A word consists of letters, marks, digits and underscores; a hyphen between them belongs to the
word: "T-Shirt" is one word. An apostrophe separates words: "dog's" has the word "dog", and "l'eau"
the word "eau". In scripts that are written without spaces a term may begin and end anywhere.
"""

import functools

import regex

_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
_WORD = rf"[\p{{L}}\p{{M}}\p{{N}}\p{{Pc}}\u200c\u200d--[{_UNSPACED}]]"
_HYPHEN = "[-\u2010\u2011]"
# no word, and no word with a hyphen, touches a term before or after it
_BEFORE = rf"(?<!{_WORD})(?<!{_WORD}{_HYPHEN})"
_AFTER = rf"(?!{_WORD}|{_HYPHEN}{_WORD})"
_WORD_MAY_BEGIN, _WORD_MAY_END = (regex.compile(edge, regex.V1) for edge in (_BEFORE, _AFTER))
_WORDS = regex.compile(rf"{_WORD}+(?:{_HYPHEN}{_WORD}+)*|\S", regex.V1)
_FIRST_UNSPACED = regex.compile(rf"[{_UNSPACED}]", regex.V1)
# opening brackets and quotation marks
_OPENING = regex.compile(r"[\p{Ps}\p{Pi}\"'¿¡«»„]")
_WORD_OR_HYPHEN = regex.compile(rf"{_WORD}|{_HYPHEN}", regex.V1)


def words(text: str) -> list[str]:
    """Return a text's words and punctuation marks; in unspaced scripts each character is a word."""
    parts: list[str] = _WORDS.findall(text)
    return parts


def word_spans(text: str) -> list[tuple[int, int]]:
    """Return the characters [start, end) of each of a text's `words`."""
    return [match.span() for match in _WORDS.finditer(text)]


def has_capital(term: str) -> bool:
    """Return whether a term has a capital letter.

    Such a term is found only as it is written. A lower-case term is found in any casing, because it
    may begin a sentence.
    """
    return term != term.lower()


def is_unspaced(character: str) -> bool:
    """Return whether a character's script is written without spaces."""
    return _FIRST_UNSPACED.match(character) is not None


def continues_word(text: str) -> bool:
    """Return whether `text` begins with a letter, digit or hyphen, and so extends a word."""
    return _WORD_OR_HYPHEN.match(text) is not None


def is_opening(character: str) -> bool:
    """Return whether the character is an opening bracket or an opening quotation mark."""
    return _OPENING.match(character) is not None


@functools.lru_cache(maxsize=256)
def any_of(terms: tuple[str, ...]) -> "regex.Pattern[str]":
    """Return a pattern that finds any of the terms as whole words; lower-case terms in any casing.

    White space inside a term matches any white space. A term that begins or ends with a
    punctuation mark needs no word boundary there.
    """
    patterns = [_whole(term, has_capital(term)) for term in terms]
    return regex.compile("|".join(patterns), regex.V1)


def has_any(terms: tuple[str, ...], text: str) -> bool:
    """Whether `any_of` the terms finds something.

    Most texts lack even a part of each term. For these no pattern is compiled, which takes about as
    long as translating a short sentence.
    """
    folded = _fold_case(text)
    may_contain = any(part in folded for part in _folded_parts(terms))
    return may_contain and any_of(terms).search(text) is not None


@functools.lru_cache(maxsize=256)
def _folded_parts(terms: tuple[str, ...]) -> list[str]:
    """Return a part of each term, without white space, that must be in a text with the term."""
    return [_fold_case(max(term.split(), key=len)) for term in terms]


def _fold_case(text: str) -> str:
    """Return a text whose letters equal each other if they do in any casing, Turkish i included."""
    return text.casefold().replace("\N{LATIN SMALL LETTER DOTLESS I}", "i").replace("\u0307", "")


def find_term(term: str, text: str) -> int:
    """Return where a term first stands in a text as whole words, cased as it is; -1 if it does not.

    White space must be the same in both. Unlike `any_of`, no pattern is compiled for the term.
    """
    start = text.find(term)
    while start >= 0:
        end = start + len(term)
        begins = not continues_word(term[0]) or _WORD_MAY_BEGIN.match(text, start)
        if begins and (not continues_word(term[-1]) or _WORD_MAY_END.match(text, end)):
            return start
        start = text.find(term, start + 1)
    return start


def _whole(term: str, cased: bool) -> str:
    """Return the pattern of one term as whole words: as it is written, or in any casing."""
    spelled = r"\s+".join(regex.escape(part, literal_spaces=True) for part in term.split())
    before = _BEFORE if continues_word(term[0]) else ""
    after = _AFTER if continues_word(term[-1]) else ""
    pattern = spelled if cased else f"(?i:{spelled})"
    return f"(?:{before}{pattern}{after})"
