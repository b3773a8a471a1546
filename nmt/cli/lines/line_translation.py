"""The lines of `nmt translate`, from the stream that they are read from to the one they go to."""

import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from nmt.cli.lines.line_format import Form
from nmt.cli.lines.partial_output import WindowOutput
from nmt.cli.lines.streams import count_lines, is_regular, is_stdin, is_typed, warn

if TYPE_CHECKING:
    from nmt.translation.document import LineTranslator
    from nmt.translation.line import Line
    from nmt.translation.parallel import ParallelTranslator
    from nmt.translation.translator import Translation


@dataclass(frozen=True)
class _Window:
    """Lines that are read together and answered together."""

    read: list[str]
    records: list[dict[str, object]]
    """what each of them holds"""
    lines: "list[Line]"
    """what is to be translated of each"""


def translate_lines(
    translator: "ParallelTranslator",
    form: Form,
    lines: Iterator[str],
    done: int,
    sink: WindowOutput,
    file: Path | None,
) -> None:
    """Put out what each line of `file` or stdin becomes, at once where somebody types.

    `done` lines before these are put out already.
    """
    from tqdm import tqdm

    waiting: deque[_Window] = deque()

    def to_translate() -> "Iterator[Sequence[Line]]":
        for window in _windows(lines, done + 1, form, file):
            waiting.append(window)
            yield window.lines

    show = not is_stdin(file) and sys.stderr.isatty()
    total = count_lines(file) if show else None
    with tqdm(total=total, initial=done, unit=" lines", disable=not show) as bar:
        for found in _translated(translator, form, to_translate(), file, bar.update):
            window = waiting.popleft()
            rows = (
                form.written(line.number, record, alternatives) + "\n"
                for line, record, alternatives in zip(
                    window.lines, window.records, found, strict=True
                )
            )
            sink.write(window.read, "".join(rows).encode("utf-8"))


def _windows(lines: Iterator[str], first: int, form: Form, file: Path | None) -> Iterator[_Window]:
    """The lines of `file` or stdin, the first of which has the number `first`."""
    from nmt.search import windows
    from nmt.translation import document
    from nmt.translation.line import Line

    name = "stdin" if is_stdin(file) else str(file)
    size = document.WINDOW_PARAGRAPHS if form.document else windows.WINDOW_LINES
    numbers = count(first)
    for read in windows.windows(lines, 1 if is_typed(file) else size, len):
        window = _Window(read, [], [])
        for text in read:
            number = next(numbers)
            record = form.read(text, f"{name}:{number}")
            asked = form.asked(record, f"{name}:{number}")
            window.records.append(record)
            window.lines.append(Line(number, str(record["source"]), asked))
        yield window


def _translated(
    translator: "ParallelTranslator",
    form: Form,
    windows: "Iterator[Sequence[Line]]",
    file: Path | None,
    progress: Callable[[int], object],
) -> Iterator[list[list["Translation"]]]:
    """The translations of the lines of each window."""
    from nmt.translation.document import DocumentTranslator

    if is_regular(file) and not form.document:
        yield from translator.windows(windows, form.n_best, warn, progress)
        return
    chosen: LineTranslator = translator
    if form.document:
        chosen = DocumentTranslator(translator.searching.run, translator)
    for window in windows:  # which is answered before more is waited for
        yield list(chosen.alternatives(window, form.n_best, len(window), warn, progress))
