"""A corpus of OPUS comes as a Moses zip, at the version that was the newest the first time."""

import json
import shutil
import zipfile
from pathlib import Path

import pytest

from nmt.config import DataConfig
from nmt.data.corpora import opus
from nmt.data.corpora.registry import find_corpus, obtain_corpus, resolve
from nmt.data.text.parallel_text import ParallelText
from nmt.errors import DataError

Site = tuple[Path, str, list[str]]

LINES = {
    "en": "".join(f"the sentence number {n}\n" for n in range(500)),
    "fr": "".join(f"la phrase numero {n}\n" for n in range(500)),
}


def moses(path: Path, changes: dict[str, str] | None = None) -> Path:
    """A zip as OPUS packs it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("README", "about the corpus")
        archive.writestr("../LICENSE", "not to be written")
        for language, text in {**LINES, **(changes or {})}.items():
            archive.writestr(f"Books.en-fr.{language}", text)
    return path


def answer(folder: Path, *versions: str) -> None:
    """What the API says: it always says this."""
    (folder / "opusapi").mkdir(exist_ok=True)
    entries = [{"corpus": "Books", "version": version, "latest": "True"} for version in versions]
    (folder / "opusapi" / "index.html").write_text(json.dumps({"corpora": entries}))


@pytest.fixture
def books(site: Site, monkeypatch: pytest.MonkeyPatch) -> Site:
    """OPUS with one corpus in versions v1 and v2, v1 being the latest."""
    folder, url, _ = site
    monkeypatch.delenv("NMT_TEST_DATA", raising=False)
    monkeypatch.setattr(opus, "API", f"{url}/opusapi/")
    monkeypatch.setattr(opus, "STORAGE", url)
    for version in ("v1", "v2"):
        moses(folder / "OPUS-Books" / version / "moses" / "en-fr.txt.zip")
    answer(folder, "v1")
    return site


def get(tmp_path: Path, name: str = "opus:Books", log: list[str] | None = None) -> Path:
    say = (log if log is not None else []).append
    obtain_corpus(find_corpus(name), ("fr", "en"), tmp_path, None, say)
    return tmp_path / name.replace(":", "--") / "en-fr"


def test_newest_version_is_found_and_recorded(tmp_path: Path, books: Site) -> None:
    log: list[str] = []
    folder = get(tmp_path, log=log)
    assert sorted(path.name for path in folder.iterdir()) == [
        f"{s}.{n}" for s in ("test", "train", "validation") for n in ("en", "fr")
    ]
    query = "corpus=Books&source=en&target=fr&preprocessing=moses&version=latest"
    assert books[2] == [f"/opusapi/?{query}", "/OPUS-Books/v1/moses/en-fr.txt.zip"]
    assert log[0] == "the newest version of Books is v1"
    assert log[-1].startswith("no validation and no test set upstream: cut from the training text")
    record = json.loads((folder.parent / "en-fr.source.json").read_text())
    assert record["opus:Books"] == {"version": "v1"}
    assert record[f"{books[1]}/OPUS-Books/v1/moses/en-fr.txt.zip#Books.en-fr.en"]["bytes"] == len(
        LINES["en"]
    )
    assert not list(tmp_path.rglob("LICENSE")) and not list(tmp_path.rglob("*.zip"))


def test_recipe_names_it_like_any_corpus(tmp_path: Path, books: Site) -> None:
    config = DataConfig(
        corpus="opus:Books:v2", source_language="fr", target_language="en", directory=str(tmp_path)
    )
    splits = resolve(config)
    assert books[2] == ["/OPUS-Books/v2/moses/en-fr.txt.zip"]
    pairs = list(ParallelText(splits.train[0]))
    assert 400 < len(pairs) < 500
    assert all(
        p.source.replace("la phrase numero", "the sentence number") == p.target for p in pairs
    )


def test_text_that_changed_upstream_is_refused(tmp_path: Path, books: Site) -> None:
    folder = get(tmp_path)
    before = (folder / "train.fr").read_bytes()
    shutil.rmtree(folder)
    get(tmp_path)
    assert (folder / "train.fr").read_bytes() == before
    shutil.rmtree(folder)
    answer(books[0], "v2")
    changed = {"fr": LINES["fr"].replace("numero 7", "sept")}
    moses(books[0] / "OPUS-Books" / "v1" / "moses" / "en-fr.txt.zip", changed)
    message = r"v1/moses/en-fr.txt.zip#Books.en-fr.fr gave when it was first .* or delete .*json to"
    with pytest.raises(DataError, match=message):
        get(tmp_path)
    assert not folder.exists()


def test_copies_need_no_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opus, "fetch", None)
    moses(tmp_path / "zipped" / "en-fr.txt.zip")
    (tmp_path / "plain").mkdir()
    for language, text in LINES.items():
        (tmp_path / "plain" / f"Books.en-fr.{language}").write_text(text)
    texts = []
    for copies in ("zipped", "plain"):
        out = tmp_path / f"out-{copies}"
        corpus = find_corpus("opus:Books")
        obtain_corpus(corpus, ("en", "fr"), out, tmp_path / copies, lambda message: None)
        texts.append((out / "opus--Books" / "en-fr" / "train.fr").read_bytes())
    assert texts[0] == texts[1]


def test_sides_of_unequal_length_are_refused(tmp_path: Path, books: Site) -> None:
    archive = books[0] / "OPUS-Books" / "v1" / "moses" / "en-fr.txt.zip"
    moses(archive, {"fr": LINES["fr"] + "en trop\n"})
    with pytest.raises(DataError, match=r"train.en has 500 lines, .*train.fr has 501 lines"):
        get(tmp_path)


@pytest.mark.parametrize(
    ("name", "reply", "message"),
    [
        ("opus:books", '{"corpora": []}', "OPUS has no corpus books of en and fr; names are writt"),
        ("opus:Books:v9", "", r"OPUS has no .*/v9/moses/en-fr.txt.zip; check corpus, version and"),
        (
            "opus:Books",
            "<html>",
            r"opusapi/: not the answer expected .*; name the version yourself",
        ),
        ("opus:Books", '{"corpora": [{}]}', "not the answer expected .'version'.; name the"),
        ("opus:Books", "[]", "not the answer expected"),
        ("opus:Books", '{"corpora": [{"version": "../.."}]}', "a version '../..', which cannot be"),
    ],
)
def test_what_opus_does_not_have_is_told(
    tmp_path: Path, books: Site, name: str, reply: str, message: str
) -> None:
    (books[0] / "opusapi" / "index.html").write_text(reply)
    with pytest.raises(DataError, match=message):
        get(tmp_path, name)


def test_version_can_be_named_where_the_api_is_silent(tmp_path: Path, books: Site) -> None:
    shutil.rmtree(books[0] / "opusapi")
    with pytest.raises(
        DataError, match="HTTP 404 .*, or name the version yourself: opus:Books:VER"
    ):
        get(tmp_path)
    assert (get(tmp_path, "opus:Books:v1") / "train.en").is_file()
