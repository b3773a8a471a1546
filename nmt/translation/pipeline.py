"""Lines in, translations out, in order: a pipeline of stages around a search.

On the way in a line passes the stages from the first to the last, on the way out from the last to
the first. Between them it is encoded, searched in a batch of lines of similar length, and decoded.

    Line -> line stages -> EncodedLine -> batch stages -> SearchBatch
                                                              |
    Translation <- line stages <- batch stages <- decoded <- Hypothesis

Lines are taken in windows. All that happens to one batch, from the search to the last batch stage,
is one task, which this process computes or one of several others. The batches are the same for any
number of processes, and so are the translations.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Protocol, Self

from nmt.search.searcher import SearchBatch, Searcher
from nmt.search.windows import WINDOW_LINES, windows
from nmt.translation.encoding import copy_of, decode, encode
from nmt.translation.line import (
    EncodedLine,
    Line,
    Progress,
    Translation,
    Warn,
    characters,
    print_warning,
)
from nmt.translation.process_pool import ProcessPool


class LineStage(Protocol):
    """A stage that works on text, in the main process: a line may become several lines."""

    def enter(self, lines: Sequence[Line], warn: Warn) -> list[list[Line]]:
        """The lines to translate in place of each line."""

    def leave(self, line: Line, found: list[list[Translation]]) -> list[Translation]:
        """The translations of a line, made of those of the lines in its place."""


class BatchStage(Protocol):
    """A stage that works on encoded lines and on what the search has found for them.

    `enter` is called in the main process, `leave` in the process that has searched the batch.
    """

    def enter(self, lines: list[EncodedLine]) -> list[EncodedLine]:
        """The lines of a window, changed for the search."""

    def leave(
        self, lines: Sequence[EncodedLine], found: list[list[Translation]]
    ) -> list[list[Translation]]:
        """The translations of these lines, changed, chosen or extended."""


@dataclass
class _Window:
    """Lines that are read together, and the translations found so far."""

    lines: Sequence[Line]
    levels: list[tuple[LineStage, Sequence[Line], list[int]]] = field(default_factory=list)
    """each line stage, the lines it was given, and how many lines replace each"""
    encoded: list[EncodedLine] = field(default_factory=list)
    found: list[list[Translation]] = field(default_factory=list)
    """the translations of each encoded line"""
    batches: deque[list[int]] = field(default_factory=deque)
    """the batches that are still to be searched, as indices of encoded lines"""
    reported: int = 0
    """lines that progress has been told of"""


class Pipeline:
    """Translates lines with a searcher and stages; a context, at whose end its processes end."""

    def __init__(
        self,
        searcher: Searcher,
        line_stages: Sequence[LineStage],
        batch_stages: Sequence[BatchStage],
        n_best: int = 1,
        processes: int = 1,
    ) -> None:
        """`n_best` hypotheses of each line are searched for, in one or more `processes`.

        With several processes each computes with one thread; a single one is this process.
        """
        self.searcher = searcher
        self.line_stages = line_stages
        self.batch_stages = batch_stages
        self.n_best = n_best
        self._pool = ProcessPool(self.translate_batch, processes) if processes > 1 else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool:
            self._pool.close()

    def translate(
        self,
        lines: Iterable[Line],
        window_lines: int = WINDOW_LINES,
        warn: Warn = print_warning,
        progress: Progress = lambda lines: None,
    ) -> Iterator[list[Translation]]:
        """Yield the translations of each line, best first; see `translate_windows`."""
        for found in self.translate_windows(
            windows(lines, window_lines, characters), warn, progress
        ):
            yield from found

    def translate_windows(
        self,
        windows: Iterable[Sequence[Line]],
        warn: Warn = print_warning,
        progress: Progress = lambda lines: None,
    ) -> Iterator[list[list[Translation]]]:
        """Yield the translations of each line of each window, in order.

        With one process, a window is answered before the next one is read; with several, some
        windows are read ahead. `progress` is told how many more lines are done.

        Raises:
            NmtError: the memory does not suffice, or a process died.
            DataError: naming the line, whose constraints contradict each other.
        """
        waiting: deque[_Window] = deque()

        def tasks() -> Iterator[list[EncodedLine]]:
            for lines in windows:
                window = self._enter(lines, warn)
                waiting.append(window)
                for batch in list(window.batches):
                    yield [window.encoded[i] for i in batch]

        for found in self._map(tasks()):
            window = waiting[0]
            batch = window.batches.popleft()
            for i, translations in zip(batch, found, strict=True):
                window.found[i] = translations
            if not window.levels:
                progress(len(batch))
                window.reported += len(batch)
            if not window.batches:
                waiting.popleft()
                progress(len(window.lines) - window.reported)
                yield self._leave(window)

    def translate_batch(self, lines: Sequence[EncodedLine]) -> list[list[Translation]]:
        """Search encoded lines as one batch, and pass what is found through the batch stages."""
        batch = SearchBatch(
            [line.ids for line in lines],
            [line.line.number for line in lines],
            [line.constraints for line in lines],
            self.n_best,
        )
        hypotheses = self.searcher.search(batch)
        tokenizer, settings = self.searcher.run.tokenizer, self.searcher.settings
        found = [
            decode(tokenizer, settings, line, own)
            for line, own in zip(lines, hypotheses, strict=True)
        ]
        return self._leave_batch(lines, found)

    def _map(self, tasks: Iterable[list[EncodedLine]]) -> Iterator[list[list[Translation]]]:
        if not self._pool:
            return map(self.translate_batch, tasks)
        _ = self.searcher.model  # prepared here, it is shared by all processes that are forked
        return self._pool.map(tasks)

    def _enter(self, lines: Sequence[Line], warn: Warn) -> _Window:
        """Pass lines through all stages on the way in, and cut them into batches."""
        window = _Window(lines)
        for stage in self.line_stages:
            groups = stage.enter(lines, warn)
            window.levels.append((stage, lines, [len(group) for group in groups]))
            lines = [line for group in groups for line in group]
        encoded = encode(self.searcher.run.tokenizer, lines, warn)
        for batch_stage in self.batch_stages:
            encoded = batch_stage.enter(encoded)
        window.encoded = encoded
        window.found = [[] for _ in encoded]
        copied = [i for i, line in enumerate(encoded) if not line.ids]
        copies = [encoded[i] for i in copied]
        alone = self._leave_batch(copies, [[copy_of(line)] for line in copies])
        for i, translations in zip(copied, alone, strict=True):
            window.found[i] = translations
        window.batches.extend(self._batches(encoded, cut=bool(window.levels)))
        if not window.batches:
            window.batches.append([])  # an empty task keeps the window in its place
        return window

    def _batches(self, encoded: Sequence[EncodedLine], cut: bool) -> Iterator[list[int]]:
        """Batches of the lines to search; `cut` says that a line stage has multiplied them."""
        indices = range(len(encoded))
        parts: Iterable[Sequence[int]] = [indices]
        if cut:
            parts = windows(indices, WINDOW_LINES, lambda i: len(encoded[i].line.text))
        lengths = [len(line.ids) for line in encoded]
        constraints = [line.constraints for line in encoded]
        for part in parts:
            searched = [i for i in part if encoded[i].ids]
            yield from self.searcher.batches(searched, lengths, constraints)

    def _leave(self, window: _Window) -> list[list[Translation]]:
        """Pass the translations of a window through the line stages on the way out."""
        found = window.found
        for stage, lines, counts in reversed(window.levels):
            rest = iter(found)
            found = [
                stage.leave(line, list(islice(rest, count)))
                for line, count in zip(lines, counts, strict=True)
            ]
        return found

    def _leave_batch(
        self, lines: Sequence[EncodedLine], found: list[list[Translation]]
    ) -> list[list[Translation]]:
        for stage in reversed(self.batch_stages):
            found = stage.leave(lines, found)
        return found
