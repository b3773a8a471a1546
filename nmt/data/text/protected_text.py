"""Finds text that must not be translated: addresses, placeholders of programs, own patterns."""

from collections.abc import Sequence

import regex

from nmt.errors import ConfigError, DataError

USUAL_PATTERNS = (
    # addresses of pages and of mail, without the punctuation that ends the sentence around them
    r"(?:(?:https?|ftps?)://|www\.|mailto:)(?:\([^\s()<>]*\)|[^\s()<>\"“”„«»])*"
    r"(?:\([^\s()<>]*\)|[^\s()<>\"“”„«»'’.,;:!?…\]}])",
    r"[\w.+%-]{0,63}\w@\w[\w-]*(?:\.\w[\w-]*)+",
    # {{x}}, ${v}, {name}
    r"\{\{[^{}]*\}\}|\$\{[^{}]*\}|\{\s*[^{}\s]*\s*\}",
    # %s, %5.2f, %1$s, %(name)s, %%; a space would make "% d" of "100 % durch"
    r"%(?:\(\w+\)|\d+\$)?[-+#0]*(?:\d+|\*)?(?:\.\d+)?(?:h|l|ll|z)?[sdifuoxXeEgGcr@](?!\w)|%%",
    # HTML entities
    r"&(?:[A-Za-z][A-Za-z0-9]+|\#[0-9]+|\#[xX][0-9A-Fa-f]+);",
)
SECONDS_PER_TEXT = 2.0
"""a pattern that needs more time for a text is refused; some take exponential time"""


class ProtectedText:
    """Patterns of text that a translation repeats exactly as it is."""

    def __init__(self, patterns: Sequence[str] = ()) -> None:
        """Take regular expressions of the package `regex`; none: nothing is protected.

        Raises:
            ConfigError: a pattern is no regular expression, or matches the empty string.
        """
        self.patterns = tuple(patterns)
        self._compiled = [_compile(pattern) for pattern in patterns]

    def find(self, text: str) -> list[tuple[int, int]]:
        """Return the characters [start, end) of each protected part; parts that touch are one.

        Of two matches that overlap, the one that begins first counts, and then the longer one.

        Raises:
            DataError: a pattern takes too long.
        """
        matches: list[tuple[int, int]] = []
        for pattern in self._compiled:
            try:
                found = pattern.finditer(text, timeout=SECONDS_PER_TEXT)
                matches += [match.span() for match in found if match.end() > match.start()]
            except TimeoutError as error:
                raise DataError(
                    f"the protected pattern {pattern.pattern!r} takes over {SECONDS_PER_TEXT:g} "
                    f"seconds for {text[:60]!r}; write it without repetitions inside repetitions"
                ) from error
        spans: list[tuple[int, int]] = []
        for start, end in sorted(matches, key=lambda span: (span[0], -span[1])):
            if spans and start == spans[-1][1]:
                spans[-1] = (spans[-1][0], end)
            elif not spans or start > spans[-1][1]:
                spans.append((start, end))
        return spans


def _compile(pattern: str) -> "regex.Pattern[str]":
    where = f"the protected pattern {pattern!r}"
    try:
        compiled = regex.compile(pattern)
    except regex.error as error:
        raise ConfigError(
            f"{where} is no regular expression: {error}; put a backslash before characters that "
            "stand for themselves"
        ) from error
    if compiled.search(""):
        raise ConfigError(f"{where} matches the empty string; write + instead of *")
    return compiled
