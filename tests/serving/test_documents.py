"""Documents that are sent, asked for and fetched: by their client alone, from any server."""

import asyncio
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from nmt.serving.access import add_key
from nmt.serving.document_jobs import DocumentJobs
from nmt.serving.translate_request import TranslationService
from tests.serving.conftest import Client
from tests.serving.test_uploads import DOCUMENTS, WORD, upload

PAIR = {"source": "en", "target": "de"}
SECONDS = 60.0


def send(client: TestClient, name: str, content: bytes, **body: Any) -> Any:
    headers = body.pop("headers", None)
    files = {"file": (name, content)}
    return client.post("/v1/documents", files=files, data={**PAIR, **body}, headers=headers)


def opened(answer: Any) -> tuple[str, dict[str, str]]:
    """Return the path of a document, and the header with its key."""
    assert answer.status_code == 200, answer.text
    body = answer.json()
    return f"/v1/documents/{body['document_id']}", {"X-Document-Key": body["document_key"]}


def finished(client: TestClient, path: str, headers: dict[str, str]) -> Any:
    """Return the status of a document once it is done or an error."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        status = client.get(path, headers=headers).json()
        assert status["status"] in ("queued", "translating", "done", "error")
        if status["status"] in ("done", "error"):
            return status
        time.sleep(0.05)
    raise AssertionError(status)


@pytest.fixture
def stuck(monkeypatch: pytest.MonkeyPatch) -> None:
    """No document is ever finished."""

    async def wait(self: TranslationService, *_: object) -> None:
        await asyncio.sleep(3600)

    monkeypatch.setattr(TranslationService, "translate_document", wait)


@pytest.mark.parametrize("name", [*DOCUMENTS, "größe 日.txt"])
def test_a_document_is_what_translate_file_gives(
    client: TestClient, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")  # a TMX file has a date
    content = DOCUMENTS.get(name, b"One dog. Two cats.")
    path, headers = opened(send(client, name, content))
    status = finished(client, path, headers)
    assert status["status"] == "done" and status["share"] == 1.0, status
    assert status["billed_characters"] > 0 and "key" not in status
    found = client.get(f"{path}/result", headers=headers)
    expected = client.get(upload(client, name, content).json()["translatedFileUrl"])
    assert found.headers["content-type"] == expected.headers["content-type"]
    assert found.headers["content-disposition"] == expected.headers["content-disposition"]
    if not content.startswith(b"PK"):  # which has times
        assert found.content == expected.content
    assert client.delete(path, headers=headers).status_code == 204
    for gone in (path, f"{path}/result"):
        assert client.get(gone, headers=headers).status_code == 404


def test_the_key_may_stand_in_the_body_as_in_deepl(client: TestClient) -> None:
    path, headers = opened(send(client, "a.docx", WORD))
    finished(client, path, headers)
    body = {"document_key": headers["X-Document-Key"]}
    assert client.post(path, json=body).json()["status"] == "done"
    assert client.post(path, data=body).json()["document_id"] == path.rpartition("/")[2]
    assert client.post(f"{path}/result", json=body).content.startswith(b"PK")


def test_nobody_else_sees_a_document(serve: Client, tmp_path: Path) -> None:
    keys = tmp_path / "keys.yaml"
    anna, bert = ({"Authorization": f"Bearer {add_key(keys, name)}"} for name in ("anna", "bert"))
    client = serve(keys=str(keys), files=str(tmp_path / "files"))
    assert send(client, "a.docx", WORD).status_code == 403
    path, own = opened(send(client, "a.docx", WORD, headers=anna))
    assert finished(client, path, anna | own)["status"] == "done"
    other, of_bert = opened(send(client, "b.docx", WORD, headers=bert))
    for method, address in (("GET", path), ("GET", f"{path}/result"), ("DELETE", path)):
        for headers in (own, bert | own, anna | of_bert, anna | {"X-Document-Key": "x"}):
            answer = client.request(method, address, headers=headers)
            assert answer.status_code == (403 if headers == own else 404)
            assert list(answer.json()) == ["error"]
    answer = client.get(path, headers=anna)
    assert (answer.status_code, answer.json()["error"]) == (
        400,
        "Invalid request: missing document_key parameter",
    )
    finished(client, other, bert | of_bert)
    for stored in (tmp_path / "files").iterdir():
        assert client.get(f"/download_file/{stored.name}").status_code == 404
        assert own["X-Document-Key"].encode() not in stored.read_bytes()


def test_any_server_of_a_folder_knows_a_document(serve: Client, tmp_path: Path) -> None:
    one, other = serve(files=str(tmp_path)), serve(files=str(tmp_path))
    path, headers = opened(send(one, "a.docx", WORD))
    assert finished(other, path, headers)["status"] == "done"
    assert other.get(f"{path}/result", headers=headers).content.startswith(b"PK")
    assert other.delete(path, headers=headers).status_code == 204
    assert one.get(path, headers=headers).status_code == 404
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("stuck")
def test_a_document_of_a_server_that_ends_is_an_error(
    serve: Client, en_de: Path, tmp_path: Path
) -> None:
    from tests.serving.conftest import started

    with started(en_de, files=str(tmp_path)) as client:
        path, headers = opened(send(client, "a.docx", WORD))
        other, others = opened(send(client, "b.docx", WORD))
        assert client.get(path, headers=headers).json()["status"] in ("queued", "translating")
        assert client.get(f"{path}/result", headers=headers).status_code == 409
        assert client.delete(other, headers=others).status_code == 204
    later = serve(files=str(tmp_path))
    status = later.get(path, headers=headers).json()
    message = "the server that translated this document has ended; send the document again"
    assert (status["status"], status["error_message"]) == ("error", message)
    [file] = tmp_path.glob("*")
    # as after a power cut, when nobody has written that
    file.write_text(json.dumps({**json.loads(file.read_text()), "status": "translating"}))
    assert later.get(path, headers=headers).json()["status"] == "translating"
    old = time.time() - 100
    os.utime(file, (old, old))
    assert later.get(path, headers=headers).json()["error_message"] == message


@pytest.mark.usefixtures("stuck")
def test_as_many_documents_wait_as_the_settings_allow(serve: Client) -> None:
    client = serve(documents=2)
    waiting = [opened(send(client, "a.docx", WORD)) for _ in range(2)]
    answer = send(client, "a.docx", WORD)
    assert answer.status_code == 503 and "too many documents" in answer.json()["error"]
    path, headers = waiting[0]
    assert client.delete(path, headers=headers).status_code == 204
    assert send(client, "a.docx", WORD).status_code == 200


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ({"target": "xx"}, 400, "xx is not supported as target of en"),
        ({"format": "pdf3"}, 400, "files of this format are not translated; text, xliff"),
        ({"terms": "["}, 400, "Invalid request: terms is no JSON"),
        ({"terms": '[{"source": "dog"}]'}, 400, "Invalid request: missing terms.0.target"),
        ({"protect": '["("]'}, 400, "Invalid request"),
        ({"other": "1"}, 400, "Invalid request: other"),
        ({"source": ""}, 400, "Invalid request: missing source parameter"),
        ({"format": "text"}, 400, "the file"),
        ({"column": "a"}, 400, "`column` is for csv, tsv, and not for office; leave it out"),
    ],
)
def test_a_mistake_is_told_at_once(
    client: TestClient, body: dict[str, str], status: int, message: str
) -> None:
    answer = send(client, "a.docx", WORD, **body)
    assert answer.status_code == status, answer.text
    assert message in answer.json()["error"]


def test_terms_and_limits_hold_for_documents(serve: Client) -> None:
    client = serve(characters_per_day=10)
    terms = json.dumps([{"source": "dog", "target": "Hund"}])
    path, headers = opened(send(client, "a.docx", WORD, terms=terms, protect="false"))
    assert finished(client, path, headers)["billed_characters"] == 8
    assert send(client, "a.docx", WORD).status_code == 429


def test_an_error_of_the_translation_is_the_status(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(self: DocumentJobs, *_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(DocumentJobs, "_translate", fail)
    path, headers = opened(send(client, "a.docx", WORD))
    status = finished(client, path, headers)
    assert status["error_message"].startswith("the memory of the server does not suffice")
