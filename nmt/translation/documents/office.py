"""Word, PowerPoint and Excel (ECMA-376): docx, pptx, xlsx and their templates and macro files."""

import re
from collections.abc import Iterator, Set

from nmt.errors import DataError, print_warning
from nmt.translation.documents.archive import Archive
from nmt.translation.documents.document import (
    Document,
    DocumentSegment,
    LanguagePair,
    ReadingOptions,
)
from nmt.translation.documents.excel_tables import (
    compute_when_opened,
    texts_of_formulas,
    update_tables,
)
from nmt.translation.documents.office_changes import accept_changes, has_changes
from nmt.translation.documents.office_languages import declare_language, set_direction
from nmt.translation.documents.office_paragraphs import paragraph_segment
from nmt.translation.documents.office_parts import (
    PREFIXES,
    kinds_of_parts,
    related_parts,
    remove_signatures,
)
from nmt.translation.documents.office_runs import RunNames, element_names
from nmt.translation.documents.office_texts import filter_segments, text_of_element, texts_of_tag
from nmt.translation.documents.writing_systems import WritingSystem, writing_system
from nmt.translation.documents.xml_tokens import XmlSource

WORD = RunNames(
    run="w:r",
    look="w:rPr",
    text="w:t",
    around=element_names("w:hyperlink w:smartTag w:sdt w:customXml w:dir w:bdo"),
    heads=element_names("w:sdtPr w:sdtEndPr w:smartTagPr w:customXmlPr"),
    content="w:sdtContent",
    dropped=element_names("w:proofErr w:lastRenderedPageBreak w:softHyphen w:rubyPr w:rt"),
    unwrapped=element_names("w:ruby w:rubyBase"),
    outside=element_names("w:pPr"),
    breaks=element_names("w:br w:cr w:tab w:ptab"),
    fields=element_names("w:fldSimple"),
    ranges={f"w:{name}Start": f"w:{name}End" for name in ("bookmark", "commentRange", "perm")},
    characters={"w:noBreakHyphen": "\u2011"},
    looks_alike=re.compile(
        r'<w:(?:lang|noProof)\b[^>]*/>|<w:rFonts w:hint="[^"]*"/>',
    ),
    preserve=' xml:space="preserve"',
)
DRAWING = RunNames(
    run="a:r",
    look="a:rPr",
    text="a:t",
    outside=element_names("a:pPr a:endParaRPr"),
    breaks=element_names("a:br"),
    fields=element_names("a:fld"),
    looks_alike=re.compile(r' (?:lang|altLang|dirty|err|smtClean|noProof)="[^"]*"'),
)
SHEET = RunNames(
    run="r",
    look="rPr",
    text="t",
    dropped=element_names("rPh"),
    outside=element_names("phoneticPr"),
    preserve=' xml:space="preserve"',
)
PARAGRAPHS = {"w:p": WORD, "a:p": DRAWING, "si": SHEET, "is": SHEET, "text": SHEET}
_TEXT_PARTS = element_names("""
    comments document endnotes footer footnotes glossary header numbering template
    chart chartex chartshapes core-properties diagramData diagramDrawing drawing handoutMaster
    notesMaster notesSlide slide slideLayout slideMaster
    chartsheet sharedStrings table threadedcomments worksheet""")
"""by the kind of a part, which is a word of its content type"""
_OTHER_PARTS = element_names("""
    pivotCacheDefinition presentation queryTable settings sheet slicerCache slideshow styles""")
"""parts without text, but with the language of text, or with names and formulas of sheets"""


_SHEET_PARTS = ("sharedStrings", "worksheet")


def read_office(content: bytes, name: str, options: ReadingOptions) -> Document:
    """Read a file of Word, PowerPoint or Excel.

    Raises:
        DataError: it is damaged, encrypted or too large, or in an older format.
    """
    file = _OfficeFile(content, name, options.languages)
    return Document(file.segments, file.write)


class _OfficeFile:
    """The parts of a file, and of the workbooks of its charts."""

    def __init__(
        self, content: bytes, name: str, languages: LanguagePair, around: Archive | None = None
    ) -> None:
        """Read a file; `around` is the one that it is a workbook in, if it is."""
        self._archive, self._name = Archive(content, name, around), name
        self._kinds = kinds_of_parts(self._archive, name)
        system = writing_system(languages)
        self._sources = {
            part: self._read(part, system)
            for part, kind in self._kinds.items()
            if kind in _TEXT_PARTS or kind in _OTHER_PARTS
        }
        if not self._sources:
            raise DataError(
                f"{name}: has no part of Word, PowerPoint or Excel; save it as docx, pptx or xlsx"
            )
        kept = texts_of_formulas(self._sources.values())
        self.segments = [
            segment
            for part, source in self._sources.items()
            if self._kinds[part] in _TEXT_PARTS
            for segment in office_segments(source, kept)
        ]
        """the texts; those inside of others come first"""
        texts = {segment.text.text for segment in self.segments}
        for part in self._parts_of_kind("worksheet", "table"):
            self.segments += filter_segments(self._sources[part], texts)
        self._tables = {
            sheet: list(related_parts(self._archive, sheet, "table", name))
            for sheet in self._parts_of_kind("worksheet")
        }
        workbooks = {
            part: f"{name}: {part}"
            for chart in (self._parts_of_kind("chart", "chartex") if not around else ())
            for part in related_parts(self._archive, chart, "package", name)
        }
        self._workbooks: dict[str, _OfficeFile] = {}
        for part, its_name in workbooks.items():
            inside = self._archive.read(part)
            try:
                workbook = _OfficeFile(inside, its_name, languages, self._archive)
            except DataError as error:  # such as one in a binary format
                print_warning(f"this workbook of a chart stays as it is: {error}")
                continue
            self._workbooks[part] = workbook
            self.segments += workbook.segments
        remove_signatures(self._archive, name)

    def _read(self, part: str, system: WritingSystem) -> XmlSource:
        """Return a part with tracked changes accepted, in the language of the translation."""
        content = self._archive.read_text(part)
        source = XmlSource(content, f"{self._name}: {part}", PREFIXES)
        declare_language(source, system)
        set_direction(source, system)
        _unbind(source)
        if has_changes(content):
            accept_changes(source)
        elif not system.direction:
            return source
        return XmlSource(source.encode(), f"{self._name}: {part}", PREFIXES)

    def _parts_of_kind(self, *kinds: str) -> list[str]:
        return [part for part in self._sources if self._kinds[part] in kinds]

    def write(self) -> bytes:
        """Return the file as it is now."""
        update_tables(self._sources, self._tables)
        texts = self._parts_of_kind(*_SHEET_PARTS)
        if any(self._sources[part].encode() != self._archive.read(part) for part in texts):
            compute_when_opened(self._sources.values())
        for part, source in self._sources.items():
            self._archive.change(part, source.encode())
        for part, workbook in self._workbooks.items():
            self._archive.change(part, workbook.write())
        return self._archive.write()


def _unbind(source: XmlSource) -> None:
    """Remove what would let Word replace translated text by data that is not translated."""
    for token in source.tokens:
        is_binding = token.name.rpartition(":")[2] == "dataBinding" and token.kind == "empty"
        if is_binding and "coreProperties" not in token.source:
            token.source = ""


def office_segments(source: XmlSource, kept: Set[str]) -> Iterator[DocumentSegment]:
    """Yield the segments of a part: those of attributes and of inner paragraphs first.

    A cell or a label of a chart whose text, in small letters, is one of `kept` has none.
    """
    parents: list[str] = []
    for i, token in enumerate(source.tokens):
        if token.kind == "start":
            parents.append(token.name)
        if token.kind in ("start", "empty"):
            yield from texts_of_tag(token)
        elif token.kind == "end":
            parents.pop()
            names = PARAGRAPHS.get(token.name)
            segment = paragraph_segment(source, names, source.partners[i], i) if names else None
            found = [segment] if segment else text_of_element(source, i, parents)
            for each in found:
                if each.text.text.lower() not in kept or names in (WORD, DRAWING):
                    yield each
