"""LibreTranslate's routes for files, whose translations are fetched afterwards."""

import re
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Form, UploadFile
from starlette.requests import Request
from starlette.responses import Response

from nmt.data.text.protected_text import usual_text
from nmt.serving.access import bearer_of
from nmt.serving.detection import LanguageCode
from nmt.serving.file_store import FileStore
from nmt.serving.libretranslate import ERRORS, ErrorBody
from nmt.serving.media_types import content_type, media_type
from nmt.serving.parsing import check_given_once
from nmt.serving.proxies import address_in_answer
from nmt.serving.server import Server
from nmt.serving.translate_request import Asked
from nmt.serving.uploads import UploadedFile, file_suffixes, read_file, translate_file

FOUND: dict[int | str, dict[str, Any]] = {
    200: {"content": {media_type(f"a{suffix}"): {} for suffix in file_suffixes()}},
    404: {"model": ErrorBody},
}


def files_router(server: Server, store: FileStore) -> APIRouter:
    """Return the routes for files, which are kept in `store`."""
    router = APIRouter(responses=ERRORS, tags=["LibreTranslate"])

    @router.post("/translate_file")
    async def translate(
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
        uploaded = UploadedFile.recognise(str(file.filename or ""), await file.read())
        asked = Asked(source, target)
        found = await read_file(server, uploaded, asked, address_of(request))
        client = server.admit(request, api_key, found.texts)
        is_protected = server.settings.protect or found.is_of_program
        asked = Asked(source, target, protected=usual_text(is_protected))
        translated = await translate_file(server, uploaded, found, asked, client)
        server.name_models(request, [translated])
        stored = store.write(uploaded.name, target, translated.content)
        path = f"download_file/{quote(stored)}"
        return {"translatedFileUrl": address_in_answer(request, path, server.settings.hosts)}

    @router.get("/download_file/{name}", response_class=Response, responses=FOUND)
    async def download_file(name: str) -> Response:
        """Return a translated file."""
        return file_response(name.partition(".")[2], store.read(name))

    return router


def address_of(request: Request) -> str:
    """Return the address of a client, which is its name until it is admitted."""
    return request.client.host if request.client else ""


def file_response(name: str, content: bytes) -> Response:
    """Return the answer that gives a client a file, under a name."""
    # RFC 6266: a name in ASCII, and the real one for clients that know of the second form
    plain = re.sub("[^!-~]", "_", name)
    disposition = f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name)}"
    # Starlette would add another charset to text
    headers = {"Content-Disposition": disposition, "Content-Type": content_type(name, content)}
    return Response(content, headers=headers)
