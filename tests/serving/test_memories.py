"""Translation memories of a server: whose they are, what they find, and what is added."""

import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from nmt.errors import ConfigError
from nmt.memory import store
from nmt.memory.match import MemoryPair
from nmt.memory.store import Memory
from nmt.serving.access import Access, add_key
from nmt.serving.settings import ServerSettings
from tests.serving.conftest import Client

PAIR = {"source": "en", "target": "de"}
DOG = MemoryPair("a small dog", "ein kleiner Hund")
MakeMemory = Callable[..., str]


@pytest.fixture
def make_memory(tmp_path: Path) -> MakeMemory:
    """Make memories with some pairs, and return the path of each."""

    def make(name: str, *pairs: MemoryPair, languages: tuple[str, str] = ("en", "de")) -> str:
        path = tmp_path / name
        with Memory.create(path, *languages) as memory:
            memory.add(pairs)
        return str(path)

    return make


def translated(client: TestClient, text: Any, key: str = "", **body: Any) -> Any:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    response = client.post("/v1/translate", json={"text": text, **PAIR, **body}, headers=headers)
    found = response.json()
    return found["translations"] if response.status_code == 200 else found["error"]


def add(client: TestClient, memory: str, *pairs: tuple[str, str], key: str = "") -> Any:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    body = {"memory": memory, "pairs": [{"source": s, "target": t} for s, t in pairs]}
    return client.post("/v1/memory", json=body, headers=headers)


def test_a_correction_is_the_translation_from_then_on(
    serve: Client, make_memory: MakeMemory
) -> None:
    """Also of a text of several sentences, and of one sentence of a longer text."""
    client = serve(memories={"mine": make_memory("mine")})
    assert client.get("/v1/memory").json() == [{"name": "mine", **PAIR}]
    [before] = translated(client, "a small dog", memory="mine")
    assert before["matches"] == []
    both = ("A dog. It runs!", "Zwei Sätze\u2014als einer.")
    assert add(client, "mine", ("a small dog", "ein kleiner Hund"), both).json() == {"added": 2}
    [after] = translated(client, "a small dog", memory=["mine"])
    assert after["text"] == "ein kleiner Hund"
    [match] = after["matches"]
    assert match == {
        "span": [0, 11],
        "type": "exact-match",
        "score": 1.0,
        "source": "a small dog",
        "target": "ein kleiner Hund",
    }
    assert translated(client, f" {both[0]}\n", memory="mine")[0]["text"] == f" {both[1]}\n"
    [longer] = translated(client, "What?\na small dog", memory="mine")
    assert longer["text"].endswith("\nein kleiner Hund")
    assert [each["span"] for each in longer["matches"]] == [[6, 17]]
    [without] = translated(client, "a small dog")  # no memory is asked for, and none is cached
    assert without == {"text": before["text"]}


def test_similar_sentences_are_learnt_from_and_told(serve: Client, make_memory: MakeMemory) -> None:
    client = serve(memories={"mine": make_memory("mine", DOG)}, beam_size=1)
    [plain] = translated(client, "a small dog b", memory="mine")
    [adapted] = translated(client, "a small dog b", memory="mine", adapt=True, scores=True)
    [match] = adapted["matches"]
    assert (match["type"], match["score"], match["target"]) == ("fuzzy-match", 0.75, DOG.target)
    assert plain["matches"] == []
    again = translated(client, ["b", "a small dog b", "c"], memory="mine", adapt=True, scores=True)
    assert again[1] == adapted
    [other] = translated(client, "a small dog b", scores=True)
    assert other["score"] != adapted["score"]


def test_what_a_memory_cannot_do_is_refused(serve: Client, make_memory: MakeMemory) -> None:
    path = make_memory("mine")
    client = serve(memories={"mine": path})
    assert "adapt learns from the pairs of a memory" in translated(client, "a dog", adapt=True)
    document = client.post(
        "/v1/documents",
        data={**PAIR, "adapt": "true"},
        files={"file": ("a.txt", b"a small dog")},
    )
    assert document.status_code == 400
    assert "adapt learns from the pairs of a memory" in document.json()["error"]
    for pair in ((" ", "Hund"), ("dog", "\n")):
        refused = add(client, "mine", ("a dog", "ein Hund"), pair)
        assert refused.status_code == 400
        assert "is blank; leave that pair out" in refused.json()["error"]
    with Memory.open(Path(path)) as memory:
        assert memory.count_pairs() == 0


def test_documents_use_a_memory_too(serve: Client, make_memory: MakeMemory) -> None:
    client = serve(memories={"mine": make_memory("mine", DOG)})
    for name, status in (("mine", 200), ("other", 400)):
        sent = client.post(
            "/v1/documents",
            data={**PAIR, "memory": name},
            files={"file": ("a.txt", b"a small dog")},
        )
        assert sent.status_code == status, sent.text
        if status == 200:
            key, path = {"X-Document-Key": sent.json()["document_key"]}, sent.json()["document_id"]
            while client.get(f"/v1/documents/{path}", headers=key).json()["status"] != "done":
                time.sleep(0.05)
            result = client.get(f"/v1/documents/{path}/result", headers=key)
            assert result.text == DOG.target


def test_a_key_sees_its_own_memories_alone(
    serve: Client, make_memory: MakeMemory, tmp_path: Path
) -> None:
    """What it may not use and what is not there are answered alike."""
    file = tmp_path / "keys.yaml"
    keys = {name: add_key(file, name) for name in ("anna", "ben", "carl")}
    text = file.read_text()
    for name in ("anna", "ben"):
        text = text.replace(f"name: {name}\n", f"name: {name}\n  memories: [of-{name}]\n")
    file.write_text(text)
    memories = {f"of-{name}": make_memory(name) for name in ("anna", "ben")}
    client = serve(memories=memories, keys=str(file))
    assert add(client, "of-anna", ("a small dog", "Annas Hund"), key=keys["anna"]).json()["added"]
    assert add(client, "of-ben", ("a small dog", "Bens Hund"), key=keys["ben"]).json()["added"]
    for name, expected in (("anna", "Annas Hund"), ("ben", "Bens Hund")):
        own = f"of-{name}"
        [found] = translated(client, "a small dog", keys[name], memory=own)
        assert found["text"] == expected
        [listed] = client.get(
            "/v1/memory", headers={"Authorization": f"Bearer {keys[name]}"}
        ).json()
        assert listed["name"] == own
    for wrong in ("of-ben", "of-carl"):
        sentence = f"'{wrong}' is not one of yours, which are of-anna"
        assert sentence in translated(client, "a small dog", keys["anna"], memory=wrong)
        refused = add(client, wrong, ("a", "b"), key=keys["anna"])
        assert refused.status_code == 400 and sentence in refused.json()["error"]
    assert "which are none" in translated(client, "a small dog", keys["carl"], memory="of-anna")
    assert client.get("/v1/memory").status_code == 403
    assert add(client, "of-anna", ("a", "b")).status_code == 403
    with Memory.open(Path(memories["of-anna"])) as memory:
        assert [pair.author for pair in memory.pairs()] == ["anna"]


def test_a_key_of_an_unknown_memory_is_a_mistake(tmp_path: Path) -> None:
    file = tmp_path / "keys.yaml"
    add_key(file, "anna")
    file.write_text(file.read_text() + "  memories: [laws]\n")
    with pytest.raises(ConfigError, match="'anna' names the memory 'laws', and this server has no"):
        Access(ServerSettings(models=["run"], keys=str(file)))


def test_two_servers_share_a_memory(serve: Client, make_memory: MakeMemory) -> None:
    path = make_memory("mine")
    one, two = serve(memories={"mine": path}), serve(memories={"other": path})
    assert add(one, "mine", ("a small dog", "ein Hund")).json() == {"added": 1}
    [found] = translated(two, "a small dog", memory="other")
    assert found["text"] == "ein Hund"
    corrections = [(one, "mine", "ein kleiner Hund"), (two, "other", "das Hündchen")]
    for server, name, target in corrections * 2:  # each finds what the other has added last
        add(server, name, ("a small dog", target))
        for client, asked in ((one, "mine"), (two, "other")):
            assert translated(client, "a small dog", memory=asked)[0]["text"] == target


@pytest.mark.parametrize("direction", [("de", "en"), ("en", "fr")])
def test_a_memory_that_no_model_needs_is_a_mistake(
    serve: Client, make_memory: MakeMemory, direction: tuple[str, str]
) -> None:
    path = make_memory("mine", languages=direction)
    with pytest.raises(ConfigError, match="no model of this server translates so"):
        serve(memories={"mine": path})


@pytest.fixture
def locked(make_memory: MakeMemory) -> Iterator[str]:
    """A memory in which another program writes for a long time."""
    path = make_memory("locked", DOG)
    other = sqlite3.connect(path)
    other.execute("BEGIN IMMEDIATE")
    yield path
    other.close()


def test_a_locked_memory_is_read_but_not_written(
    serve: Client, locked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "_SECONDS", 0.1)
    client = serve(memories={"mine": locked})
    response = add(client, "mine", ("a", "b"))
    assert response.status_code == 503 and "Retry-After" in response.headers
    assert "try again" in response.json()["error"] and locked not in response.json()["error"]
    assert translated(client, DOG.source, memory="mine")[0]["text"] == DOG.target


def test_a_damaged_memory_is_one_sentence(serve: Client, make_memory: MakeMemory) -> None:
    path = Path(make_memory("mine", *(MemoryPair(f"a dog {n}", "ein Hund") for n in range(500))))
    client = serve(memories={"mine": str(path)})
    content = path.read_bytes()
    path.write_bytes(content[:100] + bytes(len(content) - 100))
    for refused in (
        add(client, "mine", ("a", "b")),
        client.post("/v1/translate", json={"text": "a dog", **PAIR, "memory": "mine"}),
    ):
        assert refused.status_code == 500
        assert "memory" in refused.json()["error"] and str(path) not in refused.json()["error"]
    assert translated(client, "a dog")  # everything else goes on
