r"""Reads and decodes the lines of text files; files that end in .gz, .xz or .zst are decompressed.

A line ends at the byte "\n" and nowhere else. `str.splitlines` and text mode also split at
carriage returns, U+2028, form feeds and others, and one such character inside a sentence would
shift every later line.
"""

import codecs
import contextlib
import functools
import io
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from nmt.data.text.compressed import BEGINNINGS, DAMAGED, DAMAGED_FILE, SUFFIXES, decompress
from nmt.data.text.remote_files import open_file
from nmt.errors import DataError, print_warning

_COMPRESSED = (*BEGINNINGS.values(), b"BZh91AY&SY")  # bzip2 is the last one
# the first bytes of other files that are no plain text in UTF-8, and what they are
_OTHER_FORMATS = {
    b"PK\3\4": "a zip file, as .docx, .odt and .xlsx are",
    b"\xd0\xcf\x11\xe0": "a document of an older Office, such as .doc or .xls",
    b"{\\rtf": "a document in RTF",
    b"%PDF-": "a PDF document",
    b"\x89PNG": "an image",
    b"\xff\xd8\xff": "an image",
    codecs.BOM_UTF16_LE: "text in UTF-16",
    codecs.BOM_UTF16_BE: "text in UTF-16",
}


def read_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a UTF-8 file without their ends; .gz, .xz and .zst are decompressed.

    A byte order mark at the start of the file and the carriage return of a CRLF end are dropped.
    A last line without an end counts as a line.

    Raises:
        DataError: the file is missing, unreadable, cut short or not UTF-8 (with its line number).
    """
    for number, line in enumerate(raw_lines(path), start=1):
        yield decode_line(line, path, number)


def raw_lines(path: Path) -> Iterator[bytes]:
    """Yield the undecoded lines of a file with their line feeds; .gz, .xz, .zst are decompressed.

    Raises:
        DataError: the file is missing, unreadable, damaged or cut short.
    """
    with open_bytes(path) as file:
        first = file.readline()
        if _has_old_line_ends(first):
            _warn_of_old_line_ends(path)
        if first:
            yield first
        yield from file


def _has_old_line_ends(line: bytes) -> bool:
    """Whether the first line of a text is all of it, and ends lines as Macs did until 2001."""
    return not line.endswith(b"\n") and len(line.strip(b"\r").split(b"\r")) > 2


_OLD_LINE_ENDS = (
    "is one line, because its lines end in carriage returns alone; if they are line ends, convert "
    "it with: tr '\\r' '\\n' < FILE"
)


@functools.lru_cache(100)
def _warn_of_old_line_ends(path: Path) -> None:
    """Warn of a file once."""
    print_warning(f"{path}: {_OLD_LINE_ENDS}")


def no_such_file(path: Path) -> str:
    """Return the beginning of an error message about a file that is missing."""
    if str(path).isprintable():
        return f"{path}: no such file"
    return (
        f"{str(path)!a}: no such file; the path holds a line break or a tab, which is what \\n "
        "and \\t mean in double quotes: write it in single quotes"
    )


@contextlib.contextmanager
def read_errors(path: Path, setting: str = "the path") -> Iterator[None]:
    """Turn an error of the operating system inside the block into a DataError about `path`.

    `setting` says in the message what to check. An `OSError` without a number is raised unchanged:
    a decompressor raises it for damaged data.
    """
    try:
        yield
    except FileNotFoundError as error:
        raise DataError(f"{no_such_file(path)}; check {setting}") from error
    except OSError as error:
        if not error.errno:
            raise
        raise DataError(f"{path}: cannot be read: {error.strerror}") from error


@contextlib.contextmanager
def open_bytes(path: Path, is_plain: bool = True) -> Iterator[io.BufferedIOBase]:
    """Open a file to read its bytes; files that end in .gz, .xz or .zst are decompressed.

    A `RemotePath` is opened by its URL. `is_plain` says that plain text in UTF-8 is expected.

    Raises:
        DataError: the file is missing, unreadable, damaged or cut short (also in the block), or
            `check_beginning` raises it.
    """
    try:
        with read_errors(path), open_file(path) as raw, _decompress(raw, path, is_plain) as file:
            yield file
    except DAMAGED as error:
        raise DataError(
            f"{DAMAGED_FILE.format(path, error)}, or rename it if it is not compressed"
        ) from error


def _decompress(file: io.BufferedReader, path: Path, is_plain: bool) -> io.BufferedIOBase:
    """Return the open file at `path`, or what decompresses it.

    Raises:
        DataError: the file is of another program than its suffix says, or its suffix is none of
            `SUFFIXES` and `check_beginning` raises it.
    """
    if path.suffix in SUFFIXES:
        return decompress(file, path.suffix, str(path))
    if is_plain:
        check_beginning(file.peek(16), str(path))
    return file


def check_beginning(beginning: bytes, name: str) -> None:
    """Check that a file, or another input, does not begin as one of another format than text.

    `beginning` is its first 16 bytes or its first line, and `name` what the message calls it.

    Raises:
        DataError: the input is compressed, a document, an image or text in UTF-16.
    """
    if beginning.startswith(_COMPRESSED):
        raise DataError(
            f"{name}: is compressed, expected plain text or a file of gzip, xz or Zstandard whose "
            "name ends in .gz, .xz or .zst; decompress or rename it"
        )
    kinds = (kind for first, kind in _OTHER_FORMATS.items() if beginning.startswith(first))
    if kind := next(kinds, _wide_encoding(beginning)):
        raise DataError(
            f"{name}: is {kind}, expected plain text in UTF-8; save it as that, or as HTML for "
            "nmt translate --html"
        )


def _wide_encoding(beginning: bytes) -> str | None:
    """Return what a text is that seems to be UTF-16 or UTF-32 without a byte order mark, or None.

    `beginning` is that of `check_beginning`; every second byte of Latin text in UTF-16 is zero.
    """
    if beginning.count(0) < 2:
        return None
    for encoding in ("utf-32-le", "utf-32-be", "utf-16-le", "utf-16-be"):
        text = beginning[:16].decode(encoding, "ignore")
        if text and all(c in "\t\r\n\ufeff" or c.isprintable() and c < "\u2100" for c in text):
            return f"text in {encoding[:6].upper()} without a byte order mark"
    return None


def decode_line(line: bytes, path: Path, number: int, errors: str = "strict") -> str:
    """Return a line of a file as text, without its end.

    `number` is the line number, from 1; a byte order mark at the start of line 1 is dropped.
    `errors` is an argument of `bytes.decode`: what to do about bytes that are not UTF-8.

    Raises:
        DataError: the line is not UTF-8 and `errors` is "strict"; names file and line.
    """
    try:
        return _without_end(line, number).decode("utf-8", errors)
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path}:{number}: {_describe_invalid_byte(error)}; "
            "convert the file to UTF-8, for instance with iconv"
        ) from error


def decode_or_warn(lines: Iterable[bytes], name: str, warn: Callable[[str], None]) -> Iterator[str]:
    """Yield the decoded lines without their ends; U+FFFD replaces bytes that are not UTF-8.

    `warn` receives a message for each such line. `name` is what the message calls the input.

    Raises:
        DataError: the input is no text, as `check_beginning` says.
    """
    for number, raw_line in enumerate(lines, start=1):
        if number == 1:
            check_beginning(raw_line, name)
            if _has_old_line_ends(raw_line):
                warn(f"{name}: {_OLD_LINE_ENDS}")
        line = _without_end(raw_line, number)
        try:
            yield line.decode("utf-8")
        except UnicodeDecodeError as error:
            invalid = _describe_invalid_byte(error)
            warn(f"{name}:{number}: {invalid}; the invalid bytes are replaced by U+FFFD")
            yield line.decode("utf-8", errors="replace")


def _without_end(line: bytes, number: int) -> bytes:
    """Return a line without its line end, and the first one without a byte order mark."""
    if number == 1:
        line = line.removeprefix(codecs.BOM_UTF8)
    return line.removesuffix(b"\n").removesuffix(b"\r")


def _describe_invalid_byte(error: UnicodeDecodeError) -> str:
    return f"not valid UTF-8 (byte 0x{error.object[error.start]:02x})"


def check_name(path: Path) -> None:
    """Check that the path of a file or folder is UTF-8, as a recipe can hold it.

    Raises:
        DataError: the path is not UTF-8.
    """
    try:
        str(path).encode("utf-8")
    except UnicodeEncodeError as error:
        raise DataError(
            f"{str(path)!a}: the name of this file or folder is not UTF-8; give it another one"
        ) from error


def check_no_pipe(path: Path) -> None:
    """Check that a text is no pipe or device, because it is read more than once.

    Raises:
        DataError: the text is one, such as /dev/stdin or what a shell makes of <(command).
    """
    if path.exists() and not path.is_file() and not path.is_dir():
        raise DataError(
            f"{path}: is a pipe or a device, and this text is read more than once; write it to a "
            "file first"
        )


def check_text(text: str, name: str) -> None:
    """Check that UTF-8 can encode `text`; `name` is what the message calls it.

    A JSON escape, or decoding with `surrogateescape`, may give half of a surrogate pair, which
    UTF-8 cannot encode.

    Raises:
        DataError: `text` holds half of a surrogate pair.
    """
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise DataError(
            f"{name} holds half a surrogate pair ({text[error.start]!a}) and is no text; "
            "write the whole character, in UTF-8"
        ) from error
