"""A request through two models, and through one that has no memory left."""

import asyncio
import html
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from nmt.machine.memory import memory_explained
from nmt.serving.engine import Engine, ModelVersion, SearchKind
from nmt.serving.translate_request import TranslationService
from nmt.translation.documents.tokens import UNWRITABLE
from nmt.translation.line import Line, Translation
from tests.serving.conftest import Client, started
from tests.serving.served_runs import write_run


@pytest.fixture(scope="module")
def pivoting(en_de: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """A server of en-de and de-fr."""
    run = write_run(tmp_path_factory.mktemp("pivot") / "de-fr", "de", "fr", seed=2)
    with ExitStack() as stack:
        yield stack.enter_context(started(en_de, models=[str(en_de), str(run)], pivot=True))


def translate(client: TestClient, q: Any, source: str, target: str, **body: Any) -> Any:
    answer = client.post("/translate", json={"q": q, "source": source, "target": target, **body})
    assert answer.status_code == 200, answer.text
    return answer.json()["translatedText"]


def test_a_pivot_translates_what_the_first_model_wrote(pivoting: TestClient) -> None:
    texts = ["a dog", "Two cats.\nThree."]
    middle = translate(pivoting, texts, "en", "de")
    assert translate(pivoting, texts, "en", "fr") == translate(pivoting, middle, "de", "fr")
    body = {"text": texts, "source": "en", "target": "fr"}
    assert pivoting.post("/v1/translate", json=body).json()["model"] == "en-de+de-fr"


def test_a_page_through_a_pivot_has_its_tags_once_and_the_text_of_both_models(
    pivoting: TestClient,
) -> None:
    found = translate(pivoting, "<p>One <b>dog</b> <code>x_1</code></p>", "en", "fr", format="html")
    tags = ["<p>", "<b>", "</b>", "<code>", "</code>", "</p>"]
    assert sorted(re.findall("<[^>]*>", found)) == sorted(tags)
    assert found.count("<code>x_1</code>") == 1
    found = translate(pivoting, "<p>One <b>dog</b></p>", "en", "fr", format="html")
    text = html.unescape(re.sub("<[^>]*>", "", found))
    assert text.split() == translate(pivoting, "One dog", "en", "fr").translate(UNWRITABLE).split()


def test_a_document_through_a_pivot_is_read_once(pivoting: TestClient) -> None:
    """The first model's translation would stand beside the source, which the second would read."""
    unit = "<trans-unit id='1'><source>One dog</source></trans-unit>"
    document = f"<xliff version='1.2'><file source-language='en'><body>{unit}</body></file></xliff>"
    data = {"source": "en", "target": "fr"}
    answer = pivoting.post(
        "/translate_file", files={"file": ("a.xlf", document.encode())}, data=data
    )
    assert answer.headers["X-Model"].count("@") == 2
    found = pivoting.get(answer.json()["translatedFileUrl"]).text
    target = re.search("<target[^>]*>(.*)</target>", found, re.DOTALL)
    expected = translate(pivoting, "One dog", "en", "fr").translate(UNWRITABLE)
    assert target and html.unescape(target[1]).split() == expected.split()


def test_a_language_that_fails_ends_the_work_on_the_others(
    pivoting: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Through en -> de -> fr there are no alignments; the German text has been begun by then."""
    ended: list[bool] = []

    async def wait_forever(self: TranslationService, pending: object) -> int:
        try:
            await asyncio.sleep(3600)
        finally:
            ended.append(True)
        return 0

    monkeypatch.setattr(TranslationService, "_translate_segments", wait_forever)
    texts = ["Das ist ein deutscher Satz über Hunde.", "This is a sentence about dogs."]
    body = {"text": texts, "source": "auto", "target": "fr", "alignments": True}
    assert pivoting.post("/v1/translate", json=body).status_code == 400
    assert ended == [True]


@pytest.mark.parametrize("asked", [{"alignments": True}, {"forbidden": ["a"]}, {"prefix": "a"}])
def test_a_pivot_allows_no_alignments_and_no_constraints(
    pivoting: TestClient, asked: dict[str, Any]
) -> None:
    body = {"text": "a", "source": "en", "target": "fr", **asked}
    response = pivoting.post("/v1/translate", json=body)
    assert response.status_code == 400
    assert "through de, which allows neither alignments nor terms" in response.json()["error"]


def test_a_batch_without_memory_is_divided(serve: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Engine.translate
    sizes: list[int] = []

    def translate_little(
        self: Engine, version: ModelVersion, kind: SearchKind, lines: Sequence[Line]
    ) -> list[list[Translation]]:
        sizes.append(len(lines))
        if len(lines) > 2:
            with memory_explained("for this test"):
                raise MemoryError
        return real(self, version, kind, lines)

    client = serve()
    texts = [f"dog {i}" for i in range(12)]
    expected = translate(client, texts, "en", "de")
    monkeypatch.setattr(Engine, "translate", translate_little)
    assert translate(serve(), texts, "en", "de") == expected
    assert max(sizes) > 2
