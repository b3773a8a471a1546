"""What is known of complete outputs, in the user's folder for caches."""

from pathlib import Path

import pytest

from nmt.cli.lines import output_records
from nmt.cli.lines.output_records import keep_record, recorded_settings
from nmt.errors import DataError
from tests.cli.commands import fail, invoke, write_lines


@pytest.fixture(autouse=True)
def caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(output_records, "cache_folders", lambda: iter([tmp_path / "caches"]))
    return tmp_path / "caches"


def test_a_record_is_that_of_a_file_as_it_was_written(tmp_path: Path, caches: Path) -> None:
    output, link = tmp_path / "out", tmp_path / "link"
    link.symlink_to(output)
    assert recorded_settings(output) is None
    output.write_text("a")
    keep_record(output, {"beam_size": 4})
    assert recorded_settings(output) == recorded_settings(link) == {"beam_size": 4}
    [record] = (caches / "outputs").iterdir()
    record.write_text("[")
    assert recorded_settings(output) is None
    keep_record(output, {})
    assert recorded_settings(output) == {}
    output.write_text("ab")
    assert recorded_settings(output) is None


def test_the_newest_records_are_kept(
    tmp_path: Path, caches: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output_records, "KEPT", 3)
    for number in range(5):
        write_lines(tmp_path / str(number), ["a"])
        keep_record(tmp_path / str(number), {})
    assert len(list((caches / "outputs").iterdir())) == 3
    assert recorded_settings(tmp_path / "4") == {}


def test_where_no_record_can_be_kept_nothing_is_known(tmp_path: Path, caches: Path) -> None:
    caches.write_text("a file")
    output = write_lines(tmp_path / "out", ["a"])
    keep_record(output, {})
    assert recorded_settings(output) is None


@pytest.mark.parametrize("name", ["in.txt", "in.html"])
def test_resume_compares_the_settings_of_a_complete_output(
    tiny_run: Path, tmp_path: Path, name: str
) -> None:
    source, output = write_lines(tmp_path / name, ["<p>a dog</p>"]), tmp_path / f"out-{name}"
    command = ("translate", "-m", tiny_run, source, "-o", output, "--workers", 1)
    assert invoke(*command).exit_code == 0
    before = output.read_bytes()
    assert "its settings are the same); leave" in invoke(*command, "--resume").stderr
    for option, said in (("--beam-size", "beam_size"), ("--min-length", "min_length")):
        message = fail(DataError, *command, "--resume", option, 1)
        assert f"{output}: begun with {said}" in message and "and now it is 1" in message
    output.write_text("changed")
    assert "its settings are not known" in invoke(*command, "--resume").stderr
    output.write_bytes(before)
