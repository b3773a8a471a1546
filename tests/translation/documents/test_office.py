"""Word, PowerPoint and Excel: runs of one look are one text, and nothing else changes."""

import time
from io import BytesIO
from zipfile import ZipFile

import pytest

from nmt.errors import DataError
from nmt.translation.documents.document import USUAL_TEXTS, LanguagePair, ReadingOptions
from nmt.translation.documents.formats import read_document, recognise_format
from nmt.translation.documents.translate import translate_document
from tests.office_files import MAIN, W, packed, word_file
from tests.reversing_translator import uppercase

A = 'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
T = '<w:t xml:space="preserve">'


def translated(content: bytes, part: str, languages: LanguagePair | None = None) -> str:
    options = ReadingOptions(languages or LanguagePair("en", "de"))
    document = read_document(content, "a.docx", "office", options)
    with ZipFile(BytesIO(translate_document(document, uppercase))) as file:
        assert file.namelist()[-1] == "media/image.png"
        return file.read(part).decode()


def translated_word(body: str) -> str:
    found = translated(word_file(body), "word/document.xml")
    return found.removeprefix(f"<w:document {W}><w:body>").removesuffix("</w:body></w:document>")


def run(text: str, look: str = "") -> str:
    look = f"<w:rPr>{look}</w:rPr>" if look else ""
    return f"<w:r>{look}{T}{text}</w:t></w:r>"


ENTITY = '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>'
BOLD = "<w:b/>"


@pytest.mark.parametrize(
    ("paragraph", "expected"),
    [
        (run("a dog"), run("A DOG")),
        ("<w:r><w:t>a</w:t></w:r>", run("A")),
        # runs that differ by what nobody sees are one
        (run("a d") + run("og", '<w:lang w:val="en-US"/>'), run("A DOG")),
        (run("a ") + '<w:proofErr w:type="spellStart"/>' + run("dgo"), run("A DGO")),
        (
            run("a ") + run("big", BOLD) + run(" dog"),
            run("A ") + run("BIG", BOLD) + run(" DOG"),
        ),
        (run("a dog", BOLD), run("A DOG", BOLD)),
        (run("Note:", BOLD) + run(" a dog"), run("NOTE: ", BOLD) + run("A DOG")),
        # marks between words
        (
            "<w:r><w:t>a</w:t><w:br/><w:t>b</w:t></w:r>",
            run("A") + "<w:r><w:br/></w:r>" + run("B"),
        ),
        (
            run("a")
            + '<w:r><w:rPr><w:x/></w:rPr><w:footnoteReference w:id="2"/></w:r>'
            + run(" b"),
            run("A")
            + '<w:r><w:rPr><w:x/></w:rPr><w:footnoteReference w:id="2"/></w:r>'
            + run(" B"),
        ),
        (
            run("a ") + f'<w:hyperlink r:id="1">{run("b", BOLD)}</w:hyperlink>' + run(" c"),
            run("A ") + f'<w:hyperlink r:id="1">{run("B", BOLD)}</w:hyperlink>' + run(" C"),
        ),
        # changes are accepted
        (
            run("a ")
            + f"<w:del><w:r><w:delText>x</w:delText></w:r></w:del><w:ins>{run('b')}</w:ins>",
            run("A B"),
        ),
        # a page number stays
        (
            run("page ")
            + '<w:r><w:fldChar w:fldCharType="begin"/></w:r>'
            + "<w:r><w:instrText> PAGE </w:instrText></w:r>"
            + '<w:r><w:fldChar w:fldCharType="separate"/></w:r>'
            + run("7")
            + '<w:r><w:fldChar w:fldCharType="end"/></w:r>'
            + run(" of it"),
            run("PAGE ")
            + '<w:r><w:fldChar w:fldCharType="begin"/></w:r>'
            + "<w:r><w:instrText> PAGE </w:instrText></w:r>"
            + '<w:r><w:fldChar w:fldCharType="separate"/></w:r>'
            + run("7")
            + '<w:r><w:fldChar w:fldCharType="end"/></w:r>'
            + run(" OF IT"),
        ),
        # fields alone
        (
            '<w:r><w:fldChar w:fldCharType="begin"/></w:r>'
            "<w:r><w:t>a</w:t></w:r>"
            '<w:r><w:fldChar w:fldCharType="end"/></w:r>',
            None,
        ),
        # no words
        ("<w:r><w:t>12</w:t></w:r>", "<w:r><w:t>12</w:t></w:r>"),
        (run("R&amp;D &lt;a&gt;"), run("R&amp;D &lt;A&gt;")),
    ],
)
def test_a_paragraph_of_runs_is_one_text(paragraph: str, expected: str | None) -> None:
    expected = paragraph if expected is None else expected
    start = '<w:p w:rsid="1"><w:pPr><w:jc/></w:pPr>'
    assert translated_word(f"{start}{paragraph}</w:p>") == f"{start}{expected}</w:p>"


def test_a_link_made_of_a_field_is_around_its_words() -> None:
    begin, separate, end = (
        f'<w:r><w:fldChar w:fldCharType="{kind}"/></w:r>' for kind in ("begin", "separate", "end")
    )
    link = '<w:r><w:instrText>HYPERLINK "https://x.org"</w:instrText></w:r>'
    body = f"<w:p>{run('see ')}{begin}{link}{separate}{run('the page')}{end}{run(' now')}</w:p>"
    assert translated_word(body) == (
        f"<w:p>{run('SEE ')}{begin}{link}{separate}{run('THE PAGE')}{end}{run(' NOW')}</w:p>"
    )


def test_a_text_box_in_a_paragraph_is_translated_by_itself() -> None:
    box = "<w:r><w:pict><w:txbxContent><w:p>{}</w:p></w:txbxContent></w:pict></w:r>"
    body = f"<w:p>{run('a')}{box.format(run('in the box'))}{run(' dog')}</w:p>"
    expected = f"<w:p>{run('A')}{box.format(run('IN THE BOX'))}{run(' DOG')}</w:p>"
    assert translated_word(body) == expected


def test_slides_and_cells() -> None:
    slide = (
        f'<p:sld xmlns:p="p" {A}><a:p><a:r><a:rPr lang="en-US" dirty="0"/><a:t>a</a:t></a:r>'
        '<a:r><a:rPr lang="en-US" b="1"/><a:t> dog</a:t></a:r><a:endParaRPr lang="en-US"/></a:p>'
        "</p:sld>"
    )
    content = packed({"ppt/slides/slide1.xml": (f"{MAIN}.presentationml.slide+xml", slide)})
    found = translated(content, "ppt/slides/slide1.xml")
    assert '<a:r><a:rPr b="1"/><a:t> DOG</a:t></a:r>' in found
    assert '<a:endParaRPr lang="de"/></a:p>' in found
    sheet = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    strings = f'<sst xmlns="{sheet}"><si><t>a dog</t></si><si><t>12</t></si></sst>'
    content = packed({"xl/sharedStrings.xml": (f"{MAIN}.spreadsheetml.sharedStrings+xml", strings)})
    expected = '<si><t xml:space="preserve">A DOG</t></si><si><t>12</t></si></sst>'
    assert translated(content, "xl/sharedStrings.xml").endswith(expected)


def test_a_file_is_recognised_by_its_content() -> None:
    content = word_file(f"<w:p>{run('a')}</w:p>")
    assert recognise_format("a.txt", content[:4096]) == "office"
    assert recognise_format("a.txt", b"a dog") is None
    assert recognise_format("a.po", b"a dog") == "po"


def test_a_paragraph_of_many_looks_takes_linear_time() -> None:
    body = "".join(run(f"a{i} ", f'<w:sz w:val="{i}"/>') for i in range(3000))
    start = time.process_time()
    found = translated_word(f"<w:p>{body}</w:p>")
    assert time.process_time() - start < 5
    assert "A2999" in found and f"{T}</w:t>" not in found


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"PK\x03\x04 broken", "a.docx: is damaged"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "a.docx: is an encrypted document, or one of Office"),
        (word_file("<w:p>"), "a.docx: word/document.xml: is no well-formed XML"),
        (
            packed({"word/document.xml": (f"{MAIN}.x.document.main+xml", ENTITY)}),
            "a.docx: word/document.xml: declares entities",
        ),
        (
            word_file("<w:hyperlink>" * 300 + "</w:hyperlink>" * 300),
            "a.docx: word/document.xml: has over 256 elements inside each other",
        ),
    ],
)
def test_what_is_no_document_is_refused(content: bytes, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_document(content, "a.docx", "office", USUAL_TEXTS)
