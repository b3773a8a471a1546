"""Mixed load on a server that is reloaded, and whose processes are killed: no request is lost.

`NMT_LOAD_MINUTES=60 pytest --slow -s tests/serving/test_load.py` runs for an hour, and prints what
was sent, what became of it, and the memory of the server. Without the variable it runs for one
minute, with ten reloads and two killed processes all the same.
"""

import contextlib
import http.client
import json
import os
import random
import shutil
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.serving.served_runs import write_weights
from tests.serving.server_processes import ServerProcess, started
from tests.serving.test_workers import children

SECONDS = 60 * float(os.environ.get("NMT_LOAD_MINUTES", "1"))
RELOAD_EVERY_S = min(60, SECONDS / 10)
KILL_EVERY_S = min(300, SECONDS / 3)
WORDS = ["a", "small", "dog", "runs", "after", "the", "red", "ball", "two", "children"]


class Load:
    """Clients of a server, and the number of requests of each kind by what became of them."""

    def __init__(self, server: ServerProcess) -> None:
        self.server = server
        self.counts: Counter[tuple[str, str]] = Counter()
        self.ends = threading.Event()

    def run(self, kind: str, ask: Callable[[random.Random], str]) -> threading.Thread:
        """Start a client that calls `ask` until the end; it returns what became of a request."""

        def repeat() -> None:
            draw = random.Random(kind)
            while not self.ends.wait(draw.expovariate(4)):
                try:
                    outcome = ask(draw)
                except (OSError, http.client.HTTPException) as error:
                    outcome = f"lost: {error!r}"
                self.counts[kind, outcome] += 1

        thread = threading.Thread(target=repeat)
        thread.start()
        return thread

    def post(self, path: str, body: bytes, kind: str = "application/json") -> tuple[int, bytes]:
        """Send a request over a connection of its own; return the status and body of its answer."""
        connection = self._connected()
        with contextlib.closing(connection):
            connection.request("POST", path, body, {"Content-Type": kind})
            response = connection.getresponse()
            return response.status, response.read()

    def _connected(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=60)

    def sentence(self, draw: random.Random) -> str:
        """Translate a sentence."""
        return self._translate(sentence(draw))

    def batch(self, draw: random.Random) -> str:
        """Translate a list of 40 texts of three sentences."""
        texts = [" ".join(sentence(draw) for _ in range(3)) for _ in range(40)]
        return self._translate(texts)

    def _translate(self, text: str | list[str]) -> str:
        body = json.dumps({"q": text, "source": "en", "target": "de"}).encode()
        status, answer = self.post("/translate", body)
        if status != 200:
            return str(status)
        found = json.loads(answer)["translatedText"]
        complete = len(found) == len(text) if isinstance(text, list) else bool(found)
        return "answered" if complete else "lost: an incomplete answer"

    def file(self, draw: random.Random) -> str:
        """Upload a file, and download its translation."""
        lines = "\n".join(sentence(draw) for _ in range(20))
        parts = {"source": "en", "target": "de"}
        form = "".join(
            f'--limit\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
            for name, value in parts.items()
        )
        form += '--limit\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\n'
        body = f"{form}{lines}\r\n--limit--\r\n".encode()
        status, answer = self.post("/translate_file", body, "multipart/form-data; boundary=limit")
        if status != 200:
            return str(status)
        path = "/" + json.loads(answer)["translatedFileUrl"].split("/", 3)[3]
        with contextlib.closing(self._connected()) as connection:
            connection.request("GET", path)
            response = connection.getresponse()
            translated = response.read().decode()
        complete = response.status == 200 and translated.count("\n") == lines.count("\n")
        return "answered" if complete else f"lost: a file with status {response.status}"

    def cancelled(self, draw: random.Random) -> str:
        """Send a request, and leave before it can be answered."""
        connection = self._connected()
        with contextlib.closing(connection):
            text = " ".join(sentence(draw) for _ in range(100))
            body = json.dumps({"q": text, "source": "en", "target": "de"})
            connection.request("POST", "/translate", body, {"Content-Type": "application/json"})
            time.sleep(draw.random() / 20)
        return "left"


def sentence(draw: random.Random) -> str:
    """Return a sentence of 3 to 15 words that has probably not been sent before."""
    words = draw.choices(WORDS, k=draw.randint(3, 15))
    return f"{' '.join(words)} {draw.randrange(10**6)} ."


@pytest.mark.slow
def test_no_request_is_lost_and_memory_stays(en_de: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(en_de, tmp_path / "run"))
    with started(run, tmp_path, "--workers", "2") as server:
        load = Load(server)
        clients = [load.run(f"sentence {i}", load.sentence) for i in range(4)]
        clients += [load.run("batch", load.batch), load.run("file", load.file)]
        clients += [load.run("cancelled", load.cancelled)]
        try:
            megabytes = list(disturb(server, run))
        finally:
            load.ends.set()
            for client in clients:
                client.join()
        reloads = len(server.events("reloaded"))
        assert server.translate("a dog")
        assert server.stop() == 128 + signal.SIGTERM
    summary = {f"{kind}: {outcome}": n for (kind, outcome), n in sorted(load.counts.items())}
    print(json.dumps({"minutes": SECONDS / 60, "reloads": reloads, **summary}, indent=1))
    print("MB of all processes:", [round(each) for each in megabytes])
    assert set(outcome for _, outcome in load.counts) <= {"answered", "left", "503"}
    assert reloads >= 5
    third = len(megabytes) // 3
    assert max(megabytes[-third:]) <= 1.1 * max(megabytes[third:-third])


def disturb(server: ServerProcess, run: Path) -> Iterator[float]:
    """Reload the model and kill processes for `SECONDS`; yield the server's memory in between."""
    start = time.monotonic()
    reloads, kills = 0, 0
    while (passed := time.monotonic() - start) < SECONDS:
        if passed > (reloads + 1) * RELOAD_EVERY_S:
            reloads += 1
            write_weights(run, 1 + reloads % 2)
            server.process.send_signal(signal.SIGHUP)
        if passed > (kills + 1) * KILL_EVERY_S:
            kills += 1
            [host] = children(server.process.pid)
            os.kill(children(host)[0], signal.SIGKILL)
        yield resident_megabytes(server.process.pid)
        time.sleep(RELOAD_EVERY_S / 6)


def resident_megabytes(process: int) -> float:
    """Return the memory of a process and its descendants that no other process shares, in MB."""
    total = 0.0
    with contextlib.suppress(OSError):
        text = Path(f"/proc/{process}/smaps_rollup").read_text()
        total = sum(int(line.split()[1]) for line in text.splitlines() if line[:4] == "Pss:") / 1024
    return total + sum(map(resident_megabytes, children(process)))
