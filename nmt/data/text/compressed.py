"""Reads and writes files of gzip, xz and Zstandard, as strictly as their own programs do.

A file is one or more streams, one after the other. gzip and xz also allow zero bytes behind a
stream. Everything else behind a stream is an error, because it may be a damaged stream, whose text
would otherwise be missing without a word.
"""

import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Iterator
from typing import IO, Any

from nmt.errors import DataError

BEGINNINGS = {".gz": b"\x1f\x8b", ".xz": b"\xfd7zXZ\0", ".zst": b"\x28\xb5\x2f\xfd"}
"""The first bytes of a file of gzip, xz and Zstandard, by its suffix."""
SUFFIXES = tuple(BEGINNINGS)
"""The suffixes of compressed files."""
DAMAGED = (OSError, EOFError, lzma.LZMAError, zlib.error)
DAMAGED_FILE = "{}: damaged or cut short ({}); fetch the file again"
"""the message about a file, and why"""
"""What reading a damaged file raises; an `OSError` of damaged data has no `errno`."""

_PROGRAMS = {".gz": "gzip", ".xz": "xz", ".zst": "Zstandard"}
_CHUNK = 1 << 16
"""how many bytes are read at once"""
_TEXT_CHUNK = 1 << 20
"""The most decompressed bytes at once: 64 kB of zeros, compressed, would be hundreds of MB."""
_GZIP_FORMAT = 31
"""`wbits` of zlib for gzip, with the checksums of header and text"""


def compress(content: bytes, suffix: str) -> bytes:
    """Return bytes as a file of the program whose suffix, in `SUFFIXES`, is given."""
    if suffix == ".gz":
        return gzip.compress(content, mtime=0)  # equal bytes become equal files
    if suffix == ".xz":
        return lzma.compress(content)
    import pyarrow

    return bytes(pyarrow.compress(content, "zstd", asbytes=True))


def decompress(file: io.BufferedReader, suffix: str, name: str) -> io.BufferedIOBase:
    """Return what reads the decompressed bytes of an open file, whose suffix is in `SUFFIXES`.

    `name` is what error messages call the file. Reading raises one of `DAMAGED` if the file is
    damaged or cut short, or if something follows that is no stream of the same program.

    Raises:
        DataError: the file is one of another program.
    """
    beginning = file.peek(8)
    for other, its_beginning in BEGINNINGS.items():
        if other != suffix and beginning.startswith(its_beginning):
            raise DataError(
                f"{name}: is a file of {_PROGRAMS[other]}, but its name ends in {suffix}; rename "
                f"it, so that its name ends in {other}"
            )
    chunks: Iterator[bytes]
    if suffix == ".gz":
        chunks = _streams(file, lambda: zlib.decompressobj(_GZIP_FORMAT), suffix)
    elif suffix == ".xz" and beginning.startswith(BEGINNINGS[suffix]):
        chunks = _streams(file, lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ), suffix)
    elif suffix == ".xz":  # the older format of the same program, which has one stream alone
        chunks = _streams(file, lambda: lzma.LZMADecompressor(lzma.FORMAT_ALONE), "")
    else:
        chunks = _zstandard(file, name)
    return io.BufferedReader(_ChunkFile(chunks), 1 << 17)


def _streams(file: IO[bytes], start: Callable[[], Any], suffix: str) -> Iterator[bytes]:
    """Yield the text of each stream; `start` returns a decompressor of zlib or lzma for one.

    With the suffix "" nothing may follow the first stream.
    """
    data = file.read(_CHUNK)
    if not data:
        raise EOFError("it is empty")
    while data:
        stream = start()
        while not stream.eof:
            text = stream.decompress(data, _TEXT_CHUNK)
            yield text
            # zlib returns what it has not read yet; lzma keeps it, and may need no more
            data = getattr(stream, "unconsumed_tail", b"")
            if not (data or stream.eof) and getattr(stream, "needs_input", True):
                data = file.read(_CHUNK)
                if not (data or text):
                    raise EOFError("its last stream has no end")
        data, zeros = _without_zeros(file, stream.unused_data)
        if zeros % (4 if suffix == ".xz" else 1):
            raise EOFError(f"{zeros} zero bytes follow a stream, expected a multiple of 4")
        beginning = BEGINNINGS.get(suffix, b"")
        rest_is_stream = bool(suffix) and data[: len(beginning)] == beginning[: len(data)]
        if (data or zeros) and not rest_is_stream:
            raise EOFError("what follows after a stream is neither another stream nor padding")


def _without_zeros(file: IO[bytes], data: bytes) -> tuple[bytes, int]:
    """Return `data`, or what follows it in the file, from its first byte that is not zero.

    The second value is the number of zero bytes before it.
    """
    zeros = 0
    while True:
        rest = data.lstrip(b"\0")
        zeros += len(data) - len(rest)
        if rest:
            return rest, zeros
        data = file.read(_CHUNK)
        if not data:
            return b"", zeros


def _zstandard(file: io.BufferedReader, name: str) -> Iterator[bytes]:
    """Yield the text of a file of Zstandard."""
    import pyarrow

    if not file.peek(1):
        raise EOFError("it is empty")
    stream = pyarrow.CompressedInputStream(file, "zstd")
    try:
        while text := stream.read(_TEXT_CHUNK):
            yield text
    except OSError as error:
        if "too much memory" in str(error):
            raise DataError(
                f"{name}: was compressed with a window of more than 128 MB (zstd --long), which "
                "needs as much memory to be read; decompress it first, with zstd -d --long=31"
            ) from error
        raise


class _ChunkFile(io.RawIOBase):
    """A file to read whose bytes come in chunks."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._rest:  # a chunk may be empty
            chunk = next(self._chunks, None)
            if chunk is None:
                return 0
            self._rest = memoryview(chunk)
        count = min(len(buffer), len(self._rest))
        buffer[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count
