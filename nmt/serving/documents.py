"""/v1/documents: a document is sent, its status asked for, and its translation fetched later."""

import json
from typing import Annotated, Any

from fastapi import APIRouter, Form, UploadFile
from pydantic import BaseModel, ConfigDict
from starlette.requests import Request
from starlette.responses import Response

from nmt.serving.access import bearer_of
from nmt.serving.answers import RequestError
from nmt.serving.detection import AUTO, LanguageCode
from nmt.serving.document_jobs import DocumentJob, DocumentJobs, DocumentStatus
from nmt.serving.files import FOUND, address_of, file_response
from nmt.serving.libretranslate import ERRORS
from nmt.serving.parsing import check_given_once, read_body, validate
from nmt.serving.server import Server
from nmt.serving.translation_body import TranslationBody
from nmt.serving.uploads import UploadedFile, read_file
from nmt.translation.documents.document import ANY_LANGUAGE, ReadingOptions
from nmt.translation.documents.formats import OPTIONS_OF_NAMES
from nmt.translation.line import GlossaryMode

KEY_HEADER = "x-document-key"
_JSON = ("terms", "forbidden", "protect")
"""keys of the form whose values are JSON, as in the body of /v1/translate"""


class DocumentForm(BaseModel):
    """The form that sends a document."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    file: UploadFile
    """a text, or a document of a format that /frontend/settings lists"""
    source: LanguageCode
    """the code of its language; auto detects it"""
    target: LanguageCode
    """the code of the language to translate into"""
    format: str = ""
    """text, or the name of a format, such as html; by default what content and name say"""
    terms: str = ""
    """what must be translated in a certain way: JSON, as in /v1/translate"""
    glossary_mode: GlossaryMode | None = None
    """how terms come out, as in /v1/translate"""
    forbidden: str = ""
    """words and phrases that no translation may have: JSON, as in /v1/translate"""
    protect: str = ""
    """whether addresses and placeholders stay as they are: JSON, as in /v1/translate; by default
    as the server's settings say, and always in messages of programs"""
    no_repeat_ngram: int | None = None
    """no sequence of so many tokens may come twice in a sentence; 0 allows all"""
    memory: str = ""
    """the name of a translation memory to search"""
    adapt: bool = False
    """whether the model learns from the nearest pairs in it before it translates a sentence"""
    overwrite: bool = False
    """whether texts that have a translation, as in XLIFF, PO and TMX, get a new one"""
    unconfirmed: bool = False
    """whether of XLIFF those get a new one that nobody has confirmed"""
    key: list[str] = []
    """keys of a file of data or of strings, whose values are translated"""
    skip_key: list[str] = []
    """keys whose values stay as they are"""
    column: list[str] = []
    """columns of a table that are translated: their names, or numbers from 1 on"""
    skip_column: list[str] = []
    """columns that stay as they are"""
    block: list[str] = []
    """names of elements of an XML file that are texts"""
    inline: list[str] = []
    """names of elements of an XML file that are marks inside a text"""

    def reading(self) -> ReadingOptions:
        """Return which texts of the document are translated."""
        names = {option: tuple(getattr(self, option)) for option in OPTIONS_OF_NAMES}
        return ReadingOptions(ANY_LANGUAGE, self.overwrite, **names, unconfirmed=self.unconfirmed)

    def body(self) -> TranslationBody:
        """Return what is asked, as the body of /v1/translate would say it.

        Raises:
            RequestError: a value is no JSON, or has another type.
        """
        values: dict[str, Any] = {"text": "", "source": self.source, "target": self.target}
        for key in _JSON:
            if text := getattr(self, key):
                try:
                    values[key] = json.loads(text)
                except (ValueError, RecursionError) as error:
                    raise RequestError(400, f"Invalid request: {key} is no JSON") from error
        values |= {"memory": self.memory or [], "adapt": self.adapt}
        if self.glossary_mode:
            values["glossary_mode"] = self.glossary_mode
        if self.no_repeat_ngram is not None:
            values["no_repeat_ngram"] = self.no_repeat_ngram
        return validate(TranslationBody, values)


class DocumentBody(BaseModel):
    """The answer to a document."""

    document_id: str
    document_key: str
    """what opens its status and its translation; the server keeps only its SHA-256"""


class KeyBody(BaseModel):
    """What opens a document, if it is not in the header X-Document-Key."""

    document_key: str


class StatusBody(BaseModel):
    """The status of a document."""

    document_id: str
    status: str
    """queued, translating, done or error"""
    share: float
    """how much of it is translated, from 0 to 1"""
    billed_characters: int
    """the characters of its text, which count for the limit of a day"""
    seconds_remaining: int | None = None
    error_message: str | None = None


def documents_router(server: Server, jobs: DocumentJobs) -> APIRouter:
    """Return the routes for documents, which `jobs` translates."""
    others: dict[int | str, dict[str, Any]] = {409: ERRORS[400], 404: ERRORS[400]}
    router = APIRouter(prefix="/v1/documents", responses={**ERRORS, **others}, tags=["nmt"])

    @router.post("")
    async def send(request: Request, form: Annotated[DocumentForm, Form()]) -> DocumentBody:
        """Send a document, which is translated while the client does other things."""
        return await _send(server, jobs, request, form)

    # programs of DeepL's API send the key in the body of a POST
    @router.post("/{document_id}", response_model_exclude_none=True, include_in_schema=False)
    @router.get("/{document_id}", response_model_exclude_none=True)
    async def status(request: Request, document_id: str) -> StatusBody:
        """Say how far a document is."""
        found = await _find(server, jobs, request, document_id)
        return StatusBody(
            document_id=document_id,
            status=found.status,
            share=found.share,
            billed_characters=found.characters,
            seconds_remaining=found.seconds_remaining,
            error_message=found.error_message or None,
        )

    @router.post("/{document_id}/result", response_class=Response, include_in_schema=False)
    @router.get("/{document_id}/result", response_class=Response, responses=FOUND)
    async def result(request: Request, document_id: str) -> Response:
        """Return the translation of a document, once it is done."""
        found = await _find(server, jobs, request, document_id)
        if found.status != "done":
            reason = found.error_message or f"the document is {found.status}; ask for its status"
            raise RequestError(409, reason)
        return file_response(found.name, jobs.result(document_id))

    @router.delete("/{document_id}", status_code=204)
    async def delete(request: Request, document_id: str) -> None:
        """Delete a document and its translation; one that is being translated ends."""
        await _find(server, jobs, request, document_id)
        await jobs.delete(document_id)

    return router


async def _find(
    server: Server, jobs: DocumentJobs, request: Request, document_id: str
) -> DocumentStatus:
    """Return the status of a document, for the client that has sent it.

    Raises:
        RequestError: there is no such document, or not for this client.
    """
    key = request.headers.get(KEY_HEADER) or (await read_body(request, KeyBody)).document_key
    client = server.access.name_of_key(bearer_of(request.headers))
    return jobs.find(document_id, key, client)


async def _send(
    server: Server, jobs: DocumentJobs, request: Request, form: DocumentForm
) -> DocumentBody:
    """Read a document, count it for the limits of its client, and let it be translated.

    Raises:
        RequestError: a limit is reached, or the pair or the format is not served.
        DataError: the document is damaged, or a term is blank.
    """
    given = await request.form()
    for key in given:
        if key not in OPTIONS_OF_NAMES:
            check_given_once(key, given.getlist(key))
    body = form.body()
    asked = body.asked(server.settings.protect)
    jobs.check_room(form.file.size or 0)
    name, content = str(form.file.filename or ""), await form.file.read()
    file = UploadedFile.recognise(name, content, form.reading(), form.format)
    found = await read_file(server, file, asked, address_of(request))
    service = server.service
    asked = found.of_known_language(asked)
    # a pair that is not served is told at once
    models = len(service.route(service.resolved(asked))) if asked.source != AUTO else 1
    client = server.admit(request, None, found.texts)
    server.check_memories(request, body.memories)
    asked = body.asked(server.settings.protect or found.is_of_program)
    number, key = await jobs.add(DocumentJob(file, found, asked, client, models))
    return DocumentBody(document_id=number, document_key=key)
