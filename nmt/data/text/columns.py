"""Text in columns: TSV as it is, or TSV and CSV with the double quotes that spreadsheets write.

A TSV file may have plain text that begins with a double quote. So the quotes of a file are only
taken for those of a spreadsheet if the rules of CSV allow it in every line and some fields need it.
"""

import codecs
import csv
import functools
import itertools
import re
from collections.abc import Iterator
from pathlib import Path

from nmt.data.languages import LANGUAGES
from nmt.data.text.lines import raw_lines, read_errors
from nmt.data.text.remote_files import RemotePath
from nmt.errors import DataError, print_warning

Row = tuple[int, list[bytes]]  # the number of its (last) line, from 1, and its fields
Layout = tuple[str, bool]  # the separator, and whether quotes around a field are no part of it

_QUOTED = re.compile(rb'"(?:[^"]|"")*"')
_UNCLOSED = re.compile(rb'"(?:[^"]|"")*')
_LINE_BREAKS = re.compile(r"[\r\n]+")
_LONGEST_FIELD = 1 << 16
"""a field in quotes that goes on over more bytes of lines is none"""
_SEPARATORS = {"\t": "tabs", ",": "commas", ";": "semicolons", "|": "bars"}
CHARACTERS_LOOKED_AT = 1 << 14
"""of the beginning of a file, by which its separator is recognised"""
_QUOTED_CELL = re.compile(r'(?:^|(?<=[\t,;|])) *"(?:[^"]|"")*+"', re.MULTILINE)
_COLUMN_NAMES = ("source", "target", "src", "tgt", "trg", "original", "translation")


def read_columns(path: Path, *wanted: int) -> Iterator[tuple[bytes, ...]]:
    """Yield these columns of each row of a .tsv, .txt, .tab or .csv file, numbered from 1.

    The first time that this process reads a file, a warning says if its quotes were removed, and
    names what looks like a header. A line break inside quotes becomes a space.

    Raises:
        DataError: the file cannot be read, a row lacks the columns or has another number of them
            than the first row, or quotes are wrong in a .csv file; names file and line.
    """
    needed, width = max(wanted), 0
    separator, quoted = _layout_of(path)
    for number, columns in _rows(path, separator, quoted):
        count = len(columns)
        if needed > count:
            plural = "" if count == 1 else "s"
            raise DataError(
                f"{path}:{number}: {count} column{plural}, expected at least {needed}, separated "
                f"by {_SEPARATORS[separator]}; check source_field and target_field"
            )
        if not width:
            first_count = count
            width = max((n for n, column in enumerate(columns, 1) if column), default=0)
            width = max(width, needed)  # without empty columns at the end
        elif count != first_count and (count < width or any(columns[width:])):
            raise DataError(
                f"{path}:{number}: {count} columns, but the first row has {first_count}; expected "
                "as many in each row. Is there a separator inside a text, or is one missing?"
            )
        yield tuple(columns[number - 1] for number in wanted)


def recognise_delimiter(beginning: str) -> str:
    """Return what divides the first rows of a table most evenly; a tab if nothing does."""
    rows = [row for row in _QUOTED_CELL.sub("", beginning).splitlines() if row]
    best, most = "\t", (0.0, 1)
    for delimiter in "\t,;|":
        counts = [row.count(delimiter) + 1 for row in rows]
        if counts and counts[0] > 1:
            evenness = (counts.count(counts[0]) / len(counts), counts[0])
            best, most = (delimiter, evenness) if evenness > most else (best, most)
    return best


def _rows(path: Path, separator: str, quoted: bool) -> Iterator[Row]:
    """Yield the rows of a file."""
    if not quoted:
        for number, line in enumerate(raw_lines(path), start=1):
            yield number, _without_end(line).split(separator.encode())
        return
    csv.field_size_limit(1 << 30)
    # bytes that are not UTF-8 are reported when the pair is decoded
    lines = (_text_for_csv(line) for line in raw_lines(path))
    reader = csv.reader(lines, delimiter=separator, strict=True)
    try:
        for fields in reader:
            row = [
                _LINE_BREAKS.sub(" ", field).encode("utf-8", "surrogateescape") for field in fields
            ]
            yield reader.line_num, row or [b""]
    except csv.Error as error:
        raise DataError(
            f"{path}:{reader.line_num}: not CSV ({error}); expected double quotes around a whole "
            "field, and each one inside written twice"
        ) from error


def _text_for_csv(line: bytes) -> str:
    """Return a line as the module `csv` takes it: it would refuse a carriage return inside."""
    text = _without_end(line).decode("utf-8", "surrogateescape")
    return text.replace("\r", " ").removeprefix("\ufeff") + "\n"


def _without_end(line: bytes) -> bytes:
    return line.removesuffix(b"\n").removesuffix(b"\r")


def _layout_of(path: Path) -> Layout:
    """Return how the rows of a file are written; warn the first time that it is asked."""
    if isinstance(path, RemotePath):
        return _find_layout(path, ())
    with read_errors(path):
        stat = path.stat()
    return _find_layout(path, (stat.st_size, stat.st_ino, stat.st_ctime_ns))


@functools.lru_cache(100)
def _find_layout(path: Path, state: tuple[int, ...]) -> Layout:
    """Return how the rows of a file are written, and warn of what was decided or looks wrong.

    `state` is another one when the file has changed.
    """
    if ".csv" in path.suffixes[-2:]:
        separator, quoted = _recognise_separator(path), True
    else:
        separator, quoted = "\t", _is_quoted(path)
        if quoted:
            print_warning(
                f"{path}: the double quotes around fields are not learnt: they are those of a "
                "spreadsheet, as all lines follow the rules of CSV"
            )
    first_row = next(_rows(path, separator, quoted), (1, []))[1]
    if _is_header(first_row):
        names = ", ".join(field.decode("utf-8", "replace") for field in first_row)
        print_warning(
            f"{path}:1: looks like a header ({names}), but is read as a pair; remove it if it is "
            "one"
        )
    return separator, quoted


def _recognise_separator(path: Path) -> str:
    """Return the separator of a .csv file by its first lines; a comma if nothing separates them."""
    beginning = b""
    for line in raw_lines(path):
        beginning += line
        if len(beginning) >= CHARACTERS_LOOKED_AT:
            break
    text = beginning.decode("utf-8", "replace").removeprefix("\ufeff")
    found = recognise_delimiter(text[:CHARACTERS_LOOKED_AT])
    return found if found in text else ","


def _is_header(fields: list[bytes]) -> bool:
    """Whether two fields name columns: by different languages or codes, or as source and target."""
    texts = {field.decode("utf-8", "replace").strip("\ufeff #").casefold() for field in fields}
    return sum(map(_names_column, texts)) > 1


def _names_column(text: str) -> bool:
    """Whether a text, case-folded, names a column: `en`, `german`, `src_text`."""
    words = re.split(r"[\W_]+", text)
    if text in LANGUAGES or words[0] in LANGUAGES and len(words) == 2 and len(words[1]) in (2, 4):
        return True  # a code, perhaps with a script or country
    return len(words) <= 3 and any(word in _COLUMN_NAMES or word in _languages() for word in words)


@functools.cache
def _languages() -> frozenset[str]:
    """The English names of languages, case-folded."""
    return frozenset(language.name.casefold() for language in LANGUAGES.values())


def _is_quoted(path: Path) -> bool:
    """Whether the double quotes in a TSV file are those of a spreadsheet.

    All fields that begin with one must end with one and double each one inside; and some must hold
    a double quote, a tab or a line break, or all fields of a column must have quotes.
    """
    needs_quotes = False
    always_quoted: set[int] | None = None  # the columns whose fields have all had quotes so far
    counts, plain_counts = set[int](), set[int]()  # numbers of columns with and without the rules
    lines = raw_lines(path)
    first = next(lines, b"").removeprefix(codecs.BOM_UTF8)
    lines = itertools.chain([first], lines)
    for line in lines:
        if b'"' not in line:  # most lines, and faster
            always_quoted = set()
            counts.add(line.count(b"\t") + 1)
            plain_counts.add(line.count(b"\t") + 1)
            continue
        columns = _without_end(line).split(b"\t")
        fields = _join_quoted(columns, lines)
        if fields is None:
            return False
        counts.add(len(fields))
        plain_counts.add(len(columns))
        quoted = {number for number, field in enumerate(fields) if field.startswith(b'"')}
        always_quoted = quoted if always_quoted is None else always_quoted & quoted
        needs_quotes |= any(b'""' in fields[n][1:-1] or b"\n" in fields[n] for n in quoted)
        needs_quotes |= len(fields) < len(columns)
    if not (needs_quotes or always_quoted) or min(counts) < 2:
        return False
    return len(counts) == 1 or len(plain_counts) > 1


def _join_quoted(columns: list[bytes], following: Iterator[bytes]) -> list[bytes] | None:
    """Return the fields of a row, with their quotes; None if the rules of CSV do not allow these.

    `columns` are what tabs divide. A field in quotes may hold tabs; or it may hold line breaks, but
    not both, so that lines of pairs are never taken for one field. Then it goes on in `following`.
    """
    fields, rest = [], list(columns)
    while rest:
        field = rest.pop(0)
        while field.startswith(b'"') and not _QUOTED.fullmatch(field):
            if not _UNCLOSED.fullmatch(field):
                return None
            if rest:
                if b"\n" in field:
                    return None
                field += b"\t" + rest.pop(0)
                continue
            line = next(following, None)
            if line is None or b"\t" in field or len(field) > _LONGEST_FIELD:
                return None
            begun, *rest = _without_end(line).split(b"\t")
            field += b"\n" + begun
        fields.append(field)
    return fields
