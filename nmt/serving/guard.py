"""What every request passes: limits of size and time, security headers, metrics, the log.

The body is read here, within its limits, before a route sees the request. If the client leaves
while its request is answered, the work on it ends.
"""

import asyncio
import re
import secrets

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from nmt.serving.answers import RequestError, busy, error_answer
from nmt.serving.operations import REQUEST, Operations
from nmt.serving.settings import ServerSettings

HEADERS = {
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
    b"referrer-policy": b"no-referrer",
    b"cache-control": b"no-store",
    b"content-security-policy": b"default-src 'self'; object-src 'none'; base-uri 'none'; "
    b"form-action 'self'; frame-ancestors 'none'",
}
"""added to each answer that has no such header"""
REQUEST_ID, MODEL = "X-Request-ID", "X-Model"
EXPOSED = (REQUEST_ID, MODEL)
"""headers of answers that say which request it was, and which models and weights translated it"""
_GOOD_ID = re.compile(r"[\w.:/+=@-]{1,128}", re.ASCII)
"""identifiers of clients and proxies that are taken over; other ones could forge lines of a log"""
FILE_PATH = "/translate_file"
"""the path of the requests whose body may be as large as a file"""
MAX_DISCARDED_BYTES = 32_000_000
"""bytes of a body beyond its limit that are read, so that the client gets to see the refusal"""
CLIENT_LEFT = 499
"""the status that nginx writes into its log for a client that did not wait for its answer"""


class Guard:
    """The outermost layer of the application."""

    def __init__(self, app: ASGIApp, settings: ServerSettings, operations: Operations) -> None:
        self._app, self._settings, self._operations = app, settings, operations

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        loop = asyncio.get_running_loop()
        started = loop.time()
        values: dict[str, object] = {}  # of the log's line; the routes add to them
        # RFC 9110, 9.3.2: HEAD is answered as GET, and what speaks HTTP leaves out the body
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        state = {**scope.get("state", {}), "log": values}
        values["request_id"] = _request_id(scope)
        values["method"] = scope["method"]
        scope = {**scope, "method": method, "state": state}
        answer = _Answer(send, self._settings.body_seconds, values)
        REQUEST.set(values)
        try:
            body = await self._read(scope, receive)
            await self._answer(scope, receive, body, answer)
        except asyncio.CancelledError:  # so says Ray Serve that the client has left
            answer.status = CLIENT_LEFT
            raise
        except Exception as error:
            refusal = self._operations.explain(error)
            if not answer.is_begun:
                await error_answer(refusal)(scope, receive, answer.send)
        finally:
            seconds = loop.time() - started
            # of the route, such as /download_file/{name}; a path without a route is "other"
            path = getattr(scope.get("route"), "path", "other")
            self._operations.count_request(path, answer.status, seconds)
            values |= {"path": path, "status": answer.status}
            self._operations.log("request", {**values, "seconds": round(seconds, 4)})

    async def _read(self, scope: Scope, receive: Receive) -> bytes:
        """Return the body of a request.

        Raises:
            RequestError: it is too large or too slow, or the client leaves before its end.
        """
        settings = self._settings
        is_file = scope["path"].removeprefix(scope.get("root_path", "")) == FILE_PATH
        limit = settings.file_bytes if is_file else settings.body_bytes
        chunks: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(settings.body_seconds):
                while size <= MAX_DISCARDED_BYTES:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise RequestError(CLIENT_LEFT, "the client has left")
                    chunk = message.get("body", b"")
                    size += len(chunk)
                    if size <= limit:
                        chunks.append(chunk)
                    if not message.get("more_body"):
                        break
        except TimeoutError as error:
            raise RequestError(
                408, f"the request was not complete after {settings.body_seconds:g} s", CLOSE
            ) from error
        if size > limit:
            raise RequestError(
                413, f"the request is larger than {limit} bytes; send it in parts", CLOSE
            )
        return b"".join(chunks)

    async def _answer(self, scope: Scope, receive: Receive, body: bytes, answer: "_Answer") -> None:
        """Let the application answer, as long as the client is there.

        Raises:
            RequestError: it takes too long.
        """
        messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]
        has_left = asyncio.Event()

        async def receive_body() -> Message:
            if not messages:
                await has_left.wait()
                return {"type": "http.disconnect"}
            return messages.pop()

        async def watch(work: "asyncio.Task[None]") -> None:
            while (await receive())["type"] != "http.disconnect":
                pass
            if answer.is_complete:  # the client has all of it, and so may leave
                return
            has_left.set()
            work.cancel()

        work = asyncio.current_task()
        assert work is not None
        watcher = asyncio.create_task(watch(work))
        try:
            async with asyncio.timeout(self._settings.request_seconds):
                await self._app(scope, receive_body, answer.send)
        except TimeoutError as error:
            raise busy("the request took too long") from error
        except asyncio.CancelledError:
            if not has_left.is_set():
                raise
            work.uncancel()
            answer.status = CLIENT_LEFT
        finally:
            watcher.cancel()


def _request_id(scope: Scope) -> str:
    """Return the identifier that a client or a proxy has given to a request, or a new one."""
    given = Headers(scope=scope).get(REQUEST_ID, "")
    return given if _GOOD_ID.fullmatch(given) else secrets.token_hex(8)


CLOSE = {"Connection": "close"}
"""header of an answer to a request that was not read to its end"""


class _Answer:
    """Sends an answer with the headers of security, and remembers its status."""

    def __init__(self, send: Send, seconds: float, values: dict[str, object]) -> None:
        """Take the values of the log's line, which headers repeat as far as they are known."""
        self._send, self._seconds, self._values = send, seconds, values
        self.status = 500
        self.is_begun = self.is_complete = False

    async def send(self, message: Message) -> None:
        """Send a part of the answer; a client that does not take it is left."""
        if message["type"] == "http.response.start":
            self.status, self.is_begun = message["status"], True
            names = {name for name, _ in message["headers"]}
            new = [(name, value) for name, value in HEADERS.items() if name not in names]
            for name, key in ((REQUEST_ID, "request_id"), (MODEL, "model")):
                if key in self._values:
                    new.append((name.lower().encode(), str(self._values[key]).encode()))
            message = {**message, "headers": [*message["headers"], *new]}
        async with asyncio.timeout(self._seconds):
            await self._send(message)
        if message["type"] == "http.response.body" and not message.get("more_body"):
            self.is_complete = True
