"""The record of where a model came from, which a damaged file does not have."""

from pathlib import Path

import pytest

from nmt.errors import ExchangeError
from nmt.exchange.imported import origin_of, read_provenance
from nmt.run.directory import RunDirectory

RECORD = '{"source": "/a/b", "format": "marian", "license": "mit"%s}'


def record(folder: Path, text: str) -> RunDirectory:
    directory = RunDirectory(folder)
    directory.imported.mkdir()
    directory.provenance.write_text(text)
    return directory


@pytest.mark.parametrize(
    "text",
    ["[]", "5", "{", '{"a": 1}', '{"license": "mit"}', RECORD.replace('"mit"', "5") % ""]
    + [RECORD % ', "sha256": []', RECORD % ', "revision": 5'],
)
def test_a_damaged_record_is_one_sentence(text: str, tmp_path: Path) -> None:
    with pytest.raises(ExchangeError, match=r"provenance.json: .*; import the model again$"):
        origin_of(record(tmp_path, text))


@pytest.mark.parametrize(
    ("text", "origin"),
    [
        (RECORD % "", "b (marian), licence: mit"),
        (RECORD % ', "revision": "c"', "/a/b (marian, revision c), licence: mit"),
        ("{}", ""),
    ],
)
def test_a_record_says_the_origin_without_the_folders_of_a_machine(
    text: str, origin: str, tmp_path: Path
) -> None:
    assert origin_of(record(tmp_path, text)) == origin


def test_a_run_that_was_not_imported_has_no_origin(tmp_path: Path) -> None:
    assert read_provenance(RunDirectory(tmp_path)) == {}
    assert origin_of(RunDirectory(tmp_path)) == ""
