"""A server as its clients meet it: sockets, signals, connections that hang."""

import contextlib
import resource
import shutil
import signal
import socket
import threading
import time
import urllib.request
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path

import pytest

from nmt.errors import ConfigError, NmtError
from nmt.serving import http_server
from nmt.serving.http_server import listen
from nmt.serving.server import Server
from nmt.serving.settings import ServerSettings
from tests.serving.served_runs import write_weights
from tests.serving.server_processes import ServerProcess, started


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("server")


@pytest.fixture(scope="module")
def server(en_de: Path, folder: Path) -> Iterator[ServerProcess]:
    run = Path(shutil.copytree(en_de, folder / "run"))
    config = folder / "serve.yaml"
    config.write_text("idle_seconds: 1.0\nbody_seconds: 1.0\nreload_seconds: 0.1\n")
    with started(run, folder, "--config", str(config)) as process:
        yield process


def connected(server: ServerProcess) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=20)


def test_a_connection_that_says_nothing_or_not_enough_is_closed(server: ServerProcess) -> None:
    for begun in (b"", b"GET /healthz HT", b"GET /healthz HTTP/1.1\r\nHost: a\r\nX: "):
        with connected(server) as client:
            client.sendall(begun)
            started_at = time.monotonic()
            assert client.recv(1000) == b""
            assert 0.5 < time.monotonic() - started_at < 10


def test_a_body_that_does_not_come_is_answered_with_408(server: ServerProcess) -> None:
    with connected(server) as client:
        client.sendall(b"POST /translate HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n{")
        assert client.recv(1000).startswith(b"HTTP/1.1 408")


def test_a_stream_that_ends_is_a_success(server: ServerProcess) -> None:
    body = {"text": "One dog. Two dogs.", "source": "en", "target": "de", "stream": True}
    status, text = server.post("/v1/translate", **body)
    assert (status, text.count("event: done")) == (200, 1)
    end = time.monotonic() + 20
    statuses: list[int] = []
    while not statuses:  # the line of the log may come after the answer
        assert time.monotonic() < end
        lines = server.events("request")
        statuses = [line["status"] for line in lines if line["path"] == "/v1/translate"]
    assert statuses == [200]


def test_a_half_closed_socket_and_a_client_that_leaves_do_no_harm(server: ServerProcess) -> None:
    body = b'{"q": "a dog", "source": "en", "target": "de"}'
    head = b"POST /translate HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % len(body)
    for _ in range(20):
        with connected(server) as client:
            client.sendall(head + body)
    with connected(server) as client:
        client.sendall(head + body)
        client.shutdown(socket.SHUT_WR)
        client.recv(1000)
    with connected(server) as client:
        client.sendall(b"\x00\xff garbage\r\n\r\n")
        assert client.recv(1000).startswith(b"HTTP/1.1 400")
    assert server.translate("a dog")


def test_a_proxy_of_this_machine_is_believed(server: ServerProcess) -> None:
    head = b"POST /detect?q=dog HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 9.8.7.6\r\n"
    with connected(server) as client:
        client.sendall(head + b"Content-Length: 0\r\nConnection: close\r\n\r\n")
        assert client.recv(1000).startswith(b"HTTP/1.1 200")
    end = time.monotonic() + 20
    while "address 9.8.7.6" not in [line.get("client") for line in server.events("request")]:
        assert time.monotonic() < end
        time.sleep(0.02)


def test_many_idle_connections_do_not_keep_others_out(server: ServerProcess) -> None:
    idle = [connected(server) for _ in range(300)]
    try:
        assert server.translate("a dog")
    finally:
        for client in idle:
            client.close()


def test_new_weights_and_sighup_reload_while_requests_go_on(
    server: ServerProcess, folder: Path
) -> None:
    answers: list[str] = []
    ends = threading.Event()

    def ask() -> None:
        while not ends.is_set():
            answers.append(server.translate("a small dog"))

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        write_weights(folder / "run", 2)
        first = server.wait_for("reloaded")["weights"]
        (folder / "run" / "config.yaml").touch()
        server.process.send_signal(signal.SIGHUP)
        write_weights(folder / "run", 3)
        assert server.wait_for("reloaded", 2)["weights"] != first
        time.sleep(0.1)
    finally:
        ends.set()
        asking.join()
    assert len(set(answers)) == 3


def test_sigterm_answers_what_has_begun_and_ends(en_de: Path, tmp_path: Path) -> None:
    with started(en_de, tmp_path) as server:
        answers: list[str] = []
        text = "One more sentence about dogs. " * 1000
        asking = threading.Thread(target=lambda: answers.append(server.translate(text)))
        asking.start()
        while "nmt_queue_segments 0.0" in metrics(server):
            time.sleep(0.01)
        assert server.stop(signal.SIGTERM) == 143
        asking.join()
        assert len(answers[0].split()) >= 1000
        assert "Traceback" not in server.log.read_text()


@pytest.mark.parametrize("others", [0, 30])
def test_sigterm_answers_requests_that_have_arrived_but_are_not_read(
    en_de: Path, tmp_path: Path, others: int
) -> None:
    body = '{"q": "a dog", "source": "en", "target": "de"}'
    with started(en_de, tmp_path) as server, contextlib.ExitStack() as stack:
        clients = [HTTPConnection("127.0.0.1", server.port, timeout=20) for _ in range(1 + others)]
        for client in clients:
            stack.callback(client.close)
        known, *_ = clients  # the others are not accepted before the end
        known.request("POST", "/translate", body)
        assert known.getresponse().read()
        server.process.send_signal(signal.SIGSTOP)  # the kernel keeps what comes now
        for client in clients:
            client.request("POST", "/translate", body)
        server.process.send_signal(signal.SIGTERM)
        server.process.send_signal(signal.SIGCONT)
        for client in clients:
            answer = client.getresponse()
            assert (answer.status, len(answer.read()) > 0) == (200, True)
        assert server.process.wait(timeout=60) == 143


def test_translated_files_do_not_outlive_their_server(
    en_de: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with started(en_de, tmp_path) as server:
        fields = [('source"', "en"), ('target"', "de"), ('file"; filename="a.txt"', "a dog")]
        parts = [f'--x\r\nContent-Disposition: form-data; name="{n}\r\n\r\n{v}' for n, v in fields]
        request = urllib.request.Request(
            f"http://127.0.0.1:{server.port}/translate_file",
            "\r\n".join([*parts, "--x--\r\n"]).encode(),
            {"Content-Type": "multipart/form-data; boundary=x"},
        )
        with urllib.request.urlopen(request, timeout=60) as response:
            assert response.status == 200
        assert len(list(tmp_path.glob("nmt-files-*/*.txt"))) == 1
        assert server.stop(signal.SIGTERM) == 143
    assert list(tmp_path.glob("nmt-*")) == []


def metrics(server: ServerProcess) -> str:
    with connected(server) as client:
        client.sendall(b"GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        parts = iter(lambda: client.recv(1 << 16), b"")
        return b"".join(parts).decode()


def test_a_port_that_is_taken_is_an_error() -> None:
    with listen(ServerSettings(models=["run"], port=0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=f"cannot listen at 127.0.0.1, port {port}: .* use"):
            listen(ServerSettings(models=["run"], port=port))
    with pytest.raises(ConfigError, match="cannot listen at no.such.address"):
        listen(ServerSettings(models=["run"], host="no.such.address"))


def test_too_few_addresses_are_a_sentence_that_says_how_many_are_needed(
    en_de: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = Server.build(ServerSettings(models=[str(en_de)]))
    for limit in (resource.RLIM_INFINITY, 1_200_000_000):
        monkeypatch.setattr(resource, "getrlimit", lambda _, limit=limit: (limit, limit))
        http_server.check_addresses(server)
    monkeypatch.setattr(resource, "getrlimit", lambda _: (700_000_000, 700_000_000))
    with pytest.raises(NmtError, match=r"allows 0\.7 GB of addresses, .* needs 1\.1 GB; raise"):
        http_server.check_addresses(server)
