"""A data set of the Hugging Face Hub becomes line-aligned text."""

import json
from pathlib import Path
from typing import Any

import datasets
import pyarrow
import pyarrow.parquet
import pytest

from nmt.data.corpora import hub
from nmt.data.corpora.download import Origin
from nmt.data.corpora.hub import HubData, write_hub_text
from nmt.data.corpora.provenance import Provenance
from nmt.data.corpora.splits import SPLITS
from nmt.data.text.lines import read_lines
from nmt.errors import DataError

Site = tuple[Path, str, list[str]]

REVISION = "b199e406369ec1b7634206d3ded5ba45de2fe696"
WMT14 = HubData("wmt/wmt14", "de-en", REVISION, SPLITS)
ROWS = {
    "train": [("Ein\nHund", "A dog"), ("Zwei\r\n\r\nHunde", "Two\rdogs"), ("\u2028", "")] * 700,
    "validation": [("Katze", "Cat")],
    "test": [("Haus", "House"), ("Maus", "Mouse")],
}


@pytest.fixture
def parquet(tmp_path: Path) -> Path:
    """The layout of wmt/wmt14 on the Hub, two training files as there."""
    folder = tmp_path / "hub" / "de-en"
    folder.mkdir(parents=True)
    for split, rows in ROWS.items():
        parts = [rows[:1000], rows[1000:]] if split == "train" else [rows]
        for number, part in enumerate(parts):
            pairs = [{"de": german, "en": english} for german, english in part]
            table = pyarrow.table({"translation": pairs})
            name = f"{split}-{number:05}-of-{len(parts):05}.parquet"
            pyarrow.parquet.write_table(table, folder / name)
    return folder


def write_hub(tmp_path: Path, copies: Path | None, log: list[str] | None = None) -> Path:
    out = tmp_path / "out"
    out.mkdir()
    say = (log if log is not None else []).append
    where = Origin(copies, tmp_path / "downloads", say)
    write_hub_text(WMT14, ("de", "en"), out, where)
    return out


@pytest.mark.parametrize("up", [0, 1])
def test_parquet_becomes_aligned_lines(tmp_path: Path, parquet: Path, up: int) -> None:
    log: list[str] = []
    out = write_hub(tmp_path, [parquet, parquet.parent][up], log)
    assert sorted(path.name for path in out.iterdir()) == [
        f"{s}.{n}" for s in ("test", "train", "validation") for n in ("de", "en")
    ]
    assert list(read_lines(out / "train.de")) == ["Ein Hund", "Zwei Hunde", "\u2028"] * 700
    assert list(read_lines(out / "train.en")) == ["A dog", "Two dogs", ""] * 700
    assert list(read_lines(out / "test.en")) == ["House", "Mouse"]
    assert log[0] == "train: 2,100 pairs; line ends inside 2,100 sentences became spaces"


def test_hub_is_asked_for_the_pinned_revision(
    tmp_path: Path, parquet: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = datasets.load_dataset, []

    def load(*arguments: str, **named: str) -> Any:
        calls.append((arguments, named))
        files = {split: str(parquet / f"{split}-*.parquet") for split in ROWS}
        return real("parquet", data_files=files, cache_dir=str(tmp_path / "cache"))

    monkeypatch.setattr(datasets, "load_dataset", load)
    out = write_hub(tmp_path, None)
    assert calls == [(("wmt/wmt14", "de-en"), {"revision": REVISION})]
    assert len(list(read_lines(out / "train.en"))) == 2100


def test_unreachable_hub_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def load(*arguments: str, **named: str) -> Any:
        raise ConnectionError("Couldn't reach\n the Hub")

    monkeypatch.setattr(datasets, "load_dataset", load)
    message = "wmt/wmt14 de-en cannot be read: Couldn't reach the Hub; check the network, or fetch"
    with pytest.raises(DataError, match=message):
        write_hub(tmp_path, None)


def test_missing_parquet_is_named(tmp_path: Path, parquet: Path) -> None:
    next(parquet.glob("test-*")).unlink()
    with pytest.raises(DataError, match=r"de-en: no file called test-\*.parquet is here"):
        write_hub(tmp_path, parquet)


def test_damaged_parquet_is_told(tmp_path: Path, parquet: Path) -> None:
    next(parquet.glob("test-*")).write_bytes(b"nothing")
    with pytest.raises(DataError, match="wmt/wmt14 de-en cannot be read: .*; check the network"):
        write_hub(tmp_path, parquet)


def test_rows_of_other_languages_are_told(tmp_path: Path, parquet: Path) -> None:
    message = (
        "wmt/wmt14 de-en: no text of fr and en, found translation.de, translation.en; expected "
        "translation.fr and translation.en, columns called fr and en, or two columns of text; choo"
    )
    with pytest.raises(DataError, match=message):
        where = Origin(parquet, tmp_path, lambda message: None)
        write_hub_text(WMT14, ("fr", "en"), tmp_path, where)


# -- any data set ---------------------------------------------------------------------------------

SENTENCES = [(f"der satz nummer {n}", f"the sentence number {n}") for n in range(500)]


def table(path: Path, columns: dict[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pyarrow.parquet.write_table(pyarrow.table(columns), path)
    return path


def two_columns(path: Path, first: str, second: str, **more: list[Any]) -> Path:
    sides = {first: [pair[0] for pair in SENTENCES], second: [pair[1] for pair in SENTENCES]}
    return table(path, {**more, **sides})


def write(
    tmp_path: Path, data: HubData, languages: tuple[str, str] = ("de", "en")
) -> tuple[Path, list[str]]:
    out, log = tmp_path / "out", list[str]()
    out.mkdir()
    where = Origin(tmp_path / "copies", tmp_path / "downloads", log.append)
    write_hub_text(data, languages, out, where)
    return out, log


def test_one_split_is_enough(tmp_path: Path) -> None:
    rows = [{"de": german, "en": english} for german, english in SENTENCES]
    table(tmp_path / "copies" / "de-en" / "train" / "0000.parquet", {"translation": rows})
    out, log = write(tmp_path, HubData("a/b", "de-en", None))
    assert len(list(out.iterdir())) == 6
    assert log[-1].startswith("no validation and no test set upstream: cut from the training text")


@pytest.mark.parametrize(
    ("names", "configuration", "said"),
    [
        (("de", "en"), None, False),
        (("source", "target"), "de-en", True),
        (("german", "english"), None, True),
    ],
)
def test_two_columns_of_text_will_do(
    tmp_path: Path, names: tuple[str, str], configuration: str | None, said: bool
) -> None:
    number = {"id": list(range(len(SENTENCES)))}
    two_columns(tmp_path / "copies" / "train-00000.parquet", *names, **number)
    out, log = write(tmp_path, HubData("a/b", configuration, None))
    assert next(read_lines(out / "train.de")).startswith("der satz")
    assert (f"columns '{names[0]}' and '{names[1]}' are taken for de and en" in log) is said


def test_configuration_tells_which_column_is_which(tmp_path: Path) -> None:
    two_columns(tmp_path / "copies" / "train-00000.parquet", "source", "target")
    out, log = write(tmp_path, HubData("a/b", "x-de-en", None), ("en", "de"))
    assert next(read_lines(out / "train.de")).startswith("der satz")
    assert "columns 'target' and 'source' are taken for en and de" in log


def test_named_columns_are_found_among_others(tmp_path: Path) -> None:
    words = {"fr": ["x"] * len(SENTENCES)}
    two_columns(tmp_path / "copies" / "train-0.parquet", "de", "en", **words)
    out, _ = write(tmp_path, HubData("a/b", None, None))
    assert next(read_lines(out / "train.en")).startswith("the sentence")


def test_validation_set_may_be_called_dev(tmp_path: Path) -> None:
    two_columns(tmp_path / "copies" / "train-0.parquet", "de", "en")
    table(tmp_path / "copies" / "dev-0.parquet", {"de": ["ja", None], "en": ["yes", "no"]})
    out, log = write(tmp_path, HubData("a/b", None, None))
    assert list(read_lines(out / "validation.de")) == ["ja", ""]
    assert log[-1].startswith("no test set upstream")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"text": ["a"]}, "a/b: no text of de and en, found text; expected translation.de"),
        ({"label": [1]}, "no text of de and en, found no text at all"),
        ({"a": ["x"], "b": ["y"], "c": ["z"]}, "found a, b, c; expected"),
        ({"de": ["x", "y"], "en": ["x", "y"], "translation": [["x"], ["y"]]}, ""),
        ({"translation": [{"de": ["x"], "en": "y"}]}, "a text in each row under 'de', got a list"),
    ],
)
def test_rows_that_are_no_translations_are_told(
    tmp_path: Path, columns: dict[str, Any], message: str
) -> None:
    table(tmp_path / "copies" / "train-0.parquet", columns)
    with pytest.raises(DataError, match=message or "too small to cut a validation set from"):
        write(tmp_path, HubData("a/b", None, None))


# -- the Hub's answers ----------------------------------------------------------------------------


def refuse(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def load(*arguments: Any, **named: Any) -> Any:
        raise error

    monkeypatch.setattr(datasets, "load_dataset", load)


@pytest.mark.parametrize(
    ("repository", "instead"),
    [("IWSLT/iwslt2017", "use the corpus iwslt2017 instead, or a data set"), ("a/b", "use a data")],
)
def test_loading_script_is_refused_with_alternatives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, repository: str, instead: str
) -> None:
    refuse(monkeypatch, RuntimeError("Dataset scripts are no longer supported, but found b.py"))
    message = (
        f"^{repository} x needs a loading script, which is never run; {instead}.*"
        "hf:OWNER/NAME:CONFIGURATION.*opus:CORPUS.*refs/convert/parquet, and use --from$"
    )
    where = Origin(None, tmp_path, lambda message: None)
    with pytest.raises(DataError, match=message):
        write_hub_text(HubData(repository, "x", REVISION), ("de", "en"), tmp_path, where)


@pytest.mark.parametrize(
    ("error", "step"),
    [
        (
            ValueError("BuilderConfig 'x' not found. Available: ['y']"),
            "name one of them: hf:a/b:CO",
        ),
        (ValueError("Config name is missing. Pick one: ['y']"), "name one of them: hf:a/b:CONFIG"),
        (datasets.exceptions.DatasetNotFoundError("no 'a/b'"), "check the name at https://hugg"),
        (OSError(), "OSError; check the network"),
    ],
)
def test_next_step_fits_the_trouble(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception, step: str
) -> None:
    refuse(monkeypatch, error)
    where = Origin(None, tmp_path, lambda message: None)
    with pytest.raises(DataError, match=f"a/b x cannot be read: .*{step}"):
        write_hub_text(HubData("a/b", "x", REVISION), ("de", "en"), tmp_path, where)


def test_missing_split_names_those_that_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(datasets, "load_dataset", lambda *a, **n: {"test": None, "extra": None})
    where = Origin(None, tmp_path, lambda message: None)
    with pytest.raises(DataError, match="a/b: has no split 'train', only test, extra; choose"):
        write_hub_text(HubData("a/b", None, REVISION), ("de", "en"), tmp_path, where)


def test_folder_of_that_name_is_not_taken_for_the_data_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a" / "b").mkdir(parents=True)
    where = Origin(None, tmp_path, lambda message: None)
    with pytest.raises(DataError, match="a/b is also a folder here, which would be read instead"):
        write_hub_text(HubData("a/b", None, REVISION), ("de", "en"), tmp_path, where)


@pytest.mark.parametrize(("revision", "place"), [(None, ""), ("v1", "/revision/v1")])
def test_revision_is_looked_up_once_and_kept(
    tmp_path: Path, site: Site, monkeypatch: pytest.MonkeyPatch, revision: str | None, place: str
) -> None:
    folder, url, asked = site
    answer = folder / f"api/datasets/a/b{place}"
    (answer if not place else answer.parent).mkdir(parents=True)
    answer = answer / "index.html" if not place else answer
    answer.write_text(json.dumps({"id": "a/b", "sha": "1" * 40}))
    monkeypatch.setattr(hub, "ENDPOINT", url)
    copy = two_columns(tmp_path / "train-0.parquet", "de", "en")
    real, revisions = datasets.load_dataset, []

    def load(name: str, configuration: str | None, revision: str) -> Any:
        revisions.append(revision)
        return real("parquet", data_files={"train": str(copy)}, cache_dir=str(tmp_path / "cache"))

    monkeypatch.setattr(datasets, "load_dataset", load)
    record = Provenance(tmp_path / "record.json")
    for _ in range(2):
        log: list[str] = []
        out = tmp_path / f"out{len(revisions)}"
        out.mkdir()
        where = Origin(None, tmp_path, log.append, record)
        write_hub_text(HubData("a/b", None, revision), ("de", "en"), out, where)
        answer.write_text(json.dumps({"id": "a/b", "sha": "2" * 40}))
        assert log[0] == f"loading a/b from the Hugging Face Hub, revision {'1' * 40}"
    assert revisions == ["1" * 40] * 2
    assert record.recall(f"a/b@{revision or ''}") == {"revision": "1" * 40}


def test_data_set_that_the_hub_does_not_know_is_told(
    tmp_path: Path, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub, "ENDPOINT", site[1])
    where = Origin(None, tmp_path, lambda message: None)
    with pytest.raises(DataError, match="a/b cannot be read: .*404"):
        write_hub_text(HubData("a/b", None, None), ("de", "en"), tmp_path, where)
