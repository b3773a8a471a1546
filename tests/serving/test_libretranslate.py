"""LibreTranslate's clients find what they know: paths, shapes and errors."""

import re
import urllib.error
from html import escape
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from nmt import load
from nmt.serving.access import add_key
from nmt.translation.documents.tokens import UNWRITABLE
from tests.serving.conftest import Client
from tests.serving.server_processes import started

TEXTS = ["a small dog.", "", "  Two sentences.  Here is the second! ", "😀", "dog " * 30]


def translate(client: TestClient, **body: Any) -> Any:
    response = client.post("/translate", json={"source": "en", "target": "de", **body})
    assert response.status_code == 200, response.text
    return response.json()


def test_translations_are_those_of_the_command(client: TestClient, en_de: Path) -> None:
    """A list is translated as its texts are, whatever stands beside them in a batch."""
    expected = [load(en_de).translate(text, document=True) for text in TEXTS]
    found = translate(client, q=TEXTS)["translatedText"]
    assert [text.split() for text in found] == [text.split() for text in expected]
    alone = [translate(client, q=text)["translatedText"] if text else "" for text in TEXTS]
    assert alone == found


def test_white_space_around_sentences_stays(client: TestClient) -> None:
    first, second, third = translate(client, q=["Two sentences.", "Here is", "the second!"])[
        "translatedText"
    ]
    found = translate(client, q="  Two sentences. Here is\n\n\tthe second! ")["translatedText"]
    assert found == f"  {first} {second}\n\n\t{third} "


def test_a_form_is_answered_as_json_is(client: TestClient) -> None:
    form = {"q": "a dog", "source": "en", "target": "de", "alternatives": "2"}
    asked = translate(client, q="a dog", alternatives=2)
    assert client.post("/translate", data=form).json() == asked
    assert client.post("/translate", files={k: (None, v) for k, v in form.items()}).json() == asked
    assert client.post("/translate", params=form).json() == asked


def test_a_form_may_hold_bytes_of_utf_8_as_they_are(client: TestClient) -> None:
    """So sends them `curl -d`."""
    expected = translate(client, q="Füße…")
    form = "q=Füße…&source=en&target=de".encode()
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    assert client.post("/translate", content=form, headers=headers).json() == expected


def test_alternatives_are_other_translations_as_many_as_the_beam_has(client: TestClient) -> None:
    found = translate(client, q=["a dog", "cats"], alternatives=9)
    for text, others in zip(found["translatedText"], found["alternatives"], strict=True):
        assert 1 <= len({text, *others} - {text}) == len(others) <= 2
    assert (
        translate(client, q="cats", alternatives=1)["alternatives"] == found["alternatives"][1][:1]
    )


def test_a_page_has_alternatives_with_all_of_its_tags(client: TestClient) -> None:
    page = "<p title='a cat'>One <b>small</b> dog.</p><p>Two cats.</p><hr>"
    found = translate(client, q=page, format="html", alternatives=2)
    plain = translate(client, q="Two cats.", alternatives=2)
    assert found["translatedText"] == translate(client, q=page, format="html")["translatedText"]
    assert len({found["translatedText"], *found["alternatives"]}) == 3
    for n, other in enumerate(found["alternatives"]):
        text = plain["alternatives"][: n + 1][-1]
        assert re.findall("</?[a-z]+", other) == re.findall("</?[a-z]+", page)
        assert f"<p>{escape(text.translate(UNWRITABLE), quote=False)}</p>" in other
    assert translate(client, q="<hr>", format="html", alternatives=2)["alternatives"] == []


def test_a_language_may_have_any_of_its_codes(client: TestClient) -> None:
    for source, target in (("eng", "ger"), ("EN", "deu")):
        assert translate(client, q=TEXTS, source=source, target=target) == translate(
            client, q=TEXTS
        )


@pytest.mark.parametrize("code", ["en", "EN", " en ", "eng", "en-US", "en_GB", "eng_Latn", "Auto"])
def test_a_language_has_many_codes(client: TestClient, code: str) -> None:
    plain = translate(client, q="This is a dog.", source="en", target="de")["translatedText"]
    body = {"q": "This is a dog.", "source": code, "target": "deu"}
    for answer in (client.post("/translate", json=body), client.post("/translate", data=body)):
        assert answer.json()["translatedText"] == plain
        assert ("detectedLanguage" in answer.json()) == (code == "Auto")


def test_the_language_is_detected_on_request(client: TestClient) -> None:
    english, german = "This is a sentence about dogs.", "Das ist ein deutscher Satz über Hunde."
    found = translate(client, q=[english, german], source="auto")
    assert [each["language"] for each in found["detectedLanguage"]] == ["en", "de"]
    assert found["translatedText"] == [translate(client, q=english)["translatedText"], german]
    assert translate(client, q=english, source="auto")["detectedLanguage"]["confidence"] > 50
    first, *_ = client.post("/detect", data={"q": english}).json()
    assert first == translate(client, q=english, source="auto")["detectedLanguage"]
    first, *_ = client.post("/detect", json={"q": [german, german]}).json()
    assert first["language"] == "de"


def test_the_language_of_a_page_is_that_of_its_text(client: TestClient) -> None:
    german = "<p>Das ist ein deutscher Satz über Hunde.</p>"
    page = "<script>// This is an English comment about dogs.</script>" * 50 + german
    found = translate(client, q=page, source="auto", format="html")
    assert found["detectedLanguage"]["language"] == "de"


def test_the_languages_are_those_of_the_runs(client: TestClient) -> None:
    assert client.get("/languages").json() == [{"code": "en", "name": "English", "targets": ["de"]}]
    settings = client.get("/frontend/settings").json()
    assert settings["language"]["target"] == {"code": "de", "name": "German"}
    assert not settings["keyRequired"]
    assert settings["filesTranslation"]


def test_an_empty_value_counts_as_missing(client: TestClient) -> None:
    """Web pages send each field of a form, and clients null, for what is not given."""
    found = translate(client, q="a dog")
    assert translate(client, q="a dog", format="", alternatives=None, api_key="") == found
    form = {"q": "a dog", "source": "en", "target": "de", "format": "", "alternatives": ""}
    assert client.post("/translate", data=form).json() == found
    empty: list[tuple[str, Any]] = [("q", ""), ("q", []), ("source", ""), ("target", None)]
    for missing, value in empty:
        body = {"q": "a", "source": "en", "target": "de", missing: value}
        response = client.post("/translate", json=body)
        assert response.status_code == 400
        assert response.json() == {"error": f"Invalid request: missing {missing} parameter"}


def test_other_paths_of_libretranslate(client: TestClient) -> None:
    assert client.get("/health").json() == {"status": "ok"}
    assert client.get("/spec").json() == client.get("/openapi.json").json()
    better = {"q": "a dog", "s": "ein Hund", "source": "en", "target": "de"}
    response = client.post("/suggest", data=better)
    assert response.status_code == 403
    assert response.json() == {"error": "Suggestions are disabled on this server."}


def test_the_python_client_of_libretranslate(en_de: Path, tmp_path: Path) -> None:
    library = pytest.importorskip("libretranslatepy", reason="needs the extra nmt[dev]")
    key = add_key(tmp_path / "keys.yaml", "anna")
    with started(en_de, tmp_path, "--keys", str(tmp_path / "keys.yaml")) as server:
        url = f"http://127.0.0.1:{server.port}"
        api = library.LibreTranslateAPI(url, api_key=key)
        assert api.languages() == [{"code": "en", "name": "English", "targets": ["de"]}]
        assert api.detect("This is a sentence about dogs.")[0]["language"] == "en"
        text = "Dogs & cats = 100 %? ¡Sí! 😀\nTwo lines."
        expected = server.post("/translate", q=text, source="en", target="de", api_key=key)[1]
        assert api.translate(text, "en", "de") == expected["translatedText"]
        with pytest.raises(urllib.error.HTTPError, match="403"):
            library.LibreTranslateAPI(url).translate(text, "en", "de")


@pytest.mark.parametrize(("source", "target"), [("en-US", "de_AT"), ("auto", "deu-Latn")])
def test_a_region_that_no_model_has_means_the_language(
    client: TestClient, source: str, target: str
) -> None:
    body = {"q": "This is a small dog.", "source": source, "target": target}
    response = client.post("/translate", json=body)
    plain = client.post("/translate", json={**body, "source": "en", "target": "de"})
    assert response.json()["translatedText"] == plain.json()["translatedText"]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "missing q parameter"),
        ({"q": "a", "target": "de"}, "missing source parameter"),
        ({"q": "a", "source": "en"}, "missing target parameter"),
        (
            {"q": 5, "source": "en", "target": "de"},
            "Invalid request: q: input should be a valid string or a valid list",
        ),
        ({"q": ["a", None], "source": "en", "target": "de"}, "q.1: input should be a valid string"),
        ({"q": {}, "source": [], "target": {}}, "Invalid request"),
        ({"q": "a", "source": "xx", "target": "de"}, "xx is not supported; served are en"),
        ({"q": "a", "source": "en", "target": "xx"}, "xx is not supported as target of en"),
        ({"q": "a", "source": "xx", "target": "xx"}, "xx is not supported"),
        ({"q": "a", "source": "auto", "target": "xx"}, "xx is not supported"),
        ({"q": "a", "source": "fr-CA", "target": "de"}, "fr-CA is not supported; served are en"),
        ({"q": "a", "source": "en", "target": "de", "format": "pdf"}, "format"),
        ({"q": "a", "source": "en", "target": "de", "alternatives": -1}, "alternatives"),
        ({"q": "a", "source": "en", "target": "de", "alternatives": "x"}, "alternatives"),
        ({"q": "a\0b", "source": "en", "target": "de"}, "NUL"),
        ({"q": "a" * 50_001, "source": "en", "target": "de"}, "exceeds text limit (50000)"),
        ({"q": ["a"] * 1001, "source": "en", "target": "de"}, "exceeds text limit (1000)"),
    ],
)
def test_a_mistake_is_answered_with_a_sentence(
    client: TestClient, body: dict[str, Any], message: str
) -> None:
    response = client.post("/translate", json=body)
    assert response.status_code == 400
    assert list(response.json()) == ["error"]
    assert message in response.json()["error"]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"{", "no JSON"),
        (b"[1]", "expected a JSON object"),
        (b"\xff\xfe", "no JSON"),
        (b"[" * 100_000, "no JSON"),
        (b'{"q": 1' + b"0" * 5000 + b"}", "Invalid request"),
        (rb'{"q": "\ud800", "source": "en", "target": "de"}', "half of a surrogate pair"),
        (rb'{"q": "a", "source": "\ud800", "target": "de"}', "? is not supported; served are en"),
        (rb'{"q": "a", "source": "en", "target": "\ud800"}', "? is not supported as target of en"),
    ],
)
def test_a_body_that_is_no_json_is_answered_with_a_sentence(
    client: TestClient, body: bytes, message: str
) -> None:
    response = client.post("/translate", content=body)
    assert response.status_code == 400
    assert message in response.json()["error"]


def test_unknown_paths_and_methods_have_the_same_shape_of_error(client: TestClient) -> None:
    for response, status in ((client.get("/none"), 404), (client.get("/detect"), 405)):
        assert response.status_code == status
        assert list(response.json()) == ["error"]


TEXT_WITH_PARTS = "See %{count} of {user name} 👍 at https://a.org now."
PARTS = ("%{count}", "{user name}", "https://a.org")


def test_placeholders_arrive_as_they_were_if_asked(client: TestClient) -> None:
    """And emoji always; a form says so as JSON does."""
    found = translate(client, q=TEXT_WITH_PARTS, protect=True)["translatedText"]
    assert [found.count(part) for part in (*PARTS, "👍")] == [1, 1, 1, 1]
    form = {"q": TEXT_WITH_PARTS, "source": "en", "target": "de", "protect": "true"}
    assert client.post("/translate", data=form).json()["translatedText"] == found
    page = translate(client, q=f"<p>{TEXT_WITH_PARTS}</p>", format="html", protect=True)
    assert all(page["translatedText"].count(part) == 1 for part in (*PARTS, "👍"))


def test_serve_yaml_says_whether_placeholders_arrive_as_they_were(serve: Client) -> None:
    client = serve(protect=True)
    found = translate(client, q=TEXT_WITH_PARTS)["translatedText"]
    assert all(found.count(part) == 1 for part in PARTS)
    plain = translate(client, q=TEXT_WITH_PARTS, protect=False)["translatedText"]
    assert plain != found
    body = {"text": TEXT_WITH_PARTS, "source": "en", "target": "de"}
    assert client.post("/v1/translate", json=body).json()["translations"][0]["text"] == found
    file = {"file": ("a.txt", TEXT_WITH_PARTS.encode())}
    data = {"source": "en", "target": "de"}
    address = client.post("/translate_file", files=file, data=data).json()["translatedFileUrl"]
    assert client.get(address).text == found


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("q=a&q=b&source=en&target=de", 2),
        ("q=a&q=a&source=en&target=de", 2),
        ("q=a&q=&source=en&target=de", 2),
        ("q=a&source=en&source=en&target=de&format=", None),
        ("q=a&source=&source=en&target=de", None),
        ("q=a&source=en&target=de&target=fr", "target is given 2 times; give it once"),
        ("q=a&source=en&target=de&api_key=1&api_key=2", "api_key is given 2 times"),
        ("x=1&" * 2002 + "q=a", "over 2000 fields; send JSON"),
    ],
)
@pytest.mark.parametrize("place", ["form", "query", "both", "multipart"])
def test_a_repeated_value_is_a_list_or_a_mistake(
    client: TestClient, form: str, expected: int | str | None, place: str
) -> None:
    content_type = {"Content-Type": "application/x-www-form-urlencoded"}
    if place == "form":
        answer = client.post("/translate", content=form, headers=content_type)
    elif place == "query":
        answer = client.post(f"/translate?{form}")
    elif place == "both":
        query, _, rest = form.partition("&")
        answer = client.post(f"/translate?{query}", content=rest, headers=content_type)
    else:
        parts = [pair.partition("=")[::2] for pair in form.split("&")]
        if len(parts) > 1000:
            return  # Starlette has a limit of its own
        body = "".join(
            f'--x\r\nContent-Disposition: form-data; name="{key}"\r\n\r\n{value}\r\n'
            for key, value in parts
        )
        multipart = {"Content-Type": "multipart/form-data; boundary=x"}
        answer = client.post("/translate", content=f"{body}--x--\r\n", headers=multipart)
    if isinstance(expected, str):
        assert answer.status_code == 400
        assert expected in answer.json()["error"]
        return
    assert answer.status_code == 200, answer.text
    translated = answer.json()["translatedText"]
    assert isinstance(translated, str) if expected is None else len(translated) == expected


def test_a_key_of_json_that_is_given_twice_is_a_mistake(client: TestClient) -> None:
    body = '{"q": "a", "q": "b", "source": "en", "target": "de"}'
    answer = client.post("/translate", content=body)
    assert answer.status_code == 400
    assert answer.json()["error"] == "Invalid request: q is given 2 times; give it once"


@pytest.mark.parametrize("path", ["/translate", "/v1/translate"])
def test_repetitions_can_be_forbidden(client: TestClient, path: str) -> None:
    def tokens(**more: int) -> str:
        body = {"q": "a dog " * 9, "text": "a dog " * 9, "source": "en", "target": "de", **more}
        body.pop("q" if path.startswith("/v1") else "text")
        answer = client.post(path, json=body).json()
        return str(answer.get("translatedText") or answer["translations"][0]["text"])

    assert tokens(no_repeat_ngram=0) == tokens()
    without = tokens(no_repeat_ngram=1)  # the tokens of this run are characters and bytes
    letters = [character for character in without if character.isascii()]
    assert len(set(letters)) == len(letters)
    answer = client.post(
        "/translate", json={"q": "a", "source": "en", "target": "de", "no_repeat_ngram": 99}
    )
    assert answer.status_code == 400
