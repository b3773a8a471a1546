"""The lines of `nmt translate`: read in windows, translated, and written as its options ask."""

import json
import math
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmt.cli.lines.partial_output import WindowOutput
from nmt.cli.lines.streams import input_name, is_regular, is_typed, progress_bar, warn
from nmt.cli.options.translation import OutputOptions
from nmt.data.text.lines import check_text
from nmt.errors import DataError

if TYPE_CHECKING:
    from nmt.translation.line import Line, Terminology, Translation
    from nmt.translation.pipeline import Pipeline


TERMINOLOGY_KEYS = ("terms", "forbidden", "target_prefix")
NAMES = {type(None): "null", bool: "a boolean", str: "a string", list: "a list", dict: "an object"}


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


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"{digits} is no number that JSON can hold")
    return number


_DECODER = json.JSONDecoder(parse_float=_finite, parse_constant=_finite)


def read_record(line: str, where: str) -> dict[str, object]:
    """Return the object of a line, whose "source" is the text to translate.

    Raises:
        DataError: The line is no such object; the message names `where`, the file and line.
    """
    wanted = 'expected a JSON object with the key "source", a string: {"source": "A dog."}'
    try:
        record = _DECODER.decode(line)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where}: no JSON ({error}); {wanted}") from error
    if not isinstance(record, dict):
        raise DataError(f"{where}: {_kind(record)}; {wanted}")
    if "source" not in record:
        raise DataError(f'{where}: an object without "source"; {wanted}')
    source = record["source"]
    if not isinstance(source, str):
        raise DataError(f'{where}: "source" is {_kind(source)}; {wanted}')
    check_text(source, f'{where}: "source"')
    return record


def _kind(value: object) -> str:
    return NAMES.get(type(value), "a number")


def written_record(record: Mapping[str, object]) -> str:
    """Return a record as one line of JSON, with escapes for what UTF-8 cannot hold.

    Raises:
        DataError: The record is nested too deeply to be written.
    """
    try:
        line = json.dumps(record, ensure_ascii=False)
    except RecursionError as error:
        raise DataError(
            f"{str(record.get('source'))[:60]!r}: another key of its object is nested too deeply "
            "to be written; leave it out"
        ) from error
    try:
        line.encode("utf-8")
    except UnicodeEncodeError:
        return json.dumps(record)
    return line


def line_terminology(record: Mapping[str, Any], where: str) -> "Terminology | None":
    """Return what a JSON line asks of its own translation; None if it asks nothing.

    Raises:
        DataError: A key has a value of another form; the message names `where`, the file and line.
    """
    if not any(key in record for key in TERMINOLOGY_KEYS):
        return None
    from nmt.translation.line import Terminology

    def check(key: str, is_right: bool, expected: str) -> None:
        if not is_right:
            value = json.dumps(record[key])[:60]
            raise DataError(f'{where}: "{key}" is {value}; expected {expected}')

    terms, forbidden = record.get("terms", []), record.get("forbidden", [])
    glossary, words = (terms, []) if isinstance(terms, dict) else ({}, terms)
    check(
        "terms",
        _are_texts(words) and _are_texts(list(glossary.values())),
        'source terms with their translations, as {"dog": "Hund"}, or a list of words of the '
        'translation, as ["Hund"]',
    )
    check("forbidden", _are_texts(forbidden), 'a list of words, as ["Hund"]')
    prefix = record.get("target_prefix", "")
    check("target_prefix", isinstance(prefix, str), 'a string, as "Ein Hund "')
    try:
        return Terminology.of(glossary, words, forbidden, prefix)
    except DataError as error:
        raise DataError(f"{where}: {error}") from error


def _are_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(text, str) for text in value)
