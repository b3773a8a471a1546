"""Lines that hold several sentences: each sentence is translated, the line put together again.

A model learns from sentences, and a whole paragraph is longer than what it has seen.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import Protocol

from nmt.data.text.sentences import split_sentences
from nmt.errors import ConfigError
from nmt.run_directory import LoadedModel
from nmt.search.windows import WINDOW_LINES, windows
from nmt.translation.line import Line, characters, numbered
from nmt.translation.translator import MAX_SOURCE_TOKENS, Translation, print_warning

# a line holds many sentences, and all lines of a window wait for its last one
WINDOW_PARAGRAPHS = 200
# where to divide a sentence that is too long, the best places first
BOUNDARIES = (
    re.compile(r"[;:]\s+|[；：]"),
    re.compile(r",\s+|[，、]|\s[–—]\s"),
    re.compile(r"\s+"),
)
# sentences of such a script stand beside each other without a space
ENDS_WITHOUT_SPACE = re.compile("[。！？｡」』]$")
# the sentences of a line of this number are told apart by what is added to it
SENTENCES = 1 << 32


class LineTranslator(Protocol):
    """What translates line by line."""

    def alternatives(
        self,
        lines: Iterable[Line],
        n_best: int,
        window_lines: int = WINDOW_LINES,
        warn: Callable[[str], None] = print_warning,
        progress: Callable[[int], object] = lambda lines: None,
    ) -> Iterator[list[Translation]]:
        """As `Translator.alternatives`."""


class DocumentTranslator:
    """Translates sentence by sentence what another translator would take as one line."""

    def __init__(self, run: LoadedModel, translator: LineTranslator) -> None:
        """`translator` translates the sentences with the model of `run`."""
        self.run = run
        self.translator = translator

    def translate(
        self,
        texts: Iterable[str],
        window_lines: int = WINDOW_PARAGRAPHS,
        warn: Callable[[str], None] = print_warning,
    ) -> Iterator[Translation]:
        """The one translation of each text that `alternatives` has."""
        for best, *_ in self.alternatives(numbered(texts), 1, window_lines, warn):
            yield best

    def alternatives(
        self,
        lines: Iterable[Line],
        n_best: int,
        window_lines: int = WINDOW_PARAGRAPHS,
        warn: Callable[[str], None] = print_warning,
        progress: Callable[[int], object] = lambda lines: None,
    ) -> Iterator[list[Translation]]:
        """Translate each line, in order, into one; its score is the sum of its sentences'.

        What is asked of a line holds for each sentence; the terms that it must have whatever the
        source, and its beginning, for the first one.

        A sentence over `MAX_SOURCE_TOKENS` is divided, at a semicolon or colon, else at a comma,
        else at a space, and `warn` told the number of its line.

        Raises:
            ConfigError: `n_best` is not 1.
        """
        if n_best != 1:
            raise ConfigError(
                "--document puts each line together from the best translation of each sentence, "
                "so a line has no --n-best; leave one of them out"
            )
        for window in windows(lines, window_lines, characters):
            groups = [list(self._sentences(line, warn)) for line in window]
            found = self.translator.alternatives(chain.from_iterable(groups), 1, warn=warn)
            for group in groups:
                yield [join([best for best, *_ in islice(found, len(group))])]
            progress(len(window))

    def _sentences(self, line: Line, warn: Callable[[str], None]) -> Iterator[Line]:
        """The sentences of a line, none of them too long for the model, as lines of their own."""
        asked = line.terminology
        sentences = split_sentences(line.text, self.run.config.data.source_language)
        number = line.number * SENTENCES
        for sentence, length in zip(sentences, self._lengths(sentences), strict=True):
            pieces = self._pieces(sentence, length)
            if len(pieces) > 1:
                warn(
                    f"line {line.number} has a sentence of {length} tokens, more than "
                    f"{MAX_SOURCE_TOKENS}; it is translated in {len(pieces)} pieces"
                )
            for piece in pieces:
                yield Line(number, piece, asked)
                number += 1
                asked = asked and asked.without_beginning()

    def _lengths(self, texts: list[str]) -> list[int]:
        return [len(ids) for ids in self.run.tokenizer.encode_source(texts)]

    def _pieces(self, text: str, length: int) -> list[str]:
        if length <= MAX_SOURCE_TOKENS or len(text) == 1:
            return [text]
        parts = halves(text)
        lengths = self._lengths(parts)
        return [
            piece
            for part, length in zip(parts, lengths, strict=True)
            for piece in self._pieces(part, length)
        ]


def halves(text: str) -> list[str]:
    """Two parts of a text, divided at the best boundary of its middle half, or just in the middle.

    White space at the boundary is dropped; `text` has two characters or more and none at its ends.
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
    """Translations of consecutive sentences as one, with a space between them."""
    text = ""
    for sentence in sentences:
        gap = " " if text and sentence.text and not ENDS_WITHOUT_SPACE.search(text) else ""
        text += gap + sentence.text
    return Translation(text, sum((s.score for s in sentences), 0.0))
