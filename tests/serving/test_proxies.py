"""Addresses: path prefixes, slashes, hosts; and which request was answered by which weights."""

import hashlib
import json
import logging
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from nmt.run.checkpoint_files import WEIGHTS
from nmt.serving.application import build_application
from nmt.serving.operations import JsonFormatter
from nmt.serving.server import Server
from nmt.serving.settings import load_settings
from tests.serving.conftest import Client
from tests.serving.served_runs import write_weights

PAIR = {"source": "en", "target": "de"}
BODY = {"q": "a dog", **PAIR}
PROXY = "10.1.2.3"
"""the address of all clients of these tests"""


def address_of_file(client: TestClient, **headers: str) -> str:
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    files = {"file": ("a.txt", b"a dog")}
    answer = client.post("/translate_file", files=files, data=PAIR, headers=sent)
    assert answer.status_code == 200, answer.text
    url: str = answer.json()["translatedFileUrl"]
    return url.partition("download_file/")[0]


@pytest.mark.parametrize(
    "path", ["/translate/", "//translate", "/translate//", "///translate", "/v1//models/", "//"]
)
def test_slashes_too_many_change_nothing(client: TestClient, path: str) -> None:
    method, body = ("POST", BODY) if "translate" in path else ("GET", None)
    url = f"http://testserver{path}"
    answer = client.request(method, url, json=body, follow_redirects=False)
    assert answer.status_code == 200


def test_an_upload_is_one_below_a_prefix_too(serve: Client) -> None:
    client = serve(body_bytes=1000, root_path="/nmt/")
    files = {"file": ("a.txt", b"a dog. " * 500)}
    for path in ("/nmt/translate_file", "/translate_file", "//nmt//translate_file/"):
        url = f"http://testserver{path}"
        assert client.post(url, files=files, data=PAIR).status_code == 200


@pytest.mark.parametrize("path", ["/nmt", "/nmt/", ""])
def test_a_prefix_is_in_every_address(serve: Client, path: str) -> None:
    """A proxy may remove the prefix from the path or leave it there."""
    client = serve(root_path="/nmt")
    base = "/nmt" if path else ""
    assert client.post(f"{base}/translate", json=BODY).status_code == 200
    assert address_of_file(client) == "http://testserver/nmt/"
    for name in ("spec", "openapi.json"):
        assert client.get(f"{base}/{name}").json()["servers"] == [{"url": "/nmt"}]
    page = client.get(path or "/", follow_redirects=False)
    if path == "/nmt":  # the page's own addresses are relative
        assert (page.status_code, page.headers["location"]) == (308, "/nmt/")
    else:
        assert page.status_code == 200 and 'href="page.css"' in page.text
    assert client.get("/nmtx/languages").status_code == 404


@pytest.mark.parametrize(
    ("prefix", "used"),
    [
        ("/nmt", "/nmt"),
        ("/a/b-c.d/", "/a/b-c.d"),
        ("/a, /b", "/a/b"),
        ("/", ""),
        ("//evil.example", ""),
        ("nmt", ""),
        ("/a\tb", ""),
        ('/a"', ""),
    ],
)
def test_a_proxy_that_is_believed_names_the_prefix(serve: Client, prefix: str, used: str) -> None:
    believed, not_believed = serve(proxies=PROXY), serve()
    found = address_of_file(believed, X_Forwarded_Prefix=prefix)
    assert found == f"http://testserver{used}/"
    assert address_of_file(not_believed, X_Forwarded_Prefix=prefix) == "http://testserver/"


@pytest.mark.parametrize(
    ("hosts", "host", "is_allowed"),
    [
        ([], "evil.example", False),
        ([], "testserver", True),  # the address of the socket
        ([], "localhost:8080", True),
        ([], "127.0.0.1:1", True),
        ([], "[::1]:5000", True),
        ([], "localhost.evil.example", False),
        ([], "localhost:80@evil.example", False),
        ([], "10.9.9.9", False),
        (["translate.example.org"], "translate.example.org", True),
        (["translate.example.org"], "Translate.Example.org:8443", True),
        (["translate.example.org:8443"], "translate.example.org:8443", True),
        (["translate.example.org:8443"], "translate.example.org", False),
        (["translate.example.org"], "translate.example.org.evil", False),
        (["*"], "any.example", True),
        (["*"], "a b", False),
        (["*"], "a/b", False),
    ],
)
def test_no_host_is_repeated_unless_it_is_allowed(
    serve: Client, hosts: list[str], host: str, is_allowed: bool
) -> None:
    client = serve(hosts=hosts, root_path="/nmt")
    found = address_of_file(client, Host=host)
    assert found == (f"http://{host.lower()}/nmt/" if is_allowed else "/nmt/")
    assert address_of_file(client, X_Forwarded_Host="x.example") == "http://testserver/nmt/"
    answer = client.get("/nmt", headers={"Host": host}, follow_redirects=False)
    assert answer.headers["location"] == "/nmt/"
    for path in ("/languages/", "/none/", "/spec", "/openapi.json", "/frontend/settings/"):
        answer = client.get(path, headers={"Host": "evil.example"}, follow_redirects=False)
        assert "evil" not in answer.text + str(answer.headers)


def test_a_proxy_that_is_believed_names_host_and_scheme(serve: Client) -> None:
    client = serve(proxies=PROXY, hosts=["x.example"])
    sent = {"X_Forwarded_Host": "x.example, y", "X_Forwarded_Proto": "https"}
    assert address_of_file(client, **sent) == "https://x.example/"
    assert address_of_file(client, X_Forwarded_Host="evil.example") == "/"


def test_the_plugin_of_omegat_asks_with_get(client: TestClient) -> None:
    expected = client.post("/translate", json=BODY).json()
    for query in (BODY, {**BODY, "format": "text", "api_key": ""}):
        answer = client.get("/translate", params=dict(query))
        assert (answer.status_code, answer.json()) == (200, expected)
    assert client.get("http://testserver//translate?q=&source=en&target=de").status_code == 400


@pytest.mark.parametrize(
    ("given", "is_kept"),
    [
        ("7f3b-41:a/b+c=", True),
        ("x" * 128, True),
        ("x" * 129, False),
        ("", False),
        ("a b", False),
        ("a\tb", False),
        ('"}', False),
    ],
)
def test_a_request_has_an_identifier(
    client: TestClient, caplog: pytest.LogCaptureFixture, given: str, is_kept: bool
) -> None:
    caplog.set_level(logging.INFO, "nmt.serving")
    answer = client.get("/healthz", headers={"X-Request-ID": given})
    found = answer.headers["x-request-id"]
    assert (found == given) == is_kept and found
    line: dict[str, Any] = json.loads(JsonFormatter().format(caplog.records[-1]))
    assert line["request_id"] == found
    assert client.get("/healthz").headers["x-request-id"] != found


def test_answers_name_the_weights_that_translated(
    en_de: Path, caplog: pytest.LogCaptureFixture, serve: Client
) -> None:
    caplog.set_level(logging.INFO, "nmt.serving")
    client = serve()
    weights = en_de / "checkpoints/step-00000001" / WEIGHTS
    [digest] = {client.get("/frontend/settings").json()["models"][0]["weights"]}
    assert hashlib.sha256(weights.read_bytes()).hexdigest().startswith(digest)
    assert client.get("/v1/models").json()[0]["weights"] == digest
    text = {"text": ["a dog", "<b>two</b> cats"], **PAIR}
    for path, body in (
        ("/translate", BODY),
        ("/translate", {**BODY, "q": "<p>a <b>dog</b></p>", "format": "html"}),
        ("/v1/translate", text),
    ):
        answer = client.post(path, json=body)
        assert answer.headers["x-model"] == f"en-de@{digest}"
        assert caplog.records[-1].values["model"] == f"en-de@{digest}"  # type: ignore[attr-defined]
    assert client.post("/v1/translate", json=text).json()["weights"] == digest
    assert f'nmt_model{{model="en-de",weights="{digest}"}} 1.0' in client.get("/metrics").text
    assert "x-model" not in client.get("/languages").headers
    stream = client.post("/v1/translate", json={**text, "stream": True}).text
    assert f'"weights": "{digest}"' in stream.partition("event: done")[2]


def test_new_weights_are_named_after_a_reload(tmp_path: Path, en_de: Path) -> None:
    import asyncio
    import shutil

    run = tmp_path / "en+de"
    shutil.copytree(en_de, run)
    server = Server.build(load_settings(None, {"models": [str(run)], "reload_seconds": 80000}))
    with TestClient(build_application(server)) as client:
        before = client.post("/translate", json=BODY).headers["x-model"]
        write_weights(run, 7)
        asyncio.run(server.models.reload())
        after = client.post("/translate", json=BODY).headers["x-model"]
        assert before != after
        assert before.startswith("en%2Bde@") and after.startswith("en%2Bde@")
        metrics = client.get("/metrics").text
        assert f'weights="{after.partition("@")[2]}"}} 1.0' in metrics
        assert before.partition("@")[2] not in metrics
