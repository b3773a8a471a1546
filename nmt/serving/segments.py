"""Texts of any length as segments: the sentences to translate, and the white space around them."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from nmt.data.text.protected_text import ProtectedText
from nmt.data.text.sentences import space_between
from nmt.memory.match import Match
from nmt.serving.answers import RequestError
from nmt.serving.models import LoadedVersion
from nmt.translation.capitals import CapitalsTransform
from nmt.translation.document import split_lines
from nmt.translation.edges import cut_edges
from nmt.translation.line import (
    Alignment,
    Line,
    Terminology,
    TermUse,
    Translation,
    add_tag,
    has_words,
)
from nmt.translation.placeholders import original_text, without_tags
from nmt.translation.protected import replace_protected
from nmt.translation.spans import Link, Span, links_after, shift_span

MAX_CUT_SECONDS = 5.0
"""seconds that own patterns of protected text may take for all texts of a request"""
_NO_TERMS = Terminology()


@dataclass(frozen=True, slots=True)
class Segment:
    """A sentence of a text."""

    line: Line
    """the sentence after the tag that its model needs, with numbers in place of protected parts"""
    span: Span
    """where it stands in the text"""

    def links(self, translation: Translation) -> tuple[Link, ...]:
        """Return the links between the characters of the sentence and of a translation of it."""
        links = translation.alignment.links if translation.alignment else ()
        return links_after(links, self.line.tag_length)


@dataclass(frozen=True, slots=True)
class TranslatedText:
    """A text with its translation."""

    text: str
    score: float
    """the sum of the scores of its sentences"""
    alternatives: list["TranslatedText"] = field(default_factory=list)
    """other translations, best first"""
    links: tuple[Link, ...] = ()
    """between the characters of both texts; empty unless alignments were asked for"""
    models: tuple[tuple[str, str], ...] = ()
    """(name, digest of the weights) of each model that has translated it, one after the other"""
    detected: dict[str, object] | None = None
    """the language that was found, in LibreTranslate's shape; None: it was given"""
    matches: tuple[tuple[Span, Match], ...] = ()
    """the pair of a memory that each sentence was translated with, if any, and its place"""
    terms: tuple[TermUse, ...] = ()
    """the terms of a glossary that the model was asked for"""

    def option(self, n: int) -> Translation:
        """Return the n-th best translation, counted from 0, or the last one, with its links."""
        chosen = [self, *self.alternatives][: n + 1][-1]
        return Translation(chosen.text, chosen.score, alignment=Alignment(links=chosen.links))


@dataclass(frozen=True, slots=True)
class SegmentedText:
    """A text, and the sentences in it."""

    text: str
    segments: list[Segment]

    @classmethod
    def split(
        cls, line: Line, loaded: LoadedVersion, tag: str, protected: ProtectedText
    ) -> "SegmentedText":
        """Cut a text at its line ends and between sentences, as `nmt translate --document` does.

        The constraints of `line` hold for each sentence, but only the first one has the beginning.
        What `line` names as protected, and what has the patterns of `protected`, stays as it is.

        Raises:
            DataError: a pattern takes too long.
        """
        segments: list[Segment] = []
        learnt = loaded.config.data.context
        context = list(line.context) if learnt else []
        line = replace(line, context=())  # a sentence without one may be kept
        start = 0
        for row in line.text.split("\n"):
            if row.strip():
                found = list(_segments(line, row, start, loaded, tag, protected))
                segments += found
                if found and line.terminology and line.terminology.prefix:
                    line = replace(line, terminology=replace(line.terminology, prefix=""))
            start += len(row) + 1
        for i, segment in enumerate(segments):
            if not learnt:
                break
            text = replace(segment.line, context=tuple(context[-learnt.sentences :]))
            segments[i] = replace(segment, line=text)
            context.append((without_tags(text).text, ""))
        return cls(line.text, segments)

    @classmethod
    def whole(cls, line: Line, loaded: LoadedVersion, tag: str) -> "SegmentedText":
        """Take a text as one segment, without the white space around it."""
        text = line.text.strip()
        start, with_tag = line.text.index(text), add_tag(text, tag)
        protected = _inside(line.protected, start, len(text))
        given = replace(
            line,
            text=with_tag,
            protected=tuple(shift_span(span, len(with_tag) - len(text)) for span in protected),
            tag_length=loaded.tokenizer.source.tag_length(with_tag),
        )
        return cls(line.text, [Segment(given, (start, start + len(text)))])

    def join(self, translations: Sequence[str]) -> tuple[str, list[Span]]:
        """Put the translations of the sentences in their places: the text, and where they stand."""
        parts: list[str] = []
        spans: list[Span] = []
        length = 0  # of what is joined so far
        end = 0  # of the last sentence, in the text
        for segment, translation in zip(self.segments, translations, strict=True):
            gap = self.text[end : segment.span[0]]
            if parts and gap in ("", " "):  # sentences of a line; languages differ in the space
                gap = space_between(parts[-1], translation)
            parts += [gap, translation]
            length += len(gap) + len(translation)
            spans.append((length - len(translation), length))
            end = segment.span[1]
        parts.append(self.text[end:])
        return "".join(parts), spans

    def translated(self, rows: Sequence[Sequence[Translation]]) -> TranslatedText:
        """Return the joined translations of the sentences, whose translations are `rows`.

        Alternative n takes the n-th best translation of each sentence, or its last one.
        """
        joined: dict[str, TranslatedText] = {}  # a text that comes twice keeps its better score
        for n in range(max(map(len, rows), default=1)):
            chosen = [row[min(n, len(row) - 1)] for row in rows]
            whole, spans = self.join([translation.text for translation in chosen])
            if whole not in joined:
                score = sum(translation.score for translation in chosen)
                links = tuple(
                    Link(shift_span(source, segment.span[0]), shift_span(target, span[0]))
                    for segment, span, translation in zip(self.segments, spans, chosen, strict=True)
                    for source, target in segment.links(translation)
                )
                joined[whole] = TranslatedText(whole, score, links=links)
        best, *alternatives = joined.values()
        matches = tuple(
            (segment.span, row[0].match)
            for segment, row in zip(self.segments, rows, strict=True)
            if row[0].match
        )
        terms = tuple(term for row in rows for term in row[0].terms)
        return replace(best, alternatives=alternatives, matches=matches, terms=terms)


def split_texts(
    lines: Sequence[Line], loaded: LoadedVersion, tag: str, protected: ProtectedText
) -> list[SegmentedText]:
    """Cut texts into segments.

    Raises:
        DataError: a pattern takes too long.
        RequestError: the patterns take too long for all texts together.
    """
    end = time.monotonic() + MAX_CUT_SECONDS
    texts = []
    for line in lines:
        texts.append(SegmentedText.split(line, loaded, tag, protected))
        if protected.is_own and time.monotonic() > end:
            raise RequestError(400, "the protected patterns take too long; use simpler ones")
    return texts


def _inside(spans: Sequence[Span], start: int, length: int) -> tuple[Span, ...]:
    """Return the spans inside a part of a text, counted from its start."""
    moved = (shift_span(span, -start) for span in spans)
    return tuple(span for span in moved if span[0] >= 0 and span[1] <= length)


def _segments(
    line: Line, row: str, start: int, loaded: LoadedVersion, tag: str, protected: ProtectedText
) -> Iterator[Segment]:
    """Yield the sentences of a row of a text, which begins at `start`; none if all is protected."""
    source, data = loaded.tokenizer.source, loaded.config.data
    if not (line.terminology and line.terminology.prefix):  # else the row begins as it is asked to
        protected_here = _inside(line.protected, start, len(row))
        tag_length = source.tag_length(row)
        inside = replace(line, text=row, protected=protected_here, tag_length=tag_length)
        inner = cut_edges(inside, data.source_language)
        row = inner.text
        start += len(inner.edges[0])
    with_tag = add_tag(row, tag)
    added = len(with_tag) - len(row)
    moved = tuple(shift_span(span, added) for span in _inside(line.protected, start, len(row)))
    given = replace(line, text=with_tag, protected=moved, tag_length=source.tag_length(with_tag))
    given = replace_protected(given, protected)
    [given] = CapitalsTransform(data, source, line.terminology or _NO_TERMS).mark([given])
    if not has_words(without_tags(given).text):
        return
    [sentences] = split_lines(source, data.source_language, [given], warn=lambda _: None)
    for part in sentences:
        sentence = original_text(without_tags(part))
        first = start + part.start + part.tag_length - added
        yield Segment(part, (first, first + len(sentence)))
