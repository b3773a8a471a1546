"""A web server of this machine, in the place of the sites that corpora are downloaded from."""

import io
import tarfile
import threading
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Literal

import pytest

from nmt.data.corpora import download
from nmt.data.corpora.origin import Origin


@dataclass
class Site:
    """What the server has, and how it treats its next requests."""

    url: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    """content by path, without the query; `url` and a path make an address"""
    asked: list[str] = field(default_factory=list)
    """the path of each request, with its query"""
    ranges: list[str | None] = field(default_factory=list)
    """the Range header of each request"""
    cut_after: list[int] = field(default_factory=list)
    """bytes sent before the connection is cut, request by request"""
    errors: list[int] = field(default_factory=list)
    """statuses of the first requests"""
    knows_ranges: bool = True
    range_shift: int = 0
    redirect: str = ""


class _Handler(BaseHTTPRequestHandler):
    site: Site

    def do_GET(self) -> None:
        site, wanted = self.site, self.headers.get("Range")
        site.asked.append(self.path)
        site.ranges.append(wanted)
        body = site.files.get(self.path.partition("?")[0])
        if site.redirect:
            self.answer(302, {"Location": site.redirect})
        elif site.errors or body is None:
            self.answer(site.errors.pop(0) if site.errors else 404)
        elif wanted and site.knows_ranges:
            start = int(wanted.removeprefix("bytes=").removesuffix("-"))
            if start >= len(body):
                self.answer(416, {"Content-Range": f"bytes */{len(body)}"})
                return
            start += site.range_shift
            place = f"bytes {start}-{len(body) - 1}/{len(body)}"
            self.answer(206, {"Content-Range": place}, body[start:])
        else:
            self.answer(200, {}, body)

    def answer(self, status: int, headers: dict[str, str] | None = None, body: bytes = b"") -> None:
        self.send_response(status)
        for name, value in {**(headers or {}), "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if body and self.site.cut_after:
            body = body[: self.site.cut_after.pop(0)]
        self.wfile.write(body)

    def log_message(self, *arguments: Any) -> None:
        """Say nothing."""


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """An empty site that behaves well."""
    monkeypatch.setattr(download, "_PAUSE_S", 0.0)
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.delenv("NMT_TEST_DATA", raising=False)
    site = Site()
    handler = type("_SiteHandler", (_Handler,), {"site": site})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        site.url = f"http://127.0.0.1:{running.server_port}"
        yield site
        running.shutdown()
        thread.join()


def silent(message: str) -> None:
    """Log nothing."""


def origin_in(tmp_path: Path, folder: Path | None = None, log: list[str] | None = None) -> Origin:
    """An origin that downloads into `tmp_path`, or takes the copies in `folder`."""
    say = silent if log is None else log.append
    return Origin(folder, tmp_path / "downloads", tmp_path / "record.json", say)


def names(folder: Path) -> list[str]:
    """What a folder holds."""
    return sorted(path.name for path in folder.iterdir())


def split_names(*languages: str) -> list[str]:
    """The files of a whole corpus."""
    return sorted(f"{s}.{n}" for s in ("train", "validation", "test") for n in languages)


def zipped(members: Mapping[str, str | bytes]) -> bytes:
    """A zip archive of these members."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return data.getvalue()


def tarred(members: Mapping[str, str | bytes], mode: Literal["w", "w:gz"] = "w") -> bytes:
    """A tar archive of these members."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode=mode) as archive:
        for name, content in members.items():
            content = content.encode() if isinstance(content, str) else content
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return data.getvalue()
