"""Documents of every format are translated within the limits; damaged ones are mistakes."""

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from pathlib import Path
from typing import Any
from unittest.mock import patch
from zipfile import ZIP_DEFLATED, ZipFile

import pytest
from starlette.testclient import TestClient

from nmt.errors import ConfigError
from nmt.serving import uploads
from nmt.serving.media_types import media_type
from nmt.translation.documents.formats import FORMATS, PEEKED_BYTES, recognise_format
from tests.office_files import MAIN, word_file
from tests.serving.conftest import Client

PAIR = {"source": "en", "target": "de"}
WORD = word_file("<w:p><w:r><w:t>One dog.</w:t></w:r></w:p>")
XLIFF = (
    b'<xliff version="1.2"><file source-language="en" target-language="de"><body>'
    b'<trans-unit id="1"><source>One <g id="1">dog</g>.</source></trans-unit></body></file></xliff>'
)
PO = b'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\nmsgid "%s"\nmsgstr ""\n'
VTT = b"WEBVTT\n\n00:01.000 --> 00:02.000\nOne dog.\n"
TMX = (
    b'<tmx version="1.4"><header srclang="en"/><body><tu><tuv xml:lang="en"><seg>One dog</seg>'
    b"</tuv></tu></body></tmx>"
)


def packed(parts: dict[str, bytes]) -> bytes:
    content = BytesIO()
    with ZipFile(content, "w", ZIP_DEFLATED) as file:
        for name, part in parts.items():
            file.writestr(name, part)
    return content.getvalue()


ODT = packed(
    {
        "mimetype": b"application/vnd.oasis.opendocument.text",
        "content.xml": b'<office:document-content xmlns:office="urn:oasis:names:tc:opendocument:'
        b'xmlns:office:1.0" xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0">'
        b"<text:p>One dog.</text:p></office:document-content>",
    }
)
DOCUMENTS = {
    "report.docx": WORD,
    "text.odt": ODT,
    "project.xlf": XLIFF,
    "texts.po": PO,
    "film.vtt": VTT,
    "memory.tmx": TMX,
    "page.xhtml": b"<p>One <b>dog</b>.</p>",
}


def upload(client: TestClient, name: str, content: bytes, **body: str) -> Any:
    return client.post("/translate_file", files={"file": (name, content)}, data={**PAIR, **body})


def bomb(size: int) -> bytes:
    """A file of Word whose text is spaces, which are a thousand times as many as its bytes."""
    types = f'<Override PartName="/word/document.xml" ContentType="{MAIN}.main+xml"/>'
    return packed(
        {
            "[Content_Types].xml": f"<Types>{types}</Types>".encode(),
            "word/document.xml": b"<a>" + b" " * size + b"</a>",
        }
    )


@pytest.mark.parametrize("name", DOCUMENTS)
@pytest.mark.parametrize("source", ["en", "auto"])
def test_a_document_comes_back_in_its_format(client: TestClient, name: str, source: str) -> None:
    content = DOCUMENTS[name]
    answer = upload(client, name, content, source=source)
    assert answer.status_code == 200, answer.text
    response = client.get(answer.json()["translatedFileUrl"])
    assert response.headers["content-type"].startswith(media_type(name))
    stem, _, suffix = name.partition(".")
    assert f'filename="{stem}_de.{suffix}"' in response.headers["content-disposition"]
    expected = recognise_format(name, content[:PEEKED_BYTES])
    assert recognise_format(name, response.content[:PEEKED_BYTES]) == expected
    assert response.content != content
    assert upload(client, name, content, target="en").status_code == 200  # a copy


@pytest.mark.parametrize("name", ["project.xlf", "texts.po", "memory.tmx"])
def test_a_declared_language_is_surer_than_a_guess(client: TestClient, name: str) -> None:
    content = DOCUMENTS[name].replace(b'"Content', b'"X-Source-Language: en_GB\\n"\n"Content')
    content = content.replace(b'"%s"', b'"One dog"')
    guess = [{"language": "de", "confidence": 0.9}]
    with patch("nmt.serving.translate_request.detect", return_value=guess) as detect:
        answer = upload(client, name, content, source="auto")
    assert answer.status_code == 200, answer.text
    assert client.get(answer.json()["translatedFileUrl"]).content != content
    assert not detect.called


def test_a_document_is_recognised_by_its_content(client: TestClient) -> None:
    answer = upload(client, "film.txt", VTT)
    found = client.get(answer.json()["translatedFileUrl"])
    assert found.text.startswith("WEBVTT\n\n00:01.000 --> 00:02.000\n")
    assert found.headers["content-type"] == "text/plain; charset=utf-8"


def test_a_placeholder_of_a_program_stays(client: TestClient) -> None:
    po = PO.replace(b'"%s"', b'"One %s dog"')
    found = client.get(upload(client, "a.po", po).json()["translatedFileUrl"]).text
    assert found.count("%s") == 2


def test_a_document_of_a_page_on_the_server_lists_what_the_table_has(client: TestClient) -> None:
    settings = client.get("/frontend/settings").json()
    known = [suffix for each in FORMATS.values() for suffix in each.suffixes]
    assert settings["supportedFilesFormat"] == [".txt", *known]
    assert settings["filesTranslation"] is True


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.docx", b"PK\x03\x04" + b"\0" * 26 + b"word/", "is damaged"),
        ("a.docx", b"", "the file: is no document of Office"),
        ("a.docx", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "is in a format of Office 2003"),
        ("a.odt", b"not a document", "the file"),
        ("a.docx", WORD[:-60], "is damaged"),
        ("a.xlf", b"<xliff", "the file"),
        ("a.xlf", b"<!DOCTYPE a [<!ENTITY b 'c'>]><xliff/>", "the file"),
        ("a.html", WORD, None),
        ("a.po", b"\0", "the file"),
        ("a.rtf", b"{\\rtf1 a}", "save it as docx"),
        ("a.exe", b"MZ", "files of this type are not translated"),
        ("", b"a dog", "missing file parameter"),
    ],
)
def test_a_damaged_file_is_a_mistake(
    client: TestClient, name: str, content: bytes, message: str | None
) -> None:
    answer = upload(client, name, content)
    if message is None:  # another format than its name says
        assert answer.status_code == 200
    else:
        assert (answer.status_code, message in answer.json()["error"]) == (400, True), answer.text


@pytest.mark.parametrize(
    ("settings", "name", "content", "message"),
    [
        (
            {"unpacked_bytes": 100_000},
            "a.docx",
            lambda: bomb(200_000),
            "bytes unpacked, and 100000",
        ),
        ({"file_tags": 1000}, "a.html", lambda: b"<b>" * 1001, "has 1001 tags, and 1000 are"),
        ({"file_tags": 1000}, "a.docx", lambda: word_file("<w:p/>" * 999), "tags, and 1000 are"),
        ({"file_characters": 9}, "a.docx", lambda: WORD, None),
        ({"file_characters": 7}, "a.docx", lambda: WORD, "has 8 characters, and 7 are allowed"),
        ({"file_bytes": 5000}, "a.txt", lambda: b" " * 6000, "larger than 5000 bytes"),
        ({"files_bytes": 1000, "characters_per_day": 5}, "a.docx", lambda: WORD, "8 characters"),
    ],
)
def test_the_limits_hold_for_what_a_document_unpacks_to(
    serve: Client, settings: Any, name: str, content: Callable[[], bytes], message: str | None
) -> None:
    answer = upload(serve(**settings), name, content())
    assert answer.status_code == (413 if message else 200), answer.text
    assert not message or message in answer.json()["error"]


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (b"<b>" * 30_000 + b"dog", "a.html"),
        (b"<xliff>" + b"<a>" * 100_000 + b"</a>" * 100_000 + b"</xliff>", "a.xlf"),
        (b" " * 9_000_000, "a.html"),
        (b'<p title="' + b"a" * 900_000, "a.html"),
        (b"\n" * 200_000, "a.po"),
    ],
)
def test_nested_tags_and_spaces_are_answered(client: TestClient, content: bytes, name: str) -> None:
    answer = upload(client, name, content)
    assert answer.status_code in (200, 400, 413)
    assert answer.status_code == 200 or answer.json()["error"]


@pytest.mark.slow
def test_a_gigabyte_of_spaces_is_refused_before_it_is_unpacked(client: TestClient) -> None:
    answer = upload(client, "a.docx", bomb(1 << 30))
    assert answer.status_code == 413


@pytest.mark.parametrize(
    "name", ["../../etc/passwd.docx", "..\\..\\a.docx", "/a/b.docx", "ä/ö.docx"]
)
def test_no_name_leaves_the_folder(serve: Client, tmp_path: Path, name: str) -> None:
    client = serve(files=str(tmp_path / "files"))
    answer = upload(client, name, WORD)
    [stored] = (tmp_path / "files").iterdir()
    assert re.fullmatch(r"[0-9a-f]{32}\.\w+_de\.docx", stored.name)
    assert client.get(answer.json()["translatedFileUrl"]).status_code == 200


def test_ten_uploads_at_once_are_all_answered(client: TestClient) -> None:
    names = [*DOCUMENTS, "a.txt", "b.txt", "c.txt"]

    def send(name: str) -> int:
        return int(upload(client, name, DOCUMENTS.get(name, b"One dog.")).status_code)

    with ThreadPoolExecutor(10) as pool:
        assert list(pool.map(send, names)) == [200] * 10


def test_a_format_whose_library_is_missing_is_for_the_operator(client: TestClient) -> None:
    error = ConfigError("pip install 'nmt[documents]'")
    with patch.object(uploads, "read_document", side_effect=error):
        answer = upload(client, "a.docx", WORD)
    assert answer.status_code == 503
    assert "cannot read files of this format; tell its operator" in answer.json()["error"]
