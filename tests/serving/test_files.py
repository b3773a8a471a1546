"""Files of text and subtitles are translated, kept for an hour, and found by nobody else."""

import codecs
import html
import logging
import os
import re
import tempfile
import time
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from starlette.testclient import TestClient

from nmt.translation.documents.tokens import UNWRITABLE
from tests.serving.conftest import Client

PAIR = {"source": "en", "target": "de"}
CUES = [["One dog runs.", "Two cats sleep."], ["Three."], [], ["Four birds."]]
TIME = "00:00:0{0},000 --> 00:00:0{0},900"


def subtitles(cues: list[list[str]], end: str = "\n") -> str:
    blocks = [[str(i), TIME.format(i), *lines, ""] for i, lines in enumerate(cues, start=1)]
    return end.join(line for block in blocks for line in block) + end


def upload(client: TestClient, name: str, content: str | bytes, **body: str) -> Any:
    data = content.encode() if isinstance(content, str) else content
    return client.post("/translate_file", files={"file": (name, data)}, data={**PAIR, **body})


def download(client: TestClient, answer: Any) -> str:
    assert answer.status_code == 200, answer.text
    url: str = answer.json()["translatedFileUrl"]
    response = client.get(url)
    assert response.status_code == 200
    assert "attachment" in response.headers["content-disposition"]
    return response.text


def one_by_one(client: TestClient, *texts: str) -> list[str]:
    body = {"q": list(texts), **PAIR}
    found: list[str] = client.post("/translate", json=body).json()["translatedText"]
    return found


def test_a_text_file_keeps_its_lines(client: TestClient) -> None:
    text = "One dog.\n\n  Two cats.\nThree.\n"
    first, second, third = one_by_one(client, "One dog.", "Two cats.", "Three.")
    found = download(client, upload(client, "my text.txt", text))
    assert found == f"{first}\n\n  {second}\n{third}\n"


def test_an_html_file_keeps_its_tags(client: TestClient) -> None:
    answer = upload(client, "page.html", "<h1>One dog.</h1>\n<p>Two cats.</p>\n")
    first, second = one_by_one(client, "One dog.", "Two cats.")
    found = html.unescape(download(client, answer))
    expected = f"<h1>{first}</h1>\n<p>{second}</p>\n"
    assert found == expected.translate(UNWRITABLE)


@pytest.mark.parametrize(
    "declaration",
    ['<meta charset="windows-1252">', '<?xml version="1.0" encoding="windows-1252"?>'],
)
def test_a_page_keeps_its_encoding(client: TestClient, declaration: str) -> None:
    page = f"{declaration}<p>One dog.</p><pre>“é”</pre>"
    answer = upload(client, "page.htm", page.encode("windows-1252"))
    response = client.get(answer.json()["translatedFileUrl"])
    assert response.headers["content-type"] == "text/html; charset=windows-1252"
    content = response.content.decode("windows-1252")
    assert content.startswith(f"{declaration}<p>") and content.endswith("</p><pre>“é”</pre>")


@pytest.mark.parametrize(
    ("encoding", "mark"),
    [
        ("utf-8-sig", b""),
        ("utf-16", b""),
        ("utf-16-be", codecs.BOM_UTF16_BE),
        ("utf-16-le", b""),
        ("utf-16-be", b""),
        ("windows-1252", b""),
    ],
)
@pytest.mark.parametrize("name", ["film.srt", "text.txt"])
def test_text_is_written_in_the_encoding_in_which_it_was_read(
    client: TestClient, name: str, encoding: str, mark: bytes
) -> None:
    text = subtitles([["{\\an8}"], ["{é}"], ["1 2 3"]]).replace("\n", "\r\n")
    answer = upload(client, name, mark + text.encode(encoding), target="en")  # a copy
    assert answer.status_code == 200, answer.text
    response = client.get(answer.json()["translatedFileUrl"])
    assert response.content == mark + text.encode(encoding)
    charset = response.headers["content-type"].partition("charset=")[2]
    expected = "" if "1252" in encoding else encoding.removesuffix("-sig")
    assert charset == ("utf-16" if mark else expected)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_subtitles_keep_numbers_times_and_lines(client: TestClient, end: str) -> None:
    answer = upload(client, "film.SRT", subtitles(CUES, end))
    assert re.search(r"/[0-9a-f]{32}\.film_de\.srt$", answer.json()["translatedFileUrl"])
    found = download(client, answer)
    texts = iter(one_by_one(client, *(" ".join(lines) for lines in CUES if lines)))
    assert found.count(end) == found.count("\n")
    blocks = found.replace(end, "\n").rstrip("\n").split("\n\n")
    assert len(blocks) == len(CUES)
    for i, (block, lines) in enumerate(zip(blocks, CUES, strict=True), start=1):
        number, moment, *translated = block.rstrip("\n").split("\n")
        assert (number, moment) == (str(i), TIME.format(i))
        assert len(translated) <= len(lines)
        assert "".join(translated).split() == "".join(translated).split()
        if lines:
            assert " ".join(translated).split() == next(texts).translate(UNWRITABLE).split()


def test_formatting_of_subtitles_does_not_change_the_translation(client: TestClient) -> None:
    formats = ("{}", "<i>{}</i>", '<font color="#ff0">{}</font>', "{{\\an8}}{}", "- {}", "♪ {} ♪")
    cues = [[form.format("One dog runs.")] for form in formats]
    [expected] = one_by_one(client, "One dog runs.")
    found = download(client, upload(client, "film.srt", subtitles(cues)))
    texts = [html.unescape(block.split("\n", 2)[2]) for block in found.rstrip("\n").split("\n\n")]
    # no document has control characters, which the tiny model writes
    cleaned = " ".join(expected.split()).translate(UNWRITABLE)
    assert texts == [form.format(cleaned) for form in formats]


def test_all_subtitles_of_a_file_are_in_one_language(client: TestClient) -> None:
    """A single cue, such as a name, may look like any language."""
    cues = [["Hans!"], ["Das ist ein Hund."], ["This is a sentence about dogs and cats."] * 9]
    given = upload(client, "film.srt", subtitles(cues))
    found = upload(client, "film.srt", subtitles(cues), source="auto")
    assert download(client, found) == download(client, given)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.mp3", b"", "files of this type are not translated; .txt, .xlf"),
        (
            "a.xlf",
            b"<xliff><file source-language='ja'/></xliff>",
            "the file: its source-language is ja, but the model translates from",
        ),
        ("a.txt", b"\x81", "the file is neither UTF-8 nor windows-1252; save it as UTF-8"),
        ("a.srt", b"\xff\xfe\x00", "the file is neither UTF-8 nor utf-16; save it as UTF-8"),
        ("a.htm", b"<p>\xff", "the file: is no text in utf-8, its encoding; convert the page"),
        ("a.txt", b"a\0b", "the file holds the character NUL"),
        ("a.srt", b"a note\n", "the file has no subtitle; expected lines such as 00:00:01"),
    ],
)
def test_a_file_that_cannot_be_translated_is_a_mistake(
    client: TestClient, name: str, content: bytes, message: str
) -> None:
    response = upload(client, name, content)
    assert response.status_code == 400
    assert message in response.json()["error"]


def test_a_form_without_a_file_or_a_language_is_a_mistake(client: TestClient) -> None:
    for data in (PAIR, {**PAIR, "file": "a dog"}):
        response = client.post("/translate_file", data=data)
        assert (response.status_code, response.json()["error"]) == (
            400,
            "Invalid request: missing file parameter",
        )
    files = {"file": ("a.txt", b"a")}
    response = client.post("/translate_file", files=files, data={"source": "en"})
    assert response.json()["error"] == "Invalid request: missing target parameter"


def test_a_file_may_be_larger_than_a_body(serve: Client) -> None:
    client = serve(body_bytes=1000, file_bytes=5000, text_characters=10)
    assert upload(client, "a.txt", "dog. " * 500).status_code == 200
    assert upload(client, "a.txt", "dog. " * 1000).status_code == 413


def test_a_file_of_too_many_characters_is_refused(serve: Client) -> None:
    client = serve(file_characters=10)
    assert upload(client, "a.txt", "ein Hündin").status_code == 200  # 10 characters, 11 bytes
    answer = upload(client, "a.txt", "eine Hündin")
    assert answer.status_code == 413
    expected = "the file has 11 characters, and 10 are allowed; divide it"
    assert answer.json()["error"] == expected


@pytest.mark.parametrize("stem", ["日本語", "żółw", "𝒜" * 60, "x" * 200])
def test_a_name_may_have_any_letters_and_any_length(client: TestClient, stem: str) -> None:
    url = upload(client, f"{stem}.txt", "dog.").json()["translatedFileUrl"]
    assert url.isascii()
    response = client.get(url)
    assert response.status_code == 200
    _, plain, given = response.headers["content-disposition"].split("; ")
    assert re.fullmatch(r'filename="[!-~]+_de\.txt"', plain)
    shown = unquote(given.removeprefix("filename*=UTF-8''"))
    assert shown.endswith("_de.txt") and stem.startswith(shown.removesuffix("_de.txt"))
    assert client.get(f"/download_file/{'0' * 32}.{'𝒜' * 80}.txt").status_code == 404


def test_old_files_are_deleted_and_other_names_lead_nowhere(serve: Client, tmp_path: Path) -> None:
    client = serve(files=str(tmp_path / "files"))
    url = upload(client, "../../a b.txt", "dog.").json()["translatedFileUrl"]
    [stored] = (tmp_path / "files").iterdir()
    assert re.fullmatch(r"[0-9a-f]{32}\.a_b_de\.txt", stored.name)
    old = time.time() - 4000
    os.utime(stored, (old, old))
    assert client.get(url).status_code == 404  # also before it is deleted
    upload(client, "b.txt", "cat.")
    assert not stored.exists()
    (tmp_path / "secret.txt").write_text("secret")
    for path in (url, "/download_file/..%2Fsecret.txt", "/download_file/secret.txt"):
        response = client.get(path)
        assert response.status_code == 404
        assert list(response.json()) == ["error"]


def test_without_a_folder_for_files_the_log_says_what_to_do(
    serve: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As on a file system that is read-only and has no /tmp."""
    caplog.set_level(logging.INFO, "nmt.serving")
    client = serve()

    def fail(**_: object) -> str:
        raise FileNotFoundError(2, "No usable temporary directory found")

    monkeypatch.setattr(tempfile, "mkdtemp", fail)
    answer = upload(client, "a.txt", "a dog")
    assert (answer.status_code, answer.json()) == (
        503,
        {"error": "this server cannot keep translated files now; tell its operator"},
    )
    [line] = [r for r in caplog.records if r.message == "a translated file cannot be kept"]
    error = line.values["error"]  # type: ignore[attr-defined]
    assert error.startswith("no folder for temporary files can be written to (TMPDIR, /tmp, ")
    assert error.endswith("or name a folder in the setting files")
    assert client.post("/translate", json={"q": "a dog", **PAIR}).status_code == 200


def test_translated_files_have_room_together(serve: Client, tmp_path: Path) -> None:
    client = serve(files=str(tmp_path), files_bytes=1000)

    def upload(name: str, **more: str) -> Any:
        data = {"source": "en", "target": "de", **more}
        return client.post("/translate_file", files={"file": (name, b"a dog")}, data=data)

    assert upload("a.txt").status_code == 200
    (tmp_path / "other").write_bytes(b"x" * 1000)
    refused = upload("b.txt")
    assert refused.status_code == 503
    assert "fill the room that they have" in refused.json()["error"]
    assert refused.headers["Retry-After"] == "600"
    (tmp_path / "other").unlink()
    assert upload("c.txt").status_code == 200


def test_a_file_that_comes_with_another_one_is_a_mistake(client: TestClient) -> None:
    files = [("file", ("a.txt", b"a dog")), ("file", ("b.txt", b"two dogs"))]
    data = {"source": "en", "target": "de"}
    answer = client.post("/translate_file", files=files, data=data)
    assert answer.status_code == 400
    assert answer.json()["error"] == "Invalid request: file is given 2 times; give it once"
