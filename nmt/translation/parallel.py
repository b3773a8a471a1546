"""Windows of lines cut into batches, which several processes translate, or this one.

The batches are the same however many share them, and so are the translations.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Self

from nmt.device import memory_explained
from nmt.search.beam_allocation import batches_by_beam
from nmt.search.windows import WINDOW_LINES, windows, worded
from nmt.translation.document import LineTranslator
from nmt.translation.line import Line, characters
from nmt.translation.translator import (
    MAX_SOURCE_TOKENS,
    Translation,
    Translator,
    no_memory,
    print_warning,
)
from nmt.translation.workers import Workers


@dataclass(frozen=True)
class Unit:
    """Lines that fill one batch, and blank ones, which fill nothing."""

    lines: Sequence[Line]
    n_best: int


@dataclass(frozen=True)
class TranslatedUnit:
    """The translations of each line of a unit, and what there is to warn of."""

    alternatives: Sequence[list[Translation]]
    warnings: Sequence[str]


@dataclass
class _Window:
    """Where the lines of its units belong, and the translations found so far."""

    found: list[list[Translation]]
    places: deque[list[int]] = field(default_factory=deque)


class ParallelTranslator:
    """Gives each batch of another translator to one of several processes.

    To be used as a context, at whose end the processes end.
    """

    def __init__(
        self, translator: LineTranslator, searching: Translator, processes: int = 1
    ) -> None:
        """`translator` is `searching` or does more with what it finds; all of that is shared.

        With more than one of the `processes`, each computes with one thread; one alone is this
        process and computes with as many as it has.
        """
        self.translator = translator
        self.searching = searching
        self._workers = Workers(self._translate, processes) if processes > 1 else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._workers:
            self._workers.close()

    def alternatives(
        self,
        lines: Iterable[Line],
        n_best: int,
        window_lines: int = WINDOW_LINES,
        warn: Callable[[str], None] = print_warning,
        progress: Callable[[int], object] = lambda lines: None,
    ) -> Iterator[list[Translation]]:
        """As `Translator.alternatives`, but `lines` is read some windows ahead."""
        groups = windows(lines, window_lines, characters)
        for found in self.windows(groups, n_best, warn, progress):
            yield from found

    def windows(
        self,
        lines: Iterable[Sequence[Line]],
        n_best: int,
        warn: Callable[[str], None] = print_warning,
        progress: Callable[[int], object] = lambda lines: None,
    ) -> Iterator[list[list[Translation]]]:
        """The translations of each window of lines; some windows are read ahead.

        Raises:
            NmtError: the memory does not suffice, or a process died.
        """
        waiting: deque[_Window] = deque()

        def units() -> Iterator[Unit]:
            for window in lines:
                cut = self._cut(window)
                waiting.append(_Window([[] for _ in window], deque(cut)))
                for places in cut:
                    yield Unit([window[i] for i in places], n_best)

        for unit in self._translate_all(units()):
            window = waiting[0]
            places = window.places.popleft()
            for place, alternatives in zip(places, unit.alternatives, strict=True):
                window.found[place] = alternatives
            for warning in unit.warnings:
                warn(warning)
            progress(len(places))
            if not window.places:
                yield waiting.popleft().found

    def _translate_all(self, units: Iterable[Unit]) -> Iterator[TranslatedUnit]:
        if not self._workers:
            return map(self._translate, units)
        _ = self.searching.model  # made here and now, it is shared by all who are started later
        return self._workers.map(units)

    def _cut(self, lines: Sequence[Line]) -> list[list[int]]:
        """The places of a window by units; the blank lines go with the last one."""
        searching = self.searching
        texts = [line.text for line in lines]
        ids = searching.run.tokenizer.encode_source(texts)
        to_translate = worded(texts, ids)
        lengths = [min(len(row), MAX_SOURCE_TOKENS) for row in ids]
        constraints = searching.constraints(lines)
        units = list(batches_by_beam(to_translate, lengths, constraints, searching.settings))
        blank = sorted({*range(len(texts))}.difference(to_translate))
        return [*units[:-1], [*(units[-1] if units else []), *blank]]

    def _translate(self, unit: Unit) -> TranslatedUnit:
        warnings: list[str] = []
        size = len(unit.lines)
        with memory_explained(no_memory(size, self.searching.settings)):
            found = self.translator.alternatives(unit.lines, unit.n_best, size, warnings.append)
            return TranslatedUnit(list(found), warnings)
