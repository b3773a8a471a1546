"""Models are read from and written to a Hub on this machine, and refusals are one sentence."""

import base64
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from nmt.errors import ExchangeError
from nmt.exchange.hub import download_model, upload_model

constants = pytest.importorskip("huggingface_hub.constants")
NAME, COMMIT = "owner/opus-mt-en-de", "0123456789" * 4


class Hub(BaseHTTPRequestHandler):
    """The few endpoints that a download and an upload of small files use."""

    protocol_version = "HTTP/1.1"
    files: dict[str, bytes]
    refusal: tuple[int, str] | None
    asked: list[str]

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        self.asked.append(path)
        if self.refusal:
            self.answer(self.refusal[0], {"error": "no"}, {"X-Error-Code": self.refusal[1]})
        elif path.startswith(f"/api/models/{NAME}/tree/"):
            self.answer(
                200,
                [
                    {"type": "file", "path": n, "size": len(b), "oid": n}
                    for n, b in self.files.items()
                ],
            )
        elif path.startswith("/api/models/"):
            siblings = [{"rfilename": name} for name in self.files]
            self.answer(200, {"id": NAME, "sha": COMMIT, "siblings": siblings})
        elif (name := path.rpartition("/")[2]) in self.files:
            self.answer(200, self.files[name], {"ETag": f'"{name}"', "X-Repo-Commit": COMMIT})
        else:
            self.answer(404, {}, {"X-Error-Code": "EntryNotFound"})

    do_HEAD = do_GET  # noqa: N815 - the name that the server calls

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.asked.append(self.path)
        url = f"http://{self.headers['Host']}/{NAME}"
        if self.refusal:
            self.answer(self.refusal[0], {"error": "no"}, {"X-Error-Code": self.refusal[1]})
        elif "/preupload/" in self.path:
            names = [file["path"] for file in json.loads(body)["files"]]
            modes = [{"path": n, "uploadMode": "regular", "shouldIgnore": False} for n in names]
            self.answer(200, {"files": modes})
        elif "/commit/" in self.path:
            for line in map(json.loads, body.splitlines()):
                if line["key"] == "file":
                    value = line["value"]
                    self.files[value["path"]] = base64.b64decode(value["content"])
            self.answer(200, {"commitUrl": f"{url}/commit/{COMMIT}", "commitOid": COMMIT})
        else:
            self.answer(200, {"url": url, "name": NAME, "errors": [], "warnings": []})

    def answer(self, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in {**(headers or {}), "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Stay silent."""


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Hub]]:
    """A Hub without files, whose cache is a folder of the test."""

    class Own(Hub):
        files: dict[str, bytes] = {}  # noqa: RUF012 - a class of its own for each test
        refusal = None
        asked: list[str] = []  # noqa: RUF012

    server = ThreadingHTTPServer(("127.0.0.1", 0), Own)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setattr(constants, "ENDPOINT", address)
    files = f"{address}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", files)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_TOKEN", "hf_test")
    yield Own
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("weights", ["model.safetensors", "model-00001-of-00001.safetensors"])
def test_a_download_has_the_wanted_files_and_names_their_commit(
    hub: type[Hub], weights: str
) -> None:
    hub.files.update({"config.json": b"{}", weights: b"w", "pytorch_model.bin": b"p"})
    hub.files["rust_model.ot"] = b"unwanted"
    wanted = ["config.json", "model.safetensors", "model-*.safetensors", "pytorch_model.bin"]
    folder, commit = download_model(NAME, None, wanted)
    assert commit == COMMIT
    found = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert found == {"config.json": b"{}", weights: b"w"}


def test_a_pickle_is_downloaded_beside_safetensors_of_other_names(hub: type[Hub]) -> None:
    hub.files.update({"model_quantized.safetensors": b"q", "pytorch_model.bin": b"p"})
    folder, _ = download_model(NAME, None, ["model-*.safetensors", "pytorch_model.bin"])
    assert [path.name for path in folder.iterdir()] == ["pytorch_model.bin"]


def test_an_upload_brings_every_file_of_the_folder(hub: type[Hub], tmp_path: Path) -> None:
    folder = tmp_path / "export"
    folder.mkdir()
    files = {"config.json": b"{}", "README.md": b"# A model\n"}
    for name, content in files.items():
        (folder / name).write_bytes(content)
    assert upload_model(folder, NAME).endswith(NAME)
    assert {name: hub.files[name] for name in files} == files


@pytest.mark.parametrize(
    ("refusal", "message"),
    [
        ((404, "RepoNotFound"), "the Hub has no such model, or it is private: check the name"),
        ((403, "GatedRepo"), "its owner must allow you to read it: ask on its page"),
        ((404, "RevisionNotFound"), "it has no such `revision`"),
    ],
)
def test_a_refusal_of_the_hub_is_one_sentence(
    hub: type[Hub], refusal: tuple[int, str], message: str
) -> None:
    hub.refusal = refusal
    with pytest.raises(ExchangeError) as caught:
        download_model(NAME, "v9", ["config.json"])
    assert str(caught.value).startswith(f"{NAME}: cannot be downloaded: {message}")
    assert "\n" not in str(caught.value)


def test_offline_a_model_that_the_cache_lacks_is_one_sentence(
    hub: type[Hub], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(ExchangeError, match="it is not in the cache"):
        download_model(NAME, None, ["config.json"])
    assert not hub.asked


def test_an_upload_that_is_not_allowed_is_one_sentence(hub: type[Hub], tmp_path: Path) -> None:
    hub.refusal = (403, "")
    with pytest.raises(ExchangeError, match="cannot be uploaded; the export itself is complete"):
        upload_model(tmp_path, NAME)
