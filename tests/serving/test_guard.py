"""What every request passes: limits, security headers, clients that leave, the log."""

import asyncio
import json
import logging
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from starlette.types import Message, Receive, Scope, Send

from nmt.serving.access import Access, add_key
from nmt.serving.guard import Guard
from nmt.serving.operations import Operations
from nmt.serving.settings import ServerSettings
from tests.serving.conftest import Client


def test_a_large_body_is_refused_without_being_kept(serve: Client) -> None:
    client = serve(body_bytes=1000)
    for body in (b"x" * 1001, b"x" * 10_000_000):
        response = client.post("/translate", content=body)
        assert response.status_code == 413
        assert response.json()["error"] == (
            "the request is larger than 1000 bytes; send it in parts"
        )


def test_every_answer_has_the_headers_of_security(client: TestClient) -> None:
    for path in ("/healthz", "/none", "/"):
        headers = client.get(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["content-security-policy"].startswith("default-src 'self'")
        assert "server" not in headers


def test_head_is_answered_as_get(client: TestClient) -> None:
    for path in ("/healthz", "/none", "/"):
        sent = {"X-Request-ID": "1"}
        asked, found = client.get(path, headers=sent), client.head(path, headers=sent)
        assert (found.status_code, found.headers) == (asked.status_code, asked.headers)


def test_other_sites_may_not_call_unless_they_are_named(serve: Client) -> None:
    for settings, allowed in (({}, None), ({"cors_origins": ["https://a.org"]}, "https://a.org")):
        client, headers = serve(body_bytes=1000, **settings), {"Origin": "https://a.org"}
        answers = [
            client.get("/languages", headers=headers),
            client.post("/translate", headers=headers, content=b"x" * 1001),
        ]
        assert [answer.status_code for answer in answers] == [200, 413]
        for answer in answers:
            assert answer.headers.get("access-control-allow-origin") == allowed


def test_a_request_is_logged_without_its_texts_unless_asked(
    serve: Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "nmt.serving")
    for log_texts in (False, True):
        caplog.clear()
        body = {"q": "a secret", "source": "en", "target": "de"}
        serve(log_texts=log_texts).post("/translate", json=body)
        [values] = [vars(r)["values"] for r in caplog.records if r.message == "request"]
        assert (values["path"], values["status"], values["characters"]) == ("/translate", 200, 8)
        assert ("a secret" in json.dumps(values)) == log_texts


def ask(guard: Guard, *messages: Message, wait: float = 0.0) -> list[Message]:
    """Send the messages of a client to the application, and return what it answers."""
    sent: list[Message] = []
    waiting = list(messages)

    async def receive() -> Message:
        if not waiting:
            await asyncio.sleep(3600)
        if waiting[0]["type"] == "http.disconnect":
            await asyncio.sleep(wait)
        return waiting.pop(0)

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/translate", "headers": []}
    asyncio.run(guard(scope, receive, send))
    return sent


def guarded(app: Any, **settings: Any) -> Guard:
    known = ServerSettings(models=["run"], **settings)
    return Guard(app, known, Operations(), Access(known))


def test_the_work_for_a_client_who_leaves_ends() -> None:
    ended = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            ended.append("yes")

    request = {"type": "http.request", "body": b"{}", "more_body": False}
    assert ask(guarded(app), request, {"type": "http.disconnect"}, wait=0.01) == []
    assert ended == ["yes"]


def test_half_a_body_is_not_taken_for_a_request(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "nmt.serving")

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        raise AssertionError(await receive())

    half = {"type": "http.request", "body": b"source=en&target=de&q=Hel", "more_body": True}
    ask(guarded(app), half, {"type": "http.disconnect"})
    [record] = caplog.records
    assert vars(record)["values"]["status"] == 499


@pytest.mark.parametrize("is_complete", [True, False])
def test_a_client_who_leaves_after_the_last_part_has_not_left_early(
    is_complete: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """A server reports that the connection has ended as soon as the last part is sent."""
    caplog.set_level(logging.INFO, "nmt.serving")

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"a", "more_body": True})
        if is_complete:
            await send({"type": "http.response.body", "body": b""})
        await asyncio.sleep(0.1)

    request = {"type": "http.request", "body": b"{}", "more_body": False}
    ask(guarded(app), request, {"type": "http.disconnect"}, wait=0.01)
    [record] = caplog.records
    assert vars(record)["values"]["status"] == (200 if is_complete else 499)


def test_a_request_that_is_cancelled_is_no_error_of_the_server(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Ray Serve cancels a request whose client has left."""
    caplog.set_level(logging.INFO, "nmt.serving")

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        ask(guarded(app), {"type": "http.request", "body": b"{}", "more_body": False})
    [record] = caplog.records
    assert vars(record)["values"]["status"] == 499


def test_a_request_that_takes_too_long_is_refused() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await asyncio.sleep(3600)

    request = {"type": "http.request", "body": b"{}", "more_body": False}
    start, body = ask(guarded(app, request_seconds=0.02), request)
    assert start["status"] == 503
    assert json.loads(body["body"])["error"] == "the request took too long"


def test_a_body_that_does_not_end_is_refused() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        raise AssertionError("the application must not see it")

    part = {"type": "http.request", "body": b"{", "more_body": True}
    start, body = ask(guarded(app, body_seconds=0.02), part)
    assert start["status"] == 408
    assert (b"connection", b"close") in start["headers"]


def test_an_unexpected_error_is_logged_and_its_answer_tells_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        raise OSError(2, "No such file", "secret/path")

    request = {"type": "http.request", "body": b"", "more_body": False}
    start, body = ask(guarded(app), request)
    assert start["status"] == 500
    assert json.loads(body["body"]) == {"error": "the server made a mistake; its log says which"}
    assert "secret/path" in caplog.text


def test_the_bodies_of_all_requests_have_a_budget() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await asyncio.sleep(0.1)
        size, more = 0, True
        while more:
            message = await receive()
            size, more = size + len(message["body"]), message["more_body"]
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"%d" % size})

    guard = guarded(app, bodies_bytes=1_000_000)

    async def post(size: int) -> tuple[int, bytes]:
        left, sent = size, list[Message]()

        async def receive() -> Message:
            nonlocal left
            if left <= 0:
                await asyncio.sleep(3600)
            part = min(left, 60_000)
            left -= part
            await asyncio.sleep(0)
            return {"type": "http.request", "body": b"x" * part, "more_body": left > 0}

        async def send(message: Message) -> None:
            sent.append(message)

        scope = {"type": "http", "method": "POST", "path": "/translate", "headers": []}
        await guard(scope, receive, send)
        return sent[0]["status"], sent[1]["body"]

    async def all_at_once() -> list[tuple[int, bytes]]:
        return await asyncio.gather(*(post(600_000) for _ in range(2)))

    statuses = [status for status, _ in asyncio.run(all_at_once())]
    assert sorted(statuses) == [200, 503]
    for size in (1, 262_144, 262_145, 999_999):  # what was taken is given back
        assert asyncio.run(post(size)) == (200, b"%d" % size)


def test_a_wrong_key_is_refused_before_the_body_is_read(serve: Client, tmp_path: Path) -> None:
    key = add_key(tmp_path / "keys.yaml", "anna")
    client = serve(keys=str(tmp_path / "keys.yaml"))
    unparsable = b"{" * 1_000_000
    wrong = {"Authorization": "Bearer wrong"}
    for path in ("/translate", "/v1/translate", "/translate_file", "/detect"):
        assert client.post(path, content=unparsable, headers=wrong).status_code == 403
    assert client.post("/v1/translate", content=unparsable).status_code == 403
    right = {"Authorization": f"Bearer {key}"}
    assert client.post("/v1/translate", content=unparsable, headers=right).status_code == 400
    upload: dict[str, Any] = {
        "files": {"file": ("a.txt", b"a dog")},
        "data": {"source": "en", "target": "de"},
    }
    assert client.post("/translate_file", **upload).status_code == 403
    assert client.post("/translate_file", headers=right, **upload).status_code == 200


def test_what_operators_see_needs_a_key_unless_the_settings_say_otherwise(
    serve: Client, tmp_path: Path
) -> None:
    key = add_key(tmp_path / "keys.yaml", "anna")
    right = {"Authorization": f"Bearer {key}"}
    client = serve(keys=str(tmp_path / "keys.yaml"))
    public = serve(keys=str(tmp_path / "keys.yaml"), public_metrics=True)
    for path in ("/metrics", "/v1/models"):
        assert client.get(path).status_code == 403
        assert client.get(path, headers=right).status_code == 200
        assert public.get(path).status_code == 200
    for path in ("/healthz", "/readyz", "/languages"):
        assert client.get(path).status_code == 200
