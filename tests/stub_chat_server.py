"""A server with OpenAI's interface in a thread, whose language model is a function of a test."""

import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

GERMAN = ["der", "kleine", "Hund", "sieht", "eine", "große", "Katze", "und", "das", "alte", "Haus"]
ENGLISH = ["the", "small", "dog", "sees", "a", "large", "cat", "and", "that", "old", "house"]
WORDS = dict(zip(GERMAN, ENGLISH, strict=True))
GERMAN_LINES = [
    f"der kleine Hund sieht {word} große Katze {n}" for n, word in enumerate(GERMAN * 2)
]


def translated(text: str) -> str:
    """The English words of German ones; other words stay."""
    return " ".join(WORDS.get(word, word) for word in text.split())


@dataclass(frozen=True)
class Reply:
    """What the server answers to a request."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    delay_s: float = 0.0
    pauses_s: float = 0.0
    """between bytes of the body"""
    resets: bool = False
    """whether the connection is reset in place of an answer"""


def said(text: str | None, finish: str = "stop", **message: object) -> Reply:
    """A reply with a text of the language model, and what it has cost."""
    choice = {"message": {"role": "assistant", "content": text, **message}, "finish_reason": finish}
    usage = {"prompt_tokens": 20, "completion_tokens": 5}
    return Reply(body=json.dumps({"choices": [choice], "usage": usage}).encode())


def error(status: int, message: str = "", code: str = "", **headers: str) -> Reply:
    """A reply with an error of HTTP."""
    body = json.dumps({"error": {"message": message, "code": code}}).encode()
    return Reply(status, body, {name.replace("_", "-"): value for name, value in headers.items()})


Behaviour = Callable[[str, int], Reply]
"""takes the last message, and how often it was asked for before; returns what is replied"""


@dataclass
class StubServer:
    """What the server was asked, and how it behaves."""

    url: str
    behaviour: Behaviour = lambda text, before: said(translated(text))
    requests: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)
    most_at_once: int = 0
    at_once: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def texts(self) -> list[str]:
        """The last message of each request."""
        return [request["messages"][-1]["content"] for request in self.requests]

    def reply(self, request: dict[str, Any], key: str | None) -> Reply:
        """Count a request, and return what is replied."""
        text = request["messages"][-1]["content"]
        with self.lock:
            before = self.texts.count(text)
            self.requests.append(request)
            self.keys.append(key)
        return self.behaviour(text, before)


@contextmanager
def stub_server() -> Iterator[StubServer]:
    """Run a server on a free port of this machine."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:  # noqa: N802 - named so by the library
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if self.path != "/v1/chat/completions":
                self._send(error(404, "no such page"))
                return
            with stub.lock:
                stub.at_once += 1
                stub.most_at_once = max(stub.most_at_once, stub.at_once)
            try:
                reply = stub.reply(request, self.headers["Authorization"])
                time.sleep(reply.delay_s)
            finally:
                with stub.lock:  # before the reply, after which the client may send the next one
                    stub.at_once -= 1
            with suppress(BrokenPipeError, ConnectionResetError):  # the client has gone
                self._send(reply)

        def _send(self, reply: Reply) -> None:
            if reply.resets:
                linger = struct.pack("ii", 1, 0)
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                return
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", reply.headers.get("X-Length", str(len(reply.body))))
            self.end_headers()
            step = 1 if reply.pauses_s else 1 << 16
            for start in range(0, len(reply.body), step):
                self.wfile.write(reply.body[start : start + step])
                time.sleep(reply.pauses_s)

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            pass

    with Server(("127.0.0.1", 0), Handler) as server:
        stub = StubServer(f"http://127.0.0.1:{server.server_address[1]}/v1")
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield stub
        finally:
            server.shutdown()
            thread.join()
