"""OpenDocument (ISO/IEC 26300): odt, ods, odp, odg and their templates."""

import re
from collections.abc import Collection, Iterator, Sequence, Set
from functools import partial

from nmt.errors import DataError, print_warning
from nmt.translation.documents.archive import Archive
from nmt.translation.documents.document import (
    Document,
    DocumentSegment,
    ReadingOptions,
    has_text,
    replace_source,
)
from nmt.translation.documents.excel_formulas import texts_of_formula
from nmt.translation.documents.marked_text import MARKUP, Piece, read_pieces
from nmt.translation.documents.office_runs import element_names
from nmt.translation.documents.office_texts import segments_of_number, segments_of_value
from nmt.translation.documents.open_document_languages import declare_language, set_direction
from nmt.translation.documents.tokens import Token
from nmt.translation.documents.writing_systems import WritingSystem, writing_system
from nmt.translation.documents.xml_inline import InlineNames, inline_pieces
from nmt.translation.documents.xml_tokens import XmlSource, remove_attribute

_URN = "urn:oasis:names:tc:opendocument:xmlns"
_PREFIXES = {
    f"{_URN}:text:1.0": "text",
    f"{_URN}:table:1.0": "table",
    f"{_URN}:drawing:1.0": "draw",
    f"{_URN}:presentation:1.0": "presentation",
    f"{_URN}:office:1.0": "office",
    f"{_URN}:style:1.0": "style",
    f"{_URN}:form:1.0": "form",
    f"{_URN}:xsl-fo-compatible:1.0": "fo",
    f"{_URN}:svg-compatible:1.0": "svg",
    f"{_URN}:manifest:1.0": "manifest",
    "http://purl.org/dc/elements/1.1/": "dc",
}
_PARTS = ("content.xml", "styles.xml")
"""those of a document, and of the charts in it, which are in folders"""
_PROPERTIES = "meta.xml"
_MANIFEST = "META-INF/manifest.xml"
_SIGNATURES = "META-INF/documentsignatures.xml"
_PARAGRAPHS = ("text:h", "text:p")
_TEXTS = element_names("""
    dc:description dc:subject dc:title presentation:footer-decl presentation:header-decl
    svg:desc svg:title text:index-title-template""")
"""elements whose whole content is a text: alternative texts, properties, what slides repeat"""
_FIELDS = element_names(
    """
    author-initials author-name chapter character-count conditional-text creation-date creation-time
    creator database-display date description editing-cycles editing-duration expression file-name
    hidden-text image-count initial-creator keywords measure modification-date modification-time
    note-citation note-ref object-count page-continuation page-count page-number
    page-variable-get paragraph-count print-date print-time printed-by reference-ref bookmark-ref
    sequence sequence-ref subject table-count table-formula template-name time title user-defined
    user-field-get user-field-input variable-get variable-input variable-set word-count""",
    "text:",
)
_RANGES = ("alphabetical-index-mark", "bookmark", "reference-mark", "toc-mark", "user-index-mark")
INLINE = InlineNames(
    around=element_names("text:a text:meta text:meta-field text:ruby text:ruby-base text:span"),
    kept=_FIELDS,
    breaks=element_names("text:line-break text:tab"),
    spaces=frozenset({"text:s"}),
    pairs={f"text:{name}-start": f"text:{name}-end" for name in _RANGES},
)
_DROPPED = element_names("""
    text:change text:change-end text:change-start text:ruby text:ruby-base text:ruby-text
    text:soft-page-break""")
"""what disappears: marks of tracked changes, and how a text is pronounced"""
_NUMBERS = ("text:list-level-style-number", "text:outline-level-style")
_CELLS = ("table:table-cell", "table:covered-table-cell")
_FORMULAS = ("table:formula", "table:condition", "style:condition", "calcext:value")

_XML_START = re.compile(rb"(?:\xef\xbb\xbf|\xff\xfe|\xfe\xff)?[\s\0]*<")
"""the beginning of XML, after the mark of its byte order if it has one"""


def read_open_document(content: bytes, name: str, options: ReadingOptions) -> Document:
    """Read a text, a sheet, a presentation or a drawing.

    Raises:
        DataError: it is damaged, encrypted or too large.
    """
    system = writing_system(options.languages)
    if not content.startswith(b"PK") and _XML_START.match(content):
        # all parts in one file of XML, such as fodt
        whole = _read(content, name, system)
        return Document(_segments([whole]), whole.encode)
    archive = Archive(content, name)
    _check_manifest(archive, name)
    if _SIGNATURES in archive:
        print_warning(
            f"{name}: its digital signature is left out, as it is not one of the translation"
        )
        archive.remove(_SIGNATURES)
    parts = [part for part in archive.names if part.rpartition("/")[2] in _PARTS]
    parts += [_PROPERTIES] if _PROPERTIES in archive else []
    if "content.xml" not in parts:
        archive.read("content.xml")  # which says that it is missing
    sources = {part: _read(archive.read_text(part), f"{name}: {part}", system) for part in parts}

    def write() -> bytes:
        for part, source in sources.items():
            archive.change(part, source.encode())
        return archive.write()

    return Document(_segments(sources.values()), write)


def _segments(sources: Collection[XmlSource]) -> list[DocumentSegment]:
    """Return the segments of all parts of a document."""
    kept = {text for source in sources for text in _texts_of_formulas(source)}
    segments = [segment for source in sources for segment in _Reader(source, kept).segments()]
    texts = {segment.text.text for segment in segments}
    return segments + [each for source in sources for each in _filter_segments(source, texts)]


def _check_manifest(archive: Archive, name: str) -> None:
    """Raise a DataError if parts of a document are encrypted."""
    if _MANIFEST in archive:
        manifest = XmlSource(archive.read_text(_MANIFEST), f"{name}: {_MANIFEST}", _PREFIXES)
        if any(token.name == "manifest:encryption-data" for token in manifest.tokens):
            raise DataError(f"{name}: is encrypted; save it without a password")


def _read(content: bytes, name: str, system: WritingSystem) -> XmlSource:
    """Return a part with tracked changes accepted, in the language of the translation."""
    source = XmlSource(content, name, _PREFIXES)
    declare_language(source, system)
    set_direction(source, system)
    for i, token in enumerate(source.tokens):
        if token.name == "text:tracked-changes" and token.kind != "end":
            replace_source(source.tokens[i : source.end(i)], "")
    return source


class _Reader:
    """Reads the texts of one part."""

    def __init__(self, source: XmlSource, kept: Set[str]) -> None:
        self._source, self._kept = source, kept

    def segments(self) -> Iterator[DocumentSegment]:
        """Yield the texts; those of notes and frames before the ones around them."""
        around: list[Token | None] = []
        """for each cell of a table, and each comment, that is open: the cell, or None"""
        for i, token in enumerate(self._source.tokens):
            if token.name in _CELLS or token.name == "office:annotation":
                if token.kind == "start":
                    around.append(token if token.name in _CELLS else None)
                elif token.kind == "end":
                    around.pop()
            if token.name in _NUMBERS and token.kind != "end":
                yield from segments_of_number(token)
            label = token.attribute("form:label") if token.name.startswith("form:") else None
            if label and token.kind != "end":
                yield from segments_of_value(token, "form:label", label)
            is_text = token.name in _PARAGRAPHS or token.name in _TEXTS
            if token.kind == "end" and is_text and token.source:  # else it was deleted
                cell = around[-1] if around and token.name in _PARAGRAPHS else None
                yield from self._segment(self._source.partners[i], i, cell)

    def _segment(self, start: int, end: int, cell: Token | None) -> Iterator[DocumentSegment]:
        """Yield the segment of an element, if it has words that are not computed."""
        if cell and (
            cell.attribute("table:formula")
            or cell.attribute("office:value-type") not in (None, "string")
        ):
            return
        place = self._source.tokens[start + 1 : end]
        pieces = inline_pieces(self._source, start + 1, end, INLINE)
        text = read_pieces(filter(_stays, pieces), MARKUP)
        if has_text(text) and not (cell and text.text.lower() in self._kept):
            yield DocumentSegment(text, partial(_put, place, cell))


def _stays(piece: Piece) -> bool:
    return not piece.tokens or piece.tokens[0].name not in _DROPPED


def _put(place: Sequence[Token], cell: Token | None, source: str) -> None:
    """Put a translation into its place, which a cell may not contradict by a value of its own."""
    replace_source(place, source)
    if cell:
        remove_attribute(cell, "office:string-value")


def _texts_of_formulas(source: XmlSource) -> Iterator[str]:
    """Yield the texts that formulas and conditions name, in small letters: cells keep them."""
    for token in source.tokens:
        for name in _FORMULAS:
            for text in texts_of_formula(token.attribute(name) or ""):
                yield " ".join(text.lower().split())


def _filter_segments(source: XmlSource, texts: Set[str]) -> Iterator[DocumentSegment]:
    """Yield the segments of what filters of a sheet show, for those that are `texts` of cells."""
    for token in source.tokens:
        if token.name in ("table:filter-condition", "table:filter-set-item"):
            value = token.attribute("table:value")
            if value and value in texts:
                yield from segments_of_value(token, "table:value", value)
