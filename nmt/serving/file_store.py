"""A folder of translated files, which may be fetched for an hour; several servers may share it."""

import atexit
import contextlib
import re
import secrets
import shutil
import time
from pathlib import Path

from nmt.errors import ConfigError
from nmt.files import make_temporary_folder
from nmt.serving.answers import RequestError, busy
from nmt.serving.operations import Operations
from nmt.serving.settings import ServerSettings

KEPT_SECONDS = 3600.0
MAX_BYTES = 150
"""bytes of a file's name that are kept; file systems allow 255, and other parts join it"""
_NAME = re.compile(r"[0-9a-f]{32}\.[\w-]{1,80}(?:\.[a-z0-9]{1,12})?")
_OF_DOCUMENT = re.compile(r"document-[0-9a-f]{32}\.(?:source|status|result)")
"""the files of a document of /v1/documents, which only its key opens"""


class FileStore:
    """Translated files; each can be fetched for an hour after it was written.

    Older ones are deleted when another one is stored.
    """

    def __init__(self, settings: ServerSettings, operations: Operations) -> None:
        """Use the folder of the settings, or else one of this server alone."""
        self._settings, self._operations = settings, operations
        self._made: Path | None = None

    @property
    def existing_folder(self) -> Path | None:
        """The folder; None: nothing is stored yet."""
        return Path(self._settings.files) if self._settings.files else self._made

    def folder(self) -> Path:
        """Return the folder, which is made if it is missing.

        Raises:
            RequestError: there is no folder that can be written to; the log says why.
        """
        try:
            if self.existing_folder is None:
                remedy = "name a folder in the setting files"
                self._made = make_temporary_folder("nmt-files-", remedy)  # until the server ends
                atexit.register(shutil.rmtree, self._made, ignore_errors=True)
            folder = self.existing_folder
            assert folder is not None
            folder.mkdir(parents=True, exist_ok=True)
        except (ConfigError, OSError) as error:
            raise self.failure(error) from error
        return folder

    def failure(self, error: Exception) -> RequestError:
        """Return what a client is told if a file cannot be written, and log why."""
        self._operations.log("a translated file cannot be kept", {"error": str(error)})
        return busy("this server cannot keep translated files now; tell its operator")

    def check_room(self, size: int) -> None:
        """Check that a file of about this size can be stored, after old ones are deleted.

        Raises:
            RequestError: the translated files have too many bytes together.
        """
        folder = self.existing_folder
        if folder is None:
            return
        total = size
        for path in folder.glob("*"):
            with contextlib.suppress(FileNotFoundError):  # another server may have deleted it
                is_ours = _NAME.fullmatch(path.name) or _OF_DOCUMENT.fullmatch(path.name)
                if is_ours and is_old(path):
                    path.unlink()
                else:
                    total += path.stat().st_size
        if total > self._settings.files_bytes:
            raise RequestError(
                503,
                "the translated files of the last hour fill the room that they have; try again "
                "when some are old",
                {"Retry-After": "600"},
            )

    def write(self, name: str, target: str, content: bytes) -> str:
        """Store `content`, the translation of the file `name` into the language `target`.

        Return the name of the stored file, which nobody can guess.

        Raises:
            RequestError: it cannot be written, or there is no room for it.
        """
        folder = self.folder()
        self.check_room(len(content))
        stored = f"{secrets.token_hex(16)}.{translated_name(name, target)}"
        try:
            (folder / stored).write_bytes(content)
        except OSError as error:
            raise self.failure(error) from error
        return stored

    def read(self, name: str) -> bytes:
        """Return a stored file.

        Raises:
            RequestError: there is no such file, or it is older than an hour.
        """
        folder = self.existing_folder
        path = folder / name if folder and _NAME.fullmatch(name) else None
        # an OSError: the name is too long, or the file is not there, perhaps since a moment ago
        with contextlib.suppress(OSError):
            if path and not is_old(path):
                return path.read_bytes()
        raise RequestError(404, "there is no such file; translated files are kept for an hour")


def translated_name(name: str, target: str) -> str:
    """Return the name of the translation of a file into the language `target`.

    Both come from the client: only letters, digits, "_" and "-" stay, and a suffix.
    """
    path = Path(name.replace("\\", "/"))
    stem = re.sub(r"[^\w-]+", "_", path.stem)[:60] or "file"
    stem = stem.encode()[:MAX_BYTES].decode(errors="ignore")  # may cut a character
    code = re.sub(r"[^\w-]+", "_", target)[:10]
    suffix = re.sub(r"[^a-z0-9]+", "", path.suffix.lower())[:12]
    return f"{stem}_{code}.{suffix}" if suffix else f"{stem}_{code}"


def is_old(path: Path) -> bool:
    """Return whether a stored file is older than an hour."""
    return time.time() - path.stat().st_mtime > KEPT_SECONDS
