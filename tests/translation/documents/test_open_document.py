"""OpenDocument: paragraphs and notes are translated, fields and what is computed stay."""

from io import BytesIO
from zipfile import ZipFile

import pytest

from nmt.errors import DataError
from nmt.translation.documents.document import USUAL_TEXTS, LanguagePair
from nmt.translation.documents.formats import read_document, recognise_format
from nmt.translation.documents.translate import translate_document
from tests.office_files import translated_parts
from tests.reversing_translator import reversing, uppercase

BRAZIL = LanguagePair("en", "pt_BR")
URN = "urn:oasis:names:tc:opendocument:xmlns"
START = (
    f'<office:c xmlns:office="{URN}:office:1.0" xmlns:text="{URN}:text:1.0" '
    f'xmlns:fo="{URN}:xsl-fo-compatible:1.0" xmlns:style="{URN}:style:1.0" '
    f'xmlns:table="{URN}:table:1.0" xmlns:svg="{URN}:svg-compatible:1.0" '
    f'xmlns:manifest="{URN}:manifest:1.0">'
)


def packed(parts: dict[str, str]) -> bytes:
    content = BytesIO()
    with ZipFile(content, "w") as file:
        file.writestr("mimetype", "application/vnd.oasis.opendocument.text")
        for name, body in parts.items():
            file.writestr(name, f"{START}{body}</office:c>")
    return content.getvalue()


def translated(body: str, languages: LanguagePair = BRAZIL, part: str = "content.xml") -> str:
    content = packed({"content.xml": "", part: body})
    assert recognise_format("a.bin", content[:4096]) == "opendocument"
    found = translated_parts(content, languages, format="opendocument")[part]
    return found.removeprefix(START).removesuffix("</office:c>")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("<text:p>a dog</text:p>", "<text:p>A DOG</text:p>"),
        (
            "<text:h>a <text:span>b</text:span> c</text:h>",
            "<text:h>A <text:span>B</text:span> C</text:h>",
        ),
        ("<text:p>a<text:line-break/>b</text:p>", "<text:p>A<text:line-break/>B</text:p>"),
        ("<text:p>a<text:s/>b</text:p>", "<text:p>A B</text:p>"),
        ('<text:p>a<text:s text:c="1"/>b</text:p>', "<text:p>A B</text:p>"),
        ("<text:p>a <text:s/>b</text:p>", "<text:p>A <text:s/>B</text:p>"),
        ('<text:p>a<text:s text:c="5"/>b</text:p>', '<text:p>A<text:s text:c="5"/>B</text:p>'),
        ('<text:p>a <text:s text:c="5"/>b</text:p>', '<text:p>A <text:s text:c="5"/>B</text:p>'),
        ("<text:p>a <text:s/><text:s/>b</text:p>", "<text:p>A <text:s/><text:s/>B</text:p>"),
        ("<text:p>a<text:s/><text:s/>b</text:p>", "<text:p>A<text:s/><text:s/>B</text:p>"),
        (
            "<text:p>page <text:page-number>one</text:page-number> b</text:p>",
            "<text:p>PAGE <text:page-number>one</text:page-number> B</text:p>",
        ),
        (
            "<text:p>a<text:note><text:note-citation>1</text:note-citation><text:note-body>"
            "<text:p>in it</text:p></text:note-body></text:note> b</text:p>",
            "<text:p>A<text:note><text:note-citation>1</text:note-citation><text:note-body>"
            "<text:p>IN IT</text:p></text:note-body></text:note> B</text:p>",
        ),
        (
            '<x fo:language="en" fo:country="US"/><text:p/>',
            '<x fo:language="pt" fo:country="BR"/><text:p/>',
        ),
    ],
)
def test_paragraphs_are_translated(body: str, expected: str) -> None:
    assert translated(body) == expected


def cell(text: str, attributes: str = "") -> str:
    return f"<table:table-cell{attributes}><text:p>{text}</text:p></table:table-cell>"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        # how a text is pronounced disappears, and what was deleted
        (
            "<text:p>a <text:ruby><text:ruby-base>b</text:ruby-base><text:ruby-text>r"
            "</text:ruby-text></text:ruby> c</text:p>",
            "<text:p>A B C</text:p>",
        ),
        (
            "<text:tracked-changes><text:p>x</text:p></text:tracked-changes><text:p>a<text:change/>"
            "b <text:change-start/>c<text:change-end/></text:p>",
            "<text:p>AB C</text:p>",
        ),
        # alternative texts, comments and what slides repeat
        (
            "<text:p>a<draw:f><svg:title>b</svg:title><svg:desc>c</svg:desc></draw:f></text:p>",
            "<text:p>A<draw:f><svg:title>B</svg:title><svg:desc>C</svg:desc></draw:f></text:p>",
        ),
        (
            '<text:outline-level-style loext:num-list-format="Part %1%"/>',
            '<text:outline-level-style loext:num-list-format="PART %1%"/>',
        ),
        ('<form:button form:label="a &gt; b"/>', '<form:button form:label="A &gt; B"/>'),
        # cells: what is computed stays, a value does not contradict the text
        (cell("a", ' table:formula="x"'), cell("a", ' table:formula="x"')),
        (cell("1 May", ' office:value-type="date"'), cell("1 May", ' office:value-type="date"')),
        (cell("a", ' office:string-value="a" x="y"'), cell("A", ' x="y"')),
        (
            cell("Yes") + cell("north") + '<x table:condition="is-in(&quot;yes&quot;)"/>',
            cell("Yes") + cell("NORTH") + '<x table:condition="is-in(&quot;yes&quot;)"/>',
        ),
        (
            cell("north") + '<table:filter-condition table:value="north"/>',
            cell("NORTH") + '<table:filter-condition table:value="NORTH"/>',
        ),
        (
            cell("<office:annotation><text:p>a</text:p></office:annotation>", ' table:formula="x"'),
            cell("<office:annotation><text:p>A</text:p></office:annotation>", ' table:formula="x"'),
        ),
    ],
)
def test_texts_beside_plain_paragraphs(body: str, expected: str) -> None:
    start = f'<x xmlns:draw="d" xmlns:loext="l" xmlns:form="{URN}:form:1.0">'
    assert translated(f"{start}{body}</x>") == f"{start}{expected}</x>"


@pytest.mark.parametrize("part", ["styles.xml", "Object 1/content.xml"])
def test_charts_and_page_headers_are_translated(part: str) -> None:
    assert translated("<text:p>a</text:p>", part=part) == "<text:p>A</text:p>"


def test_properties_are_translated() -> None:
    body = '<dc:title xmlns:dc="http://purl.org/dc/elements/1.1/">{}</dc:title>'
    assert translated(body.format("a"), part="meta.xml") == body.format("A")


def test_a_bookmark_starts_before_it_ends() -> None:
    mark = '<text:bookmark-{} text:name="1"/>'
    body = f"<text:p>a {mark.format('start')}b c{mark.format('end')} d</text:p>"
    parts = translated_parts(
        packed({"content.xml": body}), BRAZIL, reversing, format="opendocument"
    )
    expected = f"<text:p>d {mark.format('start')}c b{mark.format('end')} a</text:p>"
    assert expected in parts["content.xml"]


def test_a_document_in_one_file_is_translated() -> None:
    content = f"{START.replace('office:c', 'office:document')}<text:p>a</text:p></office:document>"
    assert recognise_format("a.xml", content.encode()) == "opendocument"
    document = read_document(content.encode(), "a.fodt", "opendocument", USUAL_TEXTS)
    assert translate_document(document, uppercase).decode() == content.replace(">a<", ">A<")


def test_an_encrypted_document_is_refused() -> None:
    content = packed({"META-INF/manifest.xml": "<manifest:encryption-data/>", "content.xml": "x"})
    with pytest.raises(DataError, match="a.odt: is encrypted; save it without a password"):
        read_document(content, "a.odt", "opendocument", USUAL_TEXTS)


def test_a_signature_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    content = packed({"META-INF/documentsignatures.xml": "", "content.xml": ""})
    found = translated_parts(content, format="opendocument")
    assert list(found) == ["mimetype", "content.xml"]
    assert "a.docx: its digital signature is left out" in capsys.readouterr().err
