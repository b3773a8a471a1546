"""Texts of office files beside paragraphs: alternative texts, comments, charts, page headers."""

import pytest

from tests.office_files import MAIN, SHEET, A, W, packed, relations, translated_parts
from tests.reversing_translator import reversing

P = 'xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main"'
C = 'xmlns:c="http://schemas.openxmlformats.org/drawingml/2006/chart"'
DC = 'xmlns:dc="http://purl.org/dc/elements/1.1/"'
TC = 'xmlns="http://schemas.microsoft.com/office/spreadsheetml/2018/threadedcomments"'
PARAGRAPH = "<a:p><a:r><a:t>{}</a:t></a:r></a:p>"
HEADER = '&amp;L&amp;"Arial,Bold"{} &amp;P of &amp;N&amp;C{} &amp;&amp; so&amp;R&amp;D'


@pytest.mark.parametrize(
    ("kind", "namespace", "inside", "expected"),
    [
        # Excel
        (
            f"{MAIN}.spreadsheetml.comments+xml",
            SHEET,
            "<comment><text><r><t>a dog</t></r></text></comment>",
            '<comment><text><r><t xml:space="preserve">A DOG</t></r></text></comment>',
        ),
        (
            "application/vnd.ms-excel.threadedcomments+xml",
            TC,
            '<y><text>@Ann see</text><mentions><mention startIndex="0"/></mentions></y>',
            "<y><text>@ANN SEE</text></y>",
        ),
        (
            f"{MAIN}.spreadsheetml.worksheet+xml",
            SHEET,
            f"<oddHeader>{HEADER.format('Page', 'this')}</oddHeader>",
            f"<oddHeader>{HEADER.format('PAGE', 'THIS').replace('of', 'OF').replace('so', 'SO')}"
            "</oddHeader>",
        ),
        (
            f"{MAIN}.spreadsheetml.worksheet+xml",
            SHEET,
            f"<oddFooter>{'straße ' * 35}</oddFooter>",  # would be too long in capitals
            f"<oddFooter>{'straße ' * 35}</oddFooter>",
        ),
        (
            f"{MAIN}.spreadsheetml.worksheet+xml",
            SHEET,
            '<dataValidation prompt="a&#10;b" promptTitle="maßß maßß maßß maßß maßß maßß"/>',
            '<dataValidation prompt="A&#10;B" promptTitle="MASSSS MASSSS MASSSS MASSSS MAS…"/>',
        ),
        (
            f"{MAIN}.spreadsheetml.worksheet+xml",
            SHEET,
            '<hyperlink ref="A1" tooltip="see" display="https://x.org"/>',
            '<hyperlink ref="A1" tooltip="SEE" display="https://x.org"/>',
        ),
        # PowerPoint
        (
            f"{MAIN}.presentationml.comments+xml",
            P,
            "<p:cm><p:text>a &amp; b</p:text></p:cm>",
            "<p:cm><p:text>A &amp; B</p:text></p:cm>",
        ),
        (
            "application/vnd.ms-powerpoint.comments+xml",
            A,
            PARAGRAPH.format("see"),
            PARAGRAPH.format("SEE"),
        ),
        (
            f"{MAIN}.presentationml.slide+xml",
            P,
            '<p:cNvPr id="1" name="Picture" descr="a &quot;big&quot; dog" title="x"/>',
            '<p:cNvPr id="1" name="Picture" descr="A &quot;BIG&quot; DOG" title="X"/>',
        ),
        (
            f"{MAIN}.drawingml.diagramData+xml",
            A,
            PARAGRAPH.format("see"),
            PARAGRAPH.format("SEE"),
        ),
        (
            "application/vnd.ms-office.drawingml.diagramDrawing+xml",
            A,
            PARAGRAPH.format("see"),
            PARAGRAPH.format("SEE"),
        ),
        # charts: titles, series and categories, not numbers and references
        (
            f"{MAIN}.drawingml.chart+xml",
            C,
            "<c:tx><c:strRef><c:f>Sheet1!A1</c:f><c:strCache><c:pt><c:v>big dogs</c:v></c:pt>"
            "</c:strCache></c:strRef></c:tx><c:tx><c:v>cats</c:v></c:tx><c:numCache>"
            "<c:formatCode>General</c:formatCode><c:pt><c:v>1E5</c:v></c:pt></c:numCache>",
            "<c:tx><c:strRef><c:f>Sheet1!A1</c:f><c:strCache><c:pt><c:v>BIG DOGS</c:v></c:pt>"
            "</c:strCache></c:strRef></c:tx><c:tx><c:v>CATS</c:v></c:tx><c:numCache>"
            "<c:formatCode>General</c:formatCode><c:pt><c:v>1E5</c:v></c:pt></c:numCache>",
        ),
        # properties of the document, and Word
        (
            "application/vnd.openxmlformats-package.core-properties+xml",
            DC,
            "<dc:title>a dog</dc:title><dc:creator>Ann</dc:creator><dc:language>en</dc:language>",
            "<dc:title>A DOG</dc:title><dc:creator>Ann</dc:creator><dc:language>de</dc:language>",
        ),
        (
            f"{MAIN}.wordprocessingml.document.main+xml",
            W,
            '<w:docPr descr="a dog" name="x"/><w:docPr descr="dog.png"/><w:tblCaption w:val="a"/>'
            '<w:listItem w:displayText="yes" w:value="yes"/>',
            '<w:docPr descr="A DOG" name="x"/><w:docPr descr="dog.png"/><w:tblCaption w:val="A"/>'
            '<w:listItem w:displayText="YES" w:value="yes"/>',
        ),
        (
            f"{MAIN}.wordprocessingml.numbering+xml",
            W,
            '<w:lvlText w:val="Part %1 &amp; %2"/><w:lvlText w:val="o"/><w:lvlText w:val="%1."/>',
            '<w:lvlText w:val="PART %1 &amp; %2"/><w:lvlText w:val="o"/><w:lvlText w:val="%1."/>',
        ),
        (  # data of a custom part would replace the translation in Word
            f"{MAIN}.wordprocessingml.document.main+xml",
            W,
            '<w:dataBinding w:xpath="/x"/><w:dataBinding w:xpath="/coreProperties"/>',
            '<w:dataBinding w:xpath="/coreProperties"/>',
        ),
        (
            f"{MAIN}.wordprocessingml.footnotes+xml",
            W,
            "<w:footnote><w:p><w:r><w:t>a</w:t></w:r></w:p></w:footnote>",
            '<w:footnote><w:p><w:r><w:t xml:space="preserve">A</w:t></w:r></w:p></w:footnote>',
        ),
    ],
)
def test_texts_beside_paragraphs(kind: str, namespace: str, inside: str, expected: str) -> None:
    content = packed({"x/part.xml": (kind, f"<x {namespace}>{inside}</x>")})
    assert translated_parts(content)["x/part.xml"] == f"<x {namespace}>{expected}</x>"


def test_an_alternative_text_in_a_paragraph_is_one_of_its_own() -> None:
    drawing = '<w:r><w:drawing><wp:docPr xmlns:wp="p" descr="{}"/></w:drawing></w:r>'
    body = f"<x {W}><w:p><w:r><w:t>a b</w:t></w:r>{drawing.format('c d')}</w:p></x>"
    kind = f"{MAIN}.wordprocessingml.document.main+xml"
    found = translated_parts(packed({"a.xml": (kind, body)}), translate=reversing)["a.xml"]
    assert ">b a</w:t>" in found and drawing.format("d c") in found


def chart_with(workbook: bytes) -> bytes:
    chart = f"<c:x {C}><c:strCache><c:pt><c:v>a dog</c:v></c:pt></c:strCache></c:x>"
    return packed(
        {"ppt/charts/chart1.xml": (f"{MAIN}.drawingml.chart+xml", chart)},
        {
            "ppt/charts/_rels/chart1.xml.rels": relations(package="../embeddings/b.xlsx"),
            "ppt/embeddings/b.xlsx": workbook,
        },
    )


def test_the_workbook_of_a_chart_is_translated_as_well() -> None:
    strings = f"<sst {SHEET}><si><t>a dog</t></si></sst>"
    kind = f"{MAIN}.spreadsheetml.sharedStrings+xml"
    workbook = packed({"xl/sharedStrings.xml": (kind, strings)})
    found = translated_parts(chart_with(workbook))
    assert "<c:v>A DOG</c:v>" in found["ppt/charts/chart1.xml"]
    assert ">A DOG</t>" in found["ppt/embeddings/b.xlsx"]


def test_a_workbook_of_a_chart_that_cannot_be_read_stays(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = translated_parts(chart_with(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"))
    assert "<c:v>A DOG</c:v>" in found["ppt/charts/chart1.xml"]
    warning = (
        "this workbook of a chart stays as it is: a.docx: ppt/embeddings/b.xlsx: is in a format"
    )
    assert warning in capsys.readouterr().err
