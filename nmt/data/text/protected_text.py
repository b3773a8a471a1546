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
"""the longest that a pattern may search in one text; some patterns take exponential time"""


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
                spans = [match.span() for match in pattern.finditer(text, timeout=SECONDS_PER_TEXT)]
                matches += [(start, end) for start, end in spans if end > start]
            except TimeoutError as error:
                raise DataError(
                    f"the protected pattern {pattern.pattern!r} takes over {SECONDS_PER_TEXT:g} "
                    f"seconds for {text[:60]!r}; write it without repetitions inside repetitions"
                ) from error
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


def _compile(pattern: str) -> "regex.Pattern[str]":
    """Return a compiled pattern of the user, or raise a ConfigError."""
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
