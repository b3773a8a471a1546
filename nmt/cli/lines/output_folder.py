"""Several files, translated into one folder; those that are complete are listed there.

The list is a hidden file of JSON lines: one with the settings, and for each file one when it is
begun and one when it is complete, with the digest of the source. `--resume` reads it.
"""

import contextlib
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from nmt.cli.lines.file_translation import FileTranslation
from nmt.cli.lines.found_files import FileToTranslate, names_of
from nmt.cli.lines.partial_output import check_settings
from nmt.cli.lines.streams import DISK_FULL, explain_write_errors, log
from nmt.cli.options.groups import with_option_names
from nmt.data.text.remote_files import open_file
from nmt.errors import DataError, MissingExtraError, NmtError
from nmt.files import explain_os_errors, lock_file

LIST = ".nmt-translated.jsonl"
"""the name of the list in the folder"""
ANY_FORMAT = "any"
"""in place of a format, for the settings of files of all formats"""


def translate_files(
    translation: FileTranslation, files: Sequence[FileToTranslate], folder: Path, resume: bool
) -> None:
    """Translate files into a folder, one after another.

    A file that cannot be read or is damaged is reported, and the others are translated. With
    `resume`, those that are complete are passed over, if source and settings are the same.

    Raises:
        NmtError: files were not translated; the message names them.
        DataError: the disk is full, the folder cannot be written, or its list is of other settings.
    """
    translator, _ = translation.loaded
    settings = translation.settings(translator, ANY_FORMAT)
    failed: list[Path] = []
    done = 0
    with contextlib.closing(FolderList(folder, settings, resume)) as known:
        try:
            for file in files:
                try:
                    _translate_file(translation, file, known)
                    done += 1
                except (DataError, MissingExtraError) as error:
                    if _stops_all(error, translation):
                        raise
                    log(f"nmt: {with_option_names(str(error))}")
                    failed.append(file.source)
        except BaseException:
            log(f"nmt: {done} of {len(files)} files are complete; --resume passes them over")
            raise
    if failed:
        raise NmtError(
            f"{names_of(failed)} of {len(files)} not translated, for the reasons above; the others "
            f"are in {folder}"
        )


def _translate_file(
    translation: FileTranslation, file: FileToTranslate, known: "FolderList"
) -> None:
    """Translate a file unless it is complete.

    Raises:
        DataError: it cannot be translated.
    """
    if file.problem:
        raise DataError(file.problem)
    digest = _digest(file.source)
    if known.is_complete(file, digest):
        return
    with explain_write_errors(file.output):
        file.output.parent.mkdir(parents=True, exist_ok=True)
    is_begun = known.is_begun(file, digest)
    known.add("begun", file, digest)
    translation.translate(file.source, file.output, file.format, resume=is_begun)
    known.add("complete", file, digest)


def _stops_all(error: NmtError, translation: FileTranslation) -> bool:
    """Return whether the other files would fail for the same reason: a full disk, or no Ray."""
    cause = error.__cause__
    is_full = isinstance(cause, OSError) and cause.errno in DISK_FULL
    return is_full or (isinstance(error, MissingExtraError) and translation.workers.ray is not None)


def _digest(path: Path) -> str:
    with explain_os_errors(path, "read"), open_file(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class FolderList:
    """The list of the files of an output folder that are begun or complete."""

    def __init__(self, folder: Path, settings: Mapping[str, object], resume: bool) -> None:
        """Begin the list of a folder, or continue it with `resume`; lock it against other writers.

        Raises:
            DataError: the folder cannot be written, another process writes it, or the list is of
                other settings.
        """
        self._folder = folder
        self._digests: dict[str, dict[str, str]] = {"begun": {}, "complete": {}}
        """of the sources, by the names of the outputs in the folder"""
        path = folder / LIST
        with explain_write_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
            self._file: IO[bytes] = path.open("a+b", buffering=0)
        try:
            lock_file(self._file, path)
            current = json.loads(json.dumps(dict(settings), default=str))
            before = self._read() if resume else None
            if before is not None:
                check_settings(before, current, str(folder))
            else:
                self._file.truncate(0)
                self._append({"settings": current})
        except BaseException:
            self._file.close()
            raise

    def close(self) -> None:
        """Let other processes write the folder."""
        self._file.close()

    def is_complete(self, file: FileToTranslate, digest: str) -> bool:
        """Return whether the source with this digest was translated, and its output is there."""
        name = self._name(file)
        return self._digests["complete"].get(name) == digest and file.output.is_file()

    def is_begun(self, file: FileToTranslate, digest: str) -> bool:
        """Return whether the translation of the source with this digest was begun."""
        return self._digests["begun"].get(self._name(file)) == digest

    def add(self, kind: str, file: FileToTranslate, digest: str) -> None:
        """Note that a file is "begun" or "complete"; its source has this digest."""
        with explain_write_errors(file.output):
            self._append({kind: self._name(file), "source": digest})

    def _name(self, file: FileToTranslate) -> str:
        return str(file.output.relative_to(self._folder))

    def _append(self, row: Mapping[str, object]) -> None:
        self._file.write(f"{json.dumps(row)}\n".encode())
        os.fsync(self._file.fileno())

    def _read(self) -> Mapping[str, Any] | None:
        """Read the list, and return its settings; None: it has none.

        A line that a crash has cut is passed over: its file is translated again.
        """
        self._file.seek(0)
        content = self._file.read()
        settings: Mapping[str, Any] | None = None
        for line in content.splitlines():
            with contextlib.suppress(ValueError, KeyError, TypeError):
                row = json.loads(line)
                settings = dict(row["settings"]) if "settings" in row else settings
                for kind, digests in self._digests.items():
                    if kind in row:
                        digests[row[kind]] = row["source"]
        if not content.endswith(b"\n"):
            self._file.write(b"\n")
        return settings
