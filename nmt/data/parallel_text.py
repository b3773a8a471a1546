"""Line-aligned text files, plain or compressed, read without ever losing the alignment.

A line ends at the byte "\\n" and nowhere else. `str.splitlines` and text mode also split at
carriage returns, U+2028, form feeds and others, and one such character inside a sentence would
shift every later pair.
"""

import codecs
import gzip
import io
import lzma
import zlib
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from types import ModuleType
from typing import IO, Any, cast

from nmt.errors import DataError, MissingExtraError

_CHUNK = 1 << 17


@dataclass(frozen=True, slots=True)
class SentencePair:
    """A sentence and its translation."""

    source: str
    target: str


@dataclass(frozen=True, slots=True)
class ParallelText:
    """The pairs of two line-aligned files; iterating again reads them again."""

    source: Path
    target: Path

    def __iter__(self) -> Iterator[SentencePair]:
        return read_pairs(self.source, self.target)


def read_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a UTF-8 file without their ends; .gz, .xz and .zst are decompressed.

    A byte order mark at the start of the file and the carriage return of a CRLF end are dropped.
    A last line without an end counts as a line.

    Raises:
        DataError: the file is missing, unreadable, cut short or not UTF-8 (with its line number).
        MissingExtraError: a .zst file without the `zstd` extra.
    """
    try:
        with closing(open_bytes(path)) as file:
            for number, line in enumerate(file, start=1):
                yield _decode(line, path, number)
    except FileNotFoundError as error:
        raise DataError(f"{path}: no such file; check the path in the configuration") from error
    except (EOFError, gzip.BadGzipFile, lzma.LZMAError, zlib.error) as error:
        raise DataError(f"{path}: damaged or cut short ({error}); fetch the file again") from error
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from error


def read_pairs(source: Path, target: Path) -> Iterator[SentencePair]:
    """Yield the pairs of two line-aligned files in order.

    Raises:
        DataError: a file is empty, or their line counts differ (found at the end of the shorter
            one; both counts are named); and whatever `read_lines` raises.
    """
    count = 0
    lines = zip_longest(read_lines(source), read_lines(target))
    for source_line, target_line in lines:
        if source_line is None or target_line is None:
            _refuse_counts(source, target, count, is_source_short=source_line is None, rest=lines)
        yield SentencePair(source_line, target_line)
        count += 1
    if count == 0:
        raise DataError(f"{source} and {target} are empty; expected one sentence per line")


def _refuse_counts(
    source: Path,
    target: Path,
    shorter: int,
    *,
    is_source_short: bool,
    rest: Iterator[tuple[str | None, str | None]],
) -> None:
    """Count the longer file to its end and raise."""
    longer = shorter + 1 + sum(1 for _ in rest)
    counts = (shorter, longer) if is_source_short else (longer, shorter)
    raise DataError(
        f"{source} has {_lines(counts[0])}, {target} has {_lines(counts[1])}; expected as many, "
        "line n of one being the translation of line n of the other"
    )


def _lines(count: int) -> str:
    return "1 line" if count == 1 else f"{count} lines"


def _decode(line: bytes, path: Path, number: int) -> str:
    if number == 1:
        line = line.removeprefix(codecs.BOM_UTF8)
    try:
        return line.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path}:{number}: not valid UTF-8 (byte 0x{error.object[error.start]:02x}); "
            "convert the file to UTF-8, for instance with iconv"
        ) from error


def open_bytes(path: Path) -> IO[bytes]:
    """Open for reading, decompressing by suffix; iterating gives lines ended by "\\n"."""
    if path.suffix == ".gz":
        return cast(IO[bytes], gzip.open(path, "rb"))
    if path.suffix == ".xz":
        return cast(IO[bytes], lzma.open(path, "rb"))
    if path.suffix == ".zst":
        return _open_zstandard(path)
    return open(path, "rb")


def _open_zstandard(path: Path) -> IO[bytes]:
    try:
        import zstandard
    except ImportError as error:
        raise MissingExtraError(f"reading {path}", "zstd") from error
    return cast(IO[bytes], io.BufferedReader(_ZstandardStream(zstandard, open(path, "rb"))))


class _ZstandardStream(io.RawIOBase):
    """The decompressed bytes of all frames; the library's own reader ends quietly when cut."""

    def __init__(self, zstandard: ModuleType, file: IO[bytes]) -> None:
        self._zstandard = zstandard
        self._file = file
        self._frame: Any = None
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready:
            compressed = self._frame.unused_data if self._frame and self._frame.eof else b""
            compressed = compressed or self._file.read(_CHUNK)
            if not compressed:
                if self._frame and not self._frame.eof:
                    raise EOFError("the last frame has no end")
                return 0
            if self._frame is None or self._frame.eof:
                self._frame = self._zstandard.ZstdDecompressor().decompressobj()
            try:
                self._ready = memoryview(self._frame.decompress(compressed))
            except self._zstandard.ZstdError as error:
                raise EOFError(str(error)) from error
        size = min(len(buffer), len(self._ready))
        buffer[:size] = self._ready[:size]
        self._ready = self._ready[size:]
        return size

    def close(self) -> None:
        self._file.close()
        super().close()
