"""What a vocabulary cannot represent: emoji, symbols, words with letters of another script.

A model would read the unknown symbol in their place, which disturbs the rest of the sentence, and
it never writes them. So placeholders stand for them, always for whole grapheme clusters. How
often they occur in the training text is counted when it is prepared.
"""

import unicodedata
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import regex

from nmt.data.text.words import (
    SYMBOL_SIGNS,
    grapheme_clusters,
    is_opening,
    is_unspaced,
    word_spans,
)
from nmt.data.tokens.token_store import Sentences
from nmt.data.tokens.tokenizer import SPACE, UNK, SubwordModel

# a letter or a digit, with marks; not a keycap, which begins with a digit
_WORD_CLUSTER = regex.compile(rf"[\p{{L}}\p{{N}}][^{SYMBOL_SIGNS}]*")
# what a number touches belongs to it: "№12.5", "5€/kg"
_NUMBER_BEFORE = regex.compile(r"(?<![\p{L}\p{M}])\d[\d.,:/'’]*\Z|\d\Z")
_NUMBER_AFTER = regex.compile(r"[\d.,:/'’]*\d")
_NUMBER_LENGTH = 30  # characters on each side that are looked at for a number
_REST_OF_UNIT = regex.compile(r"[\p{L}\p{M}/²³]+")
_ACCENTS = regex.compile(r"[\p{M}\p{Cf}]+")
_PLAIN_LETTERS = str.maketrans(
    dict(zip("łŁøØđĐıħĦŧŦ", "lLoOdDihHtT", strict=True))
    | {"ß": "ss", "ẞ": "SS", "æ": "ae", "Æ": "Ae", "œ": "oe", "Œ": "Oe", "þ": "th", "Þ": "Th"}
)
# Beyond so many different words the rare ones are forgotten, which bounds the memory.
_MOST_WORDS, _KEPT_WORDS = 100_000, 10_000
_STORED, _SHOWN = 100, 10


class UnknownPart(NamedTuple):
    """A part of a text that a vocabulary cannot represent, and what the model gets instead."""

    span: tuple[int, int]
    placeholder: str | None
    """an empty text or a space; the word in plain letters; None: a number"""


def has_unknown(model: SubwordModel, ids: Sequence[int]) -> bool:
    """Return whether ids may stand for something that the vocabulary does not have."""
    return UNK in ids or not model.byte_ids.isdisjoint(ids)


def is_invisible(text: str) -> bool:
    """Return whether a text is nothing but control characters, such as soft hyphens."""
    return all(unicodedata.category(character) in ("Cf", "Cc") for character in text)


def unknown_parts(model: SubwordModel, text: str) -> list[UnknownPart]:
    """Return the unknown parts of a text without tags, in order; they do not overlap.

    A word becomes the same word in plain letters ("Skoda" for "Škoda") if the vocabulary has these,
    else a number. A symbol that touches a digit becomes a number together with it ("5€"). All other
    symbols are left out.
    """
    unknown = model.unknown_characters(text)
    parts: list[UnknownPart] = []
    if not unknown:
        return parts
    words = [span for span in word_spans(text) if not unknown.isdisjoint(range(*span))]
    starts = [start for start, _ in words]
    for start, end in grapheme_clusters(text):
        is_known = unknown.isdisjoint(range(start, end))
        if is_known or (parts and start < parts[-1].span[1]):  # or in the word before
            continue
        if _WORD_CLUSTER.fullmatch(text, start, end):
            first, last = words[bisect_right(starts, start) - 1]  # the word that has the cluster
            part = _word(model, text, (first, max(last, end)))
        else:
            part = _symbol(text, (start, end))
        _append(parts, part, text)
    symbols = [_with_brackets(text, *span) for span, written in parts if written == ""]
    left_out = iter(spans_to_leave_out(text, symbols))
    return [UnknownPart(*next(left_out)) if part.placeholder == "" else part for part in parts]


def _word(model: SubwordModel, text: str, span: tuple[int, int]) -> UnknownPart:
    """Return a word with unknown letters as a part."""
    word = text[slice(*span)]
    plain = _ACCENTS.sub("", unicodedata.normalize("NFD", word)).translate(_PLAIN_LETTERS)
    plain = unicodedata.normalize("NFC", plain)
    for known in (plain, plain.lower()) if plain.replace("-", "").isalpha() else ():
        if not model.unknown_characters(known):
            return UnknownPart(span, known)
    return UnknownPart(span, None)


def _symbol(text: str, span: tuple[int, int]) -> UnknownPart:
    """Return a symbol as a part, together with the number that it touches and the rest of a unit.

    Its placeholder is None, a number, if there is one ("20°C"); else "": it is left out.
    """
    start, end = span
    around = max(0, start - _NUMBER_LENGTH), end + _NUMBER_LENGTH
    before = _NUMBER_BEFORE.search(text, around[0], start)
    after = _NUMBER_AFTER.match(text, end, around[1])
    if not before and not after:
        return UnknownPart(span, "")
    if before:
        start = before.start()
        unit = _REST_OF_UNIT.match(text, end)  # such as the C of 20°C
        end = unit.end() if unit else end
    return UnknownPart((start, after.end() if after else end), None)


def _append(parts: list[UnknownPart], part: UnknownPart, text: str) -> None:
    """Append a part, or make it one with the last parts: a number or nothing stands for them all.

    It becomes one with a last part that it overlaps or touches, and with the word before it if both
    become numbers. A word in plain letters becomes one only with a part that it overlaps.
    """
    (start, end), placeholder = part
    while parts:
        last = parts[-1]
        gap = text[last.span[1] : start]
        is_phrase = last.placeholder is None and placeholder is None and gap.isspace()
        overlaps = start < last.span[1]
        joins = (not gap or is_phrase) and not last.placeholder and not placeholder
        if not overlaps and not joins:
            break
        start, end = min(start, last.span[0]), max(end, last.span[1])
        placeholder = "" if last.placeholder == placeholder == "" else None
        parts.pop()
    parts.append(UnknownPart((start, end), placeholder))


def _with_brackets(text: str, start: int, end: int) -> tuple[int, int]:
    """Return a span with the brackets around it, which would be empty without it."""
    if start and text[start - 1 : start] + text[end : end + 1] in ("()", "[]", "{}", "（）"):
        return start - 1, end + 1
    return start, end


def spans_to_leave_out(
    text: str, spans: Sequence[tuple[int, int]]
) -> list[tuple[tuple[int, int], str]]:
    """Return each span of a text with the white space that goes with it, and what stands for both.

    Without the spans, which are in order, no two spaces are side by side, none is before a
    punctuation mark, and no two words touch.
    """
    found: list[tuple[tuple[int, int], str]] = []
    begin = at = 0  # where the rest of the text begins, and the end of the last span
    for start, end in spans:
        (first, last), written = _with_spaces(text, start, end, begin)
        first = max(first, at)  # the white space before may have gone with the span before
        at = last
        begin = last if first <= begin else begin
        found.append(((first, last), written))
    return found


def _with_spaces(text: str, start: int, end: int, begin: int) -> tuple[tuple[int, int], str]:
    """Return a span that is left out with white space, and what stands for both: a space if any.

    The text begins at `begin`.
    """
    if is_invisible(text[start:end]):
        return (start, end), ""
    first, last = start, end  # with the white space around it
    while first > begin and text[first - 1].isspace():
        first -= 1
    while last < len(text) and text[last].isspace():
        last += 1
    touches_word = text[end : end + 1].isalnum()
    if first <= begin or (first == start and is_opening(text[start - 1]) and last > end):
        return (start, last), ""
    if first < start and not touches_word:
        return (first, end), ""
    before = text[start - 1]
    is_tied = touches_word and before.isalnum() and not is_unspaced(before)
    return (start, end), " " if is_tied else ""


def unknown_of_texts(
    model: SubwordModel, encoded: Sentences, texts: Sequence[str]
) -> dict[int, list[str]]:
    """Return {index of a text: what the vocabulary lacks of it, see `SubwordModel.unknown`}.

    `encoded` are the ids of the texts. A text of which nothing is lacking has no entry.
    """
    positions = np.flatnonzero(encoded.ids == UNK)
    rows = np.unique(np.searchsorted(encoded.offsets, positions, side="right") - 1)
    suspects = {*rows.tolist(), *(i for i, text in enumerate(texts) if SPACE in text)}
    return {index: model.unknown(texts[index]) for index in sorted(suspects)}


class UnknownCounts:
    """How often the vocabulary of one side lacks which character, or at word level which word."""

    def __init__(self) -> None:
        self._total = 0
        self._counts = Counter[str]()

    def add(self, parts: Mapping[int, list[str]]) -> None:
        """Count what is lacking of some texts: the result of `unknown_of_texts`."""
        for parts_of_text in parts.values():
            self._total += len(parts_of_text)
            self._counts.update(parts_of_text)
        if len(self._counts) > _MOST_WORDS:
            self._counts = Counter(dict(self._counts.most_common(_KEPT_WORDS)))

    def as_json(self) -> dict[str, Any]:
        """Return {"total", "most_frequent"}: how many, and {part: how often} of the first 100."""
        return {"total": self._total, "most_frequent": dict(self._counts.most_common(_STORED))}


def describe_unknown(counts: Mapping[str, Any]) -> list[str]:
    """Return a line for each side whose vocabulary lacks something of the kept training pairs.

    `counts` are `Prepared.counts`. A line is "3 in the source text: ▅ (U+2585) 2, (U+0000) 1".
    """
    lines = []
    for side, unknown in counts.get("unknown", {}).items():  # older data have no such key
        if unknown["total"]:
            found = describe_parts(unknown["most_frequent"])
            lines.append(f"{unknown['total']:,} in the {side} text: {found}")
    return lines


def describe_parts(frequencies: Mapping[str, int]) -> str:
    """Return the most frequent of {character or word: how often} as "▅ (U+2585) 2, (U+0000) 1"."""
    phrases = []
    for part, count in Counter(frequencies).most_common(_SHOWN):
        shown = part if part.isprintable() else ascii(part)[1:-1]
        code = f" (U+{ord(part):04X})" if len(part) == 1 else ""
        phrases.append(f"{shown}{code} {count:,}")
    if len(frequencies) > _SHOWN:
        phrases.append("…")
    return ", ".join(phrases)
