"""What a whole word is, in text of any script.

Letters, marks, digits and underscores make up a word, and a hyphen between them joins: "T-Shirt" is
one word. An apostrophe separates: "dog's" has the word "dog", and "l'eau" the word "eau". Scripts
that are written without spaces have no such boundaries: there a term may begin and end anywhere.
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
    """The words and marks of a text, in order, white space aside."""
    found: list[str] = _WORDS.findall(text)
    return found


def has_capital(term: str) -> bool:
    """Whether a term is written with a capital: it then stands for this spelling alone.

    In small letters it stands for every casing, as at the beginning of a sentence.
    """
    return term != term.lower()


def is_unspaced(character: str) -> bool:
    """Whether a character's script is written without spaces."""
    return _FIRST_UNSPACED.match(character) is not None


def continues_word(text: str) -> bool:
    """Whether what begins so, put behind a word without a space, makes it another word."""
    return _GLUED.match(text) is not None


def opens(character: str) -> bool:
    """Whether a character is a mark that a word follows without a space, as brackets and quotes."""
    return _OPENING.match(character) is not None


def in_a_word(text: str) -> bool:
    """Whether the text ends inside a word, so that another one needs a space before it."""
    return bool(text) and _GLUED.match(text[-1]) is not None


@functools.lru_cache(maxsize=256)
def any_of(terms: tuple[str, ...]) -> "regex.Pattern[str]":
    """A pattern that finds each of the terms as whole words, with any white space inside them.

    A mark at the edge of a term needs no boundary there.
    """
    return regex.compile("|".join(_whole(term) for term in terms), regex.V1)


def _whole(term: str) -> str:
    spelled = r"\s+".join(regex.escape(part, literal_spaces=True) for part in term.split())
    before = _BEFORE if in_a_word(term[0]) else ""
    after = _AFTER if in_a_word(term[-1]) else ""
    cased = spelled if has_capital(term) else f"(?i:{spelled})"
    return f"(?:{before}{cased}{after})"
