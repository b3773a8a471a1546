"""Processes that translate: the same translations, and nobody waits for one that was killed."""

import os
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from nmt.errors import ConfigError
from nmt.serving.settings import ServerSettings
from nmt.serving.workers import ProcessCompute
from tests.serving.conftest import Client
from tests.serving.server_processes import ServerProcess, started, starting


def children(process: int) -> list[int]:
    """The processes that a process has started."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(entry.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if parent == process:
            found.append(int(entry.parent.name))
    return found


@pytest.fixture(scope="module")
def server(en_de: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with started(en_de, tmp_path_factory.mktemp("server"), "--workers", "2") as process:
        yield process


def test_translations_are_those_of_threads(server: ServerProcess, serve: Client) -> None:
    texts = ["a dog", "Two dogs. Three cats.", "", "dog " * 50]
    asked = {"source": "en", "target": "de", "alternatives": 2}
    expected = serve().post("/translate", json={"q": texts, **asked}).json()
    assert server.post("/translate", q=texts, **asked) == (200, expected)
    aligned = {"text": texts, "source": "en", "target": "de", "alignments": True, "prefix": "So "}
    expected = serve().post("/v1/translate", json=aligned).json()
    assert server.post("/v1/translate", **aligned) == (200, expected)


def test_a_mistake_of_a_client_is_its_own(server: ServerProcess) -> None:
    body = {"terms": [{"source": "dog", "target": "Hund"}], "forbidden": ["Hund"]}
    status, answer = server.post("/v1/translate", text="a dog", source="en", target="de", **body)
    assert status == 400
    assert "Hund" in answer["error"]


def test_a_killed_worker_is_replaced_and_its_batch_is_translated(server: ServerProcess) -> None:
    """The next process is killed only when each client has an answer since the last time: a batch
    that is killed twice is refused."""
    counts = [0] * 4  # answers of each client, who waits for one before the next request
    is_over = threading.Event()

    def ask(client: int) -> None:
        while not is_over.is_set():
            assert server.translate(f"dog number {client} " * 20 + str(counts[client]))
            counts[client] += 1

    with ThreadPoolExecutor(len(counts)) as pool:
        asking = [pool.submit(ask, client) for client in range(len(counts))]

        def wait_until(condition: Callable[[], bool]) -> None:
            end = time.monotonic() + 60
            while not condition():
                assert time.monotonic() < end
                assert not any(future.done() for future in asking), [f.exception() for f in asking]
                time.sleep(0.01)

        def wait_for_answers() -> None:
            before = list(counts)
            wait_until(lambda: all(map(int.__gt__, counts, before)))

        try:
            wait_for_answers()
            [host] = children(server.process.pid)
            known: set[int] = set()  # all workers there have been
            for number in range(4):  # all four, and then one more for each that was killed
                wait_until(
                    lambda: len(children(host)) == 4 and not known.issuperset(children(host))
                )
                known.update(children(host))
                assert len(known) == 4 + number
                os.kill(children(host)[0], signal.SIGKILL)
                wait_for_answers()
            os.kill(host, signal.SIGKILL)
            wait_for_answers()
            wait_until(lambda: [new for new in children(server.process.pid) if new != host] != [])
            wait_for_answers()
        finally:
            is_over.set()
    for future in asking:
        future.result()


def test_all_processes_end_with_the_server(en_de: Path, tmp_path: Path) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        with started(en_de, tmp_path, "--workers", "2") as server:
            [host] = children(server.process.pid)
            while len(processes := [host, *children(host)]) < 3:
                time.sleep(0.01)
            server.stop(number)
            end = time.monotonic() + 20
            while any(Path(f"/proc/{process}/cmdline").exists() for process in processes):
                assert time.monotonic() < end
                time.sleep(0.02)


def test_a_start_that_fails_ends_and_says_why(en_de: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(en_de, tmp_path / "run"))
    [weights] = run.glob("checkpoints/*/model.safetensors")
    weights.write_bytes(weights.read_bytes()[:-100])
    for workers in ("1", "2"):
        with starting(run, tmp_path, "--workers", workers) as server:
            assert server.process.wait(timeout=60) == 1
            *_, sentence = server.log.read_text().splitlines()
            assert sentence.startswith(f"nmt: {weights}: damaged")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_start(
    en_de: Path, tmp_path: Path, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`timeout` sends its signal twice."""
    folders = tmp_path / "folders"
    folders.mkdir()
    monkeypatch.setenv("TMPDIR", str(folders))
    with starting(en_de, tmp_path, "--workers", "2") as server:
        while not (host := children(server.process.pid)):
            time.sleep(0.01)
        server.process.send_signal(number)
        time.sleep(0.001)
        # the second signal may arrive when all is done and Python itself is ending
        code = server.stop(number)
        assert code in (128 + number, -number), server.log.read_text("utf-8")
        assert not Path(f"/proc/{host[0]}/cmdline").exists()
        assert not list(folders.glob("nmt-serve-*"))


def test_a_gpu_has_one_process() -> None:
    with pytest.raises(ConfigError, match="one process fills; leave it out"):
        ProcessCompute(ServerSettings(models=["run"], workers=2, device="cuda"))
