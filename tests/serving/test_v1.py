"""Our own API: everything that `nmt translate` knows, and sentences as they are finished."""

import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from nmt import load
from nmt.recipe.config import ContextConfig, TermsConfig
from nmt.translation.line import Line
from nmt.translation.request import TranslationRequest
from nmt.translation.translator import Translator
from tests.serving.conftest import Client, started
from tests.serving.served_runs import write_run

JSON = {"Content-Type": "application/json"}
PAIR = {"source": "en", "target": "de"}
TERM = {"source": "dog", "target": "Hund"}


def translate(client: TestClient, text: Any, **body: Any) -> list[dict[str, Any]]:
    response = client.post("/v1/translate", json={"text": text, **PAIR, **body})
    assert response.status_code == 200, response.text
    assert response.json()["model"] == "en-de"
    translations: list[dict[str, Any]] = response.json()["translations"]
    return translations


def events(client: TestClient, **body: Any) -> list[tuple[str, Any]]:
    response = client.post("/v1/translate", json={**PAIR, **body, "stream": True})
    assert response.status_code == 200, response.text
    assert response.headers["content-type"].startswith("text/event-stream")
    blocks = response.text.removesuffix("\n\n").split("\n\n")
    pairs = [block.split("\n") for block in blocks]
    return [(a.removeprefix("event: "), json.loads(b.removeprefix("data: "))) for a, b in pairs]


def test_scores_and_alternatives_are_those_of_the_search(client: TestClient, en_de: Path) -> None:
    translator: Translator = load(en_de)
    request = TranslationRequest(n_best=3)  # its beam
    [expected] = list(translator.pipeline(request).translate([Line(1, "a small dog")]))
    [found] = translate(client, "a small dog", n_best=9, scores=True)
    texts = [found["text"], *(other["text"] for other in found["alternatives"])]
    scores = [found["score"], *(other["score"] for other in found["alternatives"])]
    best: dict[str, float] = {}  # untrained models write one text in several ways
    for translation in expected:
        best.setdefault(translation.text, translation.score)
    assert texts == list(best)
    assert scores == pytest.approx(list(best.values()), abs=1e-3)
    assert translate(client, "a small dog") == [{"text": texts[0]}]


def test_aligned_words_are_given_by_their_places(client: TestClient, en_de: Path) -> None:
    source = "A dog runs. \n Two cats sleep."
    [found] = translate(client, source, alignments=True)
    words = [source[start:end] for start, end in found["source_words"]]
    assert words == source.split()
    target = [found["text"][start:end] for start, end in found["target_words"]]
    assert target == found["text"].split()
    assert all(0 <= i < len(words) and 0 <= j < len(target) for i, j in found["alignment"])
    assert found["text"] == translate(client, source)[0]["text"]
    second = {j for i, j in found["alignment"] if i >= 3}
    first = {j for i, j in found["alignment"] if i < 3}
    assert second and first and not second & first


def test_terms_forbidden_words_and_the_beginning_hold(client: TestClient) -> None:
    terms = [{"source": "dog", "target": "Hund"}]
    [found] = translate(client, "a dog", terms=terms, prefix="So ")
    assert found["text"].startswith("So ")
    assert "Hund" in found["text"]
    free = translate(client, "a dog")[0]["text"]
    [found] = translate(client, "a dog", forbidden=[free.split()[0]])
    assert free.split()[0] not in found["text"].split()


def test_a_model_that_has_learnt_terms_is_asked_as_the_glossary_mode_says(tmp_path: Path) -> None:
    """No translation of one mode is taken from the cache for another."""
    run = write_run(tmp_path / "en-de", "en", "de", terms=TermsConfig())
    ways = {}
    with started(run, search_seconds=600) as client:  # a busy machine loads dictionaries slowly
        for mode in ("inflect", "auto", "exact", None):
            [found] = translate(client, "a dog", terms=[TERM], glossary_mode=mode)
            assert ("Hund" in found["text"]) == (mode != "inflect")
            ways[mode] = [(term["source"], term["target"], term["way"]) for term in found["terms"]]
        (_, sentence), *_ = events(client, text="a dog", terms=[TERM])
        assert sentence["terms"] == [{"source": "dog", "target": "Hund", "way": "forced"}]
    forced = [("dog", "Hund", "forced")]
    assert ways == {
        "inflect": [("dog", "Hund", "missing")],
        "auto": forced,
        "exact": [],
        None: forced,
    }


def test_contradictory_constraints_are_a_mistake_of_that_client_alone(client: TestClient) -> None:
    body = {"terms": [{"source": "dog", "target": "Hund"}], "forbidden": ["Hund"]}
    response = client.post("/v1/translate", json={"text": "a dog", **PAIR, **body})
    assert response.status_code == 400
    assert "Hund" in response.json()["error"]


def test_more_terms_than_a_sentence_may_have_are_refused(client: TestClient) -> None:
    body = {"terms": [{"source": "a", "target": "Wort " * 39}]}
    response = client.post("/v1/translate", json={"text": "a " * 300, **PAIR, **body})
    assert response.status_code == 400
    assert "tokens, and 1024 are allowed; ask for fewer" in response.json()["error"]


def test_sentences_are_sent_as_they_are_finished_and_then_the_whole(client: TestClient) -> None:
    texts = ["One dog. Two dogs.", "Three."]
    *parts, (last, whole) = events(client, text=texts, scores=True)
    assert last == "done"
    assert whole["translations"] == translate(client, texts, scores=True)
    assert {name for name, _ in parts} == {"translation"}
    found = {(part["index"], *part["span"]): part["text"] for _, part in parts}
    singles = [each["text"] for each in translate(client, ["One dog.", "Two dogs.", "Three."])]
    assert found == dict(zip([(0, 0, 8), (0, 9, 18), (1, 0, 6)], singles, strict=True))


def test_a_mistake_in_a_stream_is_answered_before_it_begins(client: TestClient) -> None:
    body = {"text": "a", "source": "en", "target": "xx", "stream": True}
    response = client.post("/v1/translate", json=body)
    assert response.status_code == 400
    assert "xx is not supported" in response.json()["error"]


def test_html_keeps_its_tags(client: TestClient) -> None:
    page = '<p title="dog">A <b>small dog</b> <code>x()</code>.</p>\n<script>dog</script>'
    [found] = translate(client, page, format="html")
    inside = re.fullmatch(
        r'<p title="(.+)">(.*)<b>.+</b>(.*)</p>\n<script>dog</script>', found["text"]
    )
    assert inside and inside[1] != "dog"
    assert found["text"].count("<code>x()</code>") == 1
    answer = client.post("/translate", json={"q": page, **PAIR, "format": "html"})
    assert answer.json()["translatedText"] == found["text"]


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ({"n_best": 2, "scores": True}, "n_best, scores"),
        ({"alignments": True}, "alignments"),
        ({"stream": True}, "stream"),
    ],
)
def test_html_has_neither_alternatives_nor_figures_nor_parts(
    client: TestClient, body: dict[str, Any], names: str
) -> None:
    page = {"text": "<p>A dog</p>", **PAIR, "format": "html", "n_best": 1, "scores": False}
    response = client.post("/v1/translate", json=page | body)
    assert response.status_code == 400
    expected = f"Invalid request: format html cannot be combined with {names}; remove"
    assert response.json()["error"].startswith(expected)


def test_many_pages_at_once_do_not_wait_for_each_other(client: TestClient) -> None:
    def send(number: int) -> str:
        page = f"<p>A <b>small dog</b> sees {{name}} {number}.</p>"
        [found] = translate(client, page, format="html", protect=True)
        return str(found["text"])

    with ThreadPoolExecutor(24) as clients:  # more than the threads of any pool
        pages = list(clients.map(send, range(24)))
    assert all(page.count("{name}") == 1 for page in pages)


def test_messages_keep_their_syntax_and_get_other_texts(client: TestClient) -> None:
    text = (
        "Two dogs. You see {n, plural, one {# dog} other {{n} dogs}} here.\n{g, select, other {A}}"
    )
    syntax = re.compile(
        r"(?s)(.*\{n, plural, one \{.*#.*\} other \{.*\{n\}.*\}\}.*)\n\{g, select, other \{(.*)\}\}"
    )
    [plain] = translate(client, "A")
    for asked in ({}, {"alignments": True}, {"n_best": 2}):
        [found] = translate(client, text, protect=True, **asked)
        match = syntax.fullmatch(found["text"])
        assert match
        assert match[2] == plain["text"]
        assert "{# dog}" not in found["text"]
        for other in found.get("alternatives", []):
            assert syntax.fullmatch(other["text"])
    (*sentences, (_, answer)) = events(client, text=[text, "A"], protect=True)
    assert answer["translations"][0]["text"] == translate(client, text, protect=True)[0]["text"]
    assert {each["index"] for _, each in sentences} == {0, 1}
    written = [each["text"] for _, each in sentences if "plural" in each["text"]]
    assert written
    assert all(each in answer["translations"][0]["text"] for each in written)
    [page] = translate(client, f"<p>{text}</p>", format="html", protect=True)
    assert "{n, plural, one {" in page["text"]
    assert "{# dog}" not in page["text"]


def test_protected_text_arrives_as_it_was(client: TestClient) -> None:
    text = "See https://a.org/x?y=1 and {name}. Call ID-7 again, ID-8."
    [found] = translate(client, text, protect=True, alignments=True)
    assert all(found["text"].count(part) == 1 for part in ("https://a.org/x?y=1", "{name}"))
    [found] = translate(client, text, protect=[r"ID-\d"])
    assert all(found["text"].count(part) == 1 for part in ("ID-7", "ID-8"))
    for pattern, message in (
        ("(", "no regular expression"),
        ("a*", "matches the empty string"),
        ("(?:(?:a?){300}){300}", "write smaller numbers"),
    ):
        body = {"text": text, **PAIR, "protect": [pattern]}
        response = client.post("/v1/translate", json=body)
        assert response.status_code == 400
        assert message in response.json()["error"]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "missing text parameter"),
        ({"text": "a"}, "missing source parameter"),
        ({"text": 1, **PAIR}, "text: input should be a valid string or a valid list"),
        ({"text": ["a", 1], **PAIR}, "text.1: input should be a valid string"),
        ({"text": "a", **PAIR, "protect": ""}, "protect: input should be a valid boolean or a v"),
        ({"text": "a", **PAIR, "protect": [""]}, "protect.0: string should have at least 1 ch"),
        ({"text": "a", **PAIR, "protect": ["a"] * 21}, "protect: list should have at most 20 it"),
        ({"text": "a", **PAIR, "n_best": 0}, "n_best"),
        ({"text": "a", **PAIR, "terms": [{"source": "a"}]}, "missing terms.0.target parameter"),
        ({"text": "a", **PAIR, "terms": [{"source": " ", "target": "b"}]}, "blank"),
        (
            {
                "text": "a",
                **PAIR,
                "terms": [{"source": "a", "target": "b"}, {"source": "a ", "target": "c"}],
            },
            "Invalid request: terms: 'a' becomes 'b' and 'c'; keep one of them",
        ),
        (
            {"text": "a", **PAIR, "terms": [TERM, {"source": "b", "target": "c\nd"}]},
            "the translation of 'b' -> 'c\\nd': the term 'c\\nd' holds a line end",
        ),
        (
            {"text": "a", **PAIR, "terms": [TERM, {"source": "", "target": "b"}]},
            "terms.1.source: ",
        ),
        ({"text": "a", **PAIR, "terms": [TERM, {**TERM, "mode": "exact"}]}, "terms.1.mode"),
        (
            {"text": "a", **PAIR, "glossary_mode": "soft"},
            "glossary_mode: input should be 'exact'",
        ),
        (
            {"text": "a", **PAIR, "terms": [TERM], "glossary_mode": "inflect"},
            "no model from en to de has learnt to inflect terms; use glossary_mode auto or exact",
        ),
        ({"text": "a", **PAIR, "prefix": "\ud800"}, "half of a surrogate pair"),
        ({"text": "a", **PAIR, "unknown": 1}, "unknown"),
        ({"text": "\0", **PAIR}, "NUL"),
    ],
)
def test_a_mistake_is_answered_with_a_sentence(
    client: TestClient, body: dict[str, Any], message: str
) -> None:
    response = client.post("/v1/translate", content=json.dumps(body), headers=JSON)
    assert response.status_code == 400
    assert message in response.json()["error"]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"{", "the body is no JSON in UTF-8"),
        (b"\xff", "the body is no JSON in UTF-8"),
        (b"[" * 100_000, "the body is no JSON in UTF-8"),
        (b"", "the body is no JSON in UTF-8"),
        (b"[1]", "expected a JSON object"),
        (b'{"text": "a", "text": "b", "source": "en", "target": "de"}', "text is given 2 times"),
        (
            b'{"text": "a", "source": "en", "target": "de", "terms": '
            b'[{"source": "a", "source": "b", "target": "c"}]}',
            "source is given 2 times; give it once",
        ),
    ],
)
def test_a_body_that_is_no_json_is_answered_with_a_sentence(
    client: TestClient, body: bytes, message: str
) -> None:
    for headers in (JSON, {}):
        response = client.post("/v1/translate", content=body, headers=headers)
        assert response.status_code == 400
        if headers:
            assert message in response.json()["error"]


def test_a_body_is_parsed_once(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[object] = []
    loads = json.loads

    def counted(text: bytes, **options: Any) -> Any:
        parsed.append(text)
        return loads(text, **options)

    monkeypatch.setattr(json, "loads", counted)
    assert client.post("/v1/translate", json={"text": "a dog", **PAIR}).status_code == 200
    assert len(parsed) == 1


def test_the_models_and_the_description_are_listed(client: TestClient) -> None:
    [model] = client.get("/frontend/settings").json()["models"]
    expected = {**model, **PAIR, "loaded": True, "license": None}
    assert client.get("/v1/models").json() == [expected]
    paths = client.get("/openapi.json").json()["paths"]
    assert {"/translate", "/v1/translate", "/languages", "/detect", "/metrics"} <= paths.keys()
    schemas = client.get("/openapi.json").json()["components"]["schemas"]
    assert {"TranslateBody", "DetectBody", "TranslationBody", "TermBody"} <= schemas.keys()


def test_a_finished_segment_is_not_translated_again(serve: Client) -> None:
    client = serve()
    first = translate(client, "One dog. Two dogs.", scores=True)
    assert translate(client, "Two dogs. One dog.\nOne dog.", scores=True)
    assert translate(client, "One dog. Two dogs.", scores=True) == first
    metrics = client.get("/metrics").text
    assert 'nmt_segments_total{cached="no",model="en-de"} 2.0' in metrics
    assert 'nmt_segments_total{cached="yes",model="en-de"} 5.0' in metrics


def test_the_prefix_counts_as_a_part_of_each_text(serve: Client) -> None:
    client = serve(texts=10, text_characters=100)
    body = {"text": ["a dog"] * 10, "source": "en", "target": "de"}
    assert client.post("/v1/translate", json=body).status_code == 200
    assert client.post("/v1/translate", json={**body, "prefix": "So ein"}).status_code == 400


def test_a_context_is_what_the_pipeline_makes_of_it(tmp_path: Path) -> None:
    """The translation of a sentence with another context is not taken from the cache."""
    run = write_run(tmp_path / "en-de", "en", "de", context=ContextConfig())
    contexts: list[tuple[tuple[str, str], ...]] = [
        (),
        (("a dog.", ""),),
        (("a dog.", "ein Hund."),),
    ]
    pipeline = load(run).pipeline()
    lines = [Line(n, "it is small.", context=each) for n, each in enumerate(contexts, start=1)]
    expected = [best.text for best, *_ in pipeline.translate(lines)]
    with started(run) as client:
        found = [
            translate(
                client,
                "it is small.",
                context=[{"source": s, "target": t} if t else s for s, t in context],
            )[0]["text"]
            for context in contexts
        ]
    assert found == expected


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"context": ["a dog."]}, "no model from en to de has learnt to use a context"),
        ({"context": ["a dog."], "format": "html"}, "format html cannot be combined with context"),
        ({"context": [{"source": "a dog."}]}, "context"),
        ({"context": ["a"] * 21}, "context"),
    ],
)
def test_a_context_that_cannot_be_used_is_refused(
    client: TestClient, body: dict[str, Any], said: str
) -> None:
    response = client.post("/v1/translate", json={"text": "it is small.", **PAIR, **body})
    assert response.status_code == 400
    assert said in response.json()["error"]
