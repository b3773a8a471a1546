"""A download ends complete and verified, or with a sentence that says what to do."""

import gzip
import hashlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from nmt.data.corpora import archives, download
from nmt.data.corpora.download import Origin, RemoteText, fetch, obtain
from nmt.data.corpora.provenance import Provenance
from nmt.errors import DataError

TEXT = b"".join(b"sentence number %d\n" % n for n in range(2000))


@dataclass
class Behaviour:
    """How the server treats its next requests."""

    body: bytes = TEXT
    cut_after: list[int] = field(default_factory=list)
    """bytes sent before the connection is cut, request by request"""
    errors: list[int] = field(default_factory=list)
    """statuses of the first requests"""
    knows_ranges: bool = True
    range_shift: int = 0
    redirect: str = ""
    asked: list[str | None] = field(default_factory=list)
    """Range header of each request"""


class Handler(BaseHTTPRequestHandler):
    behaviour: Behaviour

    def do_GET(self) -> None:
        behaviour = self.behaviour
        asked = self.headers.get("Range")
        behaviour.asked.append(asked)
        if behaviour.redirect:
            self.answer(302, {"Location": behaviour.redirect})
        elif behaviour.errors:
            self.answer(behaviour.errors.pop(0), {"Content-Length": "0"})
        elif asked and behaviour.knows_ranges:
            self.send_range(int(asked.removeprefix("bytes=").removesuffix("-")))
        else:
            self.answer(200, {"Content-Length": str(len(behaviour.body))})
            self.send(behaviour.body)

    def send_range(self, start: int) -> None:
        body = self.behaviour.body
        if start >= len(body):
            self.answer(416, {"Content-Range": f"bytes */{len(body)}"})
            return
        start += self.behaviour.range_shift
        headers = {
            "Content-Range": f"bytes {start}-{len(body) - 1}/{len(body)}",
            "Content-Length": str(len(body) - start),
        }
        self.answer(206, headers)
        self.send(body[start:])

    def answer(self, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def send(self, body: bytes) -> None:
        if self.behaviour.cut_after:
            body = body[: self.behaviour.cut_after.pop(0)]
        self.wfile.write(body)

    def log_message(self, *arguments: Any) -> None:
        """Say nothing."""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, Behaviour]]:
    """The address of a file on a server of this machine, and its behaviour."""
    monkeypatch.setattr(download, "_PAUSE_S", 0.0)
    monkeypatch.setenv("no_proxy", "*")
    behaviour = Behaviour()
    handler = type("ThisHandler", (Handler,), {"behaviour": behaviour})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}/some/text.en.gz", behaviour
        running.shutdown()
        thread.join()


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def remote(url: str, text: bytes = TEXT, **named: Any) -> RemoteText:
    return RemoteText(url, len(text), hashlib.sha256(text).hexdigest(), **named)


def origin(tmp_path: Path, folder: Path | None = None) -> Origin:
    return Origin(folder, tmp_path / "downloads", lambda message: None)


# -- over the network -----------------------------------------------------------------------------


def test_file_arrives_whole(tmp_path: Path, server: tuple[str, Behaviour]) -> None:
    fetch(server[0], tmp_path / "deep" / "file")
    assert (tmp_path / "deep" / "file").read_bytes() == TEXT
    assert names(tmp_path / "deep") == ["file"]


@pytest.mark.parametrize("cuts", [[0], [1], [30_000], [100, 5000, 1, 100]])
def test_cut_connection_is_taken_up_where_it_broke(
    tmp_path: Path, server: tuple[str, Behaviour], cuts: list[int]
) -> None:
    url, behaviour = server
    behaviour.cut_after = list(cuts)
    fetch(url, tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == TEXT
    so_far = [sum(cuts[: n + 1]) for n in range(len(cuts))]
    assert behaviour.asked == [None, *(f"bytes={have}-" if have else None for have in so_far)]


def test_next_command_goes_on_where_the_last_gave_up(
    tmp_path: Path, server: tuple[str, Behaviour]
) -> None:
    url, behaviour = server
    behaviour.cut_after = [100] * 5
    with pytest.raises(DataError, match=r"the connection was cut \(500 bytes so far\); run the"):
        fetch(url, tmp_path / "file")
    assert names(tmp_path) == ["file.part"]
    fetch(url, tmp_path / "file")
    assert behaviour.asked[-1] == "bytes=500-"
    assert (tmp_path / "file").read_bytes() == TEXT


def test_server_that_knows_no_ranges_sends_everything_again(
    tmp_path: Path, server: tuple[str, Behaviour]
) -> None:
    url, behaviour = server
    behaviour.cut_after, behaviour.knows_ranges = [999], False
    fetch(url, tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == TEXT


def test_server_that_sends_another_range_is_not_believed(
    tmp_path: Path, server: tuple[str, Behaviour]
) -> None:
    url, behaviour = server
    behaviour.cut_after, behaviour.range_shift = [999], 1
    fetch(url, tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == TEXT


def test_part_longer_than_the_file_is_thrown_away(
    tmp_path: Path, server: tuple[str, Behaviour]
) -> None:
    (tmp_path / "file.part").write_bytes(TEXT * 2)
    fetch(server[0], tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == TEXT


@pytest.mark.parametrize("status", [500, 503, 429])
def test_passing_trouble_is_waited_out(
    tmp_path: Path, server: tuple[str, Behaviour], status: int
) -> None:
    server[1].errors = [status] * 4
    fetch(server[0], tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == TEXT


def test_lasting_trouble_is_told(tmp_path: Path, server: tuple[str, Behaviour]) -> None:
    server[1].errors = [503] * 9
    with pytest.raises(DataError, match="HTTP 503 Service Unavailable .0 bytes so far.; run the"):
        fetch(server[0], tmp_path / "file")


@pytest.mark.parametrize(("status", "words"), [(404, "Not Found"), (403, "Forbidden")])
def test_refusal_is_told_at_once(
    tmp_path: Path, server: tuple[str, Behaviour], status: int, words: str
) -> None:
    server[1].errors = [status] * 9
    with pytest.raises(DataError, match=f"gz: HTTP {status} {words}; fetch it by hand and use --f"):
        fetch(server[0], tmp_path / "file")
    assert len(server[1].asked) == 1
    assert names(tmp_path) == []


def test_absent_server_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "_PAUSE_S", 0.0)
    monkeypatch.setenv("no_proxy", "*")
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as closed:
        port = closed.server_port
    with pytest.raises(DataError, match="Connection refused.* .0 bytes so far.; run the command"):
        fetch(f"http://127.0.0.1:{port}/file", tmp_path / "file")


def test_redirect_from_https_to_http_is_refused() -> None:
    redirects = download._SecureRedirects()
    request = download.urllib.request.Request("https://safe.example/file")
    with pytest.raises(DataError, match=r"redirected to http://other.example, which is not encr"):
        redirects.redirect_request(request, None, 302, "", {}, "http://other.example")
    followed = redirects.redirect_request(request, None, 302, "", {}, "https://other.example")
    assert followed is not None and followed.full_url == "https://other.example"


def test_redirect_is_followed(tmp_path: Path, server: tuple[str, Behaviour]) -> None:
    url, behaviour = server
    behaviour.redirect = "/elsewhere"
    with pytest.raises(DataError, match="redirect"):
        fetch(url, tmp_path / "file")  # for ever, which urllib notices
    assert len(behaviour.asked) > 1


def test_full_disk_is_told(
    tmp_path: Path, server: tuple[str, Behaviour], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full:
        def __enter__(self) -> "Full":
            return self

        def __exit__(self, *_: object) -> None:
            return None

        def write(self, data: bytes) -> None:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(download, "open", lambda *a, **n: Full(), raising=False)
    with pytest.raises(DataError, match="file.part: cannot be written: No space left on device"):
        fetch(server[0], tmp_path / "file")


# -- verified and unpacked ------------------------------------------------------------------------


def test_archive_is_unpacked_and_verified(tmp_path: Path, server: tuple[str, Behaviour]) -> None:
    url, behaviour = server
    behaviour.body = gzip.compress(TEXT)
    obtain(remote(url), tmp_path / "text", origin(tmp_path))
    assert (tmp_path / "text").read_bytes() == TEXT
    assert names(tmp_path) == ["downloads", "text"]


def test_full_disk_does_not_cost_the_download(
    tmp_path: Path, server: tuple[str, Behaviour]
) -> None:
    """The folder of the text is missing, which the disk refuses as it does when it is full."""
    url, behaviour = server
    behaviour.body = gzip.compress(TEXT)
    with pytest.raises(DataError, match="cannot be written"):
        obtain(remote(url), tmp_path / "nowhere" / "text", origin(tmp_path))
    assert (tmp_path / "downloads" / "text.en.gz").read_bytes() == behaviour.body


def test_download_that_is_here_already_is_used(
    tmp_path: Path, server: tuple[str, Behaviour]
) -> None:
    url, behaviour = server
    (tmp_path / "downloads").mkdir()
    (tmp_path / "downloads" / "text.en.gz").write_bytes(gzip.compress(TEXT))
    obtain(remote(url), tmp_path / "text", origin(tmp_path))
    assert behaviour.asked == []


@pytest.mark.parametrize("body", [TEXT[:-1], TEXT + b"\n", TEXT.replace(b"7", b"8"), b""])
def test_other_text_is_refused_and_leaves_nothing(
    tmp_path: Path, server: tuple[str, Behaviour], body: bytes
) -> None:
    url, behaviour = server
    behaviour.body = gzip.compress(body)
    with pytest.raises(DataError, match="not the text expected from http.*text.en.gz .sha256 "):
        obtain(remote(url), tmp_path / "text", origin(tmp_path))
    assert names(tmp_path) == ["downloads"]
    assert names(tmp_path / "downloads") == []
    behaviour.body = gzip.compress(TEXT)
    obtain(remote(url), tmp_path / "text", origin(tmp_path))
    assert (tmp_path / "text").read_bytes() == TEXT


def test_bomb_is_stopped_at_the_expected_size(
    tmp_path: Path, server: tuple[str, Behaviour], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, behaviour = server
    behaviour.body = gzip.compress(bytes(50_000_000))
    monkeypatch.setattr(archives, "_CHUNK", 1000)
    written: list[int] = []
    replaced = download.unpacked

    def counted(archive: Path, member: str | None) -> Iterator[bytes]:
        for chunk in replaced(archive, member):
            written.append(len(chunk))
            yield chunk

    monkeypatch.setattr(download, "unpacked", counted)
    with pytest.raises(DataError, match="not the text expected"):
        obtain(remote(url), tmp_path / "text", origin(tmp_path))
    assert sum(written) <= len(TEXT) + 1000


@pytest.mark.parametrize("body", [b"no archive", gzip.compress(TEXT)[:-5]])
def test_damaged_archive_is_refused(
    tmp_path: Path, server: tuple[str, Behaviour], body: bytes
) -> None:
    server[1].body = body
    with pytest.raises(DataError, match="text.en.gz: damaged or cut short .*; fetch it again"):
        obtain(remote(server[0]), tmp_path / "text", origin(tmp_path))
    assert names(tmp_path / "downloads") == []


# -- without a published hash ---------------------------------------------------------------------


def remembering(tmp_path: Path, folder: Path | None = None) -> Origin:
    record = Provenance(tmp_path / "en-fr.source.json")
    return Origin(folder, tmp_path / "downloads", lambda message: None, record)


def test_first_download_decides_what_later_ones_must_be(
    tmp_path: Path, server: tuple[str, Behaviour]
) -> None:
    url, behaviour = server
    behaviour.body = gzip.compress(TEXT)
    where, text = remembering(tmp_path), RemoteText(url)
    obtain(text, tmp_path / "text", where)
    assert where.record is not None
    first = {"sha256": hashlib.sha256(TEXT).hexdigest(), "bytes": len(TEXT)}
    assert where.record.recall(url) == first
    (tmp_path / "downloads" / "text.en.gz").unlink()
    obtain(text, tmp_path / "text", where)
    (tmp_path / "downloads" / "text.en.gz").unlink()
    (tmp_path / "text").unlink()

    behaviour.body = gzip.compress(b"other\n")
    message = (
        f"not the text that {url} gave when it was first downloaded "
        f".sha256 {hashlib.sha256(b'other' + bytes([10])).hexdigest()}, "
        f"expected {first['sha256']}.; .* or delete .*en-fr.source.json to accept it"
    )
    with pytest.raises(DataError, match=message):
        obtain(text, tmp_path / "text", where)
    assert names(tmp_path) == ["downloads", "en-fr.source.json"]
    assert where.record.recall(url) == first
    where.record.path.unlink()
    obtain(text, tmp_path / "text", where)
    assert (tmp_path / "text").read_bytes() == b"other\n"


def test_copy_is_held_against_the_first_download_but_is_none(tmp_path: Path) -> None:
    (tmp_path / "copies").mkdir()
    (tmp_path / "copies" / "train.en").write_bytes(TEXT)
    text, where = RemoteText("https://x.org/train.en"), remembering(tmp_path, tmp_path / "copies")
    obtain(text, tmp_path / "text", where)
    assert where.record is not None and not where.record.path.exists()
    where.record.remember(text.url, {"sha256": "0" * 64})
    with pytest.raises(DataError, match="expected 0000"):
        obtain(text, tmp_path / "other", where)
    assert not (tmp_path / "other").exists()


def test_published_hash_needs_no_memory(tmp_path: Path, server: tuple[str, Behaviour]) -> None:
    url, behaviour = server
    behaviour.body = gzip.compress(TEXT)
    obtain(remote(url), tmp_path / "text", remembering(tmp_path))
    assert names(tmp_path) == ["downloads", "text"]
