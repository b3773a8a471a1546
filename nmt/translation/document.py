"""Lines of several sentences: each sentence is translated by itself, and the line joined again.

A model learns from sentences; a whole paragraph is longer than anything it has seen.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count

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
    return [list(_sentences(run, line, warn)) for line in lines]


def _sentences(run: LoadedModel, line: Line, warn: Warn) -> Iterator[Line]:
    sentences = [line.text]
    if has_words(line.text):  # a line without words is copied with its spaces
        sentences = split_sentences(line.text, run.config.data.source_language)
    asked = line.terminology
    numbers = count(line.number * SENTENCES)
    for sentence, ids in zip(sentences, run.tokenizer.source.encode(sentences), strict=True):
        texts, rows = [sentence], [ids]
        if (length := len(ids)) > MAX_SOURCE_TOKENS:
            ids.clear()  # a million of them take 40 MB
            texts = _pieces(run.tokenizer, sentence)
            rows = run.tokenizer.source.encode(texts)
            warn(
                f"line {line.number} has a sentence of {length} tokens, more than "
                f"{MAX_SOURCE_TOKENS}; it is translated in {len(texts)} pieces"
            )
        for text, row in zip(texts, rows, strict=True):
            yield Line(next(numbers), text, asked, row)
            asked = asked and replace(asked, terms=(), prefix="")


def _pieces(tokenizer: Tokenizer, text: str) -> list[str]:
    """Divide a sentence until no piece is too long.

    The ids of the parts are dropped at once: those of a megabyte would take much memory.
    """
    pieces: list[str] = []
    rest = [text]
    while rest:
        part = rest.pop()
        if len(part) == 1 or len(tokenizer.source.encode([part])[0]) <= MAX_SOURCE_TOKENS:
            pieces.append(part)
        else:
            rest.extend(reversed(halves(part)))
    return pieces


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
