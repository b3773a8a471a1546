"""A data set of the Hugging Face Hub becomes line-aligned text."""

import json
from pathlib import Path
from typing import Any

import datasets
import pyarrow
import pyarrow.parquet
import pytest

from nmt.data.corpora import hub
from nmt.data.corpora.hub import HubData, write_hub_text
from nmt.data.corpora.splits import SPLITS, Languages
from nmt.data.text.lines import read_lines
from nmt.errors import DataError
from tests.data.corpora.site import Site, names, origin_in, split_names

Patch = pytest.MonkeyPatch
REVISION = "b199e406369ec1b7634206d3ded5ba45de2fe696"
WMT14 = HubData("wmt/wmt14", "de-en", REVISION, SPLITS)
ANY = HubData("a/b", None, REVISION)
ROWS = {
    "train": [("Ein\nHund", "A dog"), ("Zwei\r\n\r\nHunde", "Two\rdogs"), ("\u2028", "")] * 700,
    "validation": [("Katze", "Cat")],
    "test": [("Haus", "House"), ("Maus", "Mouse")],
}
GERMAN = [f"der satz nummer {n}" for n in range(500)]
ENGLISH = [f"the sentence number {n}" for n in range(500)]


def table(path: Path, **columns: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pyarrow.parquet.write_table(pyarrow.table(columns), path)
    return path


@pytest.fixture
def parquet(tmp_path: Path) -> Path:
    """The layout of wmt/wmt14 on the Hub, two training files as there."""
    folder = tmp_path / "hub" / "de-en"
    for split, rows in ROWS.items():
        pairs = [{"de": german, "en": english} for german, english in rows]
        for number, part in enumerate([pairs[:1000], pairs[1000:]]):
            if part:
                table(folder / f"{split}-{number:05}-of-00002.parquet", translation=part)
    return folder


def write(
    folder: Path, data: HubData, copies: Path | None = None, languages: Languages = ("de", "en")
) -> tuple[Path, list[str]]:
    """The folder that a data set is written to, and what is logged."""
    log: list[str] = []
    out = folder / "out"
    out.mkdir()
    write_hub_text(out, languages, origin_in(folder, copies, log), data)
    return out, log


def answer(monkeypatch: Patch, found: Any) -> list[Any]:
    """Let the library find this, or fail with it; return the list of what it is asked for."""
    calls: list[Any] = []

    def load(*arguments: Any, **named: Any) -> Any:
        calls.append((arguments, named))
        if isinstance(found, Exception):
            raise found
        return found

    monkeypatch.setattr(datasets, "load_dataset", load)
    return calls


@pytest.mark.parametrize("up", [0, 1])
def test_parquet_becomes_aligned_lines(tmp_path: Path, parquet: Path, up: int) -> None:
    out, log = write(tmp_path, WMT14, [parquet, parquet.parent][up])
    assert names(out) == split_names("de", "en")
    assert list(read_lines(out / "train.de")) == ["Ein Hund", "Zwei Hunde", "\u2028"] * 700
    assert list(read_lines(out / "train.en")) == ["A dog", "Two dogs", ""] * 700
    assert list(read_lines(out / "test.en")) == ["House", "Mouse"]
    assert log[0] == "train: 2,100 pairs; line ends inside 2,100 sentences became spaces"


@pytest.mark.parametrize(
    ("damage", "languages", "message"),
    [
        (None, ("de", "en"), r"de-en: no file called test-\*.parquet is here"),
        (b"nothing", ("de", "en"), "wmt/wmt14 de-en cannot be read: .*; check the network"),
        (
            b"",
            ("fr", "en"),
            "wmt/wmt14 de-en: no text of fr and en, found translation.de, translation.en; expected "
            "translation.fr and translation.en, columns called fr and en, or two columns of text",
        ),
    ],
)
def test_files_that_do_not_hold_the_text_are_told(
    tmp_path: Path, parquet: Path, damage: bytes | None, languages: Languages, message: str
) -> None:
    file = next(parquet.glob("test-*"))
    if damage is None:
        file.unlink()
    elif damage:
        file.write_bytes(damage)
    with pytest.raises(DataError, match=message):
        write(tmp_path, WMT14, parquet, languages)


# -- any data set ---------------------------------------------------------------------------------


def test_one_split_is_enough(tmp_path: Path) -> None:
    rows = [{"de": german, "en": english} for german, english in zip(GERMAN, ENGLISH, strict=True)]
    table(tmp_path / "copies" / "de-en" / "train" / "0000.parquet", translation=rows)
    out, log = write(tmp_path, HubData("a/b", "de-en", None), tmp_path / "copies")
    assert names(out) == split_names("de", "en")
    assert log[-1].startswith("no validation and no test set upstream: cut from the training text")


@pytest.mark.parametrize(
    ("columns", "configuration", "languages", "taken"),
    [
        ("de en", None, ("de", "en"), None),
        ("source target", "de-en", ("de", "en"), "'source' and 'target'"),
        ("german english", None, ("de", "en"), "'german' and 'english'"),
        ("source target", "x-de-en", ("en", "de"), "'target' and 'source'"),
    ],
)
def test_two_columns_of_text_will_do(
    tmp_path: Path, columns: str, configuration: str | None, languages: Languages, taken: str | None
) -> None:
    sides = dict(zip(columns.split(), (GERMAN, ENGLISH), strict=True))
    table(tmp_path / "copies" / "train-00000.parquet", id=list(range(500)), **sides)
    data = HubData("a/b", configuration, None)
    out, log = write(tmp_path, data, tmp_path / "copies", languages)
    assert next(read_lines(out / "train.de")).startswith("der satz")
    said = f"columns {taken} are taken for {languages[0]} and {languages[1]}"
    assert [line for line in log if line.startswith("columns")] == ([said] if taken else [])


def test_named_columns_are_found_and_dev_is_the_validation_set(tmp_path: Path) -> None:
    table(tmp_path / "copies" / "train-0.parquet", fr=["x"] * 500, de=GERMAN, en=ENGLISH)
    table(tmp_path / "copies" / "dev-0.parquet", fr=["x"] * 2, de=["ja", None], en=["yes", "no"])
    out, log = write(tmp_path, ANY, tmp_path / "copies")
    assert next(read_lines(out / "train.en")).startswith("the sentence")
    assert list(read_lines(out / "validation.de")) == ["ja", ""]
    assert log[-1].startswith("no test set upstream")


@pytest.mark.parametrize(
    "columns",
    [
        {"translation": [None, {"de": "ja", "en": "yes"}, None]},
        {"de": [None, "ja", None], "en": [None, "yes", None]},
    ],
)
def test_a_row_that_is_null_becomes_an_empty_pair(tmp_path: Path, columns: dict[str, Any]) -> None:
    for split in ("train", "validation", "test"):
        table(tmp_path / "copies" / f"{split}-0.parquet", **columns)
    out, _ = write(tmp_path, ANY, tmp_path / "copies")
    assert list(read_lines(out / "train.de")) == ["", "ja", ""]
    assert list(read_lines(out / "test.en")) == ["", "yes", ""]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"text": ["a"]}, "a/b: no text of de and en, found text; expected translation.de"),
        ({"label": [1]}, "no text of de and en, found no text at all"),
        ({"a": ["x"], "b": ["y"], "c": ["z"]}, "found a, b, c; expected"),
        ({"de": ["x"] * 2, "en": ["x"] * 2, "translation": [["x"]] * 2}, "no sentence is left"),
        ({"translation": [{"de": ["x"], "en": "y"}]}, "a text in each row under 'de', got a list"),
    ],
)
def test_rows_without_translations_are_told(
    tmp_path: Path, columns: dict[str, Any], message: str
) -> None:
    table(tmp_path / "copies" / "train-0.parquet", **columns)
    with pytest.raises(DataError, match=message):
        write(tmp_path, ANY, tmp_path / "copies")


# -- the Hub's answers ----------------------------------------------------------------------------

SCRIPT = RuntimeError("Dataset scripts are no longer supported, but found b.py")
UNKNOWN = datasets.exceptions.DatasetNotFoundError("no 'a/b'")


@pytest.mark.parametrize(
    ("repository", "found", "message"),
    [
        ("a/b", ConnectionError("No\n Hub"), "a/b x cannot be read: No Hub; check the network, or"),
        ("a/b", OSError(), "a/b x cannot be read: OSError; check the network"),
        (
            "a/b",
            ValueError("BuilderConfig 'x' not found."),
            "name one of its configurations: hf:a/b:CONFIG",
        ),
        (
            "a/b",
            ValueError("Config name is missing."),
            "name one of its configurations: hf:a/b:CONFIG",
        ),
        ("a/b", UNKNOWN, "a/b x cannot be read: .*check the name at https://hugg"),
        ("a/b", {"test": 0, "more": 0}, "a/b x: has no split 'train', only test, more; choose"),
        (
            "a/b",
            SCRIPT,
            "^a/b x needs a loading script, which is never run; use a data set that .*"
            "hf:OWNER/NAME:CONFIGURATION.*opus:CORPUS.*refs/convert/parquet, download it by hand, "
            "for `nmt data download --from`$",
        ),
        ("IWSLT/iwslt2017", SCRIPT, "use the corpus iwslt2017 instead, or a data set"),
    ],
)
def test_what_the_hub_does_not_have_is_told_with_the_next_step(
    tmp_path: Path, monkeypatch: Patch, repository: str, found: Any, message: str
) -> None:
    answer(monkeypatch, found)
    with pytest.raises(DataError, match=message):
        write(tmp_path, HubData(repository, "x", REVISION))


def test_a_folder_is_not_taken_for_the_data_set(tmp_path: Path, monkeypatch: Patch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a" / "b").mkdir(parents=True)
    with pytest.raises(DataError, match="a/b is also a folder here, which would be read instead"):
        write(tmp_path, ANY)


@pytest.mark.parametrize(
    ("revision", "place"), [(None, ""), ("v1", "/revision/v1"), (REVISION, None)]
)
def test_a_revision_is_looked_up_once_and_kept_and_a_commit_is_never_looked_up(
    tmp_path: Path, site: Site, monkeypatch: Patch, revision: str | None, place: str
) -> None:
    monkeypatch.setattr(hub, "ENDPOINT", site.url)
    copy = str(table(tmp_path / "train-0.parquet", de=GERMAN, en=ENGLISH))
    cache = str(tmp_path / "cache")
    rows = datasets.load_dataset("parquet", data_files={"train": copy}, cache_dir=cache)
    calls = answer(monkeypatch, rows)
    expected = REVISION if revision == REVISION else "1" * 40
    for number in (1, 2):
        sha = str(number) * 40
        site.files[f"/api/datasets/a/b{place}"] = json.dumps({"id": "a/b", "sha": sha}).encode()
        _, log = write(tmp_path, HubData("a/b", "x", revision))
        assert log[0] == f"loading a/b x from the Hugging Face Hub, revision {expected}"
        (tmp_path / "out").rename(tmp_path / f"out{number}")
    assert calls == [(("a/b", "x"), {"revision": expected})] * 2
    assert len(site.asked) == (revision != REVISION)
    known = {} if revision == REVISION else {"revision": expected}
    assert origin_in(tmp_path).recall(f"a/b@{revision or ''}") == known


def test_an_unknown_data_set_is_told(tmp_path: Path, site: Site, monkeypatch: Patch) -> None:
    monkeypatch.setattr(hub, "ENDPOINT", site.url)
    with pytest.raises(DataError, match="a/b cannot be read: .*404"):
        write(tmp_path, HubData("a/b", None, None))
