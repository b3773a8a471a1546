"""A corpus of OPUS comes as a Moses zip, at the version that was the newest the first time."""

import json
import shutil
from pathlib import Path

import pytest

from nmt.data.corpora import opus
from nmt.data.corpora.registry import find_corpus, obtain_corpus
from nmt.data.text.parallel_text import ParallelText
from nmt.errors import DataError
from tests.data.corpora.site import Site, names, silent, split_names, zipped

EN = "".join(f"the sentence number {n}\n" for n in range(500))
FR = "".join(f"la phrase numero {n}\n" for n in range(500))
V1 = "/OPUS-Books/v1/moses/en-fr.txt.zip"
API = "/opusapi/"
TEXTS = {"Books.en-fr.en": EN, "Books.en-fr.fr": FR}
ZIP = zipped({"README": "about the corpus", "../LICENSE": "not to be written", **TEXTS})


def answer(version: str) -> bytes:
    """What the API says if this version is the newest."""
    return json.dumps({"corpora": [{"corpus": "Books", "version": version}]}).encode()


@pytest.fixture
def books(site: Site, monkeypatch: pytest.MonkeyPatch) -> Site:
    """OPUS with one corpus in versions v1 and v2, v1 being the latest."""
    monkeypatch.setattr(opus, "API", f"{site.url}{API}")
    monkeypatch.setattr(opus, "STORAGE", site.url)
    site.files = {V1: ZIP, V1.replace("v1", "v2"): ZIP, API: answer("v1")}
    return site


def get(folder: Path, name: str = "opus:Books", copies: Path | None = None) -> Path:
    texts = obtain_corpus(find_corpus(name), ("fr", "en"), folder, copies, silent)
    pairs = list(ParallelText(texts["train"]))
    assert 400 < len(pairs) < 500
    assert all(p.source.replace("la phrase numero", "the sentence number") == p[1] for p in pairs)
    return folder / name.replace(":", "--") / "en-fr"


def test_the_newest_version_is_found_and_recorded(tmp_path: Path, books: Site) -> None:
    log: list[str] = []
    obtain_corpus(find_corpus("opus:Books"), ("fr", "en"), tmp_path, None, log.append)
    assert names(get(tmp_path)) == split_names("en", "fr")
    query = "corpus=Books&source=en&target=fr&preprocessing=moses&version=latest"
    assert books.asked == [f"{API}?{query}", V1]
    assert log[0] == "the newest version of Books is v1"
    assert log[-1].startswith("no validation and no test set upstream: cut from the training text")
    record = json.loads((tmp_path / "opus--Books" / "en-fr.source.json").read_text())
    assert record["opus:Books"] == {"version": "v1"}
    assert record[f"{books.url}{V1}#Books.en-fr.en"]["bytes"] == len(EN)
    assert not list(tmp_path.rglob("LICENSE")) and not list(tmp_path.rglob("*.zip"))


def test_the_first_version_stays(tmp_path: Path, books: Site) -> None:
    folder = get(tmp_path)
    before = (folder / "train.fr").read_bytes()
    books.files[API] = answer("v2")
    shutil.rmtree(folder)
    assert (get(tmp_path) / "train.fr").read_bytes() == before
    assert V1 in books.asked[-1]


def test_copies_need_no_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opus, "fetch", None)
    (tmp_path / "en-fr.txt.zip").write_bytes(ZIP)
    get(tmp_path, copies=tmp_path)


@pytest.mark.parametrize(
    ("name", "reply", "message"),
    [
        ("opus:books", '{"corpora": []}', "OPUS has no corpus books of en and fr; names are writt"),
        ("opus:Books:v9", "", r"OPUS has no .*/v9/moses/en-fr.txt.zip; check corpus, version and"),
        ("opus:Books", "<html>", "opusapi/: not the answer expected .*; name the version yourself"),
        ("opus:Books", '{"corpora": [{}]}', "not the answer expected .'version'.; name the"),
        ("opus:Books", "[]", "not the answer expected"),
        ("opus:Books", '{"corpora": [{"version": "../.."}]}', r"expected \(versions \.\./\.\.\)"),
    ],
)
def test_what_opus_lacks_is_told(
    tmp_path: Path, books: Site, name: str, reply: str, message: str
) -> None:
    books.files[API] = reply.encode()
    with pytest.raises(DataError, match=message):
        get(tmp_path, name)


def test_a_version_can_be_named_if_the_api_does_not_answer(tmp_path: Path, books: Site) -> None:
    del books.files[API]
    with pytest.raises(DataError, match="HTTP 404 .*, or name the version yourself: opus:Books:V"):
        get(tmp_path)
    get(tmp_path, "opus:Books:v1")
