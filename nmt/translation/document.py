"""Lines of several sentences: each sentence is translated by itself, and the line joined again.

A model learns from sentences; a whole paragraph is longer than anything it has seen.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

from nmt.data.text.sentences import split_sentences
from nmt.data.tokens.tokenizer import Tokenizer
from nmt.run_directory import LoadedModel
from nmt.translation.line import MAX_SOURCE_TOKENS, Line, Translation, Warn, has_words

# A line has many sentences, and all lines of a window wait for the last one.
WINDOW_PARAGRAPHS = 200
# where to divide a sentence that is too long, the best places first
BOUNDARIES = (
    re.compile(r"[;:]\s+|[；：]"),
    re.compile(r",\s+|[，、]|\s[–—]\s"),
    re.compile(r"\s+"),
)
# scripts that have no space between sentences
ENDS_WITHOUT_SPACE = re.compile("[。！？｡」』]$")
# Sentence i of line n has the number n * SENTENCES + i.
SENTENCES = 1 << 32


def split_lines(run: LoadedModel, lines: Sequence[Line], warn: Warn) -> list[list[Line]]:
    """Return the sentences of each line, none of them too long for the model.

    The constraints on a line hold for each sentence; its beginning, and terms that do not depend on
    the source, for the first one. A sentence over `MAX_SOURCE_TOKENS` is divided at a semicolon or
    colon, else at a comma, else at a space, and `warn` is called with a message.
    """
    language = run.config.data.source_language
    sentences = [
        # a line without words is copied with its spaces
        split_sentences(line.text, language) if has_words(line.text) else [line.text]
        for line in lines
    ]
    ids = iter(run.tokenizer.source.encode([s for own in sentences for s in own]))
    return [
        _sentence_lines(run.tokenizer, line, own, list(islice(ids, len(own))), warn)
        for line, own in zip(lines, sentences, strict=True)
    ]


def _sentence_lines(
    tokenizer: Tokenizer, line: Line, sentences: list[str], ids: list[list[int]], warn: Warn
) -> list[Line]:
    lines: list[Line] = []
    asked = line.terminology
    for sentence, own in zip(sentences, ids, strict=True):
        pieces = _pieces(tokenizer, sentence, own)
        if len(pieces) > 1:
            warn(
                f"line {line.number} has a sentence of {len(own)} tokens, more than "
                f"{MAX_SOURCE_TOKENS}; it is translated in {len(pieces)} pieces"
            )
        for piece, piece_ids in pieces:
            lines.append(Line(line.number * SENTENCES + len(lines), piece, asked, piece_ids))
            asked = asked and replace(asked, terms=(), prefix="")
    return lines


def _pieces(tokenizer: Tokenizer, text: str, ids: list[int]) -> list[tuple[str, list[int]]]:
    """Return a sentence, or the pieces of one that is too long, each with its ids."""
    if len(ids) <= MAX_SOURCE_TOKENS or len(text) == 1:
        return [(text, ids)]
    parts = halves(text)
    rows = tokenizer.source.encode(parts)
    return [
        piece
        for part, row in zip(parts, rows, strict=True)
        for piece in _pieces(tokenizer, part, row)
    ]


def halves(text: str) -> list[str]:
    """Divide a text at the best boundary in its middle half, or else exactly in the middle.

    White space at the boundary is dropped. `text` has at least two characters, and no white space
    at its ends.
    """
    middle = len(text) // 2
    cut = middle
    margin = len(text) // 4
    for boundary in BOUNDARIES:
        ends = [found.end() for found in boundary.finditer(text, margin, len(text) - margin)]
        if ends:
            cut = min(ends, key=lambda end: abs(end - middle))
            break
    return [text[:cut].rstrip(), text[cut:].lstrip()]


def join(sentences: list[Translation]) -> Translation:
    """Join the translations of consecutive sentences, with a space between them.

    The score is the sum of theirs.
    """
    text = ""
    for sentence in sentences:
        gap = " " if text and sentence.text and not ENDS_WITHOUT_SPACE.search(text) else ""
        text += gap + sentence.text
    return Translation(text, sum((s.score for s in sentences), 0.0))
