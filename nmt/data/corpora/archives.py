"""The text inside a file: plain, compressed, or the member of a zip archive.

An archive is never extracted: the one member that is wanted is streamed out, whatever path it
claims to lie at.
"""

import gzip
import lzma
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from nmt.data.text.lines import open_bytes
from nmt.errors import DataError

_CHUNK = 1 << 18


def unpacked(archive: Path, member: str | None) -> Iterator[bytes]:
    """Yield the bytes of the text in `archive`; `member` is its base name inside a zip archive.

    Raises:
        DataError: the archive is damaged, or has no such member.
    """
    try:
        if archive.suffix == ".zip":
            with zipfile.ZipFile(archive) as files, files.open(_member(files, member)) as file:
                yield from iter(lambda: file.read(_CHUNK), b"")
        else:
            with open_bytes(archive) as file:
                yield from iter(lambda: file.read(_CHUNK), b"")
    except (EOFError, lzma.LZMAError, zlib.error, gzip.BadGzipFile, zipfile.BadZipFile) as error:
        raise DataError(f"{archive}: damaged or cut short ({error}); fetch it again") from error


def find_copy(folder: Path, names: tuple[str, ...]) -> Path:
    """The file of `folder` that has one of the names, as it is or compressed anew.

    Raises:
        DataError: there is none; the message names all that was looked for.
    """
    suffixes = ("", ".gz", ".xz", ".zst")
    wanted = dict.fromkeys(
        [names[0], *(name + suffix for name in names[1:] for suffix in suffixes)]
    )
    for name in wanted:
        if (folder / name).is_file():
            return folder / name
    raise DataError(f"{folder}: none of {', '.join(wanted)} is here")


def _member(files: zipfile.ZipFile, name: str | None) -> zipfile.ZipInfo:
    """The archive's one regular file of that base name."""
    for info in files.infolist():
        if not info.is_dir() and PurePosixPath(info.filename).name == name:
            return info
    raise DataError(f"{files.filename}: holds no file called {name}")
