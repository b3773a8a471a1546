"""HTML comes back with its texts translated, and protected parts come back as they were."""

from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from nmt.translation.markup import texts_translator, translate_html
from nmt.translation.text_translator import load_translator
from tests.serving.conftest import Client

PAGE = """<!DOCTYPE html>
<title>A page</title><script>var a = "dog";</script>
<p>A <b>small</b> dog.<br>Two sentences. <a href="/x?a=1&amp;b=2">Here</a> is one.</p>
<p translate="no">This stays.</p><img alt="a dog" src="d.png">
"""
ASKED = {"source": "en", "target": "de", "format": "html"}


def test_a_page_is_translated_as_the_command_does(client: TestClient, en_de: Path) -> None:
    expected = translate_html(
        PAGE, texts_translator(load_translator([str(en_de)], "best", "cpu", "auto", {}))
    )
    response = client.post("/translate", json={"q": [PAGE, "<i>dog</i>"], **ASKED})
    assert response.status_code == 200, response.text
    page, small = response.json()["translatedText"]
    assert page == expected
    assert (small.count("<i>"), small.count("</i>")) == (1, 1)
    found = client.post("/v1/translate", json={"text": PAGE, **ASKED}).json()
    assert found["translations"] == [{"text": expected}]


def test_a_page_whose_language_is_detected_by_what_a_reader_sees(client: TestClient) -> None:
    page = "<script>das ist ein Satz, der nicht zählt</script><p>This is about two dogs.</p>"
    answer = client.post("/translate", json={"q": page, **ASKED, "source": "auto"}).json()
    assert answer["detectedLanguage"]["language"] == "en"


def test_a_file_of_html(client: TestClient) -> None:
    form = {"source": "en", "target": "de"}
    stored = client.post("/translate_file", files={"file": ("a.html", PAGE)}, data=form).json()
    response = client.get(stored["translatedFileUrl"])
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    assert response.headers["content-disposition"].startswith("attachment")
    assert (
        response.text
        == client.post("/translate", json={"q": PAGE, **ASKED}).json()["translatedText"]
    )


def test_protected_parts_arrive_as_they_were(serve: Client) -> None:
    client = serve()
    text = "See https://example.org/a?b=c or ask {name}.\n\n  Order ACME-17 now!  "
    body: dict[str, Any] = {"text": text, "source": "en", "target": "de"}
    body["protect"] = [r"ACME-\d+"]
    found = client.post("/v1/translate", json=body).json()["translations"][0]["text"]
    for part in ("https://example.org/a?b=c", "{name}", "ACME-17"):
        assert found.count(part) == 1
    first, blank, last = found.split("\n")
    assert blank == "" and last.startswith("  ") and last.endswith("  ") and "ACME-17" in last
    html = client.post("/v1/translate", json={**body, "text": f"<b>{text}</b>", "format": "html"})
    assert html.json()["translations"][0]["text"].count("ACME-17") == 1


@pytest.mark.parametrize(
    "more", [{"n_best": 2}, {"scores": True}, {"alignments": True}, {"stream": True}]
)
def test_what_html_does_not_have_is_refused(client: TestClient, more: dict[str, Any]) -> None:
    response = client.post("/v1/translate", json={"text": "<b>a</b>", **ASKED, **more})
    assert response.status_code == 400
    assert "format html has one translation and goes without" in response.json()["error"]


@pytest.mark.parametrize("page", ["", "<", "<b>" * 3000, "</b></i>", "<!--", "&#0; &bad; <p"])
def test_broken_html_is_translated_as_far_as_it_goes(client: TestClient, page: str) -> None:
    response = client.post("/translate", json={"q": page + "dog", **ASKED})
    assert response.status_code == 200, response.text
