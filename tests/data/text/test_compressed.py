"""Compressed files give what their own program gives, or an error that names the file."""

import gzip
import lzma
import shutil
import subprocess
import zlib
from collections.abc import Iterator
from pathlib import Path

import pyarrow
import pytest

from nmt.data.text.lines import raw_lines
from nmt.errors import DataError

A, B = b"a dog\na cat\n", b"ein Hund\neine Katze\n"
PROGRAMS = {".gz": "gzip", ".xz": "xz", ".zst": "zstd"}


def compress(data: bytes, suffix: str) -> bytes:
    if suffix == ".gz":
        return gzip.compress(data)
    if suffix == ".xz":
        return lzma.compress(data)
    return bytes(pyarrow.compress(data, codec="zstd", asbytes=True))


def read(path: Path, data: bytes) -> bytes | None:
    """What is read of a file with these bytes; None if an error names the file."""
    path.write_bytes(data)
    try:
        return b"".join(raw_lines(path))
    except DataError as error:
        assert str(path) in str(error)
        return None


def files(suffix: str) -> Iterator[bytes]:
    a, b, empty = (compress(data, suffix) for data in (A, B, b""))
    yield from (b"", empty, a, a + b, a + empty + b, b"\0" * 8, b"\0" * 4 + a, b"no such file")
    yield from (a + b"\0" * zeros for zeros in (1, 2, 3, 4, 8, 511, 512, 1 << 17))
    yield from (a + garbage for garbage in (b"x", b"garbage\n" * 9, b"\0\0\0\0garbage", b[:2]))
    yield from (a[:end] for end in range(1, len(a)))
    yield from (a + b[:end] for end in range(1, len(b)))
    for position in range(len(a)):  # in header, body, checksum, index and footer
        damaged = bytearray(a)
        damaged[position] ^= 1 << position % 8
        yield bytes(damaged)
        yield a + damaged
    if suffix == ".xz":
        yield from (a + b"\0" * zeros + b for zeros in (1, 3, 4, 8, 100))
        yield from (a + compress(B, other) for other in (".gz", ".zst"))
        alone = lzma.compress(A, format=lzma.FORMAT_ALONE)
        yield from (alone, alone + b"zzz", alone + a, a + alone)
        for check in (lzma.CHECK_NONE, lzma.CHECK_CRC32, lzma.CHECK_SHA256):
            yield lzma.compress(A, check=check)
    if suffix == ".gz":
        header = bytes([*a[:3], 2, *a[4:10]])  # with a checksum of its own
        yield header + (zlib.crc32(header) & 0xFFFF).to_bytes(2, "little") + a[10:]
        yield header + (~zlib.crc32(header) & 0xFFFF).to_bytes(2, "little") + a[10:]
    if suffix == ".zst":
        skippable = b"\x50\x2a\x4d\x18\5\0\0\0skip!"
        yield from (skippable + a, a + skippable + b, a + skippable, skippable, a + skippable[:-1])


@pytest.mark.parametrize("suffix", PROGRAMS)
def test_each_codec_reads_what_its_own_program_reads(tmp_path: Path, suffix: str) -> None:
    program = shutil.which(PROGRAMS[suffix])
    if program is None:
        pytest.skip(f"{PROGRAMS[suffix]} is not installed")
    for data in files(suffix):
        result = subprocess.run([program, "-dc"], input=data, capture_output=True, check=False)
        expected = None if result.returncode else result.stdout
        assert read(tmp_path / f"text{suffix}", data) == expected, data


@pytest.mark.parametrize(
    ("suffix", "between", "behind"),
    [
        (".gz", b"", b""),
        (".gz", b"\0" * 5, b"\0" * 512),  # gzip itself would leave out what follows after zeros
        (".xz", b"\0" * 4, b""),
        (".xz", b"", b"\0" * 8),
        (".zst", b"", b""),
    ],
)
def test_streams_may_follow_one_another(
    tmp_path: Path, suffix: str, between: bytes, behind: bytes
) -> None:
    data = compress(A, suffix) + between + compress(B, suffix) + behind
    assert read(tmp_path / f"text{suffix}", data) == A + B


@pytest.mark.parametrize("suffix", PROGRAMS)
@pytest.mark.parametrize("behind", [b"x", b"\0\0\0\0garbage", B, *map(str.encode, PROGRAMS)])
def test_nothing_behind_a_stream_is_left_out_in_silence(
    tmp_path: Path, suffix: str, behind: bytes
) -> None:
    path = tmp_path / f"text{suffix}"
    path.write_bytes(compress(A, suffix) + behind)
    with pytest.raises(DataError, match=rf"text{suffix}: damaged or cut short \("):
        list(raw_lines(path))


@pytest.mark.parametrize("suffix", PROGRAMS)
def test_a_file_of_another_program_is_named(tmp_path: Path, suffix: str) -> None:
    for other in PROGRAMS.keys() - {suffix}:
        path = tmp_path / f"text{suffix}"
        path.write_bytes(compress(A, other))
        with pytest.raises(DataError, match=rf"ends in {suffix}; rename it, so .* in {other}$"):
            list(raw_lines(path))


def test_long_files_are_read_across_all_borders(tmp_path: Path) -> None:
    text = b"".join(b"line %d\n" % number for number in range(100_000))
    for suffix in PROGRAMS:
        whole = compress(text, suffix) + compress(B, suffix) * 100
        assert read(tmp_path / f"text{suffix}", whole) == text + B * 100


def test_a_window_of_zstandard_that_is_too_large_is_named(tmp_path: Path) -> None:
    # magic, a frame with a window of 2 GB, and one raw block, the last one, with one byte
    frame = b"\x28\xb5\x2f\xfd\0" + bytes([21 << 3]) + b"\x09\0\0a"
    path = tmp_path / "text.zst"
    path.write_bytes(frame)
    with pytest.raises(DataError, match=r"text.zst: was compressed with a window of more than 128"):
        list(raw_lines(path))
