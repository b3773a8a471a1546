"""LibreTranslate's API: the paths, shapes and errors that its clients know."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter
from pydantic import BaseModel, Field
from starlette.requests import Request
from starlette.responses import JSONResponse

from nmt.data.languages import look_up_language
from nmt.data.text.protected_text import usual_text
from nmt.serving.answers import RequestError
from nmt.serving.detection import AUTO, LanguageCode, detect
from nmt.serving.parsing import ANY_FORM, body_schema, read_body
from nmt.serving.server import Server
from nmt.serving.translate_request import Asked
from nmt.serving.uploads import file_suffixes

MAX_ALTERNATIVES = 20
MAX_NGRAM = 20
PAUSE = 200
"""milliseconds without a keystroke after which a page asks for a translation"""
Texts = str | list[str]


class TranslateBody(BaseModel):
    """The body of /translate."""

    q: Texts
    """a text, or a list of texts"""
    source: LanguageCode
    """the code of its language; auto detects it"""
    target: LanguageCode
    """the code of the language to translate into"""
    format: Literal["text", "html"] = "text"
    alternatives: Annotated[int, Field(ge=0, le=MAX_ALTERNATIVES)] = 0
    """how many other translations are wanted; there may be fewer"""
    protect: bool | None = None
    """whether addresses and placeholders stay as they are; by default as the server's settings say.
    This is no option of LibreTranslate"""
    no_repeat_ngram: Annotated[int, Field(ge=0, le=MAX_NGRAM)] | None = None
    """no sequence of so many tokens may come twice in a sentence; 0 allows all"""
    api_key: str | None = None


class DetectBody(BaseModel):
    """The body of /detect."""

    q: Texts
    """a text, or parts of one"""
    api_key: str | None = None


class ErrorBody(BaseModel):
    """What is wrong, as a sentence."""

    error: str


ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorBody} for status in (400, 403, 408, 413, 429, 500, 503)
}


def libretranslate_router(server: Server) -> APIRouter:
    """Return the routes of LibreTranslate."""
    router = APIRouter(responses=ERRORS, tags=["LibreTranslate"])

    @router.get("/translate", include_in_schema=False)  # the plugin of OmegaT
    @router.post("/translate", openapi_extra=body_schema(TranslateBody, ANY_FORM))
    async def translate(request: Request) -> JSONResponse:
        """Translate a text or a list of texts."""
        body = await read_body(request, TranslateBody)
        return JSONResponse(await _translate(server, request, body))

    @router.get("/languages")
    async def languages() -> list[dict[str, Any]]:
        """List the languages, and what each of them is translated into."""
        return [
            {
                "code": code,
                "name": look_up_language(code).name,
                "targets": server.models.targets(code),
            }
            for code in server.models.sources
        ]

    @router.post("/detect", openapi_extra=body_schema(DetectBody, ANY_FORM))
    async def detect_language(request: Request) -> list[dict[str, Any]]:
        """Name the language of a text, among those that are served."""
        body = await read_body(request, DetectBody)
        text = body.q if isinstance(body.q, str) else "\n".join(body.q)
        server.check_texts([text], "q")
        server.admit(request, body.api_key, [text])
        return detect(text, server.models.languages)

    @router.get("/frontend/settings")
    async def settings() -> dict[str, Any]:
        """Return what a page needs to know."""
        return _frontend_settings(server)

    @router.post("/suggest")
    async def suggest() -> None:
        """Refuse a better translation, as LibreTranslate does by default: none are collected."""
        raise RequestError(403, "Suggestions are disabled on this server.")

    return router


def _frontend_settings(server: Server) -> dict[str, Any]:
    """Return the JSON object that /frontend/settings answers with."""
    source = server.models.sources[0]
    target = server.models.targets(source)[0]
    return {
        "apiKeys": server.access.needs_key,
        "charLimit": server.settings.text_characters,
        "frontendTimeout": PAUSE,
        "keyRequired": server.access.needs_key,
        "language": {
            side: {"code": code, "name": look_up_language(code).name}
            for side, code in (("source", source), ("target", target))
        },
        "models": [
            {"name": model.name, "weights": model.current.version.weights}
            for model in server.models.models
        ],
        "suggestions": False,
        "filesTranslation": True,
        "supportedFilesFormat": file_suffixes(),
    }


async def _translate(server: Server, request: Request, body: TranslateBody) -> dict[str, Any]:
    """Translate the texts of a request, and return the JSON object of the answer.

    If `body.q` is a list, each value is a list with an entry for each text.

    Raises:
        RequestError: a text is too long, a limit is reached, or the pair is not served.
    """
    texts = [body.q] if isinstance(body.q, str) else body.q
    server.check_texts(texts, "q")
    client = server.admit(request, body.api_key, texts)
    protected = usual_text(server.settings.protect if body.protect is None else body.protect)
    asked = Asked(
        body.source,
        body.target,
        body.format == "html",
        1 + body.alternatives,
        protected=protected,
        no_repeat_ngram=body.no_repeat_ngram,
    )
    found = await server.service.translate(texts, asked, client)
    server.name_models(request, found)
    answer: dict[str, list[Any]] = {"translatedText": [text.text for text in found]}
    if body.source == AUTO:
        answer["detectedLanguage"] = [text.detected for text in found]
    if body.alternatives:
        answer["alternatives"] = [[other.text for other in text.alternatives] for text in found]
    if isinstance(body.q, str):
        return {key: values[0] for key, values in answer.items()}
    return answer
