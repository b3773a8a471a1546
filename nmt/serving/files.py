"""Translates files of text, subtitles and HTML, and keeps the results until they are fetched."""

import atexit
import contextlib
import re
import secrets
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Form, UploadFile
from starlette.requests import Request
from starlette.responses import Response

from nmt.data.text.protected_text import usual_text
from nmt.errors import ConfigError
from nmt.files import make_temporary_folder
from nmt.serving.access import bearer_of
from nmt.serving.answers import RequestError, busy
from nmt.serving.detection import AUTO, LanguageCode
from nmt.serving.libretranslate import ERRORS, ErrorBody
from nmt.serving.parsing import check_given_once
from nmt.serving.proxies import address_in_answer
from nmt.serving.segments import TranslatedText
from nmt.serving.server import Server
from nmt.serving.translate_request import Asked
from nmt.translation.documents.document import Document, LanguagePair
from nmt.translation.documents.encodings import decode_text, unicode_encoding
from nmt.translation.documents.html import html_document
from nmt.translation.documents.html_page import HtmlPage, encoding_of_page
from nmt.translation.documents.subtitles import subtitles_document

KEPT_SECONDS = 3600.0
MAX_BYTES = 150
"""bytes of a file's name that are kept; file systems allow 255, and other parts join it"""
TYPES = {
    ".txt": "text/plain",
    ".html": "text/html",
    ".htm": "text/html",
    ".srt": "application/x-subrip",
}
FOUND: dict[int | str, dict[str, Any]] = {
    200: {"content": {kind: {} for kind in TYPES.values()}},
    404: {"model": ErrorBody},
}
_NAME = re.compile(r"[0-9a-f]{32}\.[\w-]{1,80}\.(txt|srt|html?)")


def files_router(server: Server) -> APIRouter:
    """Return the routes for files."""
    router = APIRouter(responses=ERRORS, tags=["LibreTranslate"])
    store = FileStore(server.settings.files, server.settings.files_bytes)

    @router.post("/translate_file")
    async def translate_file(
        request: Request,
        file: UploadFile,
        source: Annotated[LanguageCode, Form()],
        target: Annotated[LanguageCode, Form()],
        api_key: Annotated[str | None, Form()] = None,
    ) -> dict[str, str]:
        """Translate a file, and say where its translation can be fetched."""
        form = await request.form()
        for key in form:
            check_given_once(key, form.getlist(key))
        server.access.check_key(api_key or bearer_of(request.headers))  # before the file is read
        store.check_room(file.size or 0)
        text, encode = await _read(server, request, file, source)
        client = server.admit(request, api_key, [text])
        asked = Asked(source, target, protected=usual_text(server.settings.protect))
        name = str(file.filename)
        translated, used = await _translate_file(server, name, text, asked, client)
        server.name_models(request, used)
        stored = _keep(server, store, name, target, encode(translated))
        path = f"download_file/{quote(stored)}"
        return {"translatedFileUrl": address_in_answer(request, path, server.settings.hosts)}

    @router.get("/download_file/{name}", response_class=Response, responses=FOUND)
    async def download_file(name: str) -> Response:
        """Return a translated file."""
        content = store.read(name)
        shown = name.partition(".")[2]
        # RFC 6266: a name in ASCII, and the real one for clients that know of the second form
        plain = re.sub("[^!-~]", "_", shown)
        disposition = f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(shown)}"
        headers = {"Content-Disposition": disposition}
        media_type = TYPES[Path(name).suffix]
        encoding = encoding_of_page(content) if _is_html(name) else unicode_encoding(content)
        if encoding:
            media_type += f"; charset={encoding.removesuffix('-sig')}"
        headers["Content-Type"] = media_type  # Starlette would add another charset to text
        return Response(content, headers=headers)

    return router


async def _read(
    server: Server, request: Request, file: UploadFile, source: str
) -> tuple[str, Callable[[str], bytes]]:
    """Return the text of an uploaded file, and what encodes its translation.

    Raises:
        RequestError: the file has no name, or no text that can be translated.
    """
    name, content = file.filename, await file.read()
    if not name:
        raise RequestError(400, "Invalid request: missing file parameter")
    sources = server.models.sources if source == AUTO else [source]
    address = request.client.host if request.client else ""
    text, encode = await server.service.long_work.run(
        address, len(content), lambda: decode_file(name, content, sources)
    )
    server.check_file(text)
    return text, encode


def _keep(server: Server, store: "FileStore", name: str, target: str, content: bytes) -> str:
    """Store a translated file, and return its name there.

    Raises:
        RequestError: there is no place for it; the log says why.
    """
    try:
        return store.write(name, target, content)
    except (ConfigError, OSError) as error:
        server.operations.log("a translated file cannot be kept", {"error": str(error)})
        raise busy("this server cannot keep translated files now; tell its operator") from error


def _is_html(name: str) -> bool:
    return Path(name).suffix.lower() in (".html", ".htm")


async def _translate_file(
    server: Server, name: str, text: str, asked: Asked, client: str
) -> tuple[str, list[TranslatedText]]:
    """Return the translation of the text of a file, whose `name` tells its type, and its parts."""
    if _is_html(name):
        asked = replace(asked, read=html_document)
    elif Path(name).suffix.lower() == ".srt":
        asked = replace(asked, read=_read_subtitles)
    found = await server.service.translate([text], asked, client)
    return found[0].text, found


def _read_subtitles(text: str, languages: LanguagePair) -> Document:
    """Read subtitles, whose texts need no language."""
    return subtitles_document(text)


class FileStore:
    """A folder of translated files; each can be fetched for an hour after it was written.

    Older ones are deleted when another one is stored.
    """

    def __init__(self, folder: str | None, most_bytes: int) -> None:
        """Use a folder that several servers may share; None: one of this server alone."""
        self._folder = Path(folder) if folder else None
        self._most_bytes = most_bytes

    def check_room(self, size: int) -> None:
        """Check that a file of about this size can be stored.

        Raises:
            RequestError: the translated files have too many bytes together.
        """
        if self._folder is None:  # nothing is stored yet
            return
        self._delete_old(self._folder)
        sizes = []
        for path in self._folder.glob("*"):
            with contextlib.suppress(FileNotFoundError):  # another server may have deleted it
                sizes.append(path.stat().st_size)
        if sum(sizes) + size > self._most_bytes:
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
            ConfigError: there is no folder that can be written to.
            OSError: the file cannot be written.
        """
        if self._folder is None:
            remedy = "name a folder in the setting files"
            self._folder = make_temporary_folder("nmt-files-", remedy)  # until the server ends
            atexit.register(shutil.rmtree, self._folder, ignore_errors=True)
        self.check_room(len(content))
        # both come from the client: only letters, digits, "_" and "-" stay
        stem = re.sub(r"[^\w-]+", "_", Path(name).stem)[:60] or "file"
        stem = stem.encode()[:MAX_BYTES].decode(errors="ignore")  # may cut a character
        code = re.sub(r"[^\w-]+", "_", target)[:10]
        stored = f"{secrets.token_hex(16)}.{stem}_{code}{Path(name).suffix.lower()}"
        self._folder.mkdir(parents=True, exist_ok=True)
        (self._folder / stored).write_bytes(content)
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
        """Delete the translated files that are older than an hour."""
        for path in folder.glob("*"):
            with contextlib.suppress(FileNotFoundError):  # another server may have deleted it
                if _NAME.fullmatch(path.name) and _is_old(path):
                    path.unlink()


def _is_old(path: Path) -> bool:
    """Return whether a stored file is older than an hour."""
    return time.time() - path.stat().st_mtime > KEPT_SECONDS


def decode_file(
    name: str, content: bytes, sources: Sequence[str]
) -> tuple[str, Callable[[str], bytes]]:
    """Return the text of a file that can be translated, and what encodes its translation.

    A page is in the encoding that it declares. Another file is in UTF-8, in UTF-16, or in the
    encoding of Windows for the languages `sources`, the codes of those that it may be in; its
    translation is in the same one, or in UTF-8 if that lacks a character.

    Raises:
        RequestError: its type is another one.
        DataError: its encoding is none of these, or not the one that the page declares.
    """
    if Path(name).suffix.lower() not in TYPES:
        known = ", ".join(TYPES)
        raise RequestError(
            400, f"Invalid request: files of this type are not translated; {known} are"
        )
    if _is_html(name):
        page = HtmlPage.decode("the file", content)
        return page.html, page.encode
    return decode_text(content, "the file", sources)
