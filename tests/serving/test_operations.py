"""What operators see: lines of JSON, metrics, readiness."""

import json
import logging
import sys

import pytest
from starlette.testclient import TestClient

from nmt.errors import CheckpointError, DataError
from nmt.serving.operations import JsonFormatter, Operations
from nmt.serving.translate_request import TranslationService
from tests.serving.conftest import Client


def test_a_line_of_the_log_is_json_with_the_traceback_of_an_error() -> None:
    try:
        raise ValueError("a\nproblem")
    except ValueError:
        record = logging.LogRecord("a", logging.ERROR, "f", 1, "error", (), sys.exc_info())
    record.values = {"model": "en-de"}
    line = JsonFormatter().format(record)
    assert "\n" not in line
    values = json.loads(line)
    assert (values["level"], values["event"], values["model"]) == ("error", "error", "en-de")
    assert "ValueError: a\nproblem" in values["traceback"]
    assert values["time"].endswith("Z")


def test_clients_are_told_of_their_own_mistakes_only() -> None:
    operations = Operations()
    told = operations.explain(DataError("the term is blank"))
    assert (told.status, str(told)) == (400, "the term is blank")
    told = operations.explain(CheckpointError("/secret/path: damaged"))
    assert (told.status, "secret" in str(told)) == (503, False)
    told = operations.explain(OSError("/secret/path"))
    assert (told.status, "secret" in str(told)) == (500, False)
    for shortage in (MemoryError(), RuntimeError("can't start new thread")):
        told = operations.explain(shortage)
        assert (told.status, "memory" in str(told)) == (503, True)


@pytest.mark.parametrize("error", [OSError("a mistake"), CheckpointError("damaged")])
def test_an_error_is_logged_once(
    client: TestClient,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: Exception,
) -> None:
    async def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(TranslationService, "translate", fail)
    answer = client.post("/translate", json={"q": "dog", "source": "en", "target": "de"})
    assert answer.status_code in (500, 503)
    assert [record.exc_info[1] for record in caplog.records if record.exc_info] == [error]


def test_metrics_count_requests_segments_and_batches(serve: Client) -> None:
    client: TestClient = serve()
    body = {"q": "One dog. Two dogs.", "source": "en", "target": "de"}
    client.post("/translate", json=body)
    client.post("/translate", json=body)
    client.post("/none")
    text = client.get("/metrics").text
    for line in (
        'nmt_requests_total{path="/translate",status="200"} 2.0',
        'nmt_requests_total{path="other",status="404"} 1.0',
        'nmt_segments_total{cached="no",model="en-de"} 2.0',
        'nmt_segments_total{cached="yes",model="en-de"} 2.0',
        'nmt_translation_seconds_count{model="en-de"} 2.0',
        "nmt_queue_segments 0.0",
    ):
        assert line in text, line
    assert 'nmt_batch_segments_sum{model="en-de"} 2.0' in text


def test_readiness_follows_the_life_of_the_server(serve: Client) -> None:
    client = serve()
    assert client.get("/healthz").json() == {"status": "ok"}
    assert client.get("/readyz").json() == {"status": "ready"}
