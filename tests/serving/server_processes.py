"""Servers as processes of their own, with real sockets."""

import contextlib
import json
import os
import signal
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parent.parent.parent
MAX_START_SECONDS = 60.0


def ask(
    url: str,
    body: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
    tls: ssl.SSLContext | None = None,
) -> tuple[int, Any]:
    """Send JSON, or a GET without a body; return the status and the JSON of the answer, or text."""
    data = None if body is None else json.dumps(body).encode()
    sent = {"Content-Type": "application/json", **(headers or {})}
    request = urllib.request.Request(url, data, sent)
    try:
        answer = urllib.request.urlopen(request, timeout=60, context=tls)
    except urllib.error.HTTPError as error:
        answer = error
    with answer:
        text = answer.read().decode()
        is_json = answer.headers.get("Content-Type") == "application/json"
        return answer.status, json.loads(text) if is_json else text


def upload(
    url: str, name: str, content: bytes, tls: ssl.SSLContext | None = None, **form: str
) -> str:
    """Have a server translate a file from English to German, and return its address."""
    rows = [b"--x"]
    for key, value in {"source": "en", "target": "de", **form}.items():
        rows += [f'Content-Disposition: form-data; name="{key}"'.encode(), b"", value.encode()]
        rows += [b"--x"]
    rows += [f'Content-Disposition: form-data; name="file"; filename="{name}"'.encode(), b""]
    rows += [content, b"--x--", b""]
    headers = {"Content-Type": "multipart/form-data; boundary=x"}
    request = urllib.request.Request(f"{url}/translate_file", b"\r\n".join(rows), headers)
    with urllib.request.urlopen(request, timeout=60, context=tls) as answer:
        return str(json.load(answer)["translatedFileUrl"])


@dataclass
class ServerProcess:
    """A process of `nmt serve` and its port; `log` has the lines that it has written."""

    process: "subprocess.Popen[str]"
    log: Path
    port: int = 0

    def post(self, path: str, **body: Any) -> tuple[int, Any]:
        """Return the status and the JSON of an answer."""
        return ask(f"http://127.0.0.1:{self.port}{path}", body)

    def translate(self, text: str) -> str:
        """Return a translation that must succeed."""
        status, answer = self.post("/translate", q=text, source="en", target="de")
        assert status == 200, answer
        return str(answer["translatedText"])

    def events(self, event: str) -> list[dict[str, Any]]:
        """Return the lines of the log of one event."""
        *complete, _ = self.log.read_text().split("\n")  # the last line may be half written
        lines = [json.loads(line) for line in complete if line[:1] == "{"]
        return [line for line in lines if line["event"] == event]

    def wait_for(self, event: str, count: int = 1) -> dict[str, Any]:
        """Wait until the log has so many lines of an event, and return the last one."""
        end = time.monotonic() + MAX_START_SECONDS
        while len(found := self.events(event)) < count:
            assert time.monotonic() < end and self.process.poll() is None, self.log.read_text()
            time.sleep(0.02)
        return found[-1]

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Send a signal, and return the exit code."""
        self.process.send_signal(number)
        return self.process.wait(timeout=60)


@contextlib.contextmanager
def starting(run: Path, folder: Path, *options: str) -> Iterator[ServerProcess]:
    """Start a server of a run at a free port, and do not wait for it."""
    log = folder / "log"
    command = [sys.executable, "-m", "nmt", "serve", "--model", str(run), "--port", "0", *options]
    environment = {**os.environ, "PYTHONPATH": str(PROJECT), "OMP_NUM_THREADS": "1"}
    with log.open("w") as file:
        process = subprocess.Popen(command, stderr=file, env=environment, cwd=folder, text=True)
    try:
        yield ServerProcess(process, log)
    finally:
        process.kill()
        process.wait()


@contextlib.contextmanager
def started(run: Path, folder: Path, *options: str) -> Iterator[ServerProcess]:
    """Start a server of a run at a free port, and wait until it listens."""
    with starting(run, folder, *options) as server:
        server.port = server.wait_for("listening")["port"]
        yield server
