"""Word, PowerPoint and Excel: runs of one look are one text, and nothing else changes."""

import re
import time
from collections.abc import Sequence
from io import BytesIO
from zipfile import ZipFile

import pytest

from nmt.errors import DataError
from nmt.translation.documents.document import USUAL_TEXTS
from nmt.translation.documents.formats import read_document, recognise_format
from nmt.translation.line import Line, Translation
from tests.office_files import MAIN, TYPES, A, W, packed, relations, translated_parts, word_file
from tests.reversing_translator import reversing

T = '<w:t xml:space="preserve">'


def translated(content: bytes, part: str) -> str:
    return translated_parts(content)[part]


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
        # rows of spaces and tabs keep their place, also over two runs
        (run("a  b\tc"), run("A  B\tC")),
        (run("a ") + run(" b", BOLD) + run("   c"), run("A ") + run(" B", BOLD) + run("   C")),
        (
            "<w:r><w:t>a</w:t><w:tab/><w:t>b</w:t></w:r>",
            run("A") + "<w:r><w:tab/></w:r>" + run("B"),
        ),
        # spaces at both ends stay, in the usual run
        (
            run(" a ", BOLD) + run("big dog") + run(" b  ", BOLD),
            run(" ") + run("A", BOLD) + run(" BIG DOG ") + run("B", BOLD) + run("  "),
        ),
        (run("  a "), run("  A ")),
        # hyphens and signs
        (
            "<w:r><w:t>e</w:t><w:noBreakHyphen/><w:t>mail d</w:t><w:softHyphen/><w:t>og</w:t>"
            "</w:r>",
            f"<w:r>{T}E</w:t><w:noBreakHyphen/>{T}MAIL DOG</w:t></w:r>",
        ),
        (
            run("a") + '<w:r><w:sym w:font="Wingdings" w:char="F0FC"/></w:r>' + run(" b"),
            run("A") + '<w:r><w:sym w:font="Wingdings" w:char="F0FC"/></w:r>' + run(" B"),
        ),
        # the base of a ruby is text; how it is pronounced disappears
        (
            run("a ")
            + f"<w:r><w:ruby><w:rubyPr><w:x/></w:rubyPr><w:rt>{run('r')}</w:rt><w:rubyBase>"
            + f"{run('b')}</w:rubyBase></w:ruby></w:r>",
            run("A B"),
        ),
        # content controls, pretty-printed and inside each other
        (
            f"<w:sdt> <w:sdtPr><w:x/></w:sdtPr> <w:sdtContent> {run('a')} </w:sdtContent> </w:sdt>"
            + run(" b"),
            f"<w:sdt> <w:sdtPr><w:x/></w:sdtPr> <w:sdtContent>{run('A')}</w:sdtContent></w:sdt>"
            + run(" B"),
        ),
        (
            f"<w:sdt><w:sdtPr/><w:sdtContent><w:sdt><w:sdtContent>{run('a')}</w:sdtContent></w:sdt>"
            f"</w:sdtContent></w:sdt>{run(' b')}<w:sdt><w:sdtPr/><w:sdtContent/></w:sdt>",
            f"<w:sdt><w:sdtPr/><w:sdtContent><w:sdt><w:sdtContent>{run('A')}</w:sdtContent></w:sdt>"
            f"</w:sdtContent></w:sdt>{run(' B')}<w:sdt><w:sdtPr/><w:sdtContent/></w:sdt>",
        ),
        (
            f"<w:smartTag><w:smartTagPr/>{run('a')}</w:smartTag>" + run(" b"),
            f"<w:smartTag><w:smartTagPr/>{run('A')}</w:smartTag>" + run(" B"),
        ),
        (
            run("a ") + '<w:fldSimple w:instr=" PAGE "><w:r><w:t>7</w:t></w:r></w:fldSimple>',
            run("A ") + '<w:fldSimple w:instr=" PAGE "><w:r><w:t>7</w:t></w:r></w:fldSimple>',
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


@pytest.mark.parametrize(
    ("marks", "expected"),
    [
        ("<{0}Start w:id='1'/>b c<{0}End w:id='1'/>", "<{0}Start w:id='1'/>c b<{0}End w:id='1'/>"),
        (  # two that overlap in the file, but not in the text
            "<{0}Start w:id='1'/><{0}Start w:id='2'/>b c<{0}End w:id='1'/><{0}End w:id='2'/>",
            "<{0}Start w:id='2'/><{0}Start w:id='1'/>c b<{0}End w:id='1'/><{0}End w:id='2'/>",
        ),
    ],
)
@pytest.mark.parametrize("name", ["w:bookmark", "w:commentRange"])
def test_a_range_starts_before_it_ends(name: str, marks: str, expected: str) -> None:
    def body(text: str) -> str:
        parts = re.split("(<[^>]*>)", text.format(name))
        return "".join(part if part[:1] == "<" else run(part) for part in parts if part)

    content = word_file(f"<w:p>{body(f'a {marks} d')}</w:p>")
    found = translated_parts(content, translate=reversing)["word/document.xml"]
    texts = re.sub("</?w:(?:r|t|body|document|p)\\b[^>]*>", "", found)
    assert texts.replace(" ", "") == f"d {expected.format(name)} a".replace(" ", "")


def test_a_look_without_words_is_left_out_with_a_warning(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def only_x(lines: Sequence[Line], with_links: bool) -> list[Translation]:
        return [Translation("X", 0.0) for _ in lines]

    bold, italic = "<w:rPr><w:b/></w:rPr>", "<w:rPr><w:i/></w:rPr>"
    file = word_file(f"<w:p>{run('a dog ')}{run('big ', bold)}{run('box', italic)}</w:p>")
    found = translated_parts(file, translate=only_x)["word/document.xml"]
    assert f"<w:p>{run('X', bold)}</w:p>" in found
    assert capsys.readouterr().err.count('the mark around "box" in "a dog big box"') == 1


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
    assert '<a:r><a:rPr lang="de" dirty="0"/><a:t>A</a:t></a:r>' in found
    assert '<a:r><a:rPr lang="de" b="1"/><a:t> DOG</a:t></a:r>' in found
    assert '<a:endParaRPr lang="de"/></a:p>' in found
    sheet = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    strings = f'<sst xmlns="{sheet}"><si><t>a dog</t></si><si><t>12</t></si></sst>'
    content = packed({"xl/sharedStrings.xml": (f"{MAIN}.spreadsheetml.sharedStrings+xml", strings)})
    expected = '<si><t xml:space="preserve">A DOG</t></si><si><t>12</t></si></sst>'
    assert translated(content, "xl/sharedStrings.xml").endswith(expected)


def test_both_branches_of_a_text_box_are_equal() -> None:
    box = f"<w:txbxContent><w:p>{run('a dog')}</w:p></w:txbxContent>"
    body = (
        "<w:p><w:r><mc:AlternateContent><mc:Choice>{0}</mc:Choice><mc:Fallback>{0}</mc:Fallback>"
        "</mc:AlternateContent></w:r></w:p>"
    ).replace("<w:p>", '<w:p xmlns:mc="m">')
    expected = body.format(box.replace("a dog", "A DOG"))
    assert translated_word(body.format(box)) == expected


def test_a_signature_is_left_out_and_macros_stay(capsys: pytest.CaptureFixture[str]) -> None:
    signature = (f"{MAIN.replace('officedocument', 'package')}.digital-signature+xml", "<a/>")
    body = f"<w:document {W}><w:p/></w:document>"
    kind = "application/vnd.ms-word.document.macroEnabled.main+xml"
    content = packed(
        {"word/document.xml": (kind, body), "_xmlsignatures/sig1.xml": signature},
        {
            "_rels/.rels": relations(origin="_xmlsignatures/origin.sigs", officeDocument="word/d"),
            "_xmlsignatures/origin.sigs": "",
            "word/vbaProject.bin": b"\xd0\xcf",
        },
    )
    found = translated_parts(content)
    assert not any("_xmlsignatures" in part for part in (*found, *found.values()))
    assert "officeDocument" in found["_rels/.rels"] and "word/vbaProject.bin" in found
    assert "a.docx: its digital signature is left out" in capsys.readouterr().err


def test_a_type_may_be_that_of_all_files_with_an_ending() -> None:
    content = BytesIO()
    with ZipFile(content, "w") as file:
        kind = f"{MAIN}.wordprocessingml.document.main+xml"
        types = f'<Types {TYPES}><Default Extension="XML" ContentType="{kind}"/></Types>'
        file.writestr("[Content_Types].xml", types)
        file.writestr("word/document.xml", f"<w:document {W}><w:p>{run('a')}</w:p></w:document>")
    assert run("A") in translated_parts(content.getvalue())["word/document.xml"]


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
        (
            packed({"a": ("application/vnd.ms-excel.sheet.binary.macroEnabled.main", "")}),
            "a.docx: is a binary workbook; save it as xlsx",
        ),
        (packed({}), "a.docx: has no part of Word, PowerPoint or Excel; save it as docx"),
        (word_file("<w:p>"), "a.docx: word/document.xml: is no well-formed XML"),
        (  # before anything is translated
            packed(
                {"xl/a.xml": (f"{MAIN}.spreadsheetml.worksheet+xml", "<worksheet/>")},
                {"xl/_rels/a.xml.rels": "<Relationships>"},
            ),
            "a.docx: xl/_rels/a.xml.rels: is no well-formed XML",
        ),
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
