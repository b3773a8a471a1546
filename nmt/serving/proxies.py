"""The address of a request: who asks, below which path, and which host an answer may name.

Only proxies of the setting `proxies` are believed. A path may have a slash at its end or two in a
row, as the addresses have that clients put together.
"""

import re
from collections.abc import Collection

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from nmt.serving.settings import ServerSettings

_PREFIX = re.compile(r"(?:/[\w.~-]+)+", re.ASCII)
_HOST = re.compile(r"([\w.-]+|\[[\da-f:.]+\])(:\d{1,5})?", re.ASCII | re.IGNORECASE)
_LOOPBACK = ("localhost", "127.0.0.1", "[::1]")


class Proxies:
    """A layer of the application that gives each request its own address."""

    def __init__(self, app: ASGIApp, settings: ServerSettings) -> None:
        self._settings = settings
        # it replaces the address of the client and the scheme by those that a proxy names
        self._app = ProxyHeadersMiddleware(app, settings.proxies)  # type: ignore[arg-type]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request whose path begins with the prefix, or where a proxy removed it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)  # type: ignore[arg-type]
            return
        headers = Headers(scope=scope)
        prefix = self._settings.root_path.rstrip("/") or scope.get("root_path", "").rstrip("/")
        client = scope.get("client")
        if client and client[0] in self._app.trusted_hosts:
            prefix = _prefix_of(headers) or prefix
            if host := headers.get("x-forwarded-host"):
                changed = MutableHeaders(raw=[*scope["headers"]])
                changed["host"] = host.partition(",")[0].strip()
                scope = {**scope, "headers": changed.raw}
        path = "/" + "/".join(filter(None, scope["path"].split("/")))
        is_page = scope["method"] in ("GET", "HEAD") and path == prefix
        if is_page and prefix and not scope["path"].endswith("/"):
            # the addresses in the page are relative to that of the page
            await RedirectResponse(f"{prefix}/", 308)(scope, receive, send)
            return
        if f"{path}/".startswith(f"{prefix}/"):
            path = path[len(prefix) :] or "/"
        scope = {**scope, "root_path": prefix, "path": prefix + path}
        await self._app(scope, receive, send)  # type: ignore[arg-type]


def _prefix_of(headers: Headers) -> str:
    """Return the path below which proxies have the server, the outermost first; "" for none."""
    parts = headers.get("x-forwarded-prefix", "").split(",")
    prefix = "".join(part.strip().rstrip("/") for part in parts)
    return prefix if _PREFIX.fullmatch(prefix) else ""


def address_in_answer(request: Request, path: str, hosts: Collection[str]) -> str:
    """Return the address of `path` of this server, as an answer may name it.

    It names the host of the request only if that is one of `hosts`, "*" being any, or this machine
    itself: a client may write any other host there. Otherwise it begins with the path.
    """
    host = request.headers.get("host", "").lower()
    found = _HOST.fullmatch(host)
    own, port = request.scope.get("server") or ("", None)
    allowed = {"*", host, found[1]} if found else set()
    is_own = host in (own, f"{own}:{port}", f"[{own}]:{port}")
    if found and (is_own or found[1] in _LOOPBACK or allowed & {name.lower() for name in hosts}):
        return f"{request.scope['scheme']}://{host}{request.scope['root_path']}/{path}"
    request.state.log["host_not_allowed"] = host[:100]
    return f"{request.scope['root_path']}/{path}"
