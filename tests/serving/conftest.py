"""A small run of English-German, and a client of a server of it."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
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


@pytest.fixture
def serve(en_de: Path) -> Iterator[Client]:
    """Start a server with these settings (by default of `en_de`), and return a client of it."""
    with ExitStack() as stack:

        def start(**settings: Any) -> TestClient:
            server = Server.build(load_settings(None, {"models": [str(en_de)], **settings}))
            client = TestClient(build_application(server), client=("10.1.2.3", 1000))
            return stack.enter_context(client)

        yield start


@pytest.fixture
def client(serve: Client) -> TestClient:
    """A client of a server with the default settings."""
    return serve()
