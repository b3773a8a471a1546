"""Files by URL, such as s3://bucket/file: read like local ones, and written by one upload.

fsspec knows the services. Most need a package of their own, such as s3fs or gcsfs.
"""

import contextlib
import io
import re
from collections.abc import Iterator
from pathlib import Path, PosixPath
from typing import Any

from nmt.errors import ConfigError, DataError, NmtError

BLOCK = 1 << 23
"""how many bytes are fetched at once"""
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/[^/]")  # `Path` makes one slash of the two


class RemotePath(PosixPath):
    """The URL of a file as a path: `/`, `name` and `suffix` are those of a path."""

    def __str__(self) -> str:
        return super().__str__().replace(":/", "://", 1)


def with_urls(path: Path) -> Path:
    """Return a `RemotePath` if the path is a URL, else the path itself."""
    return RemotePath(path) if _URL.match(str(path)) else path


def open_file(path: Path) -> io.BufferedReader:
    """Open a file to read its bytes: a local one, or one by URL.

    Raises:
        OSError: a local file cannot be read.
        DataError: a file by URL cannot be read.
        ConfigError: its service is not known, or the package for it is not installed.
    """
    if not isinstance(path, RemotePath):
        return open(path, "rb")
    with _file_errors(path, "read"):
        system, inner = _file_system(path)
        return io.BufferedReader(_RemoteFile(path, system.open(inner, "rb", block_size=BLOCK)))


def is_file(path: Path) -> bool:
    """Whether there is a file at a path or URL.

    Raises:
        NmtError: the service of a URL cannot be asked.
    """
    if not isinstance(path, RemotePath):
        return path.is_file()
    with _file_errors(path, "read"):
        system, inner = _file_system(path)
        return bool(system.isfile(inner))


def before_upload(path: Path) -> Path:
    """Return where to write a file that `upload` then writes to a URL: in the current folder.

    A path that is no URL is returned as it is.
    """
    return Path(path.name) if isinstance(path, RemotePath) else path


def check_service(path: Path) -> None:
    """Raise a ConfigError if the service of a URL is not known, or its package is missing."""
    if isinstance(path, RemotePath):
        with _file_errors(path, "written"):
            _file_system(path)  # only for the error that it may raise


def upload(local: Path, path: RemotePath) -> None:
    """Write or replace a file by URL; S3 and its like show it only when it is complete.

    Raises:
        DataError: the file cannot be written.
    """
    with _file_errors(path, "written"):
        system, inner = _file_system(path)
        system.put_file(str(local), inner)


class _RemoteFile(io.RawIOBase):
    """A file of fsspec whose errors name its URL."""

    def __init__(self, path: Path, file: Any) -> None:
        self._path, self._file = path, file

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        with _file_errors(self._path, "read"):
            return int(self._file.readinto(buffer))

    def close(self) -> None:
        self._file.close()
        super().close()


def _file_system(path: Path) -> tuple[Any, str]:
    """Return the file system of a URL, and the path in it."""
    import fsspec

    scheme = str(path).partition(":")[0]
    try:
        system, inner = fsspec.url_to_fs(str(path))
    except ImportError as error:
        raise ConfigError(f"{path}: the package for {scheme}:// is missing: {error}") from error
    except ValueError as error:
        raise ConfigError(
            f"{path}: no service is known for {scheme}://; expected s3://, gs://, hf:// or another "
            "scheme of fsspec"
        ) from error
    return system, inner


@contextlib.contextmanager
def _file_errors(path: Path, action: str) -> Iterator[None]:
    """Turn an error of a service inside the block into one about the URL."""
    try:
        yield
    except NmtError:
        raise
    except FileNotFoundError as error:
        raise DataError(f"{path}: no such file or bucket; check the URL") from error
    except PermissionError as error:
        raise DataError(
            f"{path}: cannot be {action}: access is denied; check the credentials, and what they "
            "allow"
        ) from error
    except Exception as error:  # the packages for the services have classes of their own
        reason = " ".join(str(error).split())  # on one line
        raise DataError(f"{path}: cannot be {action}: {reason}") from error
