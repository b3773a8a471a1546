"""A folder that a server of this machine hands out, in the place of the sites of corpora."""

import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from nmt.data.corpora import download

Site = tuple[Path, str, list[str]]
"""a folder, its address, and the path of each request"""


class _Handler(SimpleHTTPRequestHandler):
    def __init__(self, *arguments: Any, asked: list[str], **named: Any) -> None:
        self.asked = asked
        super().__init__(*arguments, **named)

    def log_message(self, *arguments: Any) -> None:
        self.asked.append(self.path)


@pytest.fixture
def site(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Site]:
    """An empty site."""
    monkeypatch.setattr(download, "_PAUSE_S", 0.0)
    monkeypatch.setenv("no_proxy", "*")
    folder, asked = tmp_path_factory.mktemp("site"), list[str]()
    handler = partial(_Handler, directory=str(folder), asked=asked)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        yield folder, f"http://127.0.0.1:{running.server_port}", asked
        running.shutdown()
        thread.join()
