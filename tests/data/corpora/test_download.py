"""A download ends complete, or with a sentence that says what to do."""

import json
import urllib.request
from collections.abc import Callable
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest

from nmt.data.corpora import download
from nmt.data.corpora.download import fetch, fetch_json
from nmt.errors import DataError
from tests.data.corpora.site import Site, _Handler, names

Get = Callable[[], bytes]
TEXT = b"".join(b"sentence number %d\n" % n for n in range(2000))


@pytest.fixture
def get(site: Site, tmp_path: Path) -> Get:
    """Download the site's one file, and return its content."""
    site.files["/text"] = TEXT

    def get() -> bytes:
        fetch(f"{site.url}/text", tmp_path / "file")
        assert names(tmp_path) == ["file"]
        return (tmp_path / "file").read_bytes()

    return get


@pytest.mark.parametrize("cuts", [[], [0], [1], [30_000], [100, 5000, 1, 100]])
def test_a_download_continues_where_it_was_cut(get: Get, site: Site, cuts: list[int]) -> None:
    site.cut_after = list(cuts)
    assert get() == TEXT
    so_far = [sum(cuts[: n + 1]) for n in range(len(cuts))]
    assert site.ranges == [None, *(f"bytes={have}-" if have else None for have in so_far)]


def test_the_next_command_continues_the_last_one(tmp_path: Path, get: Get, site: Site) -> None:
    site.cut_after = [100] * 5
    with pytest.raises(DataError, match=r"the connection was cut \(500 bytes so far\); run the"):
        get()
    assert names(tmp_path) == ["file.part"]
    assert get() == TEXT
    assert site.ranges[-1] == "bytes=500-"


@pytest.mark.parametrize(("knows_ranges", "shift"), [(False, 0), (True, 1)])
def test_a_server_without_ranges_is_asked_for_all(
    get: Get, site: Site, knows_ranges: bool, shift: int
) -> None:
    site.cut_after, site.knows_ranges, site.range_shift = [999], knows_ranges, shift
    assert get() == TEXT


def test_a_part_longer_than_the_file_is_deleted(tmp_path: Path, get: Get) -> None:
    (tmp_path / "file.part").write_bytes(TEXT * 2)
    assert get() == TEXT


@pytest.mark.parametrize("status", [500, 503, 429])
def test_an_error_that_passes_is_waited_out(get: Get, site: Site, status: int) -> None:
    site.errors = [status] * 4
    assert get() == TEXT


@pytest.mark.parametrize(
    ("status", "requests", "reason"),
    [
        (503, 5, r"Service Unavailable \(0 bytes so far\); run the"),
        (404, 1, "Not Found; download it by hand, for `nmt data download --from`"),
        (403, 1, "Forbidden; download it by hand, for `nmt data download --from`"),
    ],
)
def test_an_error_that_lasts_is_told(
    get: Get, site: Site, status: int, requests: int, reason: str
) -> None:
    site.errors = [status] * 9
    with pytest.raises(DataError, match=f"text: HTTP {status} {reason}"):
        get()
    assert len(site.asked) == requests


def test_an_absent_server_is_told(tmp_path: Path, site: Site) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as closed:
        port = closed.server_port
    with pytest.raises(DataError, match=r"Connection refused.* \(0 bytes so far\); run the"):
        fetch(f"http://127.0.0.1:{port}/file", tmp_path / "file")


def test_a_redirect_never_leads_from_https_to_http(get: Get, site: Site) -> None:
    redirects = download._SecureRedirects()
    request = urllib.request.Request("https://safe.example/file")
    with pytest.raises(DataError, match=r"redirected to http://other.example, which is not encr"):
        redirects.redirect_request(request, None, 302, "", {}, "http://other.example")
    followed = redirects.redirect_request(request, None, 302, "", {}, "https://other.example")
    assert followed is not None and followed.full_url == "https://other.example"
    site.redirect = "/elsewhere"
    with pytest.raises(DataError, match="redirect"):
        get()  # for ever, which urllib notices
    assert len(site.asked) > 1


def test_a_full_disk_is_told(get: Get, monkeypatch: pytest.MonkeyPatch) -> None:
    full = open("/dev/full", "wb")  # noqa: SIM115 - closed by `fetch`
    monkeypatch.setattr(download, "open", lambda *_: full, raising=False)
    with pytest.raises(DataError, match="file.part: cannot be written: No space left on device"):
        get()


def test_an_answer_in_json_is_read(site: Site) -> None:
    site.files["/api"] = json.dumps({"a": ["\u00e9"]}).encode()
    assert fetch_json(f"{site.url}/api?b=c", 5) == {"a": ["\u00e9"]}
    assert site.asked == ["/api?b=c"]


@pytest.mark.parametrize(
    ("body", "redirect", "message"),
    [
        (None, "", r"127.0.0.1:\d+: HTTP 404 Not Found"),
        (b"<html>", "", "an answer that is not JSON"),
        (b"\xff", "", "an answer that is not JSON"),
        (b"{}", "http://127.0.0.1:1/", "Connection refused"),
    ],
)
def test_an_answer_that_is_none_says_why(
    site: Site, body: bytes | None, redirect: str, message: str
) -> None:
    site.redirect = redirect
    if body:
        site.files["/api"] = body
    with pytest.raises(DataError, match=message):
        fetch_json(f"{site.url}/api", 5)
