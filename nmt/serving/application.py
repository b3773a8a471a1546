"""The application: the routes of a server, and the layers around them."""

import contextlib
from collections.abc import AsyncIterator

from fastapi import APIRouter, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import ASGIApp

from nmt import __version__
from nmt.errors import NmtError
from nmt.serving.answers import RequestError, busy, error_answer, refusal_of
from nmt.serving.corrections import CorrectionsBody, memory_router
from nmt.serving.document_jobs import DocumentJobs
from nmt.serving.documents import documents_router
from nmt.serving.file_store import FileStore
from nmt.serving.files import files_router
from nmt.serving.guard import EXPOSED, Guard
from nmt.serving.libretranslate import (
    DetectBody,
    ErrorBody,
    TranslateBody,
    libretranslate_router,
)
from nmt.serving.operations import METRICS_TYPE
from nmt.serving.page import page_router
from nmt.serving.parsing import component_schemas, explain
from nmt.serving.proxies import Proxies
from nmt.serving.server import Server
from nmt.serving.translation_body import TranslationBody
from nmt.serving.v1 import v1_router


def build_application(server: Server) -> ASGIApp:
    """Return the application of a server; it starts and ends with the application's lifespan."""

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with server.run():
            yield

    app = FastAPI(
        title="nmt",
        description="Translation by models that `nmt` has trained or imported.",
        version=__version__,
        lifespan=lifespan,
        docs_url=None,  # they load scripts from other sites
        redoc_url=None,
        redirect_slashes=False,  # `Proxies` removes them; a redirect would repeat the host
    )
    for router in _routers(server):
        app.include_router(router)

    @app.get("/spec", include_in_schema=False)  # LibreTranslate's name of openapi.json
    async def spec(request: Request) -> JSONResponse:
        root = request.scope["root_path"]
        return JSONResponse(app.openapi() | ({"servers": [{"url": root}]} if root else {}))

    description = app.openapi()  # built once, and kept
    bodies = (TranslateBody, DetectBody, TranslationBody, CorrectionsBody)
    description["components"]["schemas"] |= component_schemas(bodies)
    for path in description["paths"].values():
        for operation in path.values():
            operation["responses"].pop("422", None)  # an error of FastAPI, which here is a 400

    async def answer_error(request: Request, error: Exception) -> Response:
        return error_answer(_refusal(server, error))

    for kind in (NmtError, HTTPException, RequestValidationError, Exception):
        app.add_exception_handler(kind, answer_error)
    guarded = Proxies(
        Guard(app, server.settings, server.operations, server.access), server.settings
    )
    origins = server.settings.cors_origins
    if not origins:
        return guarded
    # outermost, so that the pages of other sites can also read the refusals of the guard
    return CORSMiddleware(
        guarded, origins, allow_methods=["*"], allow_headers=["*"], expose_headers=EXPOSED
    )


def _routers(server: Server) -> list[APIRouter]:
    """Return the routes of a server."""
    store = FileStore(server.settings, server.operations)
    routers = libretranslate_router, v1_router, memory_router, _operations_router
    return [
        *(router(server) for router in routers),
        files_router(server, store),
        documents_router(server, DocumentJobs(server, store)),
        page_router(),
    ]


def _refusal(server: Server, error: Exception) -> RequestError:
    """Return what a client is answered after an error."""
    if isinstance(error, HTTPException):
        return RequestError(error.status_code, str(error.detail), error.headers)
    if isinstance(error, RequestValidationError):
        return RequestError(400, explain(error.errors()))
    if isinstance(error, NmtError):
        return server.operations.explain(error)
    return refusal_of(error)  # Starlette raises it once more, and the guard logs it


def _operations_router(server: Server) -> APIRouter:
    """Return the routes for those who operate the server."""
    router = APIRouter(tags=["operations"])

    @router.get("/health", include_in_schema=False)  # LibreTranslate's name
    @router.get("/healthz")
    async def healthz() -> dict[str, str]:
        """Say that the server runs."""
        return {"status": "ok"}

    @router.get("/readyz", responses={503: {"model": ErrorBody}})
    async def readyz() -> JSONResponse:
        """Say whether the server takes requests; 503 at start and end, and if keys are stale."""
        if not server.is_ready:
            raise busy("the server is starting or stopping")
        if server.access.stale:
            raise busy(
                "the file of API keys cannot be read, so keys that were withdrawn may be valid; "
                "the log says why"
            )
        return JSONResponse({"status": "ready"})

    @router.get("/metrics", response_class=PlainTextResponse)
    async def metrics(request: Request) -> Response:
        """Return the metrics in the text format of Prometheus."""
        server.check_operator(request)
        return Response(server.operations.metrics(), media_type=METRICS_TYPE)

    return router
