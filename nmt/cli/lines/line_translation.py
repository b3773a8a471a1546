"""Translates the lines of `nmt translate`: from the input stream to the output."""

import sys
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from nmt.cli.lines.line_format import output_of, read_line
from nmt.cli.lines.partial_output import WindowOutput
from nmt.cli.lines.streams import count_lines, input_name, is_regular, is_stdin, is_typed, warn
from nmt.cli.options.output import OutputOptions
from nmt.cli.options.terminology import line_terminology

if TYPE_CHECKING:
    from nmt.translation.line import Line
    from nmt.translation.pipeline import Pipeline


@dataclass(frozen=True)
class _InputWindow:
    """Lines that are read together and answered together."""

    read: list[str]
    records: list[dict[str, object]]
    """the record of each line"""
    lines: "list[Line]"
    """the text of each line and its constraints"""


@dataclass(frozen=True)
class LineInput:
    """The lines of `file`, or of stdin for None and "-", as the pipeline takes them."""

    file: Path | None
    lines: Iterator[str]
    options: OutputOptions
    done: int
    """number of lines before these, which are translated already"""

    def windows(self) -> Iterator[_InputWindow]:
        """Read the lines in windows; a window of typed text is a single line."""
        from nmt.search import windows
        from nmt.translation import document
        from nmt.translation.line import Line

        name = input_name(self.file)
        size = document.WINDOW_PARAGRAPHS if self.options.document else windows.WINDOW_LINES
        numbers = count(self.done + 1)
        for read in windows.windows(self.lines, 1 if is_typed(self.file) else size, len):
            window = _InputWindow(read, [], [])
            for text in read:
                number = next(numbers)
                where = f"{name}:{number}"
                record = read_line(text, where, self.options)
                asked = line_terminology(record, where) if self.options.json_input else None
                window.records.append(record)
                window.lines.append(Line(number, str(record["source"]), asked))
            yield window


def translate_lines(pipeline: "Pipeline", text: LineInput, sink: WindowOutput) -> None:
    """Write the translation of each line, at once where somebody types."""
    from tqdm import tqdm

    waiting: deque[_InputWindow] = deque()

    def lines() -> "Iterator[Sequence[Line]]":
        for window in text.windows():
            waiting.append(window)
            yield window.lines

    show = not is_stdin(text.file) and sys.stderr.isatty()
    total = count_lines(text.file) if show else None
    with tqdm(total=total, initial=text.done, unit=" lines", disable=not show) as bar:
        # A pipe is answered window by window; a file is read some windows ahead.
        parts = [lines()] if is_regular(text.file) else ([window] for window in lines())
        for part in parts:
            for found in pipeline.translate_windows(part, warn, bar.update):
                window = waiting.popleft()
                rows = (
                    output_of(line.number, record, translations, text.options) + "\n"
                    for line, record, translations in zip(
                        window.lines, window.records, found, strict=True
                    )
                )
                sink.write(window.read, "".join(rows).encode("utf-8"))
