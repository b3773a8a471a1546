"""Each file that is translated has a media type, the same on every machine."""

import re

import pytest

from nmt.serving.media_types import UNKNOWN, content_type, media_type
from nmt.serving.uploads import file_suffixes


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("a.txt", "text/plain"),
        ("a.HTM", "text/html"),
        ("a.docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
        ("a.odp", "application/vnd.oasis.opendocument.presentation"),
        ("a.xlf", "application/xliff+xml"),
        ("a.csv", "text/csv"),
        ("a.json", "application/json"),
        ("a", UNKNOWN),
        ("a.docx.exe.zzz", UNKNOWN),
    ],
)
def test_a_suffix_has_its_registered_media_type(name: str, expected: str) -> None:
    assert media_type(name) == expected


def test_every_suffix_has_a_media_type_that_can_be_sent() -> None:
    for suffix in file_suffixes():
        assert re.fullmatch(r"[a-z]+/[\w.+-]+", media_type(f"a{suffix}")), suffix


def test_only_a_text_names_its_encoding() -> None:
    assert content_type("a.vtt", "é".encode()) == "text/vtt; charset=utf-8"
    assert content_type("a.txt", "é".encode("latin-1")) == "text/plain"
    page = b'<meta charset="latin-1">'
    assert content_type("a.html", page) == "text/html; charset=latin-1"
    assert "charset" not in content_type("a.docx", b"PK\x03\x04")
