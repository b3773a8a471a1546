"""The page at /: static files of the folder page/."""

from collections.abc import Awaitable, Callable
from importlib.resources import files

from fastapi import APIRouter
from starlette.responses import Response

TYPES = {
    "index.html": "text/html; charset=utf-8",
    "page.css": "text/css; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
}


def page_router() -> APIRouter:
    """Return the routes of the page."""
    router = APIRouter(include_in_schema=False)
    for name in TYPES:
        router.add_api_route("/" if name == "index.html" else f"/{name}", _answer(name))
    router.add_api_route("/favicon.ico", _no_icon)  # browsers ask for one
    return router


async def _no_icon() -> Response:
    """Answer that there is no icon."""
    return Response(status_code=204)


def _answer(name: str) -> Callable[[], Awaitable[Response]]:
    """Return the function that answers with a file of the page."""
    content = (files("nmt.serving") / "page" / name).read_bytes()

    async def answer() -> Response:
        return Response(content, media_type=TYPES[name])

    return answer
