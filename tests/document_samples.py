"""A small file of each kind of document, with the marks that its reader knows."""

from dataclasses import dataclass, replace
from io import BytesIO
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile

from nmt.translation.documents.document import LanguagePair, ReadingOptions
from tests.office_files import MAIN, SHEET, A, W, packed, relations

EN_DE = ReadingOptions(LanguagePair("en", "de"))
URN = "urn:oasis:names:tc:opendocument:xmlns"


@dataclass(frozen=True)
class Sample:
    """A document: its format, what it is called, and how it is read."""

    format: str
    name: str
    content: bytes
    options: ReadingOptions = EN_DE
    written: str = ""
    """the format of its translation, if that is another one"""


def zipped(parts: dict[str, str | bytes]) -> bytes:
    """An archive of these parts, the first of them as it is, the others compressed."""
    written = BytesIO()
    with ZipFile(written, "w") as file:
        for name, content in parts.items():
            is_type = name == "mimetype"
            file.writestr(name, content, compress_type=ZIP_STORED if is_type else ZIP_DEFLATED)
    return written.getvalue()


WORD = f"""<w:document {W}><w:body><w:p><w:r>
<w:t xml:space="preserve">A </w:t></w:r><w:r><w:rPr><w:b/><w:lang w:val="de"/></w:rPr>
<w:t xml:space="preserve">big</w:t></w:r><w:r><w:tab/></w:r><w:r>
<w:t xml:space="preserve">dog</w:t></w:r>
<w:bookmarkStart w:id="1"/><w:hyperlink w:anchor="x"><w:r>
<w:t xml:space="preserve">reads</w:t></w:r>
</w:hyperlink><w:bookmarkEnd w:id="1"/><w:r><w:footnoteReference w:id="2"/></w:r></w:p><w:tbl><w:tr>
<w:tc><w:p><w:r><w:t xml:space="preserve">A cell</w:t></w:r></w:p></w:tc></w:tr></w:tbl></w:body>
</w:document>""".replace("\n", "")
SLIDE = f"""<p:sld xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main" {A}>
<p:cNvPr id="1" name="x" descr="A picture"/><a:p><a:r><a:rPr lang="de" b="1"/>
<a:t>A dog</a:t></a:r><a:br/><a:r><a:rPr lang="de"/>
<a:t>reads</a:t></a:r><a:endParaRPr lang="de"/></a:p></p:sld>""".replace("\n", "")
STRINGS = f"""<sst {SHEET}><si><t xml:space="preserve">name</t></si><si><r><rPr><b/></rPr>
<t xml:space="preserve">big </t></r><r><t xml:space="preserve">dog</t></r></si></sst>""".replace(
    "\n", ""
)
CELLS = f"""<worksheet {SHEET}><sheetData><row><c r="A1" t="s"><v>0</v></c><c r="B1" t="s"><v>1</v>
</c><c r="C1"><f>SUM(T[name])</f><v>0</v></c></row></sheetData></worksheet>"""
TABLE = f"""<table {SHEET} id="1" name="T" displayName="T" ref="A1:B2"><tableColumns>
<tableColumn id="1" name="name"/><tableColumn id="2" name="big dog"/></tableColumns></table>"""
ODT = f"""<office:document-content xmlns:office="{URN}:office:1.0" xmlns:text="{URN}:text:1.0"
 xmlns:svg="{URN}:svg-compatible:1.0" office:version="1.3"><office:body><text:p>A <text:span
>big</text:span> dog<text:s text:c="3"/>reads <text:page-number>1</text:page-number><text:note>
<text:note-body><text:p>A note</text:p></text:note-body></text:note><svg:desc>Words</svg:desc>
</text:p></office:body></office:document-content>"""
PAGE = """<html xmlns="http://www.w3.org/1999/xhtml"><head><title>A dog</title></head><body>
<p class='x'>A <b>big</b> <a href="a.html">dog <i>reads</i></a> the <code>x = 1</code>.<br/>It does
&amp; it is.</p><img src="a.png" alt="A picture"/><!-- a comment --></body></html>
"""
CONTAINER = """<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>
<rootfile full-path="b.opf" media-type="application/oebps-package+xml"/></rootfiles></container>"""
PACKAGE = """<package xmlns="http://www.idpf.org/2007/opf"><metadata
 xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>A book</dc:title></metadata><manifest>
<item href="p.xhtml" media-type="application/xhtml+xml"/></manifest><spine/></package>"""
XLIFF = """<?xml version="1.0" encoding="utf-8"?>
<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2"><file source-language="en"
 target-language="de" original="a"><body><trans-unit id="1"><source>A <g id="1">big
 <x id="2"/></g>dog <ph id="3">{0}</ph> &lt;b&gt;reads&lt;/b&gt;</source></trans-unit>
<trans-unit id="2"><source>A cat
</source><target state="final">Eine Katze</target></trans-unit></body></file></xliff>
"""
XLIFF_2 = """<xliff version="2.0" srcLang="en" trgLang="de"
 xmlns="urn:oasis:names:tc:xliff:document:2.0"><file id="f"><unit id="1"><segment><source>A
<pc id="1">big</pc> <sc id="2"/>dog<ec startRef="2"/></source></segment></unit></file></xliff>
"""
TMX = """<?xml version="1.0"?>
<!DOCTYPE tmx SYSTEM "tmx14.dtd">
<tmx version="1.4"><header srclang="en" segtype="sentence"/><body><tu tuid="1">
<tuv xml:lang="en-US"><seg>A <bpt i="1">&lt;b></bpt>big<ept i="1">&lt;/b></ept> dog <ph x="1"/>
 reads</seg></tuv></tu>
</body></tmx>
"""
PO = """# A comment
msgid ""
msgstr ""
"Language: de\\n"
"Content-Type: text/plain; charset=UTF-8\\n"
"Plural-Forms: nplurals=2; plural=(n != 1);\\n"

#, c-format
msgctxt "menu"
msgid "One &file\\tCtrl+O"
msgid_plural "%d <b>files</b> &amp; more.\\n\\nb"
msgstr[0] ""
msgstr[1] ""
"""
PROPERTIES = """# A comment
a.b = It''s {0} <b>big</b>\\u00e4 \\
    and\\n\\
    old
f:_Open\\t\\ud83d\\ude00
"""
TS = """<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="de_DE" sourcelanguage="en">
<context>
    <name>Window</name>
    <message>
        <location filename="a.cpp" line="1"/>
        <source>&amp;Open &quot;%1&quot; &lt;b&gt;now&lt;/b&gt;</source>
        <comment>A menu</comment>
        <translation type="unfinished"></translation>
    </message>
    <message numerus="yes">
        <source>%n big dog(s)</source>
        <translation type="unfinished">
            <numerusform></numerusform>
            <numerusform></numerusform>
        </translation>
    </message>
    <message>
        <source>A cat</source>
        <translation>Eine Katze</translation>
    </message>
</context>
</TS>
"""
APPLE = """/* A comment */
"a" = "A \\"big\\" %@ <b>dog</b>.\\n\\nIt reads."; // f
g = "&Open...";
"""
ANDROID = """<?xml version="1.0" encoding="utf-8"?>
<resources xmlns:xliff="urn:oasis:names:tc:xliff:document:1.2"><!-- A comment -->
  <string name="a">It\\'s <b>big</b> \\u00e4\\n<xliff:g id="c">%s</xliff:g>
 "dog" &lt;i>reads</string>
  <string-array name="b"><item><![CDATA[Cats & dogs]]></item></string-array>
  <plurals name="c"><item quantity="one">A dog</item><item quantity="other">%d dogs</item></plurals>
</resources>
"""
SRT = """1
00:00:01,000 --> 00:00:02,500
- A <i>big</i> dog
- Yes.

2
00:00:03,000 --> 00:00:04,500
It reads,
"""
VTT = """WEBVTT - A title

STYLE
::cue { color: red }

a
00:01.000 --> 00:02.500 align:left
<v Ann>A <b>big</b> dog &amp; a cat.
"""
ASS = """[Script Info]
Title: a

[Events]
Format: Layer, Start, End, Style, Text
Dialogue: 0,0:00:01.00,0:00:02.50,Default,A {\\i1}big{\\i0} dog,\\Nit reads.
"""
SBV = "0:00:01.000,0:00:02.500\nA big dog\n\n0:00:03.000,0:00:04.500\nIt reads.\n"
MARKDOWN = """---
title: A page
---

# A *big* dog #

It [reads *the* book](https://x.org "A title"), `x = 1`, <b>and</b>[^1] ![A cat](a.png).

- [ ] One thing
  * Another

| A | b |
|---|:-:|
| *x* y | `z` |

> A note
> of two lines

```
code
```

[^1]: A note.
"""
DOCBOOK = """<?xml version="1.0"?>
<article xmlns="http://docbook.org/ns/docbook" version="5.0"><title>A dog</title>
<para>A <emphasis>big</emphasis> dog reads <code>x = 1</code>.</para></article>
"""
JSON = """{"nav": {"home": "Home page", "url": "https://a.org"}, "n": [1, 2.5e3, null, true],
 "hi": "Hi <1>{{name}}</1>!\\nHave \\u00e4 <b>big</b> day",
 "m": "{n, plural, one {# dog} other {# dogs}}"}
"""
YAML = """a: &x A big dog  # a comment
b: 'It''s {0}'
c: "A \\"cat\\" \\u00e4"
d: >-
  One text
  of lines

e: |
  Two
   lines
f: [One word, *x, {g: 1.5}]
"""
CSV = 'id,text\r\n1,"A ""big"" dog,\r\nit reads"\r\n2,A cat\r\n'
PDF = """%PDF-1.4
1 0 obj
<< /Type /Catalog /Pages 2 0 R >>
endobj
2 0 obj
<< /Type /Pages /Kids [4 0 R] /Count 1 >>
endobj
3 0 obj
<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>
endobj
4 0 obj
<< /Type /Page /Parent 2 0 R /MediaBox [0 0 400 600] /Resources << /Font << /F1 3 0 R >> >>
/Contents 5 0 R >>
endobj
5 0 obj
<< /Length 87 >>
stream
BT /F1 20 Tf 50 500 Td (A big dog) Tj ET BT /F1 12 Tf 50 450 Td (It reads a book.) Tj ET
endstream
endobj
trailer
<< /Size 6 /Root 1 0 R >>
"""

RESX = """<?xml version="1.0" encoding="utf-8"?>
<root><resheader name="version"><value>2.0</value></resheader>
<data name="a" xml:space="preserve"><value>A &lt;b&gt;big&lt;/b&gt; dog: {0}</value></data>
<data name="b" type="System.Int32"><value>12</value></data></root>
"""


def _office(**parts: tuple[str, str]) -> bytes:
    """A file of Office; each part is its path with "_" for "/", its type and its content."""
    return packed(
        {f"{k.replace('_', '/')}.xml": (f"{MAIN}.{t}+xml", x) for k, (t, x) in parts.items()}
    )


def _workbook() -> bytes:
    kinds = {"sharedStrings": STRINGS, "worksheet": CELLS, "table": TABLE}
    paths = ("xl/sharedStrings.xml", "xl/worksheets/a.xml", "xl/tables/t.xml")
    parts = {
        path: (f"{MAIN}.spreadsheetml.{kind}+xml", text)
        for path, (kind, text) in zip(paths, kinds.items(), strict=True)
    }
    return packed(parts, {"xl/worksheets/_rels/a.xml.rels": relations(table="../tables/t.xml")})


def _texts() -> list[Sample]:
    """The samples that are plain text, or XML in one file."""
    by_column = replace(EN_DE, column=("text",))
    tsv = CSV.replace(",", "\t", 1).replace("1,", "1\t").replace("2,", "2\t")
    found = [
        ("xliff", "a.xlf", XLIFF),
        ("xliff", "b.xlf", XLIFF_2),
        ("tmx", "a.tmx", TMX),
        ("opendocument", "a.fodt", ODT.replace("document-content", "document")),
        ("po", "a.po", PO),
        ("properties", "a.properties", PROPERTIES),
        ("apple-strings", "a.strings", APPLE),
        ("android", "strings.xml", ANDROID),
        ("resx", "a.resx", RESX),
        ("ts", "a.ts", TS),
        ("subtitles", "a.srt", SRT),
        ("subtitles", "a.vtt", VTT),
        ("subtitles", "a.ass", ASS),
        ("subtitles", "a.sbv", SBV),
        ("markdown", "a.md", MARKDOWN),
        ("xml", "a.xml", DOCBOOK),
        ("html", "a.html", PAGE),
        ("json", "a.json", JSON),
        ("jsonl", "a.jsonl", '{"text": "A big dog."}\n\n["Yes, it is", 3]\n'),
        ("arb", "a.arb", '{"@@locale": "de", "a": "A {n} dog", "@a": {"type": "text"}}'),
        ("yaml", "a.yaml", YAML),
    ]
    tables = [("csv", "a.csv", CSV), ("tsv", "a.tsv", tsv)]
    return [
        *(Sample(key, name, text.encode()) for key, name, text in found),
        *(Sample(key, name, text.encode(), by_column) for key, name, text in tables),
    ]


SAMPLES = [
    Sample("office", "a.docx", _office(word_document=("wordprocessingml.document.main", WORD))),
    Sample("office", "a.pptx", _office(ppt_slides_slide1=("presentationml.slide", SLIDE))),
    Sample("office", "a.xlsx", _workbook()),
    Sample(
        "opendocument",
        "a.odt",
        zipped({"mimetype": "application/vnd.oasis.opendocument.text", "content.xml": ODT}),
    ),
    Sample(
        "epub",
        "a.epub",
        zipped(
            {
                "mimetype": "application/epub+zip",
                "META-INF/container.xml": CONTAINER,
                "b.opf": PACKAGE,
                "p.xhtml": PAGE,
            }
        ),
    ),
    Sample("pdf", "a.pdf", PDF.encode(), written="html"),
    *_texts(),
]
"""at least one file of each format"""


def samples_of(formats: object) -> list[Sample]:
    """The samples of these formats, the keys of a table."""
    return [sample for sample in SAMPLES if sample.format in formats]  # type: ignore[operator]


def is_archive(sample: Sample) -> bool:
    return sample.content.startswith(b"PK")


def is_xml(sample: Sample) -> bool:
    """Whether its format is XML in one file, all of which must be well-formed."""
    return (
        sample.format in ("xliff", "tmx", "android", "resx", "ts", "xml") or sample.name == "a.fodt"
    )
