"""The page in Chromium, beside a stand-in of the server's API."""

import json
import re
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import nmt.serving

FILES = Path(nmt.serving.__file__).parent / "page"
KINDS = {"index.html": "text/html", "page.css": "text/css", "page.js": "text/javascript"}
OPTIONS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
HARMLESS = ("debug", "verbose", "error: Failed to load resource")
"""what Chromium logs for a field of a password outside a form, and for answers that are errors"""
NAMES = {"en": "English", "de": "German", "fr": "French"}
ARABIC = ["الكلب", "الصغير", "يقرأ", "كتابا"]
WORDS = {
    "ar": ARABIC,
    "he": ["הכלב", "רץ."],
    "hi": ["कुत्ता", "दौड़ता है।"],
    "th": ["สุนัข", "วิ่ง"],
    "zh-Hans": ["狗。", "两只狗"],
    "ja": ["犬。", "走る"],
}
"""of languages in which each translation has these words, as many as the source"""
TARGETS = {"en": ["de", "fr", *WORDS], "de": ["en"]}


@dataclass
class StandIn:
    """An API whose translation of a sentence has its words in reverse order, in capitals."""

    settings: dict[str, Any] = field(default_factory=dict)
    alignments: bool = True
    pivot: tuple[str, str] | None = None
    """a pair that is translated through a third language"""
    shares: list[float] = field(default_factory=list)
    """how far the document is each time that the page asks"""
    requests: list[tuple[str, Any]] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)
    remembered: dict[str, str] | None = None
    """{source: target} of a translation memory from English to German; None: there is none"""

    def asked(self, path: str) -> list[Any]:
        """Return the bodies of the requests to a path."""
        return [body for each, body in self.requests if each == path]

    def answer(self, path: str, body: Any) -> tuple[int, Any]:
        """Return status and content of an answer."""
        if path == "/languages":
            return 200, [
                {"code": code, "name": name, "targets": [code, *TARGETS.get(code, [])]}
                for code, name in NAMES.items()
            ]
        pairs = [(source, target) for source in TARGETS for target in TARGETS[source]]
        pairs = [pair for pair in pairs if pair != self.pivot]
        if path == "/v1/models":
            return 200, [{"source": source, "target": target} for source, target in pairs]
        if path == "/frontend/settings":
            return 200, {
                "apiKeys": False,
                "charLimit": 5000,
                "frontendTimeout": 100,
                "keyRequired": False,
                "language": {
                    "source": {"code": "auto", "name": "Auto Detect"},
                    "target": {"code": "de", "name": "German"},
                },
                "suggestions": False,
                "supportedFilesFormat": [".txt", ".html", ".htm", ".srt"],
            } | self.settings
        if path == "/detect":
            code = "de" if "der" in body["q"] else "en"
            return 200, [{"confidence": 90.0, "language": code}] if "?" not in body["q"] else []
        if path.startswith("/v1/documents"):
            return self.documents(path, body)
        if path == "/v1/memory":
            return 200, self.memory(body)
        if body["alignments"] and (body["source"], body["target"]) not in pairs:
            return 400, {"error": "no alignments through a third language"}
        if "broken" in body["text"][0]:
            return 400, {"error": "this text is <b>broken</b>; mend it"}
        if "slow" in body["text"][0]:
            time.sleep(0.6)
        return 200, {"model": "it", "translations": [self.translate(t, body) for t in body["text"]]}

    def documents(self, path: str, body: Any) -> tuple[int, Any]:
        """Return the answer to a document, or its status."""
        if path == "/v1/documents":
            if 'filename="damaged' in body:
                return 400, {"error": "the file is <b>damaged</b>"}
            self.shares = [0.0, 0.5] if 'filename="long' not in body else [0.5] * 1000
            return 200, {"document_id": "made", "document_key": "key"}
        status = {"status": "translating", "share": self.shares.pop(0)} if self.shares else {}
        return 200, {"status": "done", "share": 1.0, **status}

    def memory(self, body: Any) -> Any:
        """Return the list of memories, or keep pairs."""
        if body is None:
            one = {"name": "laws", "source": "en", "target": "de"}
            return [] if self.remembered is None else [one]
        assert self.remembered is not None
        self.remembered |= {pair["source"]: pair["target"] for pair in body["pairs"]}
        return {"added": len(body["pairs"])}

    def translate(self, text: str, body: Any) -> dict[str, Any]:
        """Return one translation in the shape of /v1/translate."""
        if "memory" in body and (target := (self.remembered or {}).get(text)):
            match = {"span": [0, len(text)], "type": "exact-match", "score": 1.0}
            return {"text": target, "matches": [{**match, "source": text, "target": target}]}
        terms = {term["source"]: term["target"] for term in body["terms"]}
        source_words = [match.span() for match in re.finditer(r"\S+", text)]
        words = [terms.get(word, word.upper()) for word in text.split()[::-1]]
        if known := WORDS.get(body["target"]):
            words = [known[place % len(known)] for place in range(len(words))]
        best = " ".join(words)
        others = [{"text": f"{best} {n}", "score": -1.0 - n} for n in range(1, body["n_best"])]
        translation: dict[str, Any] = {"text": best, "alternatives": others}
        if self.alignments and body["alignments"]:
            count = len(words)
            translation |= {
                "alignment": [[place, count - 1 - place] for place in range(count)],
                "source_words": source_words,
                "target_words": [match.span() for match in re.finditer(r"\S+", best)],
            }
        return translation


class Handler(BaseHTTPRequestHandler):
    """Serves the files of the page and a `StandIn`."""

    api: StandIn

    def do_GET(self) -> None:
        name = "index.html" if self.path == "/" else self.path[1:]
        if self.path == "/v1/documents/made/result":
            self.send(200, "text/plain", b"done\n")
        elif name in KINDS:
            self.send(200, f"{KINDS[name]}; charset=utf-8", (FILES / name).read_bytes())
        elif name == "favicon.ico":
            self.send(204, "image/x-icon", b"")
        else:
            self.answer(None)

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers["Content-Length"]))
        is_json = self.headers["Content-Type"] == "application/json"
        self.answer(json.loads(content) if is_json else content.decode())

    def do_DELETE(self) -> None:
        self.api.requests.append((f"DELETE {self.path}", None))
        self.send(204, "text/plain", b"")

    def answer(self, body: Any) -> None:
        self.api.requests.append((self.path, body))
        self.api.keys.append(self.headers["Authorization"])
        status, content = self.api.answer(self.path, body)
        self.send(status, "application/json", json.dumps(content).encode())

    def send(self, status: int, kind: str, content: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Content-Security-Policy", "default-src 'self'")
        self.end_headers()
        with suppress(ConnectionError):  # the page aborted its request
            self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    chromium = shutil.which("chromium")
    if not chromium:
        pytest.skip("needs the program chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=chromium, args=OPTIONS)


@pytest.fixture
def api() -> StandIn:
    return StandIn()


@pytest.fixture
def address(api: StandIn) -> Iterator[str]:
    handler = type("HandlerOfOneTest", (Handler,), {"api": api})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,)).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture
def open_page(browser: Any, address: str) -> Iterator[Callable[..., Any]]:
    """Open the page; at the end, nothing was asked of others and nothing was wrong in its log."""
    contexts, log, asked = [], [], []

    def opened(**options: Any) -> Any:
        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(5000)
        page.on("console", lambda message: log.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: log.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(address)
        page.wait_for_selector("#target-language option", state="attached")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert [line for line in log if not line.startswith(HARMLESS)] == []
    assert [url for url in asked if not url.startswith(address)] == []


@pytest.fixture
def page(open_page: Callable[..., Any]) -> Any:
    return open_page()


def lit(page: Any, side: str) -> list[str]:
    """Return the highlighted words of a pane."""
    texts: list[str] = page.locator(f"#{side}-mirror .on .on").all_inner_texts()
    return texts


def hover_over(page: Any, side: str, word: str) -> None:
    box = page.locator(f"#{side}-mirror span span", has_text=word).first.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
