"""What was downloaded is remembered, whatever happens to the text."""

from pathlib import Path

import pytest

from nmt.data.corpora.provenance import Provenance
from nmt.errors import DataError


def test_entries_are_kept_side_by_side(tmp_path: Path) -> None:
    record = Provenance(tmp_path / "deep" / "en-fr.source.json")
    assert record.recall("a") == {}
    record.remember("a", {"sha256": "1", "bytes": 2})
    record.remember("b", {"version": "v1"})
    record.remember("a", {"sha256": "3", "bytes": 4})
    again = Provenance(record.path)
    assert again.recall("a") == {"sha256": "3", "bytes": 4}
    assert again.recall("b") == {"version": "v1"}
    assert [path.name for path in record.path.parent.iterdir()] == ["en-fr.source.json"]


@pytest.mark.parametrize("text", ["{", "[]", '{"a": 1}', "\x00"])
def test_record_that_is_none_is_told(tmp_path: Path, text: str) -> None:
    (tmp_path / "r.json").write_text(text)
    message = "r.json: not the record of downloads that it should be .*; delete it to accept what"
    with pytest.raises(DataError, match=message):
        Provenance(tmp_path / "r.json").recall("a")


def test_record_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="(cannot be written|not the record).*"):
        Provenance(tmp_path / "file" / "r.json").remember("a", {})


@pytest.mark.parametrize("version", ["", '"format": 1, ', '"format": 2, '])
def test_a_newer_format_is_refused_and_an_absent_version_is_the_first(
    tmp_path: Path, version: str
) -> None:
    (tmp_path / "r.json").write_text(f'{{{version}"a": {{"sha256": "1"}}}}')
    if "2" in version:
        with pytest.raises(DataError, match=r"r\.json was written by a newer nmt \(format 2"):
            Provenance(tmp_path / "r.json").recall("a")
    else:
        assert Provenance(tmp_path / "r.json").recall("a") == {"sha256": "1"}
