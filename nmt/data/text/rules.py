"""Tests on the text of one pair: control characters, scripts, languages, numbers, links, copies.

A rule is a function that returns whether to leave a pair out. `cleaning.py` says which rules a
recipe turns on.
"""

import difflib
from collections.abc import Callable

import regex

from nmt.data.languages import closest_language
from nmt.data.text.language_identification import (
    check_is_installed,
    is_improbable,
    known_languages,
)
from nmt.data.text.parallel_text import SentencePair
from nmt.errors import ConfigError, MissingExtraError

Rule = Callable[[SentencePair], object]

_LETTER = regex.compile(r"\p{L}")
# control characters but tab, and the replacement character
_CONTROL = regex.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\ufffd]")
# what `surrogateescape` makes of a byte that is not UTF-8
_UNDECODED = regex.compile(r"[\udc80-\udcff]")
_DIGIT = regex.compile(r"\p{Nd}")
# A mail address is looked for only where its characters begin. From each of them, a long line
# without spaces would take quadratic time.
_LINK = regex.compile(r"https?://[^\s<>\"]+|www\.[^\s<>\"]+|(?<![\w.+-])[\w.+-]++@[\w-]+\.[\w.-]+")
_LINK_END = ".,;:!?)]}'\u00bb\u201d"
_WORD = regex.compile(r"\w+")

_ALIKE_NUMBERS = 0.5  # the least ratio of alike digits
_COPIED_WORDS = 0.6  # the least share of common words in a copy
_MIN_WORDS = 3
_UNLIKELY_LANGUAGE = 1000  # how many times as probable another language must be


def is_undecoded(pair: SentencePair) -> bool:
    """Return whether a pair, decoded with `surrogateescape`, has bytes that are not UTF-8."""
    return any(map(_UNDECODED.search, pair))


def is_empty(pair: SentencePair) -> bool:
    """Return whether a side has white space alone."""
    return not all(map(str.strip, pair))


def has_control_character(pair: SentencePair) -> bool:
    """Return whether a side has a control character (except tab) or U+FFFD."""
    for text in pair:
        # `isprintable` is much cheaper than the search. Of the characters that the search looks
        # for, U+FFFD alone is printable.
        may_have_one = not text.isprintable() or "\ufffd" in text
        if may_have_one and _CONTROL.search(text):
            return True
    return False


def other_script(script: str, side: int) -> Rule:
    """Return a rule that leaves out pairs in another script.

    Then fewer than half of the letters of one side, source (0) or target (1), are in `script`.

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
        inside_count = sum(1 for letter in letters if inside.match(letter))
        return inside_count < len(letters) / 2

    return is_other


def other_language(languages: tuple[str, str]) -> Rule:
    """Return a rule that leaves out pairs with a side in another language.

    `languages` are those of source and target. A side is in another language if py3langid finds
    that language over 1,000 times as probable as the expected one. On short sentences it is often
    unsure, and then the pair stays.

    Raises:
        ConfigError: py3langid does not know a language.
        MissingExtraError: py3langid is not installed.
    """
    check_is_installed("data.cleaning.language", "clean")
    supported = sorted(known_languages())
    codes = []
    for language in languages:
        code = closest_language(language, supported)
        if code is None:
            raise ConfigError(
                f"data.cleaning.language: py3langid does not know the language '{language}'; leave "
                f"the rule out, or name one of {', '.join(supported)}"
            )
        codes.append(code)

    def is_other(pair: SentencePair) -> bool:
        sides = zip(codes, pair, strict=True)
        return any(is_improbable(code, text, _UNLIKELY_LANGUAGE) for code, text in sides)

    return is_other


def mojibake() -> Rule:
    """Return a rule that leaves out pairs with a wrongly decoded side: "schÃ¶n" (found by ftfy).

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
    out, so "10,000" and "10.000" and "10 thousand" are alike. A digit is the same in any script. A
    side without digits may have written its numbers as words; the pair then stays unless the other
    side has two digits.
    """
    source, target = (
        [value for digit in _DIGIT.findall(text) if (value := int(digit))] for text in pair
    )
    if source == target:
        return False
    if not source or not target:
        digits = source + target  # one of them is empty
        return len(digits) > 1
    ratio = difflib.SequenceMatcher(None, source, target, autojunk=False).ratio()
    return ratio < _ALIKE_NUMBERS


def links_differ(pair: SentencePair) -> bool:
    """Return whether the web and mail addresses of both sides differ."""
    # most pairs have none, and this test is much cheaper than the search
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
    return longer >= _MIN_WORDS and len(source & target) >= _COPIED_WORDS * longer
