"""Tests on the text of one pair: control characters, scripts, languages, numbers, links, copies.

A rule is true of a pair that is to be left out. `cleaning.py` says which rules a recipe turns on.
"""

import difflib
from collections.abc import Callable

import regex

from nmt.data.text.language_identification import known_languages, rank_languages
from nmt.data.text.parallel_text import SentencePair
from nmt.errors import ConfigError, MissingExtraError

Rule = Callable[[SentencePair], object]

_LETTER = regex.compile(r"\p{L}")
# control characters but tab, and the replacement character
_CONTROL = regex.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\ufffd]")
# what `surrogateescape` makes of a byte that is not UTF-8
_UNDECODED = regex.compile(r"[\udc80-\udcff]")
_DIGIT = regex.compile(r"[1-9]")
_LINK = regex.compile(r"https?://[^\s<>\"]+|www\.[^\s<>\"]+|[\w.+-]+@[\w-]+\.[\w.-]+")
_LINK_END = ".,;:!?)]}'\u00bb\u201d"
_WORD = regex.compile(r"\w+")

_ALIKE_NUMBERS = 0.5
_COPIED_WORDS = 0.6
_FEWEST_WORDS = 3
_UNLIKELY_LANGUAGE = 50


def is_undecoded(pair: SentencePair) -> bool:
    """Return whether a pair has bytes that are not UTF-8, read with `surrogateescape`."""
    return any(map(_UNDECODED.search, pair))


def is_empty(pair: SentencePair) -> bool:
    """Return whether a side has white space alone."""
    return not all(map(str.strip, pair))


def has_control_character(pair: SentencePair) -> bool:
    """Return whether a side has a control character (except tab) or U+FFFD."""
    # `isprintable` is much cheaper than the search, and printable text has no other control
    # characters than U+FFFD
    return any(
        ("\ufffd" in text or not text.isprintable()) and _CONTROL.search(text) for text in pair
    )


def other_script(script: str, side: int) -> Rule:
    """Return a rule: under half the letters of the source (0) or target (1) are in `script`.

    Raises:
        ConfigError: Unicode has no such script.
    """
    try:
        inside = regex.compile(rf"\p{{Script={script}}}")
    except regex.error as error:
        key = ("source_script", "target_script")[side]
        raise ConfigError(
            f"data.cleaning.{key}: '{script}' is not a script of Unicode; "
            "write for instance Latin, Cyrillic, Greek, Arabic, Han"
        ) from error

    def is_other(pair: SentencePair) -> bool:
        letters = _LETTER.findall(pair[side])
        return 2 * sum(1 for c in letters if inside.match(c)) < len(letters)

    return is_other


def other_language(languages: tuple[str, str]) -> Rule:
    """Return a rule: a side is in another language than (source, target) of `languages`.

    That is so if py3langid finds some other language at least 50 times as probable. On short
    sentences it is often unsure, and then the pair stays.

    Raises:
        ConfigError: py3langid does not know a language.
        MissingExtraError: py3langid is not installed.
    """
    known = known_languages("data.cleaning.language")
    codes = [code.replace("-", "_").split("_")[0].lower() for code in languages]
    for code in codes:
        if code not in known:
            raise ConfigError(
                f"data.cleaning.language: py3langid does not know the language '{code}'; leave the "
                f"rule out, or name one of {', '.join(sorted(known))}"
            )

    def is_other(pair: SentencePair) -> bool:
        for text, code in zip(pair, codes, strict=True):
            ranked = rank_languages(text)
            best, own = ranked[0][1], dict(ranked)[code]
            if own * _UNLIKELY_LANGUAGE < best:
                return True
        return False

    return is_other


def mojibake() -> Rule:
    """Return a rule: a side was decoded with a wrong encoding, as in "schÃ¶n" (by ftfy).

    Raises:
        MissingExtraError: ftfy is not installed.
    """
    try:
        from ftfy.badness import is_bad
    except ImportError as error:
        raise MissingExtraError("data.cleaning.mojibake", "clean") from error
    return lambda pair: any(map(is_bad, pair))


def numbers_differ(pair: SentencePair) -> bool:
    """Return whether the digits of both sides, without zeros, are less than half alike.

    As the filter of numerals in OpusFilter (Vázquez et al., 2019): separators and zeros are left
    out, so "10,000" and "10.000" and "10 thousand" are alike. A side without digits may have
    written its numbers as words; the pair then stays unless the other side has two numbers.
    """
    digits = [_DIGIT.findall(text) for text in pair]
    if digits[0] == digits[1]:
        return False
    if not all(digits):
        return len(max(digits, key=len)) > 1
    alike = difflib.SequenceMatcher(None, digits[0], digits[1], autojunk=False).ratio()
    return alike < _ALIKE_NUMBERS


def links_differ(pair: SentencePair) -> bool:
    """Return whether an address of the web or of mail stands on one side only."""
    if not any("@" in text or "www." in text or "://" in text for text in pair):
        return False
    source, target = (
        sorted(link.rstrip(_LINK_END) for link in _LINK.findall(text)) for text in pair
    )
    return source != target


def is_copied(pair: SentencePair) -> bool:
    """Return whether most words of the target are those of the source, so it is no translation.

    Of the distinct words of the side that has more, six of ten are on the other side as well.
    Pairs of fewer than three words stay: names are the same in both languages.
    """
    source, target = (set(_WORD.findall(text.casefold())) for text in pair)
    longer = max(len(source), len(target))
    return longer >= _FEWEST_WORDS and len(source & target) >= _COPIED_WORDS * longer
