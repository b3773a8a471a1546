"""The lines of `nmt translate`: read in windows, translated, and written as its options ask."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nmt.cli.lines.json_lines import line_terminology, read_record, written_record
from nmt.cli.lines.partial_output import WindowOutput
from nmt.cli.lines.streams import input_name, is_regular, is_typed, progress_bar, warn
from nmt.cli.options.translation import OutputOptions

if TYPE_CHECKING:
    from nmt.translation.line import Line, Translation
    from nmt.translation.pipeline import Pipeline


@dataclass(frozen=True)
class _InputLine:
    """A line of the input, and what is translated of it."""

    read: str
    record: dict[str, object]
    """the object of the line, whose "source" is its text"""
    line: "Line"
    """the text and its constraints"""


@dataclass(frozen=True)
class LineInput:
    """The lines of `file`, or of stdin for None and "-", as the pipeline takes them."""

    file: Path | None
    lines: Iterator[str]
    options: OutputOptions
    done: int
    """number of lines before these, which are translated already"""

    def windows(self) -> Iterator[list[_InputLine]]:
        """Read the lines in windows; a window of typed text is a single line.

        Raises:
            DataError: With --json-input, a line is no such object; the message names the line.
        """
        from nmt.search import windows
        from nmt.translation import document

        size = document.WINDOW_PARAGRAPHS if self.options.document else windows.WINDOW_LINES
        first = self.done + 1
        for read in windows.windows(self.lines, 1 if is_typed(self.file) else size, len):
            yield [self._parse(number, text) for number, text in enumerate(read, start=first)]
            first += len(read)

    def _parse(self, number: int, text: str) -> _InputLine:
        from nmt.translation.line import Line

        if not self.options.json_input:
            return _InputLine(text, {"source": text}, Line(number, text))
        where = f"{input_name(self.file)}:{number}"
        record = read_record(text, where)
        line = Line(number, str(record["source"]), line_terminology(record, where))
        return _InputLine(text, record, line)


def translate_lines(pipeline: "Pipeline", text: LineInput, sink: WindowOutput) -> None:
    """Write the translation of each line, at once where somebody types."""
    waiting: deque[list[_InputLine]] = deque()

    def lines() -> "Iterator[list[Line]]":
        for window in text.windows():
            waiting.append(window)
            yield [each.line for each in window]

    with progress_bar(text.file, " lines", text.done) as bar:
        # A pipe is answered window by window; a file is read some windows ahead.
        parts = [lines()] if is_regular(text.file) else ([window] for window in lines())
        for part in parts:
            for found in pipeline.translate_windows(part, warn, bar.update):
                window = waiting.popleft()
                rows = (
                    _output_of(line, translations, text.options) + "\n"
                    for line, translations in zip(window, found, strict=True)
                )
                sink.write([each.read for each in window], "".join(rows).encode("utf-8"))


def _output_of(line: _InputLine, translations: "list[Translation]", options: OutputOptions) -> str:
    """Return the output for a line: its translation, a list of several, or a JSON object."""
    if options.as_json:
        found = [_as_record(translation) for translation in translations]
        return written_record({**line.record, "translations": found})
    if options.n_best > 1:
        return "\n".join(
            f"{line.line.number} ||| {t.text} ||| {t.score:.4f}{_alignment_column(t, ' ||| ')}"
            for t in translations
        )
    return translations[0].text + _alignment_column(translations[0], "\t")


def _as_record(translation: "Translation") -> dict[str, object]:
    record: dict[str, object] = {"text": translation.text, "score": round(translation.score, 4)}
    if translation.utility is not None:
        record["utility"] = round(translation.utility, 4)
    if (alignment := translation.alignment) is not None:
        record["alignment"] = alignment.pharaoh()
        record["tokens"] = [
            {"piece": piece, "log_probability": round(value, 4)}
            for piece, value in zip(alignment.pieces, alignment.log_probabilities, strict=True)
        ]
    return record


def _alignment_column(translation: "Translation", separator: str) -> str:
    """Return the separator and the alignment; empty if no alignment was asked for."""
    return separator + translation.alignment.pharaoh() if translation.alignment else ""
