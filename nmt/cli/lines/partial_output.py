"""Output that survives an interruption: `OUT.part` grows by whole windows and can be resumed.

A window is a group of lines that are computed together. `OUT.part.json`, the state file, holds the
number and hash of the input's lines that are done, the number and hash of the bytes that are
written, and all settings. It is replaced after each window. A resumed command drops further bytes
of `OUT.part`: they belong to an incomplete window. The part of an output by URL is in the current
folder, and is uploaded when it is complete.

The part of a document holds the translations of its texts: the document is written at last, from
all of them (`document_output.py`).
"""

import contextlib
import itertools
import json
import os
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from nmt.cli.lines.output_records import keep_record, recorded_settings
from nmt.cli.lines.streams import (
    DISK_FULL,
    STDOUT,
    check_output,
    explain_write_errors,
    is_stdin,
    log,
    open_output,
)
from nmt.data.text.remote_files import RemotePath, before_upload, check_service, is_file, upload
from nmt.errors import ConfigError, DataError, StoppedBySignal
from nmt.files import FORMAT_KEY, check_format, lock_file, read_json, write_json

FORMAT = 1
"""version of the state file; a file without a version is of version 1"""
# the keys of the state file besides the version, with the types of their values
STATE_TYPES = {"lines": int, "bytes": int, "input": str, "output": str, "settings": dict}
START_AGAIN = "leave out --resume to begin again"
LINES = "the output for lines 1 to {}"
"""what a part holds, with the number of lines that are done"""


def is_complete(
    file: Path | None,
    output: Path | None,
    settings: Callable[[], Mapping[str, object]] | None = None,
) -> bool:
    """Return whether --resume has nothing to do: the output exists, and `OUT.part` does not.

    A message says so, or why an output that exists is not complete: it is older than the input, or
    empty. `settings()` returns all that it depends on now; it is called if those are known with
    which the output was made.

    Raises:
        ConfigError: `file` is stdin, or `output` is not a regular file; neither can be resumed.
        DataError: the output was made with other settings.
    """
    part = part_path(output)
    if is_stdin(file):
        raise ConfigError(
            "--resume reads the input again, which stdin does not allow; give the input as a FILE"
        )
    if output is None or part is None:
        raise ConfigError("--resume needs an output that remains; give a regular file as -o FILE")
    if part.exists() or not is_file(output):
        return False
    if reason := _reason_to_begin_again(file, output):
        log(f"{output} {reason}, so it is made again")
        return False
    made_with = recorded_settings(output) if settings else None
    if made_with is not None and settings is not None:
        check_settings(made_with, _as_json(settings()), str(output))
    known = "its settings are the same" if made_with is not None else "its settings are not known"
    log(f"{output} is complete, so nothing is left to do ({known}); {START_AGAIN}")
    return True


def _as_json(settings: Mapping[str, object]) -> dict[str, Any]:
    """Return settings as JSON reads them, to compare them with those of a file."""
    return dict(json.loads(json.dumps(dict(settings), default=str)))


def _reason_to_begin_again(file: Path | None, output: Path) -> str:
    """Return why an output without a part is not the one of a file; empty: nothing is known."""
    if file is None or isinstance(file, RemotePath) or isinstance(output, RemotePath):
        return ""
    try:
        source, made = file.stat(), output.stat()
    except OSError:  # it is reported where the file is read
        return ""
    if source.st_size and not made.st_size:
        return "is empty"
    return f"is older than {file}" if source.st_mtime_ns > made.st_mtime_ns else ""


def check_inputs_remain(
    output: Path | None, inputs: Sequence[Path | None], is_compressed: bool = False
) -> None:
    """Raise a ConfigError if `output`, `OUT.part` or `OUT.part.json` is one of the inputs.

    `is_compressed` says that the command compresses an output that is named like such a file.
    """
    part = part_path(output)
    written = [output, part, Path(f"{part}.json")] if part else [output]
    for path in written:
        check_output(path, inputs, is_compressed)


def part_path(output: Path | None) -> Path | None:
    """Return the path of OUT.part; None if the output is stdout, a pipe or a device."""
    if isinstance(output, RemotePath):
        return Path(f"{before_upload(output)}.part")
    if output is None or str(output) in STDOUT or (output.exists() and not output.is_file()):
        return None
    # of a link, the part stands beside the file that it leads to
    final = Path(os.path.realpath(output)) if output.is_symlink() else output
    return Path(f"{final}.part")


class StreamOutput:
    """Output to stdout, a pipe or a device, which cannot be resumed."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.totals: dict[str, float] = {}
        """numbers that the command adds up over all lines"""

    def begin(self, lines: Iterator[str], settings: Callable[[], Mapping[str, object]]) -> int:
        """Return 0: no line is translated already; the arguments are ignored."""
        return 0

    def write(self, lines: Sequence[str], output: bytes) -> None:
        """Write `output` and flush it to the reader; `lines`, which it was made of, are ignored."""
        self._file.write(output)
        self._file.flush()


class PartialOutput:
    """Output to a regular file: `OUT.part` until it is complete; locked against other writers."""

    def __init__(self, path: Path, part: Path, resume: bool, kept: str = LINES) -> None:
        """Open and lock `part` (OUT.part); raise a DataError if another process writes it.

        `kept` is what messages say that the part holds, as `LINES` does.
        """
        self.path, self.part, self.state_file = path, part, Path(f"{part}.json")
        self.resume, self._kept = resume, kept
        self.whole_output: bytes | None = None
        """what is written at last in place of the part; None: the part itself is the output"""
        self.totals: dict[str, float] = {}
        """numbers that the command adds up over all lines; they are kept with the part"""
        self.is_remote = isinstance(path, RemotePath)
        self.named_in_errors = part if self.is_remote else path
        """the file that messages about errors of the disk name"""
        self._state: dict[str, Any] = {}
        """the contents of the state file; empty until `begin`"""
        from hashlib import sha256  # it loads OpenSSL, which the other commands do not need

        # hashes of the lines of the input that are done, and of the bytes of complete windows
        self._input_hash, self._output_hash = sha256(), sha256()
        with explain_write_errors(self.named_in_errors):
            self.file = self.part.open("a+b", buffering=0)
        try:
            lock_file(self.file, self.part)
        except DataError:
            self.file.close()
            raise

    def begin(self, lines: Iterator[str], settings: Callable[[], Mapping[str, object]]) -> int:
        """Read past the `lines` whose output `OUT.part` holds already; return their number.

        Without `resume` or a state file, `OUT.part` is emptied, and the number is 0. `settings()`
        returns all that the output depends on; it must be the same as when the part was begun.

        Raises:
            DataError: The part belongs to another input or other settings, or was changed.
        """
        current_settings = _as_json(settings())
        state = self._read_state() if self.resume else None
        if state:
            self._resume(state, current_settings, lines)
        else:
            self.state_file.unlink(missing_ok=True)
            state = {"lines": 0, "bytes": 0, "input": "", "output": ""}
        # the dict in the state itself: what the command adds to it is written with the state
        self.totals = state.setdefault("totals", {})
        self.file.truncate(state["bytes"])
        self._state = {FORMAT_KEY: FORMAT, **state, "settings": current_settings}
        return int(state["lines"])

    def write(self, lines: Sequence[str], output: bytes) -> None:
        """Append `output`, what was made of the input's `lines`, and replace the state file."""
        for line in lines:
            self._input_hash.update(line.encode("utf-8") + b"\n")
        self._output_hash.update(output)
        unwritten = memoryview(output)
        while unwritten:  # an unbuffered file may write only a part
            written_bytes = self.file.write(unwritten)
            unwritten = unwritten[written_bytes:]
        os.fsync(self.file.fileno())  # before the state file, which says that they are written
        self._state["lines"] += len(lines)
        self._state["bytes"] += len(output)
        self._state["input"] = self._input_hash.hexdigest()
        self._state["output"] = self._output_hash.hexdigest()
        write_json(self.state_file, self._state)

    def save_after_error(self, can_resume: bool) -> None:
        """Cut `OUT.part` to its complete windows; say on stderr how many input lines these are.

        With `can_resume` (the input can be read again) the message has the command that continues.
        A new `OUT.part` without any complete window is deleted, unless an older output exists;
        after a stop signal, a message says that nothing is kept.
        """
        # A signal may have come right after the state of a window was written.
        state = self._read_state() if self._state and self.part.exists() else None
        if state is None:
            if self._state:  # begun: beside an older output, the part tells `is_complete` to resume
                is_useless = not (self.is_remote or self.path.exists())
            else:  # not begun: the part may hold the output of an earlier run
                is_useless = os.fstat(self.file.fileno()).st_size == 0
            if is_useless:
                self.part.unlink(missing_ok=True)
            if self._state and isinstance(sys.exception(), StoppedBySignal):
                print(
                    f"nmt: {self.path}: stopped before the first lines were complete, so that "
                    "nothing is kept; the same command begins again",
                    file=sys.stderr,
                )
            return
        self.file.truncate(state["bytes"])
        resume_option = [] if "--resume" in sys.argv else ["--resume"]
        command = shlex.join(["nmt", *sys.argv[1:], *resume_option])
        message = f"nmt: {self.part} keeps {self._kept.format(state['lines'])}"
        print(f"{message}; to continue: {command}" if can_resume else message, file=sys.stderr)

    def finish(self) -> None:
        """Rename the complete `OUT.part` to its final name, or upload it, or `whole_output`."""
        os.fsync(self.file.fileno())
        if self.whole_output is not None:
            with open_output(self.path) as file:
                file.write(self.whole_output)
                file.flush()
                os.fsync(file.fileno())
            self.part.unlink()
        elif isinstance(self.path, RemotePath):
            upload(self.part, self.path)
            self.part.unlink()
        else:
            self.part.replace(self.part.with_suffix(""))  # OUT.part becomes OUT
        self.state_file.unlink(missing_ok=True)
        if not self.is_remote and self._state:
            keep_record(self.path, self._state["settings"])

    def _read_state(self) -> dict[str, Any] | None:
        """Return the contents of the state file, or None if there is none.

        Raises:
            DataError: The file is damaged, or of a newer format.
        """
        try:
            state = read_json(self.state_file)
            check_format(state, FORMAT, self.state_file, START_AGAIN)
            if not all(isinstance(state[name], kind) for name, kind in STATE_TYPES.items()):
                raise ValueError("a value of another type")
        except FileNotFoundError:
            return None
        except (ValueError, KeyError) as error:
            raise DataError(f"{self.state_file}: damaged ({error}); {START_AGAIN}") from error
        return state

    def _resume(
        self, state: Mapping[str, Any], settings: Mapping[str, object], lines: Iterator[str]
    ) -> None:
        """Read past the translated `lines`; check that they, `settings` and the part fit `state`.

        Raises:
            DataError: One of them differs from what the state file says.
        """
        check_settings(state["settings"], settings, str(self.part))
        self.file.seek(0)
        # blocks of 1 MiB, up to the end of the last complete window
        while block := self.file.read(min(1 << 20, state["bytes"] - self.file.tell())):
            self._output_hash.update(block)
        if self._output_hash.hexdigest() != state["output"]:
            raise DataError(f"{self.part}: changed since it was written; {START_AGAIN}")
        for line in itertools.islice(lines, state["lines"]):
            self._input_hash.update(line.encode("utf-8") + b"\n")
        if self._input_hash.hexdigest() != state["input"]:
            raise DataError(
                f"{self.part}: holds the output for {state['lines']} lines, with which this input "
                f"does not begin; give the input that it was begun with, or {START_AGAIN}"
            )


def check_settings(before: Mapping[str, object], now: Mapping[str, object], name: str) -> None:
    """Raise a DataError about the output `name` if it was begun with other settings than now."""
    for key in {**now, **before}:
        if before.get(key) != now.get(key):
            raise DataError(
                f"{name}: begun with {key} {before.get(key)}, and now it is {now.get(key)}; give "
                f"what it was begun with, or {START_AGAIN}"
            )


WindowOutput = StreamOutput | PartialOutput
"""an output that is written a window of lines at a time"""


@contextlib.contextmanager
def open_window_output(
    file: Path | None, path: Path | None, resume: bool, kept: str = LINES
) -> Iterator[WindowOutput]:
    """Open the output `path` (None: stdout) for what is made of the input `file` (None: stdin).

    A regular file is written as `OUT.part`, and renamed or uploaded when the block ends. After an
    error `OUT.part` remains, and a line on stderr says so: that it keeps `kept`, such as `LINES`.
    With `resume` an existing `OUT.part` is continued, otherwise it is replaced.

    Raises:
        DataError: the file cannot be written, another process writes it, or the part belongs to
            another input or other settings.
        ConfigError: `path` is a URL whose service is not known, or its package is missing.
    """
    stands_at = part_path(path)
    if path is None or stands_at is None:
        with open_output(path) as stream:
            yield StreamOutput(stream)
        return
    check_service(path)
    part = PartialOutput(path, stands_at, resume, kept)
    with part.file:  # closing it releases the lock
        try:
            with explain_write_errors(part.named_in_errors, DISK_FULL):
                yield part
                part.finish()
        except BaseException:
            part.save_after_error(can_resume=not is_stdin(file))
            raise
