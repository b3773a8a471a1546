"""CSV and TSV: the cells of some columns are translated; quotation marks and all else stay."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from nmt.data.text.columns import CHARACTERS_LOOKED_AT, recognise_delimiter
from nmt.errors import DataError, print_warning
from nmt.translation.documents.chosen_values import is_text, nearest
from nmt.translation.documents.data_values import DataValue, data_document
from nmt.translation.documents.document import Document, ReadingOptions
from nmt.translation.documents.encodings import TextFile
from nmt.translation.spans import Span

_DECLARATION = re.compile(r"sep=([^\r\n])\r?\n")
"""the first line of a file for Excel that says what separates the cells"""
_ROW_END = re.compile(r"\r\n|\n|\r")


@dataclass(frozen=True, slots=True)
class _Cell:
    """A cell of a table."""

    span: Span
    """with its quotation marks"""
    text: str
    is_quoted: bool


@dataclass(frozen=True, slots=True)
class _Columns:
    """The columns that are translated."""

    indices: Sequence[int]
    has_header: bool
    """whether the first row has their names"""
    are_named: bool
    """whether all of their cells are translated, and not only those that are texts"""


def read_table(file: TextFile, options: ReadingOptions) -> Document:
    """Read a CSV or TSV file, and translate the columns that the options name.

    A name is one in the first row, which stays then; `*` in it stands for any characters. If all
    are numbers, from 1 on, the first row is one like all others. Are only columns to skip given,
    the texts in all others are translated.

    Raises:
        DataError: a quotation mark is not closed, or no column is named that the table has.
    """
    declared = _DECLARATION.match(file.text)
    delimiter = declared[1] if declared else _delimiter(file)
    rows = list(_read_rows(file, delimiter, declared.end() if declared else 0))
    first = [cell.text for cell in rows[0]] if rows else []
    columns = _choose_columns(file, first, options)
    is_plain = delimiter == "\t" and not any(cell.is_quoted for row in rows for cell in row)
    values = (
        DataValue((), cell.span, cell.text, partial(_write, cell, "" if is_plain else delimiter))
        for row in rows[1 if columns.has_header else 0 :]
        for i, cell in enumerate(row)
        if i in columns.indices
        if columns.are_named or is_text(cell.text, "")
    )
    return data_document(file, values, is_of_program=False)


def _delimiter(file: TextFile) -> str:
    """Return what divides the cells: a tab in a file whose name says TSV, if there is one."""
    is_named = file.name.lower().endswith((".tsv", ".tab")) and "\t" in file.text
    return "\t" if is_named else recognise_delimiter(file.text[:CHARACTERS_LOOKED_AT])


def _read_rows(file: TextFile, delimiter: str, at: int) -> Iterator[list[_Cell]]:
    """Yield the cells of each row that is not empty, from the character `at` on.

    Raises:
        DataError: a quotation mark is not closed at the end of a cell. In a file with tabs it
            stands for itself.
    """
    text, mark = file.text, re.escape(delimiter)
    quoted = re.compile(rf' *"((?:[^"]+|"")*+)" *(?=[{mark}\r\n]|\Z)')
    plain = re.compile(rf"[^{mark}\r\n]*+")
    row: list[_Cell] = []
    while at < len(text) or row:
        if found := quoted.match(text, at):
            span = found.start(1) - 1, found.end(1) + 1
            row.append(_Cell(span, found[1].replace('""', '"'), True))
        else:
            found = plain.match(text, at)
            assert found  # it may be empty
            if delimiter != "\t" and found[0].lstrip(" ").startswith('"'):
                raise file.error(
                    at,
                    f"the quotation mark before {found[0].strip()[1:30]!r} is not closed at the "
                    f"end of a cell, before {delimiter!r} or the end of a row; write one inside "
                    "a cell twice",
                )
            row.append(_Cell(found.span(), found[0], False))
        at = found.end()
        if text.startswith(delimiter, at):
            at += 1
            continue
        if len(row) > 1 or row[0].text:
            yield row
        row = []
        end = _ROW_END.match(text, at)
        at = end.end() if end else at


def _choose_columns(file: TextFile, first: Sequence[str], options: ReadingOptions) -> _Columns:
    """Return the columns that are translated, by the cells of the first row.

    Raises:
        DataError: none is named that there is.
    """
    shown = ", ".join(f"{i} {cell.strip()[:30]!r}" for i, cell in enumerate(first[:50], start=1))
    if not options.column and not options.skip_column:
        raise DataError(
            f"{file.name}: say which columns are translated with `column`, by the name in the "
            "first row or, if that is no header, by number; or give `format` text to translate "
            f"whole lines. The columns are {shown or 'none'}"
        )
    names = [cell.strip() for cell in first]
    asked = [*options.column, *options.skip_column]
    has_header = not all(key.isdecimal() and key not in names for key in asked)
    found = {key: _matching(key, names, has_header) for key in asked}
    unknown = [key for key in asked if not found[key]]
    indices = {i for key in options.column for i in found[key]} or set(range(len(names)))
    for key in unknown:
        near = nearest(key, names) if has_header else ""
        message = f"{file.name}: there is no column {key!r}; the columns are {shown}{near}"
        if first and unknown == asked:
            raise DataError(message)
        print_warning(message)
    skipped = {i for key in options.skip_column for i in found[key]}
    return _Columns(sorted(indices - skipped), has_header, bool(options.column))


def _matching(key: str, names: Sequence[str], has_header: bool) -> list[int]:
    """Return the columns that a name or a number stands for."""
    pattern = re.compile(re.escape(key).replace(r"\*", ".*"), re.DOTALL)
    found = [i for i, name in enumerate(names) if pattern.fullmatch(name)] if has_header else []
    if not found and key.isdecimal():
        found = [i for i in range(len(names)) if i + 1 == int(key)]
    return found


def _write(cell: _Cell, delimiter: str, text: str) -> str:
    """Return a text as a cell; without a delimiter, the file has no quotation marks around cells.

    A cell is in quotation marks if it was, or if it would be read otherwise without them.
    """
    if not delimiter:
        return re.sub(r"[\t\n\r]+", " ", text)
    is_ambiguous = text.startswith('"') or ('"' in text and '"' not in cell.text)
    if cell.is_quoted or is_ambiguous or any(char in text for char in (delimiter, "\n", "\r")):
        doubled = text.replace('"', '""')
        return f'"{doubled}"'
    return text
