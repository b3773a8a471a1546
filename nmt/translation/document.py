"""Lines of several sentences: each sentence is translated by itself, and the line joined again.

A model learns from sentences; a whole paragraph is longer than anything it has seen.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from nmt.data.text.sentences import split_sentences
from nmt.run_directory import LoadedModel
from nmt.translation.encoding import MAX_SOURCE_TOKENS
from nmt.translation.line import Line, Translation, Warn, has_words

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


@dataclass(frozen=True)
class SentenceStage:
    """Splits a line into its sentences, and joins their translations."""

    run: LoadedModel

    def enter(self, lines: Sequence[Line], warn: Warn) -> list[list[Line]]:
        """The sentences of each line, none of them too long for the model.

        The constraints on a line hold for each sentence; its beginning, and terms that do not
        depend on the source, for the first one. A sentence over `MAX_SOURCE_TOKENS` is divided at a
        semicolon or colon, else at a comma, else at a space, and `warn` is told its line.
        """
        language = self.run.config.data.source_language
        sentences = [
            # a line without words is copied as it is, with its spaces
            split_sentences(line.text, language) if has_words(line.text) else [line.text]
            for line in lines
        ]
        ids = iter(self.run.tokenizer.source.encode([s for own in sentences for s in own]))
        return [
            list(self._lines(line, own, list(islice(ids, len(own))), warn))
            for line, own in zip(lines, sentences, strict=True)
        ]

    def leave(self, line: Line, found: list[list[Translation]]) -> list[Translation]:
        """The best translations of the sentences as one; its score is the sum of theirs."""
        return [join([best for best, *_ in found])]

    def _lines(
        self, line: Line, sentences: Sequence[str], ids: Sequence[list[int]], warn: Warn
    ) -> Iterator[Line]:
        asked = line.terminology
        number = line.number * SENTENCES
        for sentence, own in zip(sentences, ids, strict=True):
            pieces = self._pieces(sentence, own)
            if len(pieces) > 1:
                warn(
                    f"line {line.number} has a sentence of {len(own)} tokens, more than "
                    f"{MAX_SOURCE_TOKENS}; it is translated in {len(pieces)} pieces"
                )
            for piece, piece_ids in pieces:
                yield Line(number, piece, asked, piece_ids)
                number += 1
                asked = asked and asked.without_beginning()

    def _pieces(self, text: str, ids: list[int]) -> list[tuple[str, list[int]]]:
        """A sentence, or the pieces of one that is too long, each with its ids."""
        if len(ids) <= MAX_SOURCE_TOKENS or len(text) == 1:
            return [(text, ids)]
        parts = halves(text)
        rows = self.run.tokenizer.source.encode(parts)
        return [
            piece
            for part, row in zip(parts, rows, strict=True)
            for piece in self._pieces(part, row)
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
    """Join the translations of consecutive sentences, with a space between them."""
    text = ""
    for sentence in sentences:
        gap = " " if text and sentence.text and not ENDS_WITHOUT_SPACE.search(text) else ""
        text += gap + sentence.text
    return Translation(text, sum((s.score for s in sentences), 0.0))
