"""Text to translate is known by the hash of its lines, however it is compressed."""

import gzip
import io
from hashlib import sha256
from pathlib import Path

import pytest

from nmt.data.text.monolingual import MonolingualText
from nmt.data.text.remote_files import open_file
from nmt.errors import DataError


def test_the_facts_of_a_text_are_found_in_one_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = "\ufeffein Hund\r\n\neine Katze".encode()
    plain, compressed = tmp_path / "plain", tmp_path / "text.gz"
    plain.write_bytes(content)
    compressed.write_bytes(gzip.compress(content))
    opened: list[Path] = []

    def open_and_note(path: Path) -> io.BufferedReader:
        opened.append(path)
        return open_file(path)

    monkeypatch.setattr("nmt.data.text.lines.open_file", open_and_note)
    facts = MonolingualText([plain, compressed]).facts()
    digest = sha256(content).hexdigest()
    assert facts == [{"file": str(path), "sha256": digest} for path in (plain, compressed)]
    assert opened == [plain, compressed]


def test_blank_text_has_no_facts(tmp_path: Path) -> None:
    (tmp_path / "blank").write_bytes(b"\n \n")
    with pytest.raises(DataError, match="blank: no text; expected one sentence a line"):
        MonolingualText([tmp_path / "blank"]).facts()
