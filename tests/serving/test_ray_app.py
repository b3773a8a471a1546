"""The application on Ray Serve answers as `nmt serve` does, also when replicas die or are ended."""

import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from nmt.errors import ConfigError
from nmt.serving.access import add_key
from tests.serving.server_processes import ask

if not (find_spec("ray") and find_spec("ray.serve") and find_spec("grpc")):
    pytest.skip("needs the extra nmt[ray]", allow_module_level=True)

pytestmark = pytest.mark.filterwarnings("ignore")  # Ray uses what its libraries have deprecated
TEXTS = ["a small dog.", "Two sentences. Here is the second!", "😀", "dog " * 30]
PAIR = {"source": "en", "target": "de"}
BOOK = "A dog sleeps here. " * 400
"""a text that takes about a second"""


class RayServe:
    """Ray Serve on a cluster of this machine, with one application."""

    def __init__(self, port: int, run: Path, folder: Path) -> None:
        self._port, self._run, self._folder = port, run, folder

    def deploy(self, **arguments: Any) -> None:
        """Deploy the application, or change that which is deployed, and wait until it is ready."""
        from ray import serve

        from nmt.serving.ray_app import build_app

        given = {"model": str(self._run), "files": str(self._folder), **arguments}
        serve.run(build_app({name: str(value) for name, value in given.items()}), name="tested")

    def ask(self, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        """Return the status and the JSON of an answer, or the text of one that Ray wrote."""
        return ask(f"http://127.0.0.1:{self._port}{path}", body, headers)

    def replicas(self) -> list[int]:
        """Return the numbers of the processes that are replicas."""
        found = []
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                if path.read_bytes().startswith(b"ray::ServeReplica:tested:"):
                    found.append(int(path.parent.name))
            except OSError:  # it has ended meanwhile
                continue
        return found


@pytest.fixture(scope="module")
def ray_serve(
    en_de: Path, project: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RayServe]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(project))
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        import ray
        from ray import serve

        ray.init("local", num_cpus=4, include_dashboard=False, log_to_driver=False)
        serve.start(http_options={"host": "127.0.0.1", "port": port})
        yield RayServe(port, en_de, tmp_path_factory.mktemp("files"))
        serve.shutdown()
        ray.shutdown()


def test_answers_are_those_of_the_server(ray_serve: RayServe, client: TestClient) -> None:
    ray_serve.deploy(replicas=2)
    assert len(ray_serve.replicas()) == 2
    asked: list[tuple[str, Any]] = [
        ("/translate", {"q": TEXTS, **PAIR, "alternatives": 2}),
        ("/translate", {"q": "<b>a dog</b>", **PAIR, "format": "html"}),
        ("/translate", {"q": "a dog", "source": "en", "target": "xx"}),
        ("/v1/translate", {"text": TEXTS, **PAIR, "scores": True, "alignments": True}),
        ("/detect", {"q": "This is a sentence about dogs."}),
        ("/languages", None),
        ("/openapi.json", None),
        ("/frontend/settings", None),
        ("/none", None),
    ]
    for path, body in asked:
        expected = client.get(path) if body is None else client.post(path, json=body)
        for _ in range(4):  # some by each replica
            assert ray_serve.ask(path, body) == (expected.status_code, expected.json())


def test_the_settings_and_the_keys_are_those_of_the_files(
    ray_serve: RayServe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # replicas have another directory
    key = add_key(Path("keys.yaml"), "anna")
    Path("serve.yaml").write_text("models: [none]\nkeys: keys.yaml\ntext_characters: 20\n")
    ray_serve.deploy(config="serve.yaml", requests_per_minute=2)
    body = {"q": "a dog", **PAIR}
    assert ray_serve.ask("/translate", body)[0] == 403
    assert ray_serve.ask("/translate", {**body, "q": "a" * 21})[0] == 400
    statuses = [ray_serve.ask("/translate", {**body, "api_key": key})[0] for _ in range(3)]
    assert statuses == [200, 200, 429]


def test_after_a_replica_was_killed_requests_are_answered(ray_serve: RayServe) -> None:
    ray_serve.deploy(replicas=2, cache_segments=0)
    expected = ray_serve.ask("/translate", {"q": BOOK, **PAIR})
    answers: list[tuple[int, Any]] = []
    ends = threading.Event()

    def ask() -> None:
        while not ends.is_set():
            answers.append(ray_serve.ask("/translate", {"q": BOOK, **PAIR}))

    with ThreadPoolExecutor(4) as clients:
        asking = [clients.submit(ask) for _ in range(4)]
        wait_until(lambda: len(answers) >= 4)
        killed = ray_serve.replicas()[0]
        os.kill(killed, signal.SIGKILL)
        wait_until(lambda: len(set(ray_serve.replicas()) - {killed}) == 2)
        count = len(answers)
        wait_until(lambda: len(answers) >= count + 12)
        ends.set()
        for each in asking:
            each.result()
    assert answers[-4:] == 4 * [expected]
    refused = [status for status, _ in answers if status >= 500]
    assert len(refused) <= 4 * 3  # those that it had, or was given before it was known to be dead
    assert all(answer == expected for answer in answers if answer[0] < 500)


def test_a_replica_that_is_ended_answers_what_it_has(ray_serve: RayServe) -> None:
    ray_serve.deploy(replicas=2, cache_segments=0)
    with ThreadPoolExecutor(8) as clients:
        asked = [clients.submit(ray_serve.ask, "/translate", {"q": BOOK, **PAIR}) for _ in range(8)]
        time.sleep(0.5)
        assert not all(each.done() for each in asked)
        ray_serve.deploy(replicas=1, cache_segments=0)
        statuses = [each.result()[0] for each in asked]
    assert statuses == 8 * [200]
    wait_until(lambda: len(ray_serve.replicas()) == 1)


@pytest.mark.slow
def test_ray_starts_another_replica_under_load(ray_serve: RayServe) -> None:
    ray_serve.deploy()
    wait_until(lambda: len(ray_serve.replicas()) == 1)
    ray_serve.deploy(max_replicas=2, requests_per_replica=2, cache_segments=0)
    with ThreadPoolExecutor(8) as clients:
        assert len(ray_serve.replicas()) == 1
        while len(ray_serve.replicas()) < 2:  # Ray waits for half a minute
            bodies = 8 * [{"q": BOOK, **PAIR}]
            answers = clients.map(lambda body: ray_serve.ask("/translate", body), bodies)
            assert [status for status, _ in answers] == 8 * [200]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"model": "run", "replica": "2"}, "unknown key 'replica'"),
        ({"model": "run", "replicas": "0"}, "'replicas': input should be greater than"),
        ({"model": "run", "replicas": "2"}, "name a folder that all of them share: files=DIR"),
        ({"model": "run", "max_replicas": "2"}, "name a folder that all of them share"),
        ({"config": "none.yaml"}, "none.yaml"),
        ({}, "'models' is missing"),
    ],
)
def test_a_mistake_in_an_argument_is_named(arguments: dict[str, str], message: str) -> None:
    from nmt.serving.ray_app import build_app

    with pytest.raises(ConfigError, match=message):
        build_app(arguments)


def wait_until(is_true: Callable[[], bool], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < end
        time.sleep(0.05)
