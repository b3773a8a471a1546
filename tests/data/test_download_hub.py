"""A data set of the Hugging Face Hub becomes line-aligned text."""

from pathlib import Path
from typing import Any

import datasets
import pyarrow
import pyarrow.parquet
import pytest

from nmt.data import download
from nmt.data.download import Origin
from nmt.data.parallel_text import read_lines
from nmt.errors import DataError

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
    download.write_hub_text("wmt/wmt14", "de-en", "b199e4", out, where)
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
    assert calls == [(("wmt/wmt14", "de-en"), {"revision": "b199e4"})]
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
    with pytest.raises(DataError, match="wmt/wmt14 fr-en cannot be read: 'fr'"):
        where = Origin(parquet, tmp_path, lambda message: None)
        download.write_hub_text("wmt/wmt14", "fr-en", "b199e4", tmp_path, where)
