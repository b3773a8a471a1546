"""A small run of English-German, and a client of a server of it."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from nmt.serving.application import build_application
from nmt.serving.server import Server
from nmt.serving.settings import load_settings
from tests.serving.served_runs import write_run

Client = Callable[..., TestClient]


@pytest.fixture(scope="session")
def en_de(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose translations are noise, but always the same noise."""
    return write_run(tmp_path_factory.mktemp("served") / "en-de", "en", "de")


@contextmanager
def started(run: Path, **settings: Any) -> Iterator[TestClient]:
    """Start a server of a run, and yield a client of it."""
    server = Server.build(load_settings(None, {"models": [str(run)], **settings}))
    with TestClient(build_application(server), client=("10.1.2.3", 1000)) as client:
        yield client


@pytest.fixture
def serve(en_de: Path) -> Iterator[Client]:
    """Start servers of `en_de` with the settings given, and return a client of each."""
    with ExitStack() as stack:
        yield lambda **settings: stack.enter_context(started(en_de, **settings))


@pytest.fixture(scope="session")
def client(en_de: Path) -> Iterator[TestClient]:
    """A client of a server with the default settings."""
    with started(en_de) as client:
        yield client
