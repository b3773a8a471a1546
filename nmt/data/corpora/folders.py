"""Folders that are complete or absent, made by one process at a time."""

import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from nmt.errors import DataError


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """A folder to fill, which takes the name `folder` when it is full and safe on disk.

    After an error nothing of it stays; what a killed process left behind is swept away.

    Raises:
        DataError: it cannot be written.
    """
    beside = folder.with_name(f"{folder.name}.partial")
    shutil.rmtree(beside, ignore_errors=True)
    try:
        beside.mkdir(parents=True)
        yield beside
        for path in sorted(beside.rglob("*")):
            if path.is_file():
                with open(path, "rb") as file:
                    os.fsync(file.fileno())
        shutil.rmtree(folder, ignore_errors=True)
        beside.rename(folder)
    except OSError as error:
        raise _cannot_write(beside, error) from error
    finally:
        shutil.rmtree(beside, ignore_errors=True)


@contextmanager
def locked(directory: Path, name: str, log: Callable[[str], None]) -> Iterator[None]:
    """Hold the lock called `name` in `directory`; who comes second waits.

    The lock ends with the process, however that ends; its empty file stays.

    Raises:
        DataError: the directory cannot be written.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        file = open(directory / f".{name}.lock", "w")  # noqa: SIM115 - closed below
    except OSError as error:
        raise _cannot_write(directory, error) from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            log(f"waiting for another process that works on {directory / name}")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _cannot_write(path: Path, error: OSError) -> DataError:
    return DataError(
        f"{path}: cannot be written: {error.strerror}; free some space, or set data.directory to a "
        "folder of your own"
    )
