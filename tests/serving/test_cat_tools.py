"""What programs for translators send, as their public sources write it, and what they read."""

import html
import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from starlette.testclient import TestClient

from nmt.serving.access import add_key
from tests.serving.conftest import Client

JSON = {"Content-Type": "application/json"}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
ASKED = {"source": "en", "target": "de"}


def send(client: TestClient, body: dict[str, Any], headers: dict[str, str]) -> Any:
    is_json = headers["Content-Type"] == "application/json"
    content = json.dumps(body) if is_json else urlencode(body, doseq=True)
    answer = client.post("/translate", content=content, headers=headers)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/json"
    return answer.json()


@pytest.mark.parametrize("headers", [JSON, FORM])
@pytest.mark.parametrize(
    "extra",
    [
        {},  # the plugin of OmegaT for LibreTranslate
        {"format": "text"},
        {"format": "text", "api_key": ""},  # an empty field of a dialogue
        {"format": "text", "alternatives": 0},
        {"secret": "", "format": "text"},  # libretranslate.com's own page
    ],
)
def test_one_segment_is_answered_by_a_string(
    client: TestClient, headers: dict[str, str], extra: dict[str, Any]
) -> None:
    answer = send(client, {"q": "One dog.", **ASKED, **extra}, headers)
    assert isinstance(answer["translatedText"], str)


@pytest.mark.parametrize("headers", [JSON, FORM])
def test_several_segments_are_answered_in_their_order(
    client: TestClient, headers: dict[str, str]
) -> None:
    texts = ["One dog.", "", "Two cats.", "One dog."]
    if headers == FORM:
        texts.remove("")  # an empty value of a form counts as missing
    answer = send(client, {"q": texts, **ASKED, "format": "text"}, headers)["translatedText"]
    assert len(answer) == len(texts)
    assert answer[0] == answer[-1]
    assert answer[0] == send(client, {"q": texts[0], **ASKED}, JSON)["translatedText"]


@pytest.mark.parametrize(
    "segment",
    [
        "One <g1>dog</g1> runs.",  # OmegaT
        '<u id="1">One</u> <br id="p2"/>dog.',  # Okapi's codes as HTML
        "<f0>One <f1>dog</f1></f0><x2/>",
    ],
)
def test_inline_tags_of_segments_come_back_once(client: TestClient, segment: str) -> None:
    body = {"q": segment, **ASKED, "format": "html"}
    found = send(client, body, JSON)["translatedText"]
    assert sorted(re.findall("<[^>]+>", found)) == sorted(re.findall("<[^>]+>", segment))
    assert html.unescape(re.sub("<[^>]+>", "", found)).strip()


@pytest.mark.parametrize("codes", [("EN", "DE"), ("en-US", "de-DE"), ("en_GB", "de_AT")])
def test_locales_of_projects_are_understood(client: TestClient, codes: tuple[str, str]) -> None:
    source, target = codes
    found = send(client, {"q": "One dog.", "source": source, "target": target}, JSON)
    assert found == send(client, {"q": "One dog.", **ASKED}, JSON)


def test_a_wrong_key_is_an_error_that_is_shown(serve: Client, tmp_path: Path) -> None:
    keys = tmp_path / "keys.yaml"
    key = add_key(keys, "anna")
    client = serve(keys=str(keys))
    body = {"q": "One dog.", **ASKED, "format": "text", "api_key": key}
    assert isinstance(send(client, body, JSON)["translatedText"], str)
    answer = client.post("/translate", json={**body, "api_key": "wrong"})
    assert (answer.status_code, list(answer.json())) == (403, ["error"])
