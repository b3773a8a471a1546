"""Whole words in text of any script.

A word consists of letters, marks, digits and underscores; a hyphen between them belongs to the
word: "T-Shirt" is one word. An apostrophe separates words: "dog's" has the word "dog", and "l'eau"
the word "eau". In scripts that are written without spaces a term may begin and end anywhere.
"""

import functools

import regex

_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
_WORD = rf"[\p{{L}}\p{{M}}\p{{N}}\p{{Pc}}\u200c\u200d--[{_UNSPACED}]]"
_HYPHEN = "[-\u2010\u2011]"
_BEFORE = rf"(?<!{_WORD})(?<!{_WORD}{_HYPHEN})"
_AFTER = rf"(?!{_WORD}|{_HYPHEN}{_WORD})"
_WORDS = regex.compile(rf"{_WORD}+(?:{_HYPHEN}{_WORD}+)*|\S", regex.V1)
_FIRST_UNSPACED = regex.compile(rf"[{_UNSPACED}]", regex.V1)
_OPENING = regex.compile(r"[\p{Ps}\p{Pi}\"'¿¡«»„]")
_GLUED = regex.compile(rf"{_WORD}|{_HYPHEN}", regex.V1)


def words(text: str) -> list[str]:
    """Return the words and punctuation marks of a text, in order."""
    found: list[str] = _WORDS.findall(text)
    return found


def has_capital(term: str) -> bool:
    """Return whether a term has a capital letter: such a term matches only its own spelling.

    A lower-case term matches every casing, as at the beginning of a sentence.
    """
    return term != term.lower()


def is_unspaced(character: str) -> bool:
    """Return whether a character's script is written without spaces."""
    return _FIRST_UNSPACED.match(character) is not None


def continues_word(text: str) -> bool:
    """Return whether the text would become part of a word that it follows without a space."""
    return _GLUED.match(text) is not None


def opens(character: str) -> bool:
    """Return whether a word follows the character without a space, as after an opening bracket."""
    return _OPENING.match(character) is not None


@functools.lru_cache(maxsize=256)
def any_of(terms: tuple[str, ...]) -> "regex.Pattern[str]":
    """Return a pattern that finds each of the terms as whole words, with any white space inside.

    A punctuation mark at the edge of a term needs no word boundary.
    """
    return regex.compile("|".join(_whole(term) for term in terms), regex.V1)


def _whole(term: str) -> str:
    spelled = r"\s+".join(regex.escape(part, literal_spaces=True) for part in term.split())
    before = _BEFORE if continues_word(term[0]) else ""
    after = _AFTER if continues_word(term[-1]) else ""
    cased = spelled if has_capital(term) else f"(?i:{spelled})"
    return f"(?:{before}{cased}{after})"
