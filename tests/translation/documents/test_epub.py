"""Books keep their parts and all but their text; pages stay well-formed."""

import io
import zipfile
from xml.etree import ElementTree

import pytest

from nmt.errors import DataError
from nmt.translation.documents.document import LanguagePair, ReadingOptions
from nmt.translation.documents.epub import ENCRYPTION, read_epub
from nmt.translation.documents.formats import recognise_format
from nmt.translation.documents.translate import TranslateTexts, translate_document
from tests.reversing_translator import copying, reversing, uppercase

CONTAINER = (
    '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
    '<rootfile full-path="OEBPS/book.opf" media-type="application/oebps-package+xml"/>'
    "</rootfiles></container>"
)
PACKAGE = """<?xml version="1.0"?><opf:package xmlns:opf="http://www.idpf.org/2007/opf">
<metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>a &amp; b</dc:title>
<dc:creator>Ann</dc:creator><dc:language>en-GB</dc:language><dc:language>fr</dc:language>
<dc:description>&lt;p&gt;about&lt;/p&gt;</dc:description></metadata><opf:manifest>
<opf:item href="toc.ncx" media-type="application/x-dtbncx+xml"/>
<opf:item href="one%20page.xhtml#x" media-type="application/xhtml+xml"/>
<opf:item href="https://example.org/x.xhtml" media-type="application/xhtml+xml"/>
<opf:item href="a.css" media-type="text/css"/></opf:manifest><opf:spine/></opf:package>"""
NCX = (
    '<ncx xmlns="http://www.daisy.org/z3986/2005/ncx/" xml:lang="en"><docTitle><text>a</text>'
    "</docTitle><docAuthor><text>Ann</text></docAuthor><navMap><navPoint><navLabel><text>one</text>"
    '</navLabel><content src="one%20page.xhtml"/></navPoint></navMap></ncx>'
)


def page(body: str) -> str:
    return f'<html xmlns="http://www.w3.org/1999/xhtml" xml:lang="en"><body>{body}</body></html>'


def book(body: str = "<p>a</p>", **others: str) -> bytes:
    parts = {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": CONTAINER,
        "OEBPS/book.opf": PACKAGE,
        "OEBPS/a.css": "p {}",
        "OEBPS/toc.ncx": NCX,
        "OEBPS/one page.xhtml": page(body),
        **others,
    }
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as file:
        for name, text in parts.items():
            is_type = name == "mimetype"
            method = zipfile.ZIP_STORED if is_type else zipfile.ZIP_DEFLATED
            file.writestr(name, text, compress_type=method)
    return written.getvalue()


def translated(
    content: bytes, translate: TranslateTexts = uppercase, languages: tuple[str, str] = ("en", "de")
) -> zipfile.ZipFile:
    document = read_epub(content, "a.epub", ReadingOptions(LanguagePair(*languages)))
    return zipfile.ZipFile(io.BytesIO(translate_document(document, translate)))


def test_a_book_keeps_its_parts_and_says_its_language() -> None:
    content = book()
    assert recognise_format("x", content) == "epub"
    found = translated(content)
    source = zipfile.ZipFile(io.BytesIO(content))
    assert [part.filename for part in found.infolist()] == source.namelist()
    assert [part.compress_type for part in found.infolist()][:2] == [0, 8]
    expected = PACKAGE.replace(">a &amp; b<", ">A &amp; B<").replace("about", "ABOUT")
    assert found.read("OEBPS/book.opf").decode() == expected.replace("en-GB", "de")
    contents = NCX.replace("<text>a<", "<text>A<").replace("one<", "ONE<")
    assert found.read("OEBPS/toc.ncx").decode() == contents.replace('"en"', '"de"')
    assert found.read("OEBPS/one page.xhtml").decode() == page("<p>A</p>").replace('"en"', '"de"')
    assert found.read("OEBPS/a.css") == b"p {}"


@pytest.mark.parametrize(
    ("languages", "attributes"),
    [(("en", "ar"), ("rtl", "rtl")), (("he", "en"), ("ltr", None)), (("en", "de"), (None, None))],
)
def test_pages_of_arabic_and_hebrew_go_to_the_left(
    languages: tuple[str, str], attributes: tuple[str | None, str | None]
) -> None:
    found = translated(
        book(**{"OEBPS/book.opf": PACKAGE.replace("spine/>", "spine></opf:spine>")}),
        languages=languages,
    )
    spine = ElementTree.fromstring(found.read("OEBPS/book.opf"))[-1]
    root = ElementTree.fromstring(found.read("OEBPS/one page.xhtml"))
    assert (spine.get("page-progression-direction"), root.get("dir")) == attributes


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ('<p>a <b>b</b> c<br/>d <a id="x"/>e</p>', '<p>A <b>B</b> C<br/>D <a id="x"/>E</p>'),
        ("<p/>a<div/>b<script/>", "<p/>A<div/>B<script/>"),
        ('<p>a<img alt="a &lt; b" src="x"/></p>', '<p>A<img alt="A &lt; B" src="x"/></p>'),
        ("<p><![CDATA[a < b]]> <i>c</i></p>", "<p>A &lt; B <i>C</i></p>"),
        ("<p>a<p>b</p>c</p>", "<p>A<p>B</p>C</p>"),  # no browser would see so
        ("<li>a<li>b</li></li>", "<li>A<li>B</li></li>"),
        ("<svg:svg xmlns:svg='http://www.w3.org/2000/svg'><svg:text>a</svg:text></svg:svg>", None),
        ("<script><![CDATA[a < b]]></script><style>p</style><pre>a</pre>", None),
        ("<p translate='no'>a</p><code>b</code>", None),
        ("<p>&#160;1 &#38; 2</p>", None),
    ],
)
def test_pages_are_xhtml(body: str, expected: str | None) -> None:
    found = translated(book(body)).read("OEBPS/one page.xhtml").decode()
    assert found == page(body if expected is None else expected).replace('"en"', '"de"')
    for translate in (copying, reversing):
        ElementTree.fromstring(translated(book(body), translate).read("OEBPS/one page.xhtml"))


def encryption(way: str) -> str:
    return (
        '<encryption xmlns="urn:oasis:names:tc:opendocument:xmlns:container">'
        '<enc:EncryptedData xmlns:enc="http://www.w3.org/2001/04/xmlenc#">'
        f'<enc:EncryptionMethod Algorithm="{way}"/></enc:EncryptedData></encryption>'
    )


def test_fonts_may_be_obfuscated() -> None:
    content = book(**{ENCRYPTION: encryption("http://www.idpf.org/2008/embedding")})
    assert b">A<" in translated(content).read("OEBPS/one page.xhtml")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            book(**{ENCRYPTION: encryption("http://www.w3.org/2001/04/xmlenc#aes128-cbc")}),
            "a.epub: is protected by digital rights management",
        ),
        (book(**{"OEBPS/book.opf": PACKAGE.replace("one%20", "two%20")}), "two page.xhtml is miss"),
        (book("<p>"), "a.epub: OEBPS/one page.xhtml: is no well-formed XML"),
        (book()[:200], "a.epub: is damaged"),
    ],
)
def test_what_cannot_be_read_is_refused(content: bytes, message: str) -> None:
    with pytest.raises(DataError, match=message):
        translated(content)
