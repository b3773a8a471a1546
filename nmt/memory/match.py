"""What a translation memory holds, and what it finds."""

import functools
from dataclasses import dataclass

from rapidfuzz.distance import Levenshtein

from nmt.data.text.similarity import (
    VALUES,
    ComparedText,
    compared_text,
    normalise_spaces,
    replace_values,
)
from nmt.data.text.words import word_spans, words

_ALMOST = 0.99
"""the highest score of a source that does not equal a text, as where spaces are in other places"""


@dataclass(frozen=True)
class MemoryPair:
    """A sentence and its translation, with what is known about them."""

    source: str
    target: str
    time: int = 0
    """seconds since 1970; 0: when it is added"""
    author: str = ""
    domain: str = ""
    context: str = ""
    """the source of the sentence before; "": unknown"""


@dataclass(frozen=True)
class Match:
    """A pair that was translated before, and how near its source is to a text."""

    source: str
    target: str
    """numbers and placeholders of the text are in place of those of the stored pair"""
    score: float
    """0 to 1; 1 only if the sources are equal, but for spaces and what `target` has replaced"""
    identity: int
    """the number of the pair in its memory"""
    same_context: bool = False
    """whether the sentence before is the same as well"""

    @property
    def kind(self) -> str:
        """What XLIFF calls such a match: `exact-match`, or else `fuzzy-match`."""
        return "exact-match" if self.score == 1 else "fuzzy-match"


@dataclass(frozen=True)
class Query:
    """A text that is looked for, and the sentence before it."""

    text: str
    before: str | None = None

    @functools.cached_property
    def _compared(self) -> ComparedText:
        return compared_text(self.text)

    def match(self, identity: int, pair: MemoryPair) -> Match:
        """Return how near a pair is, with the numbers and placeholders of the text in its target.

        A number that differs is replaced in the target if it stands there exactly once, and once in
        the source. Otherwise it counts as another word.
        """
        asked, stored = self._compared, compared_text(pair.source)
        new_values: dict[str, str] = {}
        differing = Levenshtein.distance(stored.words, asked.words)
        changed = _changed_values(stored, asked)
        in_target = compared_text(pair.target).values if changed else []
        for old, new in changed:
            if stored.values.count(old) == in_target.count(old) == 1:
                new_values[old] = new
            else:
                differing += 1

        target, source = pair.target, normalise_spaces(pair.source)
        if new_values:
            target, source = (replace_values(text, new_values) for text in (target, source))
        score = max(0.0, 1 - differing / max(len(stored.words), len(asked.words), 1))
        is_equal = source == normalise_spaces(self.text)
        before = pair.context and normalise_spaces(pair.context)
        return Match(
            pair.source,
            target,
            1.0 if is_equal else min(score, _ALMOST),
            identity,
            bool(before and self.before and normalise_spaces(self.before) == before),
        )


def _changed_values(stored: ComparedText, asked: ComparedText) -> list[tuple[str, str]]:
    """Return the numbers and placeholders that stand in the same place but differ."""
    if not stored.values or not asked.values:
        return []
    old_values, new_values = _values_by_place(stored), _values_by_place(asked)
    changed = []
    for step in Levenshtein.opcodes(stored.words, asked.words):
        if step.tag == "equal":
            places = zip(
                range(step.src_start, step.src_end),
                range(step.dest_start, step.dest_end),
                strict=True,
            )
            values = ((old_values.get(old), new_values.get(new)) for old, new in places)
            changed += [(old, new) for old, new in values if old and new and old != new]
    return changed


def _values_by_place(text: ComparedText) -> dict[int, str]:
    places = (place for place, word in enumerate(text.words) if word in VALUES)
    return dict(zip(places, text.values, strict=False))


def differing_spans(text: str, source: str) -> list[tuple[int, int]]:
    """Return the characters [start, end) of the words of a source that a text lacks or has changed.

    Numbers and placeholders that differ are among them.
    """
    spans = word_spans(source)
    found = [source[start:end] for start, end in spans]
    steps = Levenshtein.opcodes(found, words(text))
    return [
        (spans[step.src_start][0], spans[step.src_end - 1][1])
        for step in steps
        if step.tag in ("replace", "delete")
    ]
