"""Office files that are damaged, or built as no program builds them: a sentence, or a good file."""

import random
from collections.abc import Callable
from io import BytesIO
from xml.parsers import expat
from zipfile import ZIP_DEFLATED, ZipFile

import pytest

from nmt.errors import DataError
from nmt.translation.documents.document import LanguagePair, ReadingOptions
from nmt.translation.documents.formats import read_document
from nmt.translation.documents.translate import translate_document
from nmt.translation.documents.xml_tokens import XmlSource
from tests.office_files import MAIN, SHEET, A, W, packed, relations
from tests.reversing_translator import guessing, reversing

FIELD = "".join(
    f"<w:r>{part}</w:r>"
    for part in (
        '<w:fldChar w:fldCharType="begin"/>',
        "<w:instrText>HYPERLINK x</w:instrText>",
        '<w:fldChar w:fldCharType="separate"/>',
        "<w:t>linked words</w:t>",
        '<w:fldChar w:fldCharType="end"/>',
    )
)
WORD = f"""<w:document {W}><w:body>
<w:p><w:pPr><w:jc/><w:rPr><w:ins/></w:rPr></w:pPr><w:r><w:t xml:space="preserve">a </w:t></w:r>
<w:r><w:rPr><w:b/><w:lang w:val="en"/></w:rPr><w:t>bold</w:t><w:tab/><w:t> dog</w:t></w:r>{FIELD}
<w:bookmarkStart w:id="1"/><w:ins><w:r><w:t>new</w:t><w:noBreakHyphen/></w:r></w:ins>
<w:del><w:r><w:delText>old</w:delText></w:r></w:del><w:bookmarkEnd w:id="1"/>
<w:sdt> <w:sdtPr/> <w:sdtContent> <w:r><w:t>control</w:t></w:r> </w:sdtContent> </w:sdt>
<w:r><w:ruby><w:rt><w:r><w:t>r</w:t></w:r></w:rt><w:rubyBase><w:r><w:t>base</w:t></w:r></w:rubyBase>
</w:ruby><w:drawing><w:docPr descr="alternative text"/><w:txbxContent><w:p><w:r><w:t>in a box</w:t>
</w:r></w:p></w:txbxContent></w:drawing></w:r><w:hyperlink w:tooltip="tip"><w:r><w:t>link</w:t>
</w:r></w:hyperlink><w:fldSimple><w:r><w:t>7</w:t></w:r></w:fldSimple></w:p>
<w:tbl><w:tblPr/><w:tr><w:trPr><w:del/></w:trPr><w:tc><w:p/></w:tc></w:tr><w:tr><w:tc><w:p><w:r>
<w:t>cell</w:t></w:r></w:p></w:tc></w:tr></w:tbl><w:sectPr><w:docGrid/></w:sectPr></w:body></w:document>"""
SLIDE = f"""<p:sld xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main" {A}>
<p:cNvPr descr="a picture"/><a:p><a:pPr algn="l"/><a:r><a:rPr lang="en" b="1"/><a:t>a dog</a:t>
</a:r><a:br/><a:fld><a:t>7</a:t></a:fld><a:r><a:t> reads</a:t></a:r><a:endParaRPr/></a:p></p:sld>"""
STRINGS = f"""<sst {SHEET}><si><t>name</t></si><si><r><rPr><b/></rPr><t>big</t></r><r><t> dog</t>
</r><rPh sb="0" eb="1"><t>x</t></rPh></si></sst>"""
CELLS = f"""<worksheet {SHEET}><sheetViews><sheetView/></sheetViews><sheetData><row><c r="A1" t="s">
<v>0</v></c><c r="B1" t="s"><v>1</v></c><c r="C1"><f>SUM(T[name])&amp;"yes"</f><v>0</v></c></row>
</sheetData><autoFilter><filter val="name"/></autoFilter><headerFooter><oddHeader>&amp;LPage &amp;P
of &amp;"Arial"&amp;12it</oddHeader></headerFooter></worksheet>"""
TABLE = f"""<table {SHEET} displayName="T" ref="A1:B2"><tableColumns><tableColumn name="name"/>
<tableColumn name="big dog"/></tableColumns></table>"""
URN = "urn:oasis:names:tc:opendocument:xmlns"
TEXT = f"""<office:document-content xmlns:office="{URN}:office:1.0" xmlns:text="{URN}:text:1.0"
 xmlns:style="{URN}:style:1.0" xmlns:fo="{URN}:xsl-fo-compatible:1.0" xmlns:table="{URN}:table:1.0"
 xmlns:svg="{URN}:svg-compatible:1.0"><style:default-style><style:paragraph-properties/>
<style:text-properties fo:language="en" style:language-complex="hi"/></style:default-style>
<text:tracked-changes><text:p>gone</text:p></text:tracked-changes><text:p>a <text:span>big
</text:span><text:bookmark-start/>dog<text:bookmark-end/><text:s text:c="3"/><text:ruby>
<text:ruby-base>b</text:ruby-base><text:ruby-text>r</text:ruby-text></text:ruby><text:page-number>1</text:page-number>
<text:note><text:note-body><text:p>note</text:p></text:note-body></text:note><svg:desc>words</svg:desc>
</text:p><table:table-cell table:formula='of:="yes"' office:string-value="x"><text:p>yes</text:p>
<office:annotation><text:p>see</text:p></office:annotation></table:table-cell>
</office:document-content>"""


def seeds() -> list[tuple[str, bytes]]:
    """A small file of each program, with what their readers know, and its format."""
    document = packed(
        {
            "word/document.xml": (f"{MAIN}.wordprocessingml.document.main+xml", WORD),
            "ppt/slides/slide1.xml": (f"{MAIN}.presentationml.slide+xml", SLIDE),
            "xl/sharedStrings.xml": (f"{MAIN}.spreadsheetml.sharedStrings+xml", STRINGS),
            "xl/worksheets/a.xml": (f"{MAIN}.spreadsheetml.worksheet+xml", CELLS),
            "xl/tables/t.xml": (f"{MAIN}.spreadsheetml.table+xml", TABLE),
        },
        {"xl/worksheets/_rels/a.xml.rels": relations(table="../tables/t.xml")},
    )
    content = BytesIO()
    with ZipFile(content, "w") as file:
        file.writestr("mimetype", "application/vnd.oasis.opendocument.text")
        file.writestr("content.xml", TEXT)
    return [("office", document), ("opendocument", content.getvalue())]


def with_other_bytes(content: bytes, chance: random.Random) -> bytes:
    """A file with some bytes changed, moved, doubled or cut off."""
    changed = bytearray(content)
    for _ in range(chance.choice((1, 1, 3, 20))):
        place, size = chance.randrange(len(changed) + 1), chance.choice((1, 4, 50))
        match chance.randrange(4):
            case 0:
                changed[place : place + size] = chance.randbytes(size)
            case 1:
                del changed[place : place + size]
            case 2:
                changed[place:place] = changed[place : place + size]
            case _:
                start = chance.randrange(len(changed) + 1)
                changed[place : place + size] = changed[start : start + size]
    return bytes(changed[: chance.randrange(len(changed) + 1)] if size == 50 else changed)


def with_other_xml(content: bytes, chance: random.Random) -> bytes:
    """A file in which elements of one part are at other places, have other names, or are gone."""
    with ZipFile(BytesIO(content)) as file:
        parts = {name: file.read(name) for name in file.namelist()}
    name = chance.choice([name for name, text in parts.items() if text[:1] == b"<"])
    text = parts[name].decode()
    for _ in range(chance.choice((1, 1, 2, 6))):
        text = with_another_element(text, chance)
    if chance.random() < 0.2:  # it may be no XML any more
        place = chance.randrange(len(text))
        text = (
            text[:place] + chance.choice(("<", "&", "]]>", "<!--", "\0", "\ud7ff")) + text[place:]
        )
    parts[name] = text.encode()
    written = BytesIO()
    with ZipFile(written, "w", ZIP_DEFLATED) as file:
        for each, part in parts.items():
            file.writestr(each, part)
    return written.getvalue()


def with_another_element(text: str, chance: random.Random) -> str:
    """An XML document with one change: it stays well-formed, except for its root."""
    source = XmlSource(text.encode(), "a")
    tokens = source.tokens
    starts = [i for i, token in enumerate(tokens) if token.kind in ("start", "empty")][1:]
    if not starts:
        return text
    start, other = chance.choice(starts), chance.choice(starts)
    element = "".join(token.source for token in tokens[start : source.end(start)])
    match chance.randrange(5):
        case 0:  # it is gone
            for token in tokens[start : source.end(start)]:
                token.source = ""
        case 1:  # another one of it stands elsewhere
            tokens[other].source = element + tokens[other].source
        case 2:  # it is around itself
            tokens[start].source += element if tokens[start].kind == "start" else ""
        case 3:  # it has the name of another one
            for i in {start, source.end(start) - 1}:
                old, new = tokens[start].name, tokens[other].name
                tokens[i].source = tokens[i].source.replace(old, new, 1)
        case _:  # only its content stays
            for i in {start, source.end(start) - 1}:
                tokens[i].source = ""
    return "".join(token.source for token in tokens)


@pytest.mark.parametrize("change", [with_other_bytes, with_other_xml])
@pytest.mark.parametrize("count", [40, pytest.param(1250, marks=pytest.mark.slow)])
def test_any_file_is_refused_by_a_sentence_or_becomes_a_good_one(
    change: Callable[[bytes, random.Random], bytes], count: int
) -> None:
    refused = 0
    for number in range(count):
        chance = random.Random(number)
        key, seed = chance.choice(seeds())
        content = change(seed, chance)
        target = chance.choice(("und", "de", "ar", "ja"))
        options = ReadingOptions(LanguagePair(chance.choice(("und", "en", "he")), target))
        try:
            document = read_document(content, "a.docx", key, options)
        except DataError as error:
            assert str(error).startswith("a.docx: ") and "\n" not in str(error)
            refused += 1
            continue
        translated = translate_document(document, chance.choice((reversing, guessing)))
        with ZipFile(BytesIO(translated)) as file:
            assert file.testzip() is None
            for name in file.namelist():
                text = file.read(name)
                if text[:1] == b"<":
                    expat.ParserCreate().Parse(text, True)
    assert 0 < refused < count
