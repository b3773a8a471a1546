r"""The lines of a text file: where they end, and how their bytes become text.

A line ends at the byte "\n" and nowhere else. `str.splitlines` and text mode also split at
carriage returns, U+2028, form feeds and others, and one such character inside a sentence would
shift every later line.
"""

import codecs
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from nmt.data.text.compressed import raw_lines
from nmt.errors import DataError


def read_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a UTF-8 file without their ends; .gz, .xz and .zst are decompressed.

    A byte order mark at the start of the file and the carriage return of a CRLF end are dropped.
    A last line without an end counts as a line.

    Raises:
        DataError: the file is missing, unreadable, cut short or not UTF-8 (with its line number).
        MissingExtraError: a .zst file without the `zstd` extra.
    """
    for number, line in enumerate(raw_lines(path), start=1):
        yield from decode_lines([line], path, range(number, number + 1))


def decode_lines(
    lines: Sequence[bytes], path: Path, numbers: range, errors: str = "strict"
) -> list[str]:
    """Decode the lines that have these numbers in a file, without their ends.

    Args:
        lines: The bytes of each line.
        path: The file, for the message.
        numbers: The number of each line in the file, from 1.
        errors: That of `bytes.decode`: what to do where the bytes are not UTF-8.

    Raises:
        DataError: naming file and line: a line is not UTF-8 and `errors` is "strict".
    """
    if lines and numbers.start == 1:
        lines = [lines[0].removeprefix(codecs.BOM_UTF8), *lines[1:]]
    decoded = []
    for number, line in zip(numbers, lines, strict=True):
        try:
            decoded.append(line.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8", errors))
        except UnicodeDecodeError as error:
            raise DataError(
                f"{path}:{number}: {_describe_invalid_byte(error)}; "
                "convert the file to UTF-8, for instance with iconv"
            ) from error
    return decoded


def decode_or_warn(lines: Iterable[bytes], name: str, warn: Callable[[str], None]) -> Iterator[str]:
    """Yield lines without their ends, with U+FFFD in the place of bytes that are not UTF-8.

    `warn` receives a message for each such line, with the name of the input and the line's number.
    """
    for number, line in enumerate(lines, start=1):
        if number == 1:
            line = line.removeprefix(codecs.BOM_UTF8)
        line = line.removesuffix(b"\n").removesuffix(b"\r")
        try:
            yield line.decode("utf-8")
        except UnicodeDecodeError as error:
            invalid = _describe_invalid_byte(error)
            warn(f"{name}:{number}: {invalid}; the invalid bytes are replaced by U+FFFD")
            yield line.decode("utf-8", errors="replace")


def _describe_invalid_byte(error: UnicodeDecodeError) -> str:
    return f"not valid UTF-8 (byte 0x{error.object[error.start]:02x})"


def check_text(text: str, name: str) -> None:
    """Check that UTF-8 can encode a string.

    A string from a JSON escape or decoded with `surrogateescape` may hold half of a surrogate pair,
    which UTF-8 cannot encode.

    Raises:
        DataError: naming `name`, what the text is called.
    """
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise DataError(
            f"{name} holds half a surrogate pair ({text[error.start]!a}) and is no text; "
            "write the whole character, in UTF-8"
        ) from error
