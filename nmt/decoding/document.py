"""Lines that hold several sentences: each sentence is translated, the line put together again.

A model learns from sentences, and a whole paragraph is longer than what it has seen.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count, islice, repeat
from typing import Protocol

from nmt.data.sentences import split_sentences
from nmt.decoding.terminology import Terminology
from nmt.decoding.translator import MAX_SOURCE_TOKENS, Translation, print_warning
from nmt.decoding.windows import WINDOW_LINES, windows
from nmt.errors import ConfigError
from nmt.run_directory import Run

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
    """What translates texts one for one."""

    def alternatives(
        self,
        texts: Iterable[str],
        n_best: int,
        window_lines: int = WINDOW_LINES,
        warn: Callable[[str], None] = print_warning,
        progress: Callable[[int], object] = lambda lines: None,
        numbers: Iterable[int] | None = None,
        own: Iterable[Terminology | None] | None = None,
    ) -> Iterator[list[Translation]]:
        """As `Translator.alternatives`."""


class DocumentTranslator:
    """Translates sentence by sentence what another translator would take as one line."""

    def __init__(self, run: Run, translator: LineTranslator) -> None:
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
        for best, *_ in self.alternatives(texts, 1, window_lines, warn):
            yield best

    def alternatives(
        self,
        texts: Iterable[str],
        n_best: int,
        window_lines: int = WINDOW_PARAGRAPHS,
        warn: Callable[[str], None] = print_warning,
        progress: Callable[[int], object] = lambda lines: None,
        numbers: Iterable[int] | None = None,
        own: Iterable[Terminology | None] | None = None,
    ) -> Iterator[list[Translation]]:
        """Translate each text, in order, into one line; its score is the sum of its sentences'.

        What is asked of a line holds for each sentence; the terms that it must have whatever the
        source, and its beginning, for the first one.

        A sentence over `MAX_SOURCE_TOKENS` is divided, at a semicolon or colon, else at a comma,
        else at a space, and `warn` told the number of its line, of `numbers` or counted from 1.

        Raises:
            ConfigError: `n_best` is not 1.
        """
        if n_best != 1:
            raise ConfigError(
                "--document puts each line together from the best translation of each sentence, "
                "so a line has no --n-best; leave one of them out"
            )
        numbers = iter(count(1) if numbers is None else numbers)
        own = iter(repeat(None) if own is None else own)
        for window in windows(texts, window_lines, len):
            lines = list(islice(numbers, len(window)))
            asked = list(islice(own, len(window)))
            groups = self._sentences(window, lines, warn)
            sentences = [sentence for group in groups for sentence in group]
            found = self.translator.alternatives(
                sentences,
                1,
                warn=warn,
                numbers=[
                    line * SENTENCES + place
                    for line, group in zip(lines, groups, strict=True)
                    for place in range(len(group))
                ],
                own=_of_sentences(groups, asked),
            )
            for group in groups:
                yield [join([best for best, *_ in islice(found, len(group))])]
            progress(len(window))

    def _sentences(
        self, texts: list[str], numbers: Sequence[int], warn: Callable[[str], None]
    ) -> list[list[str]]:
        """The sentences of each text, none of them too long for the model."""
        groups = []
        for number, text in zip(numbers, texts, strict=True):
            group = []
            sentences = split_sentences(text, self.run.config.data.source_language)
            for sentence, length in zip(sentences, self._lengths(sentences), strict=True):
                pieces = self._pieces(sentence, length)
                if len(pieces) > 1:
                    warn(
                        f"line {number} has a sentence of {length} tokens, more than "
                        f"{MAX_SOURCE_TOKENS}; it is translated in {len(pieces)} pieces"
                    )
                group += pieces
            groups.append(group)
        return groups

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


def _of_sentences(
    groups: list[list[str]], asked: list[Terminology | None]
) -> list[Terminology | None]:
    """What is asked of each sentence, by what is asked of each line."""
    return [
        own.without_beginning() if own and place else own
        for group, own in zip(groups, asked, strict=True)
        for place in range(len(group))
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
