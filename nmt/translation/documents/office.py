"""Word, PowerPoint and Excel (ECMA-376): docx, pptx, xlsx and their templates and macro files."""

import re

from nmt.translation.documents.archive import Archive
from nmt.translation.documents.document import Document, DocumentSegment, ReadingOptions
from nmt.translation.documents.office_runs import RunNames, office_segments
from nmt.translation.documents.xml_tokens import XmlSource, set_attribute

_PREFIXES = {
    "http://schemas.openxmlformats.org/wordprocessingml/2006/main": "w",
    "http://purl.oclc.org/ooxml/wordprocessingml/main": "w",
    "http://schemas.openxmlformats.org/drawingml/2006/main": "a",
    "http://purl.oclc.org/ooxml/drawingml/main": "a",
    "http://schemas.openxmlformats.org/spreadsheetml/2006/main": "",
    "http://purl.oclc.org/ooxml/spreadsheetml/main": "",
    "http://schemas.openxmlformats.org/package/2006/content-types": "",
}
"""of the namespaces, those of "strict" files too"""


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


WORD = RunNames(
    paragraphs=_names("w:p"),
    run="w:r",
    look="w:rPr",
    text="w:t",
    around=_names("w:hyperlink w:smartTag w:sdt w:customXml w:dir w:bdo"),
    heads=_names("w:sdtPr w:sdtEndPr w:smartTagPr w:customXmlPr"),
    content="w:sdtContent",
    accepted=_names("w:ins w:moveTo"),
    dropped=_names("""
        w:del w:moveFrom w:delText w:delInstrText w:proofErr w:lastRenderedPageBreak w:softHyphen
        w:moveFromRangeStart w:moveFromRangeEnd w:moveToRangeStart w:moveToRangeEnd"""),
    outside=_names("w:pPr"),
    breaks=_names("w:br w:cr w:tab w:ptab"),
    fields=_names("w:fldSimple"),
    looks_alike=re.compile(
        r"<w:(?:lang|noProof|rPrChange)\b[^>]*/>|<w:rPrChange\b.*</w:rPrChange>"
        r'|<w:rFonts w:hint="[^"]*"/>',
        re.DOTALL,
    ),
    preserve=' xml:space="preserve"',
)
DRAWING = RunNames(
    paragraphs=_names("a:p"),
    run="a:r",
    look="a:rPr",
    text="a:t",
    outside=_names("a:pPr a:endParaRPr"),
    breaks=_names("a:br"),
    fields=_names("a:fld"),
    looks_alike=re.compile(r' (?:lang|altLang|dirty|err|smtClean|noProof)="[^"]*"'),
)
SHEET = RunNames(
    paragraphs=_names("si is"),
    run="r",
    look="rPr",
    text="t",
    outside=_names("rPh phoneticPr"),
    preserve=' xml:space="preserve"',
)


_WORD_PARTS = ("comments", "document", "endnotes", "footer", "footnotes", "header", "template")
_DRAWING_PARTS = ("chart", "chartshapes", "diagramData", "drawing", "notesSlide", "slide")
_SHEET_PARTS = ("sharedStrings", "worksheet")
_NAMES = {
    **dict.fromkeys(_WORD_PARTS, WORD),
    **dict.fromkeys(_DRAWING_PARTS, DRAWING),
    **dict.fromkeys(_SHEET_PARTS, SHEET),
}
"""by the kind of a part, which is a word of its content type"""
_LANGUAGE_PARTS = ("presentation", "slideLayout", "slideMaster", "styles")
"""parts without text, but with the language of text"""
_KIND = re.compile(r"(\w+)(?:\.macroEnabled\w*)?(?:\.main)?\+xml$")
"""the end of a content type; before it stand the program and dots"""
TYPES = "[Content_Types].xml"


def read_office(content: bytes, name: str, options: ReadingOptions) -> Document:
    """Read a file of Word, PowerPoint or Excel.

    Raises:
        DataError: it is damaged, encrypted or too large.
    """
    archive = Archive(content, name)
    segments: list[DocumentSegment] = []
    sources: dict[str, XmlSource] = {}
    for part, kind in _kinds_of_parts(archive, name).items():
        if kind not in _NAMES and kind not in _LANGUAGE_PARTS:
            continue
        source = XmlSource(archive.read(part), f"{name}: {part}", _PREFIXES)
        sources[part] = source
        _set_language(source, options.languages.target_tag)
        if kind in _NAMES:
            segments += office_segments(source, _NAMES[kind])

    def write() -> bytes:
        for part, source in sources.items():
            archive.change(part, source.encode())
        return archive.write()

    return Document(segments, write)


def _kinds_of_parts(archive: Archive, name: str) -> dict[str, str]:
    """Return the kind of each part that has one of its own, such as "slide"."""
    kinds: dict[str, str] = {}
    types = XmlSource(archive.read(TYPES), f"{name}: {TYPES}", _PREFIXES)
    for token in types.tokens:
        part = (token.attribute("PartName") or "").removeprefix("/")
        if token.name == "Override" and part in archive:
            kind = _KIND.search(token.attribute("ContentType") or "")
            kinds[part] = kind[1] if kind else ""
    # in the order of a reader: slide2 before slide10
    return dict(sorted(kinds.items(), key=lambda item: [len(item[0]), item[0]]))


def _set_language(source: XmlSource, tag: str) -> None:
    """Declare the language of the text of a part."""
    if not tag:
        return
    for token in source.tokens:
        if token.name == "w:lang":
            value = next((key for key, _ in token.attributes if key.endswith(":val")), "")
            set_attribute(token, value, tag)
        elif token.name.startswith("a:") and token.attribute("lang"):
            set_attribute(token, "lang", tag)
