"""Whatever a client sends, the answer is a translation or one sentence; never a status of 500."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from nmt.serving.uploads import file_suffixes

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(["en", "de", "auto", "text", "html", "a dog", "<b>a</b> {x}", "\ud800", "\0"])
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)
KEYS = {
    "/translate": ["q", "source", "target", "format", "alternatives", "api_key"],
    "/detect": ["q"],
    "/v1/translate": [
        *("text", "source", "target", "format", "n_best", "scores", "alignments", "terms"),
        *("forbidden", "prefix", "protect", "stream"),
    ],
}
GOOD = {"q": "a dog", "text": "a dog", "source": "en", "target": "de"}
SETTINGS = settings(
    deadline=None, max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def check(client: TestClient, path: str, body: bytes, content_type: str) -> None:
    response = client.post(path, content=body, headers={"Content-Type": content_type})
    assert response.status_code < 500, response.text
    if response.status_code >= 400:
        assert list(response.json()) == ["error"]


@pytest.mark.parametrize("path", KEYS)
@SETTINGS
@given(data=st.data())
def test_any_json(client: TestClient, path: str, data: st.DataObject) -> None:
    keys = data.draw(st.lists(st.sampled_from(KEYS[path]), unique=True))
    body: dict[str, Any] = {key: value for key, value in GOOD.items() if key in KEYS[path]}
    body |= {key: data.draw(VALUES) for key in keys}
    check(client, path, json.dumps(body).encode(), "application/json")


@pytest.mark.parametrize("path", [*KEYS, "/translate_file"])
@SETTINGS
@given(
    body=st.binary(max_size=200),
    content_type=st.sampled_from(
        [
            *("application/json", "text/plain", "application/x-www-form-urlencoded"),
            *("multipart/form-data; boundary=x", "multipart/form-data", "", "a/b; charset=\x00"),
        ]
    ),
)
def test_any_bytes(client: TestClient, path: str, body: bytes, content_type: str) -> None:
    check(client, path, body, content_type)


@SETTINGS
@given(
    suffix=st.sampled_from([*file_suffixes(), ".SRT"]),
    content=st.binary(max_size=200)
    | st.text(alphabet="<>/&;!bip='\"{}%$0123:,->\n\r\t \ufeffé", max_size=300).map(str.encode)
    | st.text(max_size=100).map(str.encode),
    source=st.sampled_from(["en", "auto"]),
)
def test_any_file(client: TestClient, suffix: str, content: bytes, source: str) -> None:
    files = {"file": (f"a{suffix}", content)}
    response = client.post("/translate_file", files=files, data={"source": source, "target": "de"})
    assert response.status_code in (200, 400), response.text
    if response.status_code == 200:
        path = response.json()["translatedFileUrl"].partition("testserver")[2]
        assert client.get(path).status_code == 200


@pytest.mark.parametrize("size", [9_000, pytest.param(300_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("mark", ["<b>", "</b>", "<", "<p a=", "&lt;"])
def test_hostile_markup(client: TestClient, mark: str, size: int) -> None:
    """It may be longer than other texts, but it is read in a thread, in a time that is bounded."""
    page = mark * (size // len(mark)) + "<i>x"
    body = {"q": page[:49_000], "source": "en", "target": "de", "format": "html"}
    check(client, "/translate", json.dumps(body).encode(), "application/json")
    files = {"file": ("a.html", page.encode())}
    response = client.post("/translate_file", files=files, data={"source": "en", "target": "de"})
    assert response.status_code == 200, response.text
