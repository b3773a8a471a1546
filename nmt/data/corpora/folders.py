"""Folders that are complete or absent, written by one process at a time."""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nmt.errors import DataError, Log


class DiskError(DataError):
    """A file or folder of this machine that cannot be written."""


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Turn an `OSError` inside the block into a `DiskError` that names `path` and a remedy."""
    try:
        yield
    except OSError as error:
        raise DiskError(
            f"{path}: cannot be written: {error.strerror}; free some space, or set data.directory "
            "to another folder"
        ) from error


@contextmanager
def replace_folder_atomically(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder to fill; after the block it replaces `folder`, flushed to disk.

    After an error in the block, `folder` is as before. Remains of a killed process are removed.
    `files.create_folder_atomically` does not replace a folder.

    Raises:
        DiskError: a file cannot be written, or the block raised an `OSError`.
    """
    temporary = folder.with_name(f"{folder.name}.partial")
    shutil.rmtree(temporary, ignore_errors=True)
    try:
        with disk_errors(temporary):
            temporary.mkdir(parents=True)
            yield temporary
            for path in sorted(temporary.rglob("*")):
                if path.is_file():
                    with open(path, "rb") as file:
                        os.fsync(file.fileno())
            shutil.rmtree(folder, ignore_errors=True)
            temporary.rename(folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


@contextmanager
def locked(directory: Path, name: str, log: Log) -> Iterator[None]:
    """Hold the lock called `name` in `directory` during the block; wait if another process has it.

    The lock ends with its process, even if that is killed; the empty lock file remains.

    Raises:
        DiskError: the directory cannot be written.
    """
    with disk_errors(directory):
        directory.mkdir(parents=True, exist_ok=True)
        file = open(directory / f".{name}.lock", "w")  # noqa: SIM115 - closed below
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            log(f"waiting for another process that works on {directory / name}")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
