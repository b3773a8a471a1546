"""The client of a language model's server: what it repeats, what it gives up, what it bounds."""

import email.utils
import threading
import time
from collections.abc import Iterator

import pytest

from nmt.errors import ConfigError, DataError
from nmt.translation import chat_server
from nmt.translation.chat_server import Answer, ChatServer
from tests.stub_chat_server import Reply, StubServer, error, said, stub_server

MESSAGES = [{"role": "user", "content": "der Hund"}]
CUT = Reply(body=b"{}", headers={"X-Length": "500"})  # shorter than it says


@pytest.fixture
def stub() -> Iterator[StubServer]:
    with stub_server() as stub:
        yield stub


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chat_server, "FIRST_PAUSE_S", 0.001)
    monkeypatch.setattr(chat_server, "LONGEST_PAUSE_S", 0.01)


def test_an_answer_has_its_text_and_cost_and_the_request_its_fields(stub: StubServer) -> None:
    server = ChatServer(stub.url, "qwen", {"temperature": 0, "top_p": None}, key="secret")
    assert server.ask(MESSAGES) == Answer("the dog", None, 20, 5, requests=1)
    assert stub.requests == [{"model": "qwen", "messages": MESSAGES, "temperature": 0}]
    assert stub.keys == ["Bearer secret"]
    assert "secret" not in repr(server)
    assert ChatServer(f"{stub.url}/", "qwen").ask(MESSAGES).text == "the dog"
    assert stub.keys[1] is None


@pytest.mark.parametrize(
    "failure",
    [
        error(429, "slow down"),
        error(500),
        error(503, "Loading model", Retry_After="0"),
        error(503, Retry_After="tomorrow"),
        error(408),
        Reply(resets=True),
        CUT,
        Reply(body=b"<html>"),
        Reply(body=b"[" * 100_000),
        Reply(body=b"[]"),
        Reply(body=b'{"choices": []}'),
        Reply(body=b'{"choices": [{"message": {"content": ["a"]}}]}'),
        Reply(body=b'{"error": {"message": "overloaded", "code": 502}}'),
        Reply(delay_s=1.5),
        Reply(body=b" " * 100, pauses_s=0.2),
    ],
)
def test_a_request_that_fails_is_sent_again(stub: StubServer, failure: Reply) -> None:
    stub.behaviour = lambda text, before: failure if before == 0 else said("the dog")
    answer = ChatServer(stub.url, "m", timeout_s=1.0).ask(MESSAGES)
    assert (answer.text, answer.requests) == ("the dog", 2)


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (said("no", "length"), Answer("no", "cut_off", 20, 5)),
        (said(None, "content_filter"), Answer("", "refused", 20, 5)),
        (said(None, refusal="I won't"), Answer("I won't", "refused", 20, 5)),
        (error(400, "filtered", "content_filter"), Answer("filtered", "refused")),
        (said("<think>\nHund is dog\n</think>\n\n the dog "), Answer("the dog", None, 20, 5)),
        (said(None), Answer("", None, 20, 5)),
        (Reply(body=b" " * (chat_server.MOST_BYTES + 9)), Answer("", "cut_off")),
        (
            Reply(body=b'{"choices": [{"message": {"content": "a"}}], "usage": null}'),
            Answer("a"),
        ),
    ],
)
def test_answers_that_are_no_translation_say_why(
    stub: StubServer, reply: Reply, expected: Answer
) -> None:
    stub.behaviour = lambda text, before: reply
    assert ChatServer(stub.url, "m").ask(MESSAGES) == expected._replace(requests=1)


@pytest.mark.parametrize(
    ("reply", "sentence"),
    [
        (
            error(401, "Incorrect key secret provided."),
            r"HTTP 401 Unauthorized \(Incorrect key \*\*\* provided\); check the key",
        ),
        (error(404, "model 'm' not found"), "not found\\); check the address, and the name of the"),
        (error(400, "no max_tokens\nhere"), r"\(no max_tokens here\); check the address and `req"),
        (Reply(302, headers={"Location": "http://127.0.0.1:1/"}), "HTTP 302 Found; check"),
        (Reply(418, b"\xff\xfe"), "HTTP 418"),
    ],
)
def test_a_request_that_the_server_refuses_is_an_error_at_once(
    stub: StubServer, reply: Reply, sentence: str
) -> None:
    stub.behaviour = lambda text, before: reply
    with pytest.raises(ConfigError, match=sentence) as caught:
        ChatServer(stub.url, "m", key="secret").ask(MESSAGES)
    assert len(stub.requests) == 1
    assert "secret" not in str(caught.value)


def test_a_server_that_fails_all_the_time_is_an_error(stub: StubServer) -> None:
    stub.behaviour = lambda text, before: error(500, "out of memory")
    with pytest.raises(DataError, match=r"\(out of memory\), 8 times in a row; check the server"):
        ChatServer(stub.url, "m").ask(MESSAGES)
    with pytest.raises(DataError, match="refused, 3 times in a row"):
        ChatServer("http://127.0.0.1:9/v1", "m").ask(MESSAGES)


def test_a_request_that_fails_alone_has_no_answer(stub: StubServer) -> None:
    server = ChatServer(stub.url, "m")

    def behave(text: str, before: int) -> Reply:
        if text == "other":
            return said("x")
        server.ask([{"role": "user", "content": "other"}])  # as another thread does
        return error(500)

    stub.behaviour = behave
    assert server.ask(MESSAGES) == Answer("", "no_answer", requests=8)


def test_after_too_many_requests_it_waits_as_long_as_others_are_answered(stub: StubServer) -> None:
    server = ChatServer(stub.url, "m")

    def behave(text: str, before: int) -> Reply:
        if text == "other":
            return said("x")
        server.ask([{"role": "user", "content": "other"}])
        return error(429) if before < 20 else said("the dog")

    stub.behaviour = behave
    assert server.ask(MESSAGES).requests == 21


@pytest.mark.parametrize("as_date", [False, True])
def test_retry_after_is_waited_for(stub: StubServer, as_date: bool) -> None:
    wait = email.utils.formatdate(time.time() + 2, usegmt=True) if as_date else "1"
    stub.behaviour = lambda text, before: (
        error(429, Retry_After=wait) if before == 0 else said("the dog")
    )
    start = time.monotonic()
    assert ChatServer(stub.url, "m").ask(MESSAGES).requests == 2
    assert time.monotonic() - start >= 0.9


def test_a_server_that_asks_to_wait_for_hours_ends_the_command(stub: StubServer) -> None:
    stub.behaviour = lambda text, before: error(429, "daily quota", Retry_After="7200")
    with pytest.raises(DataError, match=r"asks to wait 120 minutes; run the command again then"):
        ChatServer(stub.url, "m").ask(MESSAGES)


def test_stop_ends_a_pause(stub: StubServer) -> None:
    stub.behaviour = lambda text, before: error(429, Retry_After="500")
    server = ChatServer(stub.url, "m")
    threading.Timer(0.2, server.stop).start()
    with pytest.raises(DataError, match="stopped"):
        server.ask(MESSAGES)
    with pytest.raises(DataError, match="stopped"):
        server.ask(MESSAGES)
    assert len(stub.requests) == 1


@pytest.mark.parametrize(
    "address",
    [
        "",
        "localhost:8000",
        "ftp://a/v1",
        "http://me:secret@a/v1",
        "http://a/v1?key=secret",
        "http://ä/v1",
        "http://[::1/v1",
        "http://a b/v1",
        "http:///v1",
        "http://a:abc/v1",
        "http://a:99999/v1",
        "http://llm..example.org/v1",
        f"http://{'a' * 64}.example.org/v1",
        "http://a/v1?",
        "http://a/v1#secret",
    ],
)
def test_an_address_that_is_none(address: str) -> None:
    with pytest.raises(ConfigError, match="such as http://localhost:11434/v1") as caught:
        ChatServer(address, "m")
    assert "secret" not in str(caught.value)


def test_which_servers_are_this_machine() -> None:
    local = ["http://localhost:1/v1", "http://127.0.0.1/v1", "http://[::1]:8000/v1"]
    assert all(ChatServer(url, "m").is_local for url in local)
    assert not ChatServer("https://api.example.org/v1", "m").is_local
