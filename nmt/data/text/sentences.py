"""Splits running text into sentences.

The rules are for English, German and French, and serve other languages with similar punctuation: a
full stop ends a sentence unless it belongs to an abbreviation, an initial or an ordinal. After
one that may be both, as in "etc.", the next word decides. The words are in sentences.yaml.
"""

import functools
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import regex

from nmt import strict_yaml
from nmt.data.languages import look_up_language

# the number of characters before and after a full stop that the rules look at
_NEAR = 40
_OPENING = r"\p{Ps}\p{Pi}\p{Pf}\"'¿¡\-–—"
# Two alternatives: marks that need white space and a capital, digit or the like after them; and
# the full stops of Chinese and Japanese, which need none.
_BOUNDARY = regex.compile(
    rf"""
    (?<![.!?…؟۔।॥])(?P<mark>[.!?…؟۔।॥]++)
    (?P<closing>
        (?:[\p{{Pe}}\p{{Pi}}\p{{Pf}}"']|[\ \u00a0\u202f]»(?=\s)|\ ?\p{{Emoji_Presentation}})*+
    )
    \s++(?=[{_OPENING}\s]*+(?:[\p{{Lu}}\p{{Lt}}\p{{Lo}}\p{{N}}\p{{Sc}}]|\p{{Ll}}\p{{Lu}}))
    |
    (?<![。！？｡])[。！？｡]++[\p{{Pe}}\p{{Pf}}"']*+\s*+(?=[^\s、，と])
    """,
    regex.VERBOSE,
)
_NEXT_WORD = regex.compile(rf"[{_OPENING}\s]*+(\w++['’]?)")
_LEADING = regex.compile(rf"^[{_OPENING}]++")
# an initial, or several letters each with its full stop: "J", "J.-J", "U.S", "Ph.D"
_DOTTED = regex.compile(r"[\p{Lu}\p{Ll}]|(?:[\p{Lu}\p{Ll}]{1,2}\.-?)+[\p{Lu}\p{Ll}]{1,2}")
_ORDINAL = regex.compile(r"\d{1,2}|[IVXL]++")


def split_sentences(text: str, language: str = "") -> list[str]:
    """Return the sentences of a text, stripped of white space; a blank text has none.

    `language` is a code such as "de" or "de-AT". Languages other than English, German and French
    use the abbreviations of all three.
    """
    rules = _rules(language)
    sentences = []
    start = 0
    for boundary in _BOUNDARY.finditer(text):
        is_full_stop = boundary["mark"] == "."  # other marks always end a sentence
        if not (is_full_stop and rules.continues(text, start, boundary)):
            sentences.append(text[start : boundary.end()].strip())
            start = boundary.end()
    sentences.append(text[start:].strip())
    return [sentence for sentence in sentences if sentence]


@dataclass(frozen=True)
class _Rules:
    """The word lists of a language, described in sentences.yaml, that decide about full stops."""

    never_last: frozenset[str]
    """abbreviations that never end a sentence"""
    before_numbers: frozenset[str]
    """abbreviations that do not end it before a number, such as "No." """
    may_be_last: frozenset[str]
    """abbreviations that may end it: the next word decides"""
    first_words: frozenset[str]
    """capitalised words that usually begin a sentence"""
    ordinals: bool
    """whether a number with a full stop may be an ordinal, as in German"""

    def continues(self, text: str, start: int, boundary: "regex.Match[str]") -> bool:
        """Return whether the sentence from `start` continues after a full stop.

        `boundary` is the match of `_BOUNDARY` at the full stop.
        """
        stop = boundary.start("mark")  # index of the full stop
        last_words = text[max(start, stop - _NEAR) : stop].split()[-3:]
        words = [_LEADING.sub("", word) for word in last_words]
        if not words:
            return False
        word = words[-1]
        spellings = {"".join(words[-count:]) for count in (1, 2, 3)}  # "z. B." is "z.B." too
        spellings |= {spelling[:1].lower() + spelling[1:] for spelling in spellings}
        if spellings & self.never_last:
            return True
        if boundary["closing"]:  # a quotation mark or bracket closes here
            return False
        if stop - start < _NEAR and text[start:stop].strip() == word and word.isdecimal():
            return True  # the number of an item of a list
        next_word = _NEXT_WORD.match(text, boundary.end(), boundary.end() + _NEAR)
        following = next_word[1].replace("’", "'") if next_word else ""
        if word in self.before_numbers and following[:1].isdecimal():
            return True
        may_continue = (
            bool(spellings & self.may_be_last)
            or bool(_DOTTED.fullmatch(word))
            or (self.ordinals and bool(_ORDINAL.fullmatch(word)))
        )
        return may_continue and not {following, following.rstrip("'")} & self.first_words


@functools.cache
def _word_lists() -> dict[str, Any]:
    """Return the word lists of all languages: {name of the list: {language: words}}."""
    path = files("nmt.data.text") / "sentences.yaml"
    lists: dict[str, Any] = strict_yaml.parse(path.read_text("utf-8"), path.name)[0]
    return lists


@functools.lru_cache
def _rules(language: str) -> _Rules:
    """Return the rules of a language; one without word lists gets those of all languages."""
    code, lists = look_up_language(language).base, _word_lists()

    def word_list(name: str) -> frozenset[str]:
        words: dict[str, str] = lists[name]
        all_words = " ".join(words.values())
        return frozenset(words.get(code, all_words).split())

    return _Rules(
        never_last=word_list("never_last"),
        before_numbers=word_list("before_numbers"),
        may_be_last=word_list("may_be_last"),
        first_words=word_list("first_words"),
        ordinals=code in lists["ordinals"].split(),
    )
