"""Documents that are translated while their clients do other things, and ask now and then.

Each has three files in the folder of the store, which several servers may share: the document, its
status, and its translation. The server that translates it writes the status every few seconds; if
it does not any more, it has ended, and the others say so.
"""

import asyncio
import contextlib
import hmac
import re
import secrets
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal
from weakref import WeakValueDictionary

from nmt.errors import NmtError
from nmt.files import read_json, write_json
from nmt.serving.access import hash_of
from nmt.serving.answers import RequestError, busy
from nmt.serving.file_store import FileStore, is_old, translated_name
from nmt.serving.pending_texts import Progress
from nmt.serving.server import Server
from nmt.serving.translate_request import Asked, TranslatedDocument
from nmt.serving.uploads import FileTexts, UploadedFile, translate_file

RUNNING = 2
"""documents that a server translates at once; each client has one of them"""
BEAT_SECONDS = 2.0
"""how often the status is written"""
SILENT_SECONDS = 60.0
"""after so long without a status, the server that translates a document has ended"""
WAIT_SECONDS = 15.0
"""how long a document waits when the queue of segments is full"""
MAX_WAITS = 20
_ID = re.compile("[0-9a-f]{32}")
_ENDED = "the server that translated this document has ended; send the document again"


@dataclass(frozen=True)
class DocumentStatus:
    """What is known of a document, as its file says."""

    key: str
    """the SHA-256 of the document's key"""
    client: str
    """who has sent it"""
    name: str
    """the name of its translation"""
    characters: int
    status: Literal["queued", "translating", "done", "error"] = "queued"
    share: float = 0.0
    """of the characters, those that are translated"""
    seconds_remaining: int | None = None
    error_message: str = ""


@dataclass(frozen=True)
class DocumentJob:
    """A document to translate, which has been read once."""

    file: UploadedFile
    found: FileTexts
    asked: Asked
    client: str
    models: int
    """how many models translate each text, one after the other"""


class _Progress:
    """How far the translation of a document is."""

    def __init__(self, status: DocumentStatus, models: int) -> None:
        self._status, self._all = status, max(1, status.characters * models)
        self._done = 0
        self._started: float | None = None

    def start(self) -> None:
        """Note that the translation begins now."""
        self._started = time.monotonic()

    def add(self, characters: int) -> None:
        """Note that a model has translated so many more characters."""
        self._done += characters

    def status(self) -> DocumentStatus:
        """Return the present status; the remaining time follows from the time so far."""
        if self._started is None:
            return self._status
        share = min(self._done / self._all, 1.0)
        passed = time.monotonic() - self._started
        left = round(passed * (1 - share) / share) if share else None
        return replace(
            self._status, status="translating", share=round(share, 4), seconds_remaining=left
        )


class DocumentJobs:
    """The documents that this server translates, and the status of all that its folder has."""

    def __init__(self, server: Server, store: FileStore) -> None:
        self._server, self._store = server, store
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._slots = asyncio.Semaphore(RUNNING)
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def check_room(self, size: int) -> None:
        """Check that another document of `size` bytes can be taken.

        Raises:
            RequestError: too many documents wait, or the folder is full.
        """
        if len(self._tasks) >= self._server.settings.documents:
            raise busy("too many documents wait to be translated; try again later")
        self._store.check_room(size)

    async def add(self, job: DocumentJob) -> tuple[str, str]:
        """Take a document, and return its identifier and its key, which nobody can guess.

        Raises:
            RequestError: too many documents wait, or it cannot be stored.
        """
        self.check_room(len(job.file.content))
        number, key = secrets.token_hex(16), secrets.token_urlsafe(32)
        name = translated_name(job.file.name, job.asked.target)
        status = DocumentStatus(hash_of(key), job.client, name, job.found.characters)
        folder = self._store.folder()
        try:
            await asyncio.to_thread(_path(folder, number, "source").write_bytes, job.file.content)
            write_json(_path(folder, number, "status"), asdict(status))
        except (NmtError, OSError) as error:
            raise self._store.failure(error) from error
        # the document waits on disk
        job = replace(job, file=replace(job.file, content=b""))
        task = asyncio.create_task(self._run(folder, number, status, job))
        self._tasks[number] = task
        self._server.background.add(task)
        task.add_done_callback(lambda task: self._forget(number, task))
        return number, key

    def find(self, number: str, key: str, client: str | None) -> DocumentStatus:
        """Return the status of a document of `client`; None: of any client, the key suffices.

        Raises:
            RequestError: there is no such document, or the key is not its own.
        """
        folder = self._store.existing_folder
        if folder and _ID.fullmatch(number):
            path = _path(folder, number, "status")
            with contextlib.suppress(NmtError, OSError, TypeError):
                status = DocumentStatus(**read_json(path))
                is_own = hmac.compare_digest(status.key, hash_of(key))
                if is_own and client in (None, status.client) and not is_old(path):
                    return _heard(status, path)
        raise RequestError(
            404, "there is no such document, or its key is another one; it is kept for an hour"
        )

    def result(self, number: str) -> bytes:
        """Return the translation of a document that is done.

        Raises:
            RequestError: it has been deleted.
        """
        try:
            return _path(self._store.folder(), number, "result").read_bytes()
        except OSError as error:
            raise RequestError(404, "there is no such document; it is kept for an hour") from error

    async def delete(self, number: str) -> None:
        """Delete a document that was found, and end its translation, also on another server."""
        folder = self._store.folder()
        _path(folder, number, "status").unlink(missing_ok=True)  # ends it where it is translated
        if task := self._tasks.get(number):
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        for kind in ("source", "result"):
            _path(folder, number, kind).unlink(missing_ok=True)

    def _forget(self, number: str, task: "asyncio.Task[None]") -> None:
        self._tasks.pop(number, None)
        self._server.background.discard(task)

    async def _run(
        self, folder: Path, number: str, status: DocumentStatus, job: DocumentJob
    ) -> None:
        """Translate a document once it is its turn, and write its status until it has ended."""
        progress = _Progress(status, job.models)
        beating = asyncio.create_task(self._beat(folder, number, progress))
        try:
            turn = self._turns.setdefault(job.client, asyncio.Lock())
            async with turn, self._slots, asyncio.timeout(self._server.settings.document_seconds):
                progress.start()
                self._write(folder, number, progress.status())
                translated = await self._translate(folder, number, job, progress.add)
            result = _path(folder, number, "result")
            await asyncio.to_thread(result.write_bytes, translated.content)
            last = replace(status, status="done", share=1.0)
        except asyncio.CancelledError:
            self._write(folder, number, replace(status, status="error", error_message=_ENDED))
            raise
        except TimeoutError:
            last = replace(status, status="error", error_message="the document took too long")
        except Exception as error:
            message = str(self._server.operations.explain(error))
            last = replace(status, status="error", error_message=message)
        finally:
            beating.cancel()
            _path(folder, number, "source").unlink(missing_ok=True)
        if not self._write(folder, number, last):  # it was deleted meanwhile
            _path(folder, number, "result").unlink(missing_ok=True)
        values = {"status": last.status, "client": job.client, "characters": last.characters}
        self._server.operations.log("document", values)

    async def _beat(self, folder: Path, number: str, progress: "_Progress") -> None:
        """Write the status again and again; a document that was deleted is not translated."""
        while True:
            await asyncio.sleep(BEAT_SECONDS)
            if not self._write(folder, number, progress.status()) and number in self._tasks:
                self._tasks[number].cancel()

    async def _translate(
        self, folder: Path, number: str, job: DocumentJob, count: Progress
    ) -> TranslatedDocument:
        """Translate a document; a full queue of segments is waited for.

        Raises: what `translate_file` raises.
        """
        content = await asyncio.to_thread(_path(folder, number, "source").read_bytes)
        file = replace(job.file, content=content)
        asked = replace(job.asked, progress=count)
        for _ in range(MAX_WAITS):
            try:
                return await translate_file(self._server, file, job.found, asked, job.client)
            except RequestError as error:
                if error.status != busy().status:
                    raise
                await asyncio.sleep(WAIT_SECONDS)
        return await translate_file(self._server, file, job.found, asked, job.client)

    def _write(self, folder: Path, number: str, status: DocumentStatus) -> bool:
        """Write the status of a document, and return whether it is still there."""
        path = _path(folder, number, "status")
        if not path.exists():
            return False
        try:
            write_json(path, asdict(status))
        except (NmtError, OSError) as error:
            self._store.failure(error)  # logs it; the next one may succeed
        return True


def _path(folder: Path, number: str, kind: str) -> Path:
    return folder / f"document-{number}.{kind}"


def _heard(status: DocumentStatus, path: Path) -> DocumentStatus:
    """Return a status; one of a server that is silent becomes an error."""
    is_silent = time.time() - path.stat().st_mtime > SILENT_SECONDS
    if status.status in ("queued", "translating") and is_silent:
        return replace(status, status="error", error_message=_ENDED)
    return status
