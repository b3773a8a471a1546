"""Runs a server on a socket, by uvicorn, with time limits on its connections."""

import asyncio
import contextlib
import resource
import select
import signal
import socket
from collections.abc import Iterator
from types import FrameType
from typing import Any

import uvicorn
import uvloop
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from nmt.errors import ConfigError, NmtError, StoppedBySignal
from nmt.machine.memory import check_threads, tune_memory
from nmt.machine.processor import available_cores
from nmt.serving.application import build_application
from nmt.serving.models import LOADED_BYTES
from nmt.serving.operations import log_to_stderr
from nmt.serving.server import Server
from nmt.serving.settings import ServerSettings

BACKLOG = 2048
"""connections that the kernel keeps until they are accepted"""
MAX_ACCEPT_SECONDS = 5.0
"""seconds for which a server that ends accepts the connections that the kernel keeps"""
LAST_SECONDS = 15
"""seconds that a server which ends has for all but the requests that are being answered"""
ADDRESSES = 1_050_000_000
"""bytes of addresses that a server takes besides its models: half of them for PyTorch, a quarter
for the language identification"""
READ_ROUNDS = 10
"""rounds of the event loop that read what has arrived on connections: more than are needed"""


def serve(settings: ServerSettings) -> None:
    """Serve until a signal ends it; SIGTERM and SIGINT let requests finish first.

    Raises:
        NmtError: a run, a setting or the port is not usable.
        MemoryError, RuntimeError: the threads that requests need cannot start.
        OSError: a file of a model cannot be read.
        StoppedBySignal: a signal ended it.
    """
    tune_memory()
    log_to_stderr()
    server = Server.build(settings)
    check_addresses(server)
    check_threads(available_cores() + 4, 128 << 20)  # what requests take
    with (
        _SignalsOfLoop() as signals,
        listen(settings) as opened,
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        runner.run(_serve(server, opened, signals))


def check_addresses(server: Server) -> None:
    """Check that `ulimit -v` allows what the server takes: libraries in C++ end it otherwise.

    Raises:
        NmtError: it does not; the message says how much is needed.
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    model = server.models.models[0].current.version  # loaded at the start
    needed = ADDRESSES + LOADED_BYTES * model.weight_bytes
    if limit != resource.RLIM_INFINITY and limit < needed:
        raise NmtError(
            f"ulimit -v allows {limit / 1e9:.1f} GB of addresses, and the server needs "
            f"{needed / 1e9:.1f} GB; raise the limit"
        )


def listen(settings: ServerSettings) -> socket.socket:
    """Open the socket of the server.

    Raises:
        ConfigError: the address or the port cannot be had.
    """
    host, port = settings.host, settings.port
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        raise ConfigError(
            f"cannot listen at {host}, port {port}: {error.strerror}; choose another `port` or "
            "`host`"
        ) from error


class _SignalsOfLoop:
    """Remembers SIGINT and SIGTERM while the event loop runs; leaving it raises the first of them.

    An error raised inside uvloop ends it in the midst of its work, or is only logged. So whatever
    waits for a signal sets a handler of its own, and this one stands before and after it.
    """

    def __init__(self) -> None:
        self.received: list[int] = []
        self._earlier: dict[int, Any] = {}

    def __enter__(self) -> "_SignalsOfLoop":
        for number in (signal.SIGINT, signal.SIGTERM):
            self._earlier[number] = signal.signal(number, self.remember)
        return self

    def __exit__(self, *_: object) -> None:
        if self.received:  # further signals are still only remembered: the process is about to end
            name = signal.Signals(self.received[0]).name
            raise StoppedBySignal(f"stopped by {name}", self.received[0])
        for number, handler in self._earlier.items():
            signal.signal(number, handler)

    def remember(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal."""
        self.received.append(number)


async def _serve(server: Server, opened: socket.socket, signals: _SignalsOfLoop) -> None:
    """Serve at the socket `opened` until a signal ends the server."""
    settings = server.settings
    config = uvicorn.Config(
        build_application(server),
        http=_protocol(settings.idle_seconds),
        ws="none",
        lifespan="off",  # `server.run` is entered here, so that its errors can be explained
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # the application reads them itself
        timeout_keep_alive=round(settings.idle_seconds),
        timeout_graceful_shutdown=round(settings.drain_seconds),
    )
    async with contextlib.AsyncExitStack() as running:
        await _start(server, running, signals)
        if not signals.received:
            host, port = opened.getsockname()[:2]
            server.operations.log("listening", {"host": host, "port": port})
            await _HttpServer(config, signals).serve(sockets=[opened])


async def _start(
    server: Server, running: contextlib.AsyncExitStack, signals: _SignalsOfLoop
) -> None:
    """Start a server, unless a signal arrives first; closing `running` stops it.

    Raises:
        NmtError: a model cannot be loaded.
        OSError: a file of a model cannot be read.
    """
    loop = asyncio.get_running_loop()
    start = asyncio.create_task(running.enter_async_context(server.run()))

    def stop(number: int, frame: FrameType | None) -> None:
        if not signals.received:  # a second `cancel` would interrupt the end of what has started
            loop.call_soon_threadsafe(start.cancel)
        signals.remember(number, frame)

    handlers = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    if signals.received:  # before `stop` was set
        start.cancel()
    try:
        await asyncio.gather(start, return_exceptions=True)
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    if not signals.received:
        start.result()


class _HttpServer(uvicorn.Server):
    """Reads the requests that have arrived before it ends."""

    def __init__(self, config: uvicorn.Config, signals: _SignalsOfLoop) -> None:
        super().__init__(config)
        self._signals = signals

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """End the server at a signal, also at one that came just before uvicorn waited for it."""
        with super().capture_signals():
            self.should_exit = bool(self._signals.received)
            yield

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept the connections that the kernel keeps, and read what has arrived, and then end.

        Requests may be answered for `drain_seconds`. The kernel ends a process that is still there
        `LAST_SECONDS` after that, whatever its threads do.

        Closing the sockets would reset them. A busy event loop leaves many of them, because it
        accepts only one in each round.
        """
        drain = self.config.timeout_graceful_shutdown or 0
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(drain + LAST_SECONDS)
        waiting = select.poll()
        for opened in sockets or []:
            waiting.register(opened, select.POLLIN)
        loop = asyncio.get_running_loop()
        end = loop.time() + MAX_ACCEPT_SECONDS
        while waiting.poll(0) and loop.time() < end:
            await asyncio.sleep(0)
        for _ in range(READ_ROUNDS):
            await asyncio.sleep(0)
        await super().shutdown(sockets)


def _protocol(seconds: float) -> type[HttpToolsProtocol]:
    """Return uvicorn's protocol with a limit on the time in which the headers must arrive."""

    class ImpatientProtocol(HttpToolsProtocol):
        """Closes a connection if a request has begun, or might, and its headers do not end."""

        _timer: asyncio.TimerHandle | None = None
        _is_answering = False

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._timer = self.loop.call_later(seconds, transport.close)

        def connection_lost(self, exc: Exception | None) -> None:
            self._cancel()
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            if not self._timer and not self._is_answering:
                self._timer = self.loop.call_later(seconds, self.transport.close)
            super().data_received(data)

        def on_headers_complete(self) -> None:
            self._is_answering = True
            self._cancel()
            super().on_headers_complete()

        def on_response_complete(self) -> None:
            self._is_answering = False
            super().on_response_complete()

        def _cancel(self) -> None:
            """Stop the clock of the headers."""
            if self._timer:
                self._timer.cancel()
            self._timer = None

    return ImpatientProtocol
