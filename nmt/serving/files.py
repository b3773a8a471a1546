"""Translates files of text, subtitles and HTML, and keeps the results until they are fetched."""

import atexit
import contextlib
import re
import secrets
import shutil
import tempfile
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Form, UploadFile
from starlette.requests import Request
from starlette.responses import Response

from nmt.serving.answers import RequestError
from nmt.serving.libretranslate import ERRORS, ErrorBody
from nmt.serving.server import Server, check_characters
from nmt.serving.translate_request import Asked

KEPT_SECONDS = 3600.0
MAX_BYTES = 150
"""bytes of a file's name that are kept; file systems allow 255, and other parts join it"""
TYPES = {
    ".txt": "text/plain; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".srt": "application/x-subrip; charset=utf-8",
}
Translate = Callable[[Sequence[str]], Awaitable[list[str]]]
"""translates texts, each of which may have several sentences"""
FOUND: dict[int | str, dict[str, Any]] = {
    200: {"content": {kind.partition(";")[0]: {} for kind in TYPES.values()}},
    404: {"model": ErrorBody},
}
_NAME = re.compile(r"[0-9a-f]{32}\.[\w-]{1,80}\.(txt|srt|html)")
_CUE_TIME = re.compile(r"\s*-?\d+:[\d:., ]*-->\s*-?\d+:.*")
"""00:00:01,500 --> 00:00:03,000, and what programs write in its place, as 0:01.5 --> 0:3"""
_LINE_END = re.compile(r"\r\n|\r|\n")


def files_router(server: Server) -> APIRouter:
    """Return the routes for files."""
    router = APIRouter(responses=ERRORS, tags=["LibreTranslate"])
    store = FileStore(server.settings.files)

    @router.post("/translate_file")
    async def translate_file(
        request: Request,
        file: UploadFile,
        source: Annotated[str, Form()],
        target: Annotated[str, Form()],
        api_key: Annotated[str | None, Form()] = None,
    ) -> dict[str, str]:
        """Translate a file, and say where its translation can be fetched."""
        name = file.filename
        if not name:
            raise RequestError(400, "Invalid request: missing file parameter")
        text = decode_file(name, await file.read())
        check_characters(text, "the file")
        client = server.admit(request, api_key, [text])

        suffix = Path(name).suffix.lower()

        async def translate(texts: Sequence[str]) -> list[str]:
            asked = Asked(source, target, is_html=suffix == ".html")
            if source == "auto":  # a cue of subtitles is too short to tell its language
                [guess] = await server.service.detect(["\n".join(texts)], asked)
                asked = replace(asked, source=str(guess["language"]))
            translations = await server.service.translate(texts, asked, client)
            return [translation.text for translation in translations]

        if suffix == ".srt":
            translated = await translate_subtitles(text, translate)
        else:
            [translated] = await translate([text])
        stored = store.write(name, target, translated)
        return {"translatedFileUrl": f"{request.base_url}download_file/{quote(stored)}"}

    @router.get("/download_file/{name}", response_class=Response, responses=FOUND)
    async def download_file(name: str) -> Response:
        """Return a translated file."""
        content = store.read(name)
        shown = name.partition(".")[2]
        # RFC 6266: a name in ASCII, and the real one for clients that know of the second form
        plain = re.sub("[^!-~]", "_", shown)
        disposition = f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(shown)}"
        headers = {"Content-Disposition": disposition}
        return Response(content, headers=headers, media_type=TYPES[Path(name).suffix])

    return router


class FileStore:
    """A folder of translated files; each can be fetched for an hour after it was written.

    Older ones are deleted when another one is stored.
    """

    def __init__(self, folder: str | None) -> None:
        """Use a folder that several servers may share; None: one of this server alone."""
        self._folder = Path(folder) if folder else None

    def write(self, name: str, target: str, content: str) -> str:
        """Store `content`, the translation of the file `name` into the language `target`.

        Return the name of the stored file, which nobody can guess.
        """
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="nmt-files-"))  # until the server ends
            atexit.register(shutil.rmtree, self._folder, ignore_errors=True)
        self._delete_old(self._folder)
        # both come from the client: only letters, digits, "_" and "-" stay
        stem = re.sub(r"[^\w-]+", "_", Path(name).stem)[:60] or "file"
        stem = stem.encode()[:MAX_BYTES].decode(errors="ignore")  # may cut a character
        code = re.sub(r"[^\w-]+", "_", target)[:10]
        stored = f"{secrets.token_hex(16)}.{stem}_{code}{Path(name).suffix.lower()}"
        self._folder.mkdir(parents=True, exist_ok=True)
        (self._folder / stored).write_text(content, "utf-8", newline="")
        return stored

    def read(self, name: str) -> bytes:
        """Return a stored file.

        Raises:
            RequestError: there is no such file, or it is older than an hour.
        """
        path = self._folder / name if self._folder and _NAME.fullmatch(name) else None
        # an OSError: the name is too long, or the file is not there, perhaps since a moment ago
        with contextlib.suppress(OSError):
            if path and not _is_old(path):
                return path.read_bytes()
        raise RequestError(404, "there is no such file; translated files are kept for an hour")

    def _delete_old(self, folder: Path) -> None:
        for path in folder.glob("*"):
            with contextlib.suppress(FileNotFoundError):  # another server may have deleted it
                if _NAME.fullmatch(path.name) and _is_old(path):
                    path.unlink()


def _is_old(path: Path) -> bool:
    """Return whether a stored file is older than an hour."""
    return time.time() - path.stat().st_mtime > KEPT_SECONDS


def decode_file(name: str, content: bytes) -> str:
    """Return the text of a file that can be translated.

    Raises:
        RequestError: its type is another one, or it is not UTF-8.
    """
    if Path(name).suffix.lower() not in TYPES:
        known = ", ".join(TYPES)
        raise RequestError(
            400, f"Invalid request: files of this type are not translated; {known} are"
        )
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise RequestError(
            400, "Invalid request: the file is not UTF-8; save it as such"
        ) from error


async def translate_subtitles(text: str, translate: Translate) -> str:
    """Translate the cues of an SRT file; numbers, times and the number of lines stay.

    The lines of a cue are one text: a sentence does not end where a line does. All lines end as the
    first one does.
    """
    first_end = _LINE_END.search(text)
    end = first_end[0] if first_end else "\n"
    cues = _cues(_LINE_END.split(text))
    texts = [" ".join(cue.lines) for cue in cues if cue.lines]
    translations = deque(await translate(texts))
    rows: list[str] = []
    for cue in cues:
        rows += cue.head
        if cue.lines:
            rows += _wrap(translations.popleft(), len(cue.lines))
    return end.join(rows)


@dataclass(frozen=True)
class _Cue:
    head: list[str]
    """lines that stay: blank ones, the number, the times"""
    lines: list[str]
    """lines of text"""


def _cues(rows: Sequence[str]) -> list[_Cue]:
    """Cut the lines of an SRT file after each text, which a blank line or the next times end."""
    cues: list[_Cue] = []
    head: list[str] = []
    lines: list[str] = []
    has_times = [_CUE_TIME.fullmatch(row) is not None for row in rows]
    is_begun = False  # before the first times there is no text
    for i, row in enumerate(rows):
        is_number = row.strip().isdigit() and has_times[i + 1 : i + 2] == [True]
        is_begun = is_begun or has_times[i]
        is_text = is_begun and not (has_times[i] or is_number or not row.strip())
        if lines and not is_text:
            cues.append(_Cue(head, lines))
            head, lines = [], []
        (lines if is_text else head).append(row)
    return [*cues, _Cue(head, lines)]


def _wrap(text: str, count: int) -> list[str]:
    """Divide a text into at most `count` lines of about equal length."""
    lines: list[str] = []
    words = text.split()
    for rest in range(count, 0, -1):
        room = len(" ".join(words)) / rest
        line = ""
        while words and (not line or rest == 1 or len(line) + len(words[0]) / 2 < room):
            line = f"{line} {words.pop(0)}".strip()
        lines.append(line)
    return [line for line in lines if line]
