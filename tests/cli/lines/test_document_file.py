"""`nmt translate` of a document: a page or another document in, the same format out."""

import gzip
import subprocess
import sys
from io import BufferedReader, BytesIO, TextIOWrapper
from pathlib import Path

import pytest

from nmt.cli.lines.document_file import check_stdin_is_text, format_of_file, read_bytes
from nmt.data.text.compressed import compress
from nmt.data.text.remote_files import with_urls
from nmt.errors import ConfigError, DataError
from nmt.translation.documents.html_page import HtmlPage
from tests.cli.commands import invoke, succeed


def read_page(path: Path) -> HtmlPage:
    return HtmlPage.decode(str(path), read_bytes(path))


PAGE = "<html><title>a dog</title>\r\n<p id=x>a <b>small</b> dog &amp; 😀</p><pre>a</pre></html>"


@pytest.mark.parametrize("workers", [1, 2])
def test_a_page_keeps_all_but_its_text(tiny_run: Path, tmp_path: Path, workers: int) -> None:
    page, output = tmp_path / "page.html", tmp_path / "out.html"
    page.write_bytes(PAGE.encode())
    options = ("--model", tiny_run, "--html", page, "--workers", workers)
    assert succeed("translate", *options, "-o", output) == ""
    found = output.read_bytes().decode()
    assert found.startswith("<html><title>") and found.endswith("</p><pre>a</pre></html>")
    assert "</title>\r\n<p id=x>" in found
    assert found.count("<b>") == found.count("</b>") == 1
    assert succeed("translate", *options) == found
    assert succeed("translate", *options[:3], text=PAGE) == found


def test_protected_parts_arrive_in_lines_and_in_pages(tiny_run: Path) -> None:
    """The model's translations are noise."""
    protect = ("--protect", "--protect-pattern", "[A-Z]{3}-[0-9]+")
    line = "a dog at https://x.org has {name} and ABC-12, b@c.de"
    for options in ((), ("--document",), ("--html",), ("--n-best", 2), ("--json",)):
        found = succeed("translate", "-m", tiny_run, *protect, *options, text=f"{line}<br>\n")
        for part in ("https://x.org", "{name}", "ABC-12", "b@c.de"):
            copies = 2 if options == ("--n-best", 2) else 1
            copies += options == ("--json",)  # the source
            assert found.count(part) == copies


def test_a_text_without_tags_is_one_text_with_a_warning(tiny_run: Path) -> None:
    result = invoke("translate", "-m", tiny_run, "--html", text="a dog\nthe cat\n")
    assert result.exit_code == 0
    assert result.stdout_bytes.decode().count("\n") == 1
    assert "stdin: has no HTML tag, and is translated as one text" in result.stderr
    assert invoke("translate", "-m", tiny_run, "--html", text="").stdout == ""


@pytest.mark.parametrize(
    ("name", "content", "advice"),
    [
        (
            "a.po",
            b'msgid ""\nmsgstr "Language: de"\n\nmsgid "a"\nmsgstr "b"\n',
            "; --overwrite translates also what has a translation\n",
        ),
        ("a.json", b'{"a": "btn_ok"}', "; --key NAME translates the values of a key, whatever"),
        ("a.html", b"<p>12</p>", "\n"),
    ],
)
def test_a_document_without_text_stays_as_it_is_with_a_warning(
    tiny_run: Path, tmp_path: Path, name: str, content: bytes, advice: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    result = invoke("translate", "-m", tiny_run, path)
    assert result.stdout_bytes == path.read_bytes()
    assert result.stderr.count("warning") == 1
    assert f"{name}: has no text to translate, and is written as it is{advice}" in result.stderr


@pytest.mark.parametrize(
    ("content", "html", "encoding"),
    [
        ("<p>ä".encode(), "<p>ä", "utf-8"),
        ("\ufeff<p>ä".encode(), "<p>ä", "utf-8"),
        ("<meta charset='latin-1'>ä".encode("latin-1"), "<meta charset='latin-1'>ä", "latin-1"),
        (
            '<META http-equiv=x content="text/html; charset=cp1252">“'.encode("cp1252"),
            None,
            "cp1252",
        ),
        ("<p>ä".encode("utf-16"), "<p>ä", "utf-16le"),
        ("\ufeff<p>ä".encode("utf-16-be"), "<p>ä", "utf-16be"),
        ("<p>ä a page </p>".encode("utf-16-be"), None, "utf-16-be"),
        (
            '<?xml version="1.0" encoding="iso-8859-1"?><html>ä'.encode("latin-1"),
            None,
            "iso-8859-1",
        ),
        ("<p><?xml encoding='latin-1'?>ä".encode(), None, "utf-8"),
        ('<meta charset="utf-16">ä'.encode(), '<meta charset="utf-16">ä', "utf-8"),
    ],
)
def test_a_page_is_read_and_written_in_its_encoding(
    tmp_path: Path, content: bytes, html: str | None, encoding: str
) -> None:
    path = tmp_path / "page.html"
    path.write_bytes(content)
    page = read_page(path)
    assert page.encoding == encoding
    assert html is None or page.html == html
    assert page.encode(page.html) == content


def test_a_file_that_another_program_writes_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "page.html"
    path.write_bytes(b"<p>a")

    def changing(read: Path) -> BufferedReader:
        opened = read.open("rb")
        with read.open("ab") as file:
            file.write(b"</p>")
        return opened

    monkeypatch.setattr("nmt.cli.lines.document_file.open_file", changing)
    with pytest.raises(DataError, match="page.html: was changed while it was read; give the comm"):
        read_bytes(path)


def test_a_compressed_page_is_decompressed(tmp_path: Path) -> None:
    path = tmp_path / "page.html.gz"
    path.write_bytes(gzip.compress(b"<p>a"))
    assert read_page(path).html == "<p>a"


@pytest.mark.parametrize("suffix", ["", ".gz", ".xz", ".zst"])
def test_documents_at_urls_and_compressed_ones_are_known(tiny_run: Path, suffix: str) -> None:
    """The translation of one is compressed if its name says so."""
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    page = b"<html lang='en'><p>a</p></html>"
    content = compress(page, suffix) if suffix else page
    memory.pipe(f"/documents/page.html{suffix}", content)
    url = "memory://documents/{}.html" + suffix
    path = with_urls(Path(url.format("page")))
    assert format_of_file(path) == "html"
    succeed("translate", "-m", tiny_run, url.format("page"), "-o", url.format("out"))
    found = memory.cat(f"/documents/out.html{suffix}")
    if suffix:
        memory.pipe("/documents/again.html" + suffix, found)
        found = read_bytes(with_urls(Path(url.format("again"))))
    assert found.startswith(b"<html lang='de'><p>")


def test_pages_in_utf_16_have_tags(tiny_run: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_bytes("<p>a dog</p>".encode("utf-16"))
    result = invoke("translate", "-m", tiny_run, page, "-o", tmp_path / "out.html")
    assert (result.exit_code, result.stderr) == (0, "")


def test_a_character_that_the_encoding_lacks_becomes_a_reference() -> None:
    assert HtmlPage("x", "", "latin-1").encode("ä€") == b"\xe4&#8364;"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ('<?xml version="1.0"?>\n<xliff version="1.2"><file>', "xliff"),
        ("<xliff:xliff xmlns:xliff='urn:x'>", "xliff"),
        ('<?xml version="1.0"?><!DOCTYPE tmx SYSTEM "tmx14.dtd"><tmx>', "tmx"),
        ("<!-- a <b> --><resources><string name='a'>b", "android"),
        ('<!DOCTYPE TS><TS version="2.1">', "ts"),
        ("<martif type='TBX'>", "XML with <martif>"),
        ("<?xml version='1.0'?><rss>", "XML with <rss>"),
        ("<?xml version='1.0'?><root><data>", "XML with <root>"),
        ("<?xml version='1.0'?><svg xmlns='x'>", "XML with <svg>"),
        ("WEBVTT\n\n00:01.000 --> 00:02.000\n<v Tom>a", "subtitles"),
        ("1\r\n00:00:01,000 --> 00:00:02,000\r\n<i>a</i>", "subtitles"),
        ("[Script Info]\n<i>", "subtitles"),
        ('# a note\nmsgid ""\nmsgstr "<b>a</b>"', "po"),
        ("{\\rtf1 <b>a", "office"),
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_other_formats_are_refused(tmp_path: Path, text: str, kind: str, encoding: str) -> None:
    path = tmp_path / "a.xml"
    path.write_bytes(text.encode(encoding))
    with pytest.raises(DataError) as caught:
        read_page(path)
    expected = f"a.xml: looks like {kind}, expected a page; give one, or name the `format`"
    assert str(caught.value).endswith(expected)


@pytest.mark.parametrize(
    "text",
    [
        "<?xml version='1.0'?><!DOCTYPE html><html xmlns='x'>",
        "<?xml version='1.0'?><div>",
        "<tt>a</tt> b",
        "<svg></svg><p>a",
        "<my-page>a",
        "msgid is a word",
        "12:30 --> 13:00 <b>lunch</b>",
        "",
        "<!-- a",
        pytest.param("#" * 100 + "a", id="marks"),
        pytest.param("1" + "\n" * 100_000 + "a", id="blank lines"),
        "<!DOCTYPE html [<!ENTITY a 'b'>]><html>",
    ],
)
def test_pages_and_parts_of_them_are_read(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.html"
    path.write_text(text)
    assert read_page(path).html == text


def test_a_translated_page_says_so(tiny_run: Path) -> None:
    page = '<html lang="en"><p lang="fr">un chien</p><p>a dog</p></html>'
    found = succeed("translate", "-m", tiny_run, "--html", text=page)
    assert found.startswith('<html lang="de"><p lang="fr">un chien</p><p>')


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"<p>\xff", "page.html: is no text in utf-8, its encoding; convert the page to UTF-8"),
        (b"<meta charset=none-such>a", "declares the encoding none-such, which is unknown"),
        (b"<meta charset=hex>a", "declares the encoding hex, which is unknown"),
        (b"PK\x03\x04\0\0<p>", "page.html: has zero bytes and so is no HTML page"),
    ],
)
def test_what_is_no_page_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "page.html"
    path.write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_page(path)


@pytest.mark.parametrize(
    ("beginning", "of_stream"),
    [
        (b"<?xml version='1.0'?>\n<xliff version='1.2'>", "xliff"),
        (b"<xliff version='1.2'>", "xliff"),
        (b"\xef\xbb\xbf<?xml version='1.0'?><book>", "xml"),
        (b"<!DOCTYPE html>\n<p>a", "html"),
        (b"\n<HTML lang=en>", "html"),
        (b"<?xml version='1.0'?><!DOCTYPE html><html xmlns='x'>", "html"),
        (b"{\\rtf1 a", "office"),
        (b"PK\x03\x04" + 26 * b"\0" + b"word/document.xml", "office"),
        (b"PK\x03\x04" + 26 * b"\0" + b"customXml/item1.xml", "office"),
        (b"PK\x03\x04" + 26 * b"\0" + b"mimetypeapplication/epub+zip", "epub"),
        (b"%PDF-1.7", "pdf"),
        (b"WEBVTT\n\n", "subtitles"),
        (b"a dog\n<html>", None),
        (b"<b>a dog</b>\n", None),
        (b"<htmlish>\n", None),
        (b"PK is a name\n", None),
        (b"", None),
    ],
)
def test_a_document_on_stdin_is_no_text(
    monkeypatch: pytest.MonkeyPatch, beginning: bytes, of_stream: str | None
) -> None:
    stream = TextIOWrapper(BufferedReader(BytesIO(beginning + b" a dog")))
    monkeypatch.setattr("sys.stdin", stream)
    if of_stream:
        with pytest.raises(ConfigError, match=f"^stdin looks like {of_stream}; say"):
            check_stdin_is_text()
    else:
        check_stdin_is_text()
    assert stream.buffer.read() == beginning + b" a dog"


@pytest.mark.parametrize("options", [(), ("--format", "text"), ("--format", "XLF")])
def test_a_document_on_stdin_needs_its_format(tiny_run: Path, options: tuple[str, ...]) -> None:
    content = b"<xliff version='1.2'><file source-language='en'><body/></file></xliff>\n"
    command = [sys.executable, "-m", "nmt", "translate", "-m", str(tiny_run), *options]
    result = subprocess.run(command, input=content, capture_output=True, check=False)
    assert result.returncode == (0 if options else 2)
    said = b"stdin looks like xliff; say --format xliff, or --format text for its lines"
    assert (said in result.stderr) == (not options)
    assert bool(result.stdout) == bool(options)
