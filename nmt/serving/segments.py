"""Texts of any length as segments: the sentences to translate, and the white space around them."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from nmt.serving.models import Direction, LoadedVersion
from nmt.translation.document import ENDS_WITHOUT_SPACE, split_lines
from nmt.translation.line import Line, Terminology, Translation, tagged

Span = tuple[int, int]
"""offset of the first character, and of the one after the last"""
_WORD = re.compile(r"\S+")
_PARAGRAPH = re.compile(r"\S(?:[^\n]*\S)?")


@dataclass(frozen=True)
class SegmentedText:
    """A text, and the sentences in it."""

    text: str
    spans: list[Span]
    """where the sentences stand in the text"""
    lines: list[Line]
    """the sentences, each with its ids"""

    @classmethod
    def split(
        cls,
        text: str,
        loaded: LoadedVersion,
        direction: Direction,
        terminology: Terminology | None = None,
    ) -> "SegmentedText":
        """Cut a text at its line ends and between sentences, as `nmt translate --document` does.

        The constraints hold for each sentence, but only the first one has the beginning.
        """
        spans: list[Span] = []
        lines: list[Line] = []
        start = 0
        for row in text.split("\n"):
            for line in _sentences(row, loaded, direction.tag, terminology):
                sentence = line.text.removeprefix(direction.tag)
                first = text.index(sentence, start)
                start = first + len(sentence)
                spans.append((first, start))
                lines.append(line)
                if terminology and terminology.prefix:
                    terminology = replace(terminology, prefix="")
        return cls(text, spans, lines)

    @classmethod
    def paragraphs(
        cls, text: str, direction: Direction, terminology: Terminology | None = None
    ) -> "SegmentedText":
        """Cut a text at its line ends alone: the pipeline splits each line into sentences.

        The constraints hold for each line, but only the first one has the beginning.
        """
        spans: list[Span] = []
        lines: list[Line] = []
        for found in _PARAGRAPH.finditer(text):
            spans.append(found.span())
            lines.append(Line(0, tagged(found[0], direction.tag), terminology))
            if terminology and terminology.prefix:
                terminology = replace(terminology, prefix="")
        return cls(text, spans, lines)

    @classmethod
    def of_line(cls, line: Line) -> "SegmentedText":
        """Take a line as the only segment of its text."""
        return cls(line.text, [(0, len(line.text))], [line])

    def join(self, translations: Sequence[str]) -> tuple[str, list[Span]]:
        """Put the translations of the sentences in their places: the text, and where they stand."""
        parts: list[str] = []
        spans: list[Span] = []
        length = end = 0
        for (first, last), translation in zip(self.spans, translations, strict=True):
            gap = self.text[end:first]
            if parts and gap in ("", " "):  # sentences of a line; languages differ in the space
                gap = "" if ENDS_WITHOUT_SPACE.search(parts[-1]) or not parts[-1] else " "
            parts += [gap, translation]
            length += len(gap) + len(translation)
            spans.append((length - len(translation), length))
            end = last
        parts.append(self.text[end:])
        return "".join(parts), spans


def _sentences(
    row: str, loaded: LoadedVersion, tag: str, terminology: Terminology | None
) -> Iterator[Line]:
    if row.strip():
        lines = split_lines(loaded, [Line(0, tagged(row, tag), terminology)], warn=lambda _: None)
        yield from lines[0]


@dataclass(frozen=True)
class AlignedWords:
    """Where the words of a text and of its translation stand, and which belong together."""

    source: list[Span]
    target: list[Span]
    pairs: list[Span]
    """(number of a source word, number of a target word), counted from 0"""


def align_text(
    text: SegmentedText, translations: Sequence[Translation], is_tagged: bool
) -> AlignedWords:
    """Return the aligned words of a text whose sentences have these translations.

    The aligner counts the words of normalised text. Where normalisation has divided a word or
    joined two, a pair may lead outside, and is left out. A tag before a source is its word 0.
    """
    words = AlignedWords([], [], [])
    _, target_spans = text.join([translation.text for translation in translations])
    for span, target_span, translation in zip(text.spans, target_spans, translations, strict=True):
        source = _words(text.text[slice(*span)], span[0])
        target = _words(translation.text, target_span[0])
        alignment = translation.alignment.words if translation.alignment else ()
        for i, j in alignment:
            if 0 <= i - is_tagged < len(source) and j < len(target):
                pair = (len(words.source) + i - is_tagged, len(words.target) + j)
                words.pairs.append(pair)
        words.source.extend(source)
        words.target.extend(target)
    return words


def _words(text: str, start: int) -> list[Span]:
    """Return where the words of a text that begins at `start` stand: what white space divides."""
    return [(start + found.start(), start + found.end()) for found in _WORD.finditer(text)]
