"""Reads and writes lines of text; only line feeds end a line, files are complete or absent."""

import contextlib
import errno
import os
import stat
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NoReturn

from nmt.data.text.compressed import SUFFIXES
from nmt.data.text.lines import decode_or_warn, read_lines
from nmt.data.text.remote_files import RemotePath, before_upload, open_file, upload
from nmt.errors import ConfigError, DataError, print_warning
from nmt.files import explain_os_errors

if TYPE_CHECKING:
    from tqdm import tqdm

STDIN, STDOUT = ("-", "/dev/stdin"), ("-", "/dev/stdout")
SECONDS_BETWEEN_LINES = 30.0
"""between the lines that a command logs about its progress where stderr is no terminal"""
# errors of a full disk, a quota and a limit of the size of files
DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def log(message: str) -> None:
    """Print a message on stderr."""
    print(message, file=sys.stderr)


def is_stdin(path: Path | None) -> bool:
    """Whether an input is stdin: `path` is None, "-" or "/dev/stdin"."""
    return path is None or str(path) in STDIN


def input_name(path: Path | None) -> str:
    """Return the name of an input for messages: its path, or "stdin"."""
    return "stdin" if is_stdin(path) else str(path)


def is_typed(path: Path | None) -> bool:
    """Whether the input is stdin and somebody types it at a terminal."""
    return is_stdin(path) and sys.stdin.isatty()


def check_output(
    output: Path | None, inputs: Iterable[Path | None], is_compressed: bool = False
) -> None:
    """Raise a ConfigError if `output` would replace an input, or is named like a compressed file.

    `is_compressed` says that the command compresses such a file.

    Links to a file count as the file. An `output` of None or "-" is stdout, and an input "-" is
    stdin; either may be redirected to or from a file. An input of None is an option not given.
    """
    if output is not None and output.suffix in SUFFIXES and not is_compressed:
        raise ConfigError(
            f"the output {output} would not be compressed, as its name says; leave out "
            f"{output.suffix}, and compress the file afterwards"
        )
    output_file = file_identity(output, STDOUT, descriptor=1)
    if output_file is None:  # a pipe, a device or a new file
        return
    for path in inputs:
        if path is None or file_identity(path, STDIN, descriptor=0) != output_file:
            continue
        name = "stdout" if output is None or str(output) in STDOUT else str(output)
        raise ConfigError(
            f"the output {name} and the input {input_name(path)} are the same file, which would "
            "be replaced; choose another -o FILE"
        )


def file_identity(
    path: Path | None, standard: Sequence[str] = (), descriptor: int = 0
) -> object | None:
    """Return device and inode of a regular file, the text of a URL, or else None.

    A path of None, or one of `standard`, is the file of the `descriptor`.
    """
    if isinstance(path, RemotePath):
        return str(path)
    is_standard = path is None or str(path) in standard
    try:
        status = os.fstat(descriptor) if is_standard else os.stat(str(path))
    except OSError:
        return None
    return (status.st_dev, status.st_ino) if stat.S_ISREG(status.st_mode) else None


def check_stdin() -> None:
    """Raise a ConfigError if stdin is closed."""
    if sys.stdin is None:
        raise ConfigError("stdin is closed; give a FILE or pipe text in")


@contextlib.contextmanager
def open_lines(path: Path | None) -> Iterator[Iterator[str]]:
    """Open a file, or stdin for None and "-", as an iterator of its lines without line ends.

    Bytes that are not UTF-8 become U+FFFD, and a warning names their line; a compressed file
    must be UTF-8 throughout.

    Raises:
        DataError: the file cannot be read.
        ConfigError: there is no stdin.
    """
    if path is None or is_stdin(path):
        check_stdin()
        yield decode_or_warn(sys.stdin.buffer, "stdin", print_warning)
    elif path.suffix in SUFFIXES:
        yield read_lines(path)
    else:
        with explain_os_errors(path, "read"):
            file = open_file(path)
        with file:
            yield decode_or_warn(file, str(path), print_warning)


def is_regular(path: Path | None) -> bool:
    """Whether the input (None is stdin) is a file or a URL: one that is read without waiting."""
    return file_identity(path, STDIN, descriptor=0) is not None


def count_lines(path: Path | None) -> int | None:
    """Return the number of line feeds in a file; None for stdin, a pipe or a compressed file."""
    if path is None or not path.is_file() or path.suffix in SUFFIXES:
        return None
    with path.open("rb") as file:
        line_feeds = 0
        while chunk := file.read(1 << 20):  # 1 MiB
            line_feeds += chunk.count(b"\n")
        return line_feeds


def progress_bar(path: Path | None | Sequence[Path], unit: str, done: int = 0) -> "tqdm[NoReturn]":
    """Return a bar that counts the lines of a file, or of several, from `done` on.

    `unit` is printed after the numbers. The bar is hidden for stdin or without a terminal.
    """
    from tqdm import tqdm

    paths = path if isinstance(path, Sequence) else [path]
    show = not any(map(is_stdin, paths)) and sys.stderr.isatty()
    total = _count_all_lines(paths) if show else None  # None: the bar shows no total
    return tqdm(total=total, initial=done, unit=unit, disable=not show)


def segments_bar(name: str, total: int, done: int) -> "tqdm[NoReturn]":
    """Return a bar that counts the segments of the document `name`; hidden without a terminal."""
    from tqdm import tqdm

    is_hidden = not sys.stderr.isatty()
    return tqdm(desc=name, total=total, initial=done, unit=" segments", disable=is_hidden)


def _count_all_lines(paths: Sequence[Path | None]) -> int | None:
    """Return the number of lines of all files together; None if that of one is unknown."""
    counts = [count_lines(path) for path in paths]
    known_counts = [count for count in counts if count is not None]
    return sum(known_counts) if len(known_counts) == len(counts) else None


class ProgressLog:
    """Counts like a progress bar, and logs a line every half minute: for a stderr in a file."""

    def __init__(self, total: int | None, unit: str) -> None:
        """`total` is the last count, if it is known; `unit` is printed after the numbers."""
        self._total, self._unit = total, unit
        self._done, self._start = 0, time.monotonic()
        self._next_line = self._start + SECONDS_BETWEEN_LINES

    def __enter__(self) -> "ProgressLog":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def update(self, count: int) -> None:
        """Add `count`, and log a line if it is time."""
        self._done += count
        now = time.monotonic()
        if now < self._next_line:
            return
        self._next_line = now + SECONDS_BETWEEN_LINES
        if self._total is None:
            log(f"{self._done:,}{self._unit} done")
            return
        left = (self._total - self._done) * (now - self._start) / max(1, self._done) / 60
        log(f"{self._done:,} of {self._total:,}{self._unit} done, {left:.0f} min left")


def bar_or_log(paths: Sequence[Path], unit: str) -> "tqdm[NoReturn] | ProgressLog":
    """Return what shows how many lines of `paths` are done: a bar, or without a terminal lines."""
    if sys.stderr.isatty():
        return progress_bar(paths, unit)
    return ProgressLog(_count_all_lines(paths), unit)


@contextlib.contextmanager
def open_output(path: Path | None) -> Iterator[BinaryIO]:
    """Open a file to write, or stdout for None and "-".

    The file is written under another name in its folder, and renamed when the block ends; after an
    error it is deleted. What goes to a URL is written in the current folder, and then uploaded. A
    pipe or a device, such as /dev/null, is written directly.

    Raises:
        DataError: the file cannot be written.
        ConfigError: there is no stdout.
    """
    if path is None or str(path) in STDOUT:
        if sys.stdout is None:
            raise ConfigError("stdout is closed; give -o FILE, or let stdout go somewhere")
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    is_device = path.exists() and not path.is_file()
    final = Path(os.path.realpath(before_upload(path)))
    open_path = path if is_device else final.with_name(f".{final.name}.{os.getpid()}.part")
    try:
        with explain_write_errors(path):
            file = open_path.open("wb")
        with explain_write_errors(path, DISK_FULL), file:
            yield file
        if isinstance(path, RemotePath):
            upload(open_path, path)
        elif not is_device:
            open_path.replace(final)
    finally:
        if not is_device:
            with contextlib.suppress(OSError):  # it could not be created, or has its final name
                open_path.unlink()


@contextlib.contextmanager
def explain_write_errors(output: Path, errnos: Sequence[int] | None = None) -> Iterator[None]:
    """Turn an OSError with one of `errnos` (None: any) into a DataError about `output`."""
    try:
        yield
    except OSError as error:
        if errnos and error.errno not in errnos:
            raise
        raise DataError(f"{output}: cannot be written: {error.strerror}") from error
