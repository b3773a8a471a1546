"""Finds whole words in text of any script.

A word consists of letters, marks, digits and underscores; a hyphen between them belongs to the
word: "T-Shirt" is one word. An apostrophe separates words: "dog's" has the word "dog", and "l'eau"
the word "eau". In scripts that are written without spaces a term may begin and end anywhere but
inside a cluster, which is a letter with the signs that are written around it.
"""

import functools
import re
import unicodedata
from collections.abc import Iterator

import regex

_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
_WORD = rf"[\p{{L}}\p{{M}}\p{{N}}\p{{Pc}}\u200c\u200d--[{_UNSPACED}]]"
_HYPHEN = "[-\u2010\u2011\uff0d]"
# What belongs to the cluster before it: marks, vowels after Thai and Lao consonants, small kana and
# the sign of a long vowel, and a Burmese consonant that ends a syllable or has another below it.
_SIGN = (
    r"[\p{M}\p{Grapheme_Extend}\p{Emoji_Modifier}\u200d\u0e30\u0e32\u0e33\u0e45\u0eb0\u0eb2\u0eb3\u0ebd"
    r"ぁぃぅぇぉゃゅょゎァィゥェォャュョヮｧ-ｮｰーゝゞヽヾ]|[\u1000-\u1021\u103f][\u103a\u1039]"
)
# What binds the letter after it: vowels before Thai and Lao consonants, and signs that put the next
# consonant below the last one.
_BINDING = r"[\p{Logical_Order_Exception}\u1039\u17d2\u1a60\u200d]"
_CLUSTER = (
    rf"(?:\p{{Regional_Indicator}}{{2}}|\p{{Logical_Order_Exception}}?\S)"
    rf"(?:{_SIGN}|(?<=[\u1039\u17d2\u1a60\u200d])\S)*+"
)
# no word, and no word with a hyphen, touches a term before or after it
_BEFORE = rf"(?<!{_WORD})(?<!{_WORD}{_HYPHEN})"
_AFTER = rf"(?!{_WORD}|{_HYPHEN}{_WORD})"
_CLUSTER_MAY_BEGIN, _CLUSTER_MAY_END = rf"(?<!{_BINDING})", rf"(?!{_SIGN})"
NUMBER = regex.compile(rf"{_BEFORE}\p{{Nd}}+(?:[.,:/-]\p{{Nd}}+)*{_AFTER}", regex.V1)
"""a number, date or time in digits that is no part of a word: 1,000.5 and 12/03/2026, not B12"""
_WORDS = regex.compile(rf"{_WORD}+(?:{_HYPHEN}{_WORD}+)*|{_CLUSTER}", regex.V1)
# Text in Latin, Greek or Cyrillic without combining marks: there a simpler pattern finds the same
# words in a third of the time.
_NOT_PLAIN = re.compile(
    "[^\0-\x1b\x20-\u02af\u0370-\u0482\u048a-\u052f\u1e00-\u1fff\u2010-\u2027\u20ac]"
)
_PLAIN_WORDS = re.compile(rf"\w+(?:{_HYPHEN}\w+)*|\S")
_NO_SPACE = regex.compile(r"\S+")
_SIGN_FIRST = regex.compile(_SIGN, regex.V1)
_FIRST_UNSPACED = regex.compile(rf"[{_UNSPACED}]", regex.V1)
# opening brackets and quotation marks
_OPENING = regex.compile(r"[\p{Ps}\p{Pi}\"'¿¡«»„]")
SYMBOL_SIGNS = r"\uFE0E\uFE0F\u20D0-\u20FF"
"""Characters that make a symbol of the one before, such as the signs of a keycap; for a class of a
regular expression."""
# also private use, and emoji that are newer than the tables of Unicode
_SYMBOL = regex.compile(rf"[\p{{S}}\p{{Co}}\p{{Cn}}{SYMBOL_SIGNS}]")
_GRAPHEME_CLUSTER = regex.compile(r"\X")
_GROWING = regex.compile(r"[\p{L}\p{M}\p{N}\p{Pd}\p{Pc}--\p{Han}]", regex.V1)
_WORD_OR_HYPHEN = regex.compile(rf"{_WORD}|{_HYPHEN}", regex.V1)


def normalise(text: str) -> str:
    """Return a text in Unicode's form NFKC: "ＡＢＣ" becomes "ABC", and "ｶﾞ" becomes "ガ".

    Texts and terms are compared in this form, which tokenizers use by default, too
    (`tokenizer.normalization`).
    """
    return text if text.isascii() else unicodedata.normalize("NFKC", text)


def fold_case(text: str) -> str:
    """Return a text, normalised, whose letters equal each other if they do in any casing.

    "ß" becomes "ss", the Greek final sigma "σ", and the Turkish "İ" and "ı" become "i".
    """
    if text.isascii():
        return text.lower()
    folded = normalise(text).casefold()
    return folded.replace("\N{LATIN SMALL LETTER DOTLESS I}", "i").replace("\u0307", "")


def words(text: str) -> list[str]:
    """Return a text's words and punctuation marks; in unspaced scripts each cluster is a word."""
    pattern = _WORDS if _NOT_PLAIN.search(text) else _PLAIN_WORDS
    parts: list[str] = pattern.findall(text)
    return parts


def word_spans(text: str) -> list[tuple[int, int]]:
    """Return the characters [start, end) of each of a text's `words`."""
    return [match.span() for match in _WORDS.finditer(text)]


def grapheme_clusters(text: str) -> Iterator[tuple[int, int]]:
    """Yield the characters [start, end) of each letter or symbol with all signs that belong to it.

    Signs are marks, joiners, skin tones, and the letters of a flag; white space is also yielded.
    """
    return (match.span() for match in _GRAPHEME_CLUSTER.finditer(text))


def has_symbol(cluster: str) -> bool:
    """Return whether there is a symbol, such as an emoji or a keycap, and not letters alone."""
    return _SYMBOL.search(cluster) is not None


def spaced_word_spans(text: str) -> list[tuple[int, int]]:
    """Return the characters [start, end) of each word between white space.

    Where a script is written without spaces, the `words` take their place. Words are counted so in
    alignments.
    """
    spans = []
    for found in _NO_SPACE.finditer(text):
        start, end = found.span()
        if _FIRST_UNSPACED.search(text, start, end):
            spans += [match.span() for match in _WORDS.finditer(text, start, end)]
        else:
            spans.append((start, end))
    return spans


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
    """Return whether `text` extends a word before it: it begins with a letter, digit or hyphen.

    In unspaced scripts only signs do, those of the last cluster.
    """
    return _WORD_OR_HYPHEN.match(text) is not None or continues_cluster(text)


def may_grow_after(character: str) -> bool:
    """Return whether a word that ends in a character may become a longer one, as in no Chinese."""
    return _GROWING.match(character) is not None


def continues_cluster(text: str) -> bool:
    """Return whether `text` begins with a sign of the cluster before it, such as an accent."""
    return _SIGN_FIRST.match(text) is not None


def is_opening(character: str) -> bool:
    """Return whether the character is an opening bracket or an opening quotation mark."""
    return _OPENING.match(character) is not None


def has_any(terms: tuple[str, ...], text: str) -> bool:
    """Return whether a text has one of the terms as whole words, by `normalise` and `fold_case`.

    Lower-case terms are found in any casing. White space inside a term matches any white space. A
    term that begins or ends with a punctuation mark needs no word boundary there.
    """
    # Most texts lack even a part of each term. For these no pattern is compiled, which takes about
    # as long as translating a short sentence.
    folded = fold_case(text)
    if not any(part in folded for part in _folded_parts(terms)):
        return False
    cased_terms, other_terms = _patterns(terms)
    return bool(other_terms.search(folded) or cased_terms.search(normalise(text)))


@functools.lru_cache(maxsize=256)
def _folded_parts(terms: tuple[str, ...]) -> list[str]:
    """Return a part of each term, without white space, that must be in a text with the term."""
    return [fold_case(max(term.split(), key=len)) for term in terms]


@functools.lru_cache(maxsize=256)
def _patterns(terms: tuple[str, ...]) -> tuple["regex.Pattern[str]", "regex.Pattern[str]"]:
    """Return a pattern of the terms that have a capital, normalised, and one of the others, folded.

    A pattern without terms finds nothing.
    """
    cased = [_whole(normalise(term)) for term in terms if has_capital(term)]
    other = [_whole(fold_case(term)) for term in terms if not has_capital(term)]
    nothing = "(?!)"
    return (
        regex.compile("|".join(cased) or nothing, regex.V1),
        regex.compile("|".join(other) or nothing, regex.V1),
    )


def find_term(term: str, text: str) -> int:
    """Return where a term first stands in a text as whole words, cased as it is; -1 if it does not.

    White space must be the same in both. Unlike in `has_any`, no pattern is compiled for the term.
    """
    before, after = _edges(term)
    start = text.find(term)
    while start >= 0:
        end = start + len(term)
        if _compiled(before).match(text, start) and _compiled(after).match(text, end):
            return start
        start = text.find(term, start + 1)
    return start


def _edges(term: str) -> tuple[str, str]:
    """Return the patterns of what must be before and after a term."""
    before = _BEFORE if _WORD_OR_HYPHEN.match(term[0]) else ""
    after = _AFTER if _WORD_OR_HYPHEN.match(term[-1]) else ""
    return before + _CLUSTER_MAY_BEGIN, after + _CLUSTER_MAY_END


@functools.cache
def _compiled(edge: str) -> "regex.Pattern[str]":
    return regex.compile(edge, regex.V1)


def _whole(term: str) -> str:
    """Return the pattern of one term as whole words."""
    spelled = r"\s+".join(regex.escape(part, literal_spaces=True) for part in term.split())
    before, after = _edges(term)
    return f"(?:{before}{spelled}{after})"
