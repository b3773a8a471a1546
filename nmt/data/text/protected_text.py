"""Finds text that must not be translated: addresses, placeholders of programs, own patterns."""

import math
import re
import time
from collections.abc import Sequence

import regex

from nmt.data.text.icu_messages import Message, find_messages
from nmt.errors import ConfigError, DataError


def _matched_braces(depth: int) -> str:
    """Return a pattern of braces with others inside, `depth` of them inside each other.

    Groups are atomic and repetitions bounded, so that a text of open braces takes linear time.
    """
    plain = r"[^{}]{0,300}+"
    pattern = rf"\{{{plain}\}}"
    for _ in range(depth):
        pattern = rf"\{{(?>{plain}(?:{pattern}{plain}){{0,12}}+)\}}"
    return pattern


# {name}, {{x}}, {{{x}}}, {user name}, {0:.2f}, {% if %}, ${v}, %{count}, #{count}, and ICU
_BRACES = rf"[$%#@]?!?{_matched_braces(4)}"
USUAL_PATTERNS = (
    # addresses of pages, files and machines, without the punctuation that ends the sentence
    r"(?:(?<!\w)[A-Za-z][A-Za-z0-9+.-]{1,15}://|www\.|mailto:)"
    r"(?:\([^\s()<>]*\)|[^\s()<>\"“”„«»])*"
    r"(?:\([^\s()<>]*\)|[^\s()<>\"“”„«»'’.,;:!?…\]}])",
    # addresses of mail
    r"[\w.+%-]{0,63}\w@\w[\w-]*(?:\.\w[\w-]*)+",
    _BRACES,
    # %s, %5.2f, %1$s, %(name)s, %<name>s, %hhd, %@; a space would make "% d" of "100 % durch"
    r"%(?:\(\w+\)|<\w+>|\d+\$)?[-+#0]*(?:\d+|\*)?(?:\.(?:\d+|\*))?"
    r"(?:hh|h|ll|l|L|q|j|z|t)?[sdifuoxXeEgGcrpn@](?!\w)|%%",
    # %Y-%m-%d of dates, %1 and %L1 of Qt, %name% of the shell; not after a number, as "50 %"
    r"(?<!\d|\d\s)%(?:[A-Za-z](?!\w)|L?\d{1,2}(?![\w%])|[A-Za-z_][\w.]{0,60}%)",
    # <%= x %>, <?= x ?>, [[x]], __x__
    r"<%[^%<>]{0,300}(?:[%<>](?!>)[^%<>]{0,300}){0,20}%>|<\?[^?<>]{0,300}\?>",
    r"\[\[[^\[\]]{1,100}\]\]|(?<![\w_])__[A-Za-z](?:\w{0,60}?)__(?!\w)",
    # $name, $user.name, $t(key), :name, :smile:, @:key
    r"(?<![\w$])\$t\([^()]{0,200}(?:\([^()]{0,200}\)[^()]{0,200})?\)",
    r"(?<![\w$])\$!?[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*",
    r"(?<![\w:/\"'’)\]}]):[A-Za-z_]\w+(?:[-+]\w+)*:?(?![\w:])",
    r"(?<!\w)@(?:\.\w{1,20})?:(?:\w[\w.]*\w|\([\w.]+\))",
    # HTML entities
    r"&(?:[A-Za-z][A-Za-z0-9]+|\#[0-9]+|\#[xX][0-9A-Fa-f]+);",
)
SECONDS_PER_TEXT = 2.0
"""the longest that a pattern may search in one text; some patterns take exponential time"""
SECONDS_WITHOUT_TEXT = 0.05
"""the longest that all patterns together may search in the empty text"""
MAX_CHARACTERS = 20_000
"""the most characters of a pattern with its repetitions written out, as `regex` compiles them.
Compiling so many takes about 20 ms, during which a server cannot answer."""
_SIMPLER = "write it without repetitions inside repetitions"
_LEAST_COUNT = re.compile(r"(\)?)\s*(\\*)\{\s*(\d[\d\s]*)")
"""the least count of a repetition such as {3} or {3,5}, which may stand after the end of a group;
(?x) allows spaces in it. After an odd number of backslashes it is none."""


class ProtectedText:
    """Patterns of text that a translation repeats exactly as it is."""

    def __init__(self, patterns: Sequence[str] = ()) -> None:
        """Take regular expressions of the package `regex`; none: nothing is protected.

        Raises:
            ConfigError: a pattern is no regular expression, is too large, or matches the empty
                string.
        """
        self.patterns = tuple(patterns)
        self._compiled = [_compile(pattern) for pattern in patterns]
        self._check_empty_text()

    @property
    def is_own(self) -> bool:
        """Whether there are other patterns than `USUAL_PATTERNS`, which may take long."""
        return self.patterns not in ((), tuple(USUAL_PATTERNS))

    def _check_empty_text(self) -> None:
        """Check that no pattern matches the empty string, nor needs long to say so."""
        end = time.monotonic() + SECONDS_WITHOUT_TEXT
        for pattern in self._compiled:
            where = f"the protected pattern {pattern.pattern!r}"
            try:
                found = pattern.search("", timeout=max(0.001, end - time.monotonic()))
            except TimeoutError as error:
                raise ConfigError(
                    f"{where} takes too long even without a text; {_SIMPLER}"
                ) from error
            if found:
                raise ConfigError(f"{where} matches the empty string; write + instead of *")

    def find(self, text: str) -> list[tuple[int, int]]:
        """Return the characters [start, end) of each protected part; parts that touch are one.

        Of two matches that overlap, the one that begins first counts, and then the longer one.

        Raises:
            DataError: a pattern takes too long.
        """
        matches: list[tuple[int, int]] = []
        for pattern in self._compiled:
            try:
                spans = [match.span() for match in pattern.finditer(text, timeout=SECONDS_PER_TEXT)]
                matches += [(start, end) for start, end in spans if end > start]
            except TimeoutError as error:
                raise DataError(
                    f"the protected pattern {pattern.pattern!r} takes over {SECONDS_PER_TEXT:g} "
                    f"seconds for {text[:60]!r}; {_SIMPLER}"
                ) from error
        # one may be longer than what the pattern of braces matches
        matches += [message.span for message in self.find_messages(text)]
        parts: list[tuple[int, int]] = []
        # at equal starts, the longest match first
        for start, end in sorted(matches, key=lambda span: (span[0], -span[1])):
            part_start, part_end = parts[-1] if parts else (-1, -1)
            if start == part_end:
                parts[-1] = (part_start, end)
            elif start > part_end:
                parts.append((start, end))
            # else the match overlaps the last part, which begins first
        return parts

    def find_messages(self, text: str) -> list[Message]:
        """Return the ICU messages of a text, whose texts are translated; none without braces.

        Own patterns alone leave all that they match as it is.
        """
        return find_messages(text) if _BRACES in self.patterns else []


def usual_text(is_protected: bool) -> ProtectedText:
    """Return `USUAL_PATTERNS` as what is protected, or nothing."""
    return ProtectedText(USUAL_PATTERNS if is_protected else ())


def _compile(pattern: str) -> "regex.Pattern[str]":
    """Return a compiled pattern of the user, or raise a ConfigError."""
    where = f"the protected pattern {pattern!r}"
    if "\n" in pattern:  # it could end a comment inside a count
        raise ConfigError(f"{where} holds a line break; write \\n for it")
    repetitions = _most_repetitions(pattern)
    if repetitions > 1 and len(pattern) * repetitions > MAX_CHARACTERS:
        raise ConfigError(
            f"{where} has more than {MAX_CHARACTERS} characters once its repetitions such as "
            "{3} are written out; write smaller numbers, or + instead of them"
        )
    try:
        return regex.compile(pattern)
    except regex.error as error:
        raise ConfigError(
            f"{where} is no regular expression: {error}; put a backslash before characters that "
            "stand for themselves"
        ) from error


def _most_repetitions(pattern: str) -> int:
    """Return how often a part of a pattern may be repeated, at most.

    A repeated group may stand inside each other one, and the largest other repetition inside all.
    """
    of_groups, others = [1], [1]
    for end_of_group, backslashes, digits in _LEAST_COUNT.findall(pattern):
        if len(backslashes) % 2 == 0:
            count = int("0" + "".join(digits.split()).lstrip("0")[:9])
            (of_groups if end_of_group else others).append(max(1, count))
    return math.prod(of_groups) * max(others)
