"""Lines of several sentences: each sentence is translated by itself, and the line joined again.

A model learns from sentences; a whole paragraph is longer than anything it has seen.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import count

from nmt.data.tokens.tokenizer import SubwordModel
from nmt.translation.line import (
    MAX_SOURCE_TOKENS,
    Alignment,
    Line,
    Translation,
    Warn,
    has_words,
)
from nmt.translation.placeholders import sentence_of
from nmt.translation.spans import Link, shift_span, span_after

# most lines of a window: each has many sentences, and all are translated before it is written
WINDOW_PARAGRAPHS = 200
# where to divide a sentence that is too long, the best boundaries first
BOUNDARIES = (
    re.compile(r"[;:؛·]\s+|[；：፤]"),
    re.compile(r"[,،]\s+|[，、၊፣།]|\s[–—]\s"),
    re.compile(r"[\s\u200b]+"),
)
# Sentence i (from 0) of line n has the number n * NUMBERS_PER_LINE + i: all numbers differ.
NUMBERS_PER_LINE = 1 << 32


def split_lines(
    source: SubwordModel, language: str, lines: Sequence[Line], warn: Warn
) -> list[list[Line]]:
    """Split each line into sentences with ids and new numbers; none is too long for the model.

    `source` makes the ids, and `language` is the code of the language.

    Each sentence keeps the line's glossary and forbidden words; only the first keeps its terms and
    prefix. A sentence of more than `MAX_SOURCE_TOKENS` is divided at a semicolon or colon, else at
    a comma, else at a space, and `warn` is called with a message.
    """
    return [list(_sentences(source, language, line, warn)) for line in lines]


def _sentences(source: SubwordModel, language: str, line: Line, warn: Warn) -> Iterator[Line]:
    """Yield the sentences of a line, and parts of those that are too long for the model."""
    from nmt.data.text.sentences import split_sentences  # only documents need it; it takes time

    tags, sentences = "", [line.text]
    if has_words(line.text):  # a line without words is copied with its spaces
        tags = line.text[: line.tag_length]
        sentences = split_sentences(line.text[line.tag_length :], language)

    def with_tags(part: str) -> str:  # the tags of the line hold for each part that is translated
        return tags + part if tags and has_words(part) else part

    numbers = count(line.number * NUMBERS_PER_LINE)
    end = len(tags)  # of the last part, in the text of the line
    rows = source.encode([with_tags(sentence) for sentence in sentences])
    for sentence, ids in zip(sentences, rows, strict=True):
        parts, ids_of_parts = [sentence], [ids]
        length = len(ids)
        if length > MAX_SOURCE_TOKENS:
            ids.clear()  # a million of them take 40 MB
            parts = _divide(source, sentence, with_tags)
            ids_of_parts = source.encode([with_tags(part) for part in parts])
            warn(
                f"line {line.number} has a sentence of {length} tokens, more than "
                f"{MAX_SOURCE_TOKENS}; it is translated in {len(parts)} pieces"
            )
        for part, part_ids in zip(parts, ids_of_parts, strict=True):
            start = line.text.index(part, end)
            end = start + len(part)
            added = tags if with_tags(part) != part else ""
            # the start of the sentence, tags included, in the line with its protected parts
            start_in_line = span_after((start, start), line.parts)[0] - len(added)
            cut = sentence_of(line, (start, end), added)
            yield replace(cut, number=next(numbers), ids=part_ids, start=start_in_line)
            if line.terminology:  # terms and the prefix hold for the first sentence only
                rest = replace(line.terminology, terms=(), prefix="")
                line = replace(line, terminology=rest)


def _divide(source: SubwordModel, text: str, with_tags: Callable[[str], str]) -> list[str]:
    """Divide a sentence until no part, after its tags, has over `MAX_SOURCE_TOKENS`.

    No ids are kept, to save memory.
    """
    parts: list[str] = []
    pending = [text]
    while pending:
        part = pending.pop()
        if len(part) == 1 or len(source.encode([with_tags(part)])[0]) <= MAX_SOURCE_TOKENS:
            parts.append(part)
        else:
            pending.extend(reversed(halves(part)))
    return parts


def halves(text: str) -> list[str]:
    """Divide a text in two at a boundary near its middle, or else exactly in the middle.

    The boundary is of the first kind in `BOUNDARIES` that the middle half of the text contains.
    White space there is dropped. `text` has two or more characters, no white space at its ends.
    """
    cut = middle = len(text) // 2
    margin = len(text) // 4  # outside the middle half
    for boundary in BOUNDARIES:
        ends = [match.end() for match in boundary.finditer(text, margin, len(text) - margin)]
        if ends:
            cut = min(ends, key=lambda end: abs(end - middle))
            break
    return [text[:cut].rstrip(), text[cut:].lstrip()]


def join(text: str, sentences: Sequence[tuple[Line, Translation]]) -> Translation:
    """Join the translations of consecutive sentences by spaces, or by none in Chinese or Japanese.

    `text` is the line that was split into the sentences. The score is the sum of their scores. If
    all have alignments, the line gets their links. It has all terms of theirs, and the match of a
    single one; other fields have their default values.
    """
    from nmt.data.text.sentences import space_between

    joined = ""
    links: list[Link] = []
    for line, sentence in sentences:
        joined += space_between(joined, sentence.text)
        start = len(joined)
        if sentence.alignment:  # its links count from the starts of the sentence
            for source, target in sentence.alignment.links:
                links.append(Link(shift_span(source, line.start), shift_span(target, start)))
        joined += sentence.text
    alignment = None
    if sentences and all(sentence.alignment for _, sentence in sentences):
        alignment = Alignment(links=tuple(links))
    score = sum((sentence.score for _, sentence in sentences), start=0.0)
    terms = tuple(term for _, sentence in sentences for term in sentence.terms)
    match = sentences[0][1].match if len(sentences) == 1 else None
    return Translation(joined, score, alignment=alignment, terms=terms, match=match)
