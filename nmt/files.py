"""Files that are written completely or not at all, locks, JSON files, versions of file formats.

A file format carries its version as the number `FORMAT_KEY` of a JSON object; a file without one
has version 1.
"""

import contextlib
import fcntl
import glob
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from nmt.errors import ConfigError, DataError, Log, NmtError

FORMAT_KEY = "format"
# .NAME.tmp or .NAME.old, with the number of a process before the suffix or without it
_TEMPORARY_NAME = re.compile(r"\.(.+?)(?:\.\d+)?\.(?:tmp|old)")


def final_name(temporary: Path) -> str | None:
    """Return NAME for a temporary file or folder that this module made for NAME, else None.

    A killed process leaves such files: `.NAME.17.tmp` is what it was writing, and `.NAME.old` what
    it was about to replace.
    """
    match = _TEMPORARY_NAME.fullmatch(temporary.name)
    return match[1] if match else None


def write_atomically(path: Path, content: str | bytes) -> None:
    """Write or replace a file; even after a crash it is complete, either old or new.

    Raises:
        OSError: the file cannot be written; the old one is unchanged, or the new one is complete.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        _write_to_disk(temporary, content.encode("utf-8") if isinstance(content, str) else content)
        temporary.replace(path)
        _flush_entries(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def write_folder_atomically(path: Path, contents: Mapping[str, bytes | memoryview]) -> None:
    """Write or replace a folder of the files `contents`, {name: content}.

    Even after a crash no folder is half written; then the old one may be left as `.NAME.old`.

    Raises:
        OSError: the folder cannot be written; the old one is unchanged.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    old = path.with_name(f".{path.name}.old")
    try:
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir(parents=True)
        for name, data in contents.items():
            _write_to_disk(temporary / name, data)
        _flush(temporary)
        if path.exists():
            shutil.rmtree(old, ignore_errors=True)
            path.rename(old)
        temporary.rename(path)
        _flush_entries(path.parent)  # before the old one is gone
        shutil.rmtree(old, ignore_errors=True)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def check_absent(path: Path) -> None:
    """Raise a ConfigError if there is something at the path of a folder to write."""
    if path.exists() or path.is_symlink():
        raise ConfigError(f"{path}: exists already; choose another folder, or remove it")


@contextlib.contextmanager
def create_folder_atomically(path: Path) -> Iterator[Path]:
    """Yield a temporary folder beside `path`; after the block it is flushed to disk and renamed.

    After an error in the block, a stop signal included, neither of them exists. What a killed
    process has left of the same folder is removed first.

    Raises:
        ConfigError: `path` exists already; it is unchanged, and the block does not run.
        OSError: a file cannot be written.
    """
    check_absent(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    _remove_leftovers(path)
    try:
        temporary.mkdir(parents=True)
        yield temporary
        for inside in (*temporary.rglob("*"), temporary):
            _flush(inside)
        temporary.rename(path)
        _flush_entries(path.parent)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


@contextlib.contextmanager
def explain_os_errors(
    path: Path | str, action: str, error: type[NmtError] = DataError, remedy: str = ""
) -> Iterator[None]:
    """Turn an `OSError` inside the block into an `error` that names `path`.

    `action` is "read" or "written"; `remedy` ends the message.
    """
    try:
        yield
    except OSError as caught:
        reason = f"{path}: cannot be {action}: {caught.strerror or caught}"
        raise error(f"{reason}; {remedy}" if remedy else reason) from caught


def lock_file(file: IO[Any], path: Path) -> None:
    """Lock an open file for this process, until it is closed or the process ends.

    Raises:
        DataError: another process has locked it, or has just put another one at `path`; the message
            names the folder if the file is only its lock, called .lock.
    """
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(file.fileno()), os.stat(path)):
            return
    except (BlockingIOError, FileNotFoundError):
        pass
    locked_path = path.parent if path.name == ".lock" else path
    raise DataError(
        f"{locked_path}: another process writes it; wait for it, or choose another output"
    )


@contextlib.contextmanager
def locked(folder: Path, name: str, log: Log) -> Iterator[None]:
    """Hold the lock called `name` in a folder during the block; wait if another process has it.

    The folder is made if it is missing. The empty lock file remains.

    Raises:
        OSError: the folder cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f".{name}.lock"
    with open(path, "w") as file:
        try:
            lock_file(file, path)
        except DataError:
            log(f"waiting for another process that works on {folder / name}")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def make_temporary_folder(prefix: str, remedy: str) -> Path:
    """Make a folder that only this user may read, whose name begins with `prefix`.

    Raises:
        ConfigError: no folder for temporary files can be written to, as where the file system is
            read-only; `remedy` ends the message.
    """
    try:
        return Path(tempfile.mkdtemp(prefix=prefix))
    except OSError as error:
        raise ConfigError(
            "no folder for temporary files can be written to (TMPDIR, /tmp, /var/tmp); "
            f"mount one there, for instance as a tmpfs, or {remedy}"
        ) from error


def _remove_leftovers(path: Path) -> None:
    """Remove temporary folders for `path` whose processes do not run any more."""
    for temporary in path.parent.glob(f".{glob.escape(path.name)}.*.tmp"):
        number = temporary.name.split(".")[-2]
        is_running = number.isdecimal() and Path(f"/proc/{number}").exists()
        if final_name(temporary) == path.name and not is_running:
            shutil.rmtree(temporary, ignore_errors=True)


def _write_to_disk(path: Path, data: bytes | memoryview) -> None:
    """Write a file and flush it to disk."""
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _flush(path: Path) -> None:
    """Flush a file or the entries of a folder to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _flush_entries(folder: Path) -> None:
    """Flush the entries of a folder to disk, so that a rename in it survives a power failure.

    Some file systems cannot, and some folders may not be read; the files are written anyway.
    """
    with contextlib.suppress(OSError):
        _flush(folder)


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write or replace a JSON file; even after a crash it is complete, either old or new.

    Raises:
        OSError: the file cannot be written; the old one is unchanged.
    """
    text = json.dumps(value, indent=1, ensure_ascii=False)
    try:
        content = text.encode("utf-8")
    except UnicodeEncodeError:  # such as a file name that is not UTF-8; ASCII escapes hold it
        content = json.dumps(value, indent=1).encode("utf-8")
    write_atomically(path, content + b"\n")


def read_json(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file is not UTF-8, not JSON, or holds something else than an object.
    """
    try:
        value = json.loads(path.read_text("utf-8"))
    except RecursionError as error:
        raise ValueError("its values are nested too deeply") from error
    if not isinstance(value, dict):
        raise ValueError(f"expected a JSON object, found {type(value).__name__}")
    return value


def read_json_or_empty(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file; an empty one if the file is missing or damaged."""
    try:
        return read_json(path)
    except (OSError, ValueError):
        return {}


def check_format(
    record: Mapping[str, Any],
    newest: int,
    path: Path,
    remedy: str,
    error: type[NmtError] = DataError,
) -> None:
    """Check that the format version of a file is not newer than this program.

    Args:
        record: The JSON object in the file; its version is `record["format"]`, or 1 if absent.
        newest: The newest version that this program can read.
        path: The file, for the message.
        remedy: What the user can do instead of updating the program, for the message.
        error: The class of the exception to raise.

    Raises:
        NmtError: the file has a newer version; the class is `error`.
    """
    version = record.get(FORMAT_KEY, 1)
    if not isinstance(version, int) or version > newest:
        raise error(
            f"{path} was written by a newer nmt (format {version}; this one knows up to {newest}): "
            f"update nmt or {remedy}"
        )
