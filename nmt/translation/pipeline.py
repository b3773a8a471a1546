"""Lines in, translations out, in order: a pipeline around a search.

    Line -> sentences -> encode -> EncodedLine -> constraints -> SearchBatch
                                                                     |
    Translation <- sentences joined <- finishing stages <- decode <- Hypothesis

Lines are taken in windows, and searched in batches of similar length. All that happens to one
batch, from the search to the last finishing stage, is one task, which this process computes or one
of several others. The batches are the same for any number of processes, and so are the
translations.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Self

from nmt.data.tokens.tokenizer import Tokenizer
from nmt.errors import print_warning
from nmt.search.decoding import Hypothesis
from nmt.search.searcher import SearchBatch, Searcher
from nmt.search.windows import WINDOW_LINES, truncate, windows
from nmt.translation.document import join, split_lines
from nmt.translation.line import (
    MAX_SOURCE_TOKENS,
    EncodedLine,
    Line,
    Progress,
    Translation,
    Warn,
    one_line,
)
from nmt.translation.process_pool import ProcessPool
from nmt.translation.terminology import TerminologyStage

FinishingStage = Callable[[Sequence[EncodedLine], list[list[Translation]]], list[list[Translation]]]
"""takes some lines and the translations of each; returns these changed, chosen or extended"""


@dataclass
class _Window:
    """Lines that are read together, and the translations found so far."""

    lines: Sequence[Line]
    sentences: list[int]
    """how many encoded lines each line has become"""
    encoded: list[EncodedLine]
    found: list[list[Translation]]
    """the translations of each encoded line"""
    batches: deque[list[int]]
    """the batches that are still to be searched, as indices of encoded lines"""


@dataclass
class Pipeline:
    """Translates lines; a context, at whose end its processes end."""

    searcher: Searcher
    terminology: TerminologyStage
    finishing_stages: Sequence[FinishingStage]
    """what is applied to the translations that were found, in this order"""
    n_best: int
    """how many hypotheses of each line are searched for"""
    document: bool
    """whether lines are split into sentences"""
    processes: int
    """1 is this process; each of several computes with one thread"""

    def __post_init__(self) -> None:
        self._pool = ProcessPool(self.translate_batch, self.processes)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.close()

    def translate(
        self,
        lines: Iterable[Line],
        window_lines: int = WINDOW_LINES,
        warn: Warn = print_warning,
        progress: Progress = lambda lines: None,
    ) -> Iterator[list[Translation]]:
        """Yield the translations of each line, best first; see `translate_windows`."""
        groups = windows(lines, window_lines, lambda line: len(line.text))
        for found in self.translate_windows(groups, warn, progress):
            yield from found

    def translate_windows(
        self,
        windows: Iterable[Sequence[Line]],
        warn: Warn = print_warning,
        progress: Progress = lambda lines: None,
    ) -> Iterator[list[list[Translation]]]:
        """Yield the translations of each line of each window, in order.

        With one process, a window is answered before the next one is read; with several, some
        windows are read ahead. `progress` is called with the number of lines done since its last
        call.

        Raises:
            NmtError: the memory does not suffice, or a process died.
            DataError: naming the line, whose constraints contradict each other.
        """
        waiting: deque[_Window] = deque()

        def tasks() -> Iterator[list[EncodedLine]]:
            for lines in windows:
                window = self._encode_window(lines, warn)
                waiting.append(window)
                for batch in list(window.batches):
                    yield [window.encoded[i] for i in batch]

        if self.processes > 1:
            _ = self.searcher.model  # prepared here, it is shared by all processes that are forked
        for found in self._pool.map(tasks()):
            window = waiting[0]
            batch = window.batches.popleft()
            for i, translations in zip(batch, found, strict=True):
                window.found[i] = translations
            if not self.document:
                progress(len(batch))
            if not window.batches:
                waiting.popleft()
                copied = sum(not line.ids for line in window.encoded)
                progress(len(window.lines) if self.document else copied)
                yield self._join_sentences(window)

    def translate_batch(self, lines: Sequence[EncodedLine]) -> list[list[Translation]]:
        """Search encoded lines as one batch, and pass what is found through the last stages."""
        batch = SearchBatch(
            [line.ids for line in lines],
            [line.line.number for line in lines],
            [line.constraints for line in lines],
            self.n_best,
        )
        hypotheses = self.searcher.search(batch)
        found = [
            decode(self.searcher, line, own) for line, own in zip(lines, hypotheses, strict=True)
        ]
        return self._finish(lines, found)

    def _encode_window(self, lines: Sequence[Line], warn: Warn) -> _Window:
        """Encode lines, copy those that are not translated, and cut the others into batches."""
        run = self.searcher.run
        groups = split_lines(run, lines, warn) if self.document else [[line] for line in lines]
        sentences = [line for group in groups for line in group]
        encoded = self.terminology.constrain(encode(run.tokenizer, sentences, warn))
        found: list[list[Translation]] = [[] for _ in encoded]
        copied = [i for i, line in enumerate(encoded) if not line.ids]
        copies = [encoded[i] for i in copied]
        finished = self._finish(copies, [[copy_of(line)] for line in copies])
        for i, translations in zip(copied, finished, strict=True):
            found[i] = translations
        # an empty batch keeps a window without any other in its place
        batches = deque(self._batches(encoded)) or deque([[]])
        return _Window(lines, [len(group) for group in groups], encoded, found, batches)

    def _batches(self, encoded: Sequence[EncodedLine]) -> Iterator[list[int]]:
        """Yield batches of the lines to search, as indices."""
        parts: Iterable[Sequence[int]] = [range(len(encoded))]
        if self.document:  # the sentences may be many more than the lines
            parts = windows(range(len(encoded)), WINDOW_LINES, lambda i: len(encoded[i].line.text))
        lengths = [len(line.ids) for line in encoded]
        constraints = [line.constraints for line in encoded]
        for part in parts:
            searched = [i for i in part if encoded[i].ids]
            yield from self.searcher.batches(searched, lengths, constraints)

    def _join_sentences(self, window: _Window) -> list[list[Translation]]:
        if not self.document:
            return window.found
        best = iter([translations[0] for translations in window.found])
        return [[join(list(islice(best, count)))] for count in window.sentences]

    def _finish(
        self, lines: Sequence[EncodedLine], found: list[list[Translation]]
    ) -> list[list[Translation]]:
        for stage in self.finishing_stages:
            found = stage(lines, found)
        return found


def encode(tokenizer: Tokenizer, lines: Sequence[Line], warn: Warn) -> list[EncodedLine]:
    """Tokenise each line once; a line without tokens is to be copied.

    A line of more than `MAX_SOURCE_TOKENS` is truncated, and `warn` is called with a message.
    """

    def report(index: int, length: int) -> None:
        warn(
            f"line {lines[index].number} has {length} tokens; only the first {MAX_SOURCE_TOKENS} "
            "are translated: split it into sentences"
        )

    unknown = [line.text for line in lines if not line.ids]
    encoded = iter(tokenizer.source.encode(unknown))
    rows = [list(line.ids) or next(encoded) for line in lines]
    rows = truncate(rows, MAX_SOURCE_TOKENS, report)
    return [
        # a text that is not blank may still have no token but EOS
        EncodedLine(line, row if line.text.strip() and len(row) > 1 else [])
        for line, row in zip(lines, rows, strict=True)
    ]


def decode(
    searcher: Searcher, line: EncodedLine, hypotheses: Sequence[Hypothesis]
) -> list[Translation]:
    """Return the hypotheses of a line as text."""
    limit = len(line.ids) + searcher.settings.max_length_offset
    if line.constraints:
        limit += line.constraints.most_tokens
    texts = searcher.run.tokenizer.target.decode([h.tokens for h in hypotheses])
    return [
        Translation(one_line(text), h.score, h.tokens, is_truncated=len(h.tokens) >= limit)
        for text, h in zip(texts, hypotheses, strict=True)
    ]


def copy_of(line: EncodedLine) -> Translation:
    """Return the translation of a line that is not searched for: its text, or nothing if blank."""
    text = line.line.text
    return Translation(one_line(text) if text.strip() else "", 0.0)
