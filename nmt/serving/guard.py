"""What every request passes: limits of size and time, security headers, metrics, the log.

The body is read here, within its limits, before a route sees the request; a large one waits on
disk, and that of a request with a wrong key is not kept. If the client leaves while its request is
answered, the work on it ends.
"""

import asyncio
import re
import secrets
from collections.abc import Iterator
from tempfile import SpooledTemporaryFile

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from nmt.machine.memory import return_freed_memory
from nmt.serving.access import Access, bearer_of
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
FILE_PATHS = ("/translate_file", "/v1/documents")
"""the paths of the requests whose body may be as large as a file"""
HEADER_PATHS = ("/v1/translate", "/v1/documents", "/v1/memory")
"""the paths of the requests whose key stands in a header"""
MAX_DISCARDED_BYTES = 32_000_000
"""bytes of a body beyond its limit that are read, so that the client gets to see the refusal"""
SPOOLED_BYTES = 1 << 18
"""bytes of a body that are kept in memory; a larger one waits on disk"""
PART_BYTES = 1 << 16
"""bytes of a body that a route gets at once"""
CLIENT_LEFT = 499
"""the status that nginx writes into its log for a client that did not wait for its answer"""


class Guard:
    """The outermost layer of the application."""

    def __init__(
        self, app: ASGIApp, settings: ServerSettings, operations: Operations, access: Access
    ) -> None:
        self._app, self._settings, self._operations = app, settings, operations
        self._access = access
        self._bytes = 0  # of the bodies of all requests that are being answered

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
        body = _Body()
        try:
            await self._read(scope, receive, body)
            await self._answer(scope, receive, body, answer)
        except asyncio.CancelledError:  # so says Ray Serve that the client has left
            answer.status = CLIENT_LEFT
            raise
        except Exception as error:
            refusal = self._operations.explain(error)
            if not answer.is_begun:
                await error_answer(refusal)(scope, receive, answer.send)
        finally:
            body.close()
            self._bytes -= body.size
            if body.size > SPOOLED_BYTES:
                loop.run_in_executor(None, return_freed_memory)  # nobody waits for it
            seconds = loop.time() - started
            # of the route, such as /download_file/{name}; a path without a route is "other"
            path = getattr(scope.get("route"), "path", "other")
            self._operations.count_request(path, answer.status, seconds)
            values |= {"path": path, "status": answer.status}
            self._operations.log("request", {**values, "seconds": round(seconds, 4)})

    def _wrong_key(self, scope: Scope, path: str) -> RequestError | None:
        """Return the refusal of a wrong key in the header; it may be missing if the body has it."""
        key = bearer_of(Headers(scope=scope))
        if scope["method"] == "POST" and (key is not None or path in HEADER_PATHS):
            try:
                self._access.check_key(key)
            except RequestError as error:
                return error
        return None

    async def _read(self, scope: Scope, receive: Receive, body: "_Body") -> None:
        """Read the body of a request; that of one that is refused is not kept.

        Raises:
            RequestError: its key is wrong, or it is too large or too slow, or the bodies of all
                requests together are too large, or the client leaves before its end.
        """
        settings = self._settings
        path = scope["path"].removeprefix(scope.get("root_path", ""))
        limit = settings.file_bytes if path in FILE_PATHS else settings.body_bytes
        refusal = self._wrong_key(scope, path)
        size = 0
        try:
            async with asyncio.timeout(settings.body_seconds):
                while size <= MAX_DISCARDED_BYTES:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise RequestError(CLIENT_LEFT, "the client has left")
                    chunk = message.get("body", b"")
                    size += len(chunk)
                    if size > limit:
                        refusal = refusal or RequestError(
                            413,
                            f"the request is larger than {limit} bytes; send it in parts",
                            CLOSE,
                        )
                    elif self._bytes + len(chunk) > settings.bodies_bytes:
                        refusal = refusal or busy()
                    if refusal:
                        self._bytes -= body.drop()
                    else:
                        self._bytes += len(chunk)
                        body.write(chunk)
                    if not message.get("more_body"):
                        break
        except TimeoutError as error:
            raise RequestError(
                408, f"the request was not complete after {settings.body_seconds:g} s", CLOSE
            ) from error
        if refusal:
            raise refusal

    async def _answer(
        self, scope: Scope, receive: Receive, body: "_Body", answer: "_Answer"
    ) -> None:
        """Let the application answer, as long as the client is there.

        Raises:
            RequestError: the answer takes too long.
        """
        messages = body.messages()
        has_left = asyncio.Event()

        async def receive_body() -> Message:
            if message := next(messages, None):
                return message
            await has_left.wait()
            return {"type": "http.disconnect"}

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


class _Body:
    """The body of a request; a large one is a file on disk."""

    def __init__(self) -> None:
        self._file = SpooledTemporaryFile(SPOOLED_BYTES)  # noqa: SIM115 - `close` closes it
        self.size = 0

    def write(self, part: bytes) -> None:
        """Add a part at the end of the body."""
        self._file.write(part)
        self.size += len(part)

    def messages(self) -> Iterator[Message]:
        """Yield the body in the messages of ASGI; an empty body is one message, without bytes."""
        self._file.seek(0)
        left = self.size
        while True:
            part = self._file.read(PART_BYTES)
            left -= len(part)
            yield {"type": "http.request", "body": part, "more_body": left > 0}
            if left <= 0:
                return

    def drop(self) -> int:
        """Delete the bytes that were written, and return how many they were."""
        size, self.size = self.size, 0
        self._file.seek(0)
        self._file.truncate()
        return size

    def close(self) -> None:
        """Delete the body; it cannot be used any more."""
        self._file.close()


class _Answer:
    """Sends an answer with the headers of security, and remembers its status."""

    def __init__(self, send: Send, seconds: float, values: dict[str, object]) -> None:
        """Send each message by `send` within so many seconds.

        `values` are those of the line in the log. Headers repeat the identifier of the request and
        the model, if the values have them when the answer begins.
        """
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
