"""Files as streams of bytes, decompressed by their suffix: .gz, .xz and .zst."""

import gzip
import io
import lzma
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import ModuleType
from typing import IO, Any, cast

from nmt.errors import DataError, MissingExtraError

_CHUNK = 1 << 17
SUFFIXES = (".gz", ".xz", ".zst")


def raw_lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a file with their line feeds, decompressed by suffix.

    Raises:
        DataError: the file is missing, unreadable, damaged or cut short.
        MissingExtraError: a .zst file without the `zstd` extra.
    """
    try:
        with closing(open_bytes(path)) as file:
            yield from file
    except FileNotFoundError as error:
        raise DataError(f"{path}: no such file; check the path in the configuration") from error
    except (EOFError, gzip.BadGzipFile, lzma.LZMAError, zlib.error) as error:
        raise DataError(f"{path}: damaged or cut short ({error}); fetch the file again") from error
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from error


def open_bytes(path: Path) -> IO[bytes]:
    """Open a file for reading, decompressing by suffix; lines end with a line feed alone."""
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
    """The decompressed bytes of all frames of a file.

    The reader of the library ends without an error where the file was cut short.
    """

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
