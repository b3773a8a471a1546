"""Two servers behind nginx, as the README sets it up, are one server to their clients."""

import contextlib
import re
import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.serving.server_processes import PROJECT, ServerProcess, ask, started, upload

NGINX = shutil.which("nginx", path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin")
pytestmark = [
    pytest.mark.skipif(NGINX is None, reason="nginx is not installed"),
    pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate"),
]


@pytest.fixture(scope="module")
def servers(
    en_de: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[ServerProcess, ServerProcess]]:
    readme = (PROJECT / "nmt/serving/README.md").read_text("utf-8")
    section = readme.partition("### nginx")[2]
    [settings] = re.findall(r"```yml\n(.*?)```", section.partition("###")[0], re.DOTALL)
    files = tmp_path_factory.mktemp("files")
    path = files / "serve.yaml"
    path.write_text(settings.replace("/var/lib/nmt", str(files)))
    with contextlib.ExitStack() as stack:
        one, other = (
            stack.enter_context(
                started(en_de, tmp_path_factory.mktemp(name), "--config", str(path))
            )
            for name in ("one", "other")
        )
        yield one, other


@pytest.fixture(scope="module")
def address(
    servers: tuple[ServerProcess, ServerProcess], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """The address of nginx with the configuration of the README, over TLS."""
    folder = tmp_path_factory.mktemp("nginx")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    _write_configuration(folder, port, [server.port for server in servers])
    command = [str(NGINX), "-p", str(folder), "-c", "nginx.conf", "-g", "daemon off;"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        end = time.monotonic() + 20
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            assert time.monotonic() < end and process.poll() is None, process.communicate()
            time.sleep(0.02)
        yield f"https://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.communicate()


def _write_configuration(folder: Path, port: int, upstream_ports: list[int]) -> None:
    """Write nginx.conf with the block of the README, and a certificate that nobody has signed."""
    readme = (PROJECT / "nmt/serving/README.md").read_text("utf-8")
    [block] = re.findall(r"```nginx\n(.*?)```", readme, re.DOTALL)
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj"]
        + ["/CN=translate.example.org", "-keyout", "translate.key", "-out", "translate.pem"],
        cwd=folder,
        check=True,
        capture_output=True,
    )
    block = block.replace("/etc/ssl/", f"{folder}/").replace("listen 443", f"listen {port}")
    for written, used in zip((5000, 5001), upstream_ports, strict=True):
        block = block.replace(f"127.0.0.1:{written}", f"127.0.0.1:{used}")
    temporary = "".join(
        f"{kind}_temp_path {folder}/{kind};\n"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (folder / "nginx.conf").write_text(
        f"user root;\npid {folder}/pid;\nerror_log stderr;\nevents {{}}\n"
        f"http {{\naccess_log off;\n{temporary}{block}}}\n"
    )


def ask_nginx(address: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
    """Return the answer of nginx, whose certificate is not checked; its status must be 200."""
    status, answer = ask(address + path, body, tls=ssl._create_unverified_context())
    assert status == 200, answer
    return answer


def test_translations_are_those_of_each_server(
    address: str, servers: tuple[ServerProcess, ServerProcess]
) -> None:
    body = {"q": ["a dog", "Two dogs. Three cats."], "source": "en", "target": "de"}
    direct = [server.post("/translate", **body)[1] for server in servers]
    found = [ask_nginx(address, "/translate", body) for _ in range(4)]
    assert direct == [found[0]] * 2
    assert found == [found[0]] * 4
    status, _ = ask(f"{address}/metrics", tls=ssl._create_unverified_context())
    assert status == 403


def test_a_file_is_fetched_from_either_server(address: str) -> None:
    tls = ssl._create_unverified_context()
    for _ in range(4):
        url = upload(address, "a.txt", b"a dog", tls)
        assert url.startswith(f"{address}/download_file/")  # with the port of nginx
        for _ in range(3):
            assert ask(url, tls=tls)[0] == 200


def test_a_stream_passes(address: str) -> None:
    body = {"text": "Two dogs. Three cats.", "source": "en", "target": "de", "stream": True}
    assert ask_nginx(address, "/v1/translate", body).count("event: translation") == 2


def test_a_server_that_is_killed_under_load_costs_no_request(
    address: str, servers: tuple[ServerProcess, ServerProcess]
) -> None:
    counts: Counter[str] = Counter()
    ends = threading.Event()

    def send(client: int) -> None:
        number = 0
        while not ends.is_set():
            number += 1
            body = {"q": f"dog {client} {number} " * 5, "source": "en", "target": "de"}
            try:
                ask_nginx(address, "/translate", body)
                counts["answered"] += 1
            except (AssertionError, OSError) as error:
                counts[repr(error)] += 1

    clients = [threading.Thread(target=send, args=(i,)) for i in range(4)]
    for client in clients:
        client.start()
    time.sleep(1)
    servers[1].process.kill()
    servers[1].process.wait()
    time.sleep(2)
    ends.set()
    for client in clients:
        client.join()
    print(dict(counts))
    assert set(counts) == {"answered"}
