"""Models come from the Hub and go there: a server on the loopback address stands for it."""

import hashlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

import huggingface_hub
import pytest
from huggingface_hub import constants

from nmt.errors import ExchangeError
from nmt.exchange.hub import download_model, upload_model

COMMIT = "0123456789abcdef0123456789abcdef01234567"
FILES = {"config.json": b"{}", "model.safetensors": b"weights", "pytorch_model.bin": b"pickle"}


class Hub(BaseHTTPRequestHandler):
    """The few addresses that download and upload of a model ask for."""

    stored: dict[str, bytes]

    def log_message(self, *_: object) -> None:
        """Stay silent."""

    def answer(self, content: bytes, status: int = 200, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(content)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def as_json(self, value: object, status: int = 200) -> None:
        self.answer(json.dumps(value).encode(), status, Content_Type="application/json")

    def do_HEAD(self) -> None:  # noqa: N802 - the name that the library asks for
        self.do_GET()

    def do_GET(self) -> None:  # noqa: N802
        path = unquote(urlsplit(self.path).path)
        if "owner/absent" in path:
            self.answer(b"{}", 401, X_Error_Code="RepoNotFound")
        elif "/tree/" in path:
            entries = [
                {"type": "file", "path": name, "size": len(data), "oid": "0" * 40}
                for name, data in FILES.items()
            ]
            self.as_json(entries)
        elif path.startswith("/api/models/owner/model"):
            siblings = [{"rfilename": name} for name in FILES]
            self.as_json({"id": "owner/model", "sha": COMMIT, "siblings": siblings})
        elif "/resolve/" in path and (name := path.rsplit("/", 1)[1]) in FILES:
            etag = f'"{hashlib.sha1(FILES[name]).hexdigest()}"'
            self.answer(FILES[name], ETag=etag, X_Repo_Commit=COMMIT)
        else:
            self.answer(b"{}", 404, X_Error_Code="EntryNotFound")

    def do_POST(self) -> None:  # noqa: N802
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path.endswith("/api/repos/create"):
            self.as_json({"url": "https://huggingface.co/owner/mine", "name": "mine", "id": "1"})
        elif "/preupload/" in self.path:
            asked = json.loads(body)["files"]
            modes = [
                {"path": f["path"], "uploadMode": "regular", "shouldIgnore": False} for f in asked
            ]
            self.as_json({"files": modes})
        elif "/commit/" in self.path:
            for line in body.decode().splitlines():
                entry = json.loads(line)
                if entry["key"] == "file":
                    Hub.stored[entry["value"]["path"]] = entry["value"]["content"].encode()
            url = f"https://huggingface.co/owner/mine/commit/{COMMIT}"
            self.as_json({"commitUrl": url, "commitOid": COMMIT, "hookOutput": ""})
        else:
            self.as_json({})


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, bytes]]:
    """The server, as the Hub of the library; yields what is uploaded to it."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setattr(constants, "ENDPOINT", address)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    template = address + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setattr(huggingface_hub.utils, "get_token", lambda: "token")
    monkeypatch.setenv("HF_TOKEN", "hf_token")
    Hub.stored = {}
    yield Hub.stored
    server.shutdown()
    server.server_close()


def test_a_model_comes_without_its_pickle_where_it_has_safetensors(site: dict[str, bytes]) -> None:
    folder, commit = download_model("owner/model", None, list(FILES))
    assert commit == COMMIT
    found = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert found == {name: FILES[name] for name in ("config.json", "model.safetensors")}


def test_a_model_that_is_not_there_is_one_sentence(site: dict[str, bytes]) -> None:
    with pytest.raises(ExchangeError, match=r"owner/absent: cannot be downloaded: .* HF_TOKEN$"):
        download_model("owner/absent", None, list(FILES))


def test_an_exported_folder_is_uploaded(site: dict[str, bytes], tmp_path: Path) -> None:
    folder = tmp_path / "export"
    folder.mkdir()
    (folder / "README.md").write_text("card")
    assert upload_model(folder, "owner/mine").endswith("owner/mine")
    assert set(site) == {"README.md"}
