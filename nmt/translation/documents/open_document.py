"""OpenDocument (ISO/IEC 26300): odt, ods, odp and their templates."""

from collections.abc import Iterator
from functools import partial

from nmt.translation.documents.archive import Archive
from nmt.translation.documents.document import (
    Document,
    DocumentSegment,
    ReadingOptions,
    has_text,
    replace_source,
)
from nmt.translation.documents.marked_text import MARKUP, read_pieces
from nmt.translation.documents.xml_inline import InlineNames, inline_pieces
from nmt.translation.documents.xml_tokens import XmlSource, set_attribute

_URN = "urn:oasis:names:tc:opendocument:xmlns"
_PREFIXES = {
    f"{_URN}:text:1.0": "text",
    f"{_URN}:drawing:1.0": "draw",
    f"{_URN}:office:1.0": "office",
    f"{_URN}:xsl-fo-compatible:1.0": "fo",
}
_PARTS = ("content.xml", "styles.xml")
_PARAGRAPHS = ("text:h", "text:p")
_FIELDS = """
    author-initials author-name chapter character-count conditional-text creation-date creation-time
    creator database-display date description editing-cycles editing-duration expression file-name
    hidden-text image-count initial-creator keywords measure modification-date modification-time
    note-citation note-ref object-count page-continuation page-count page-number
    page-variable-get paragraph-count print-date print-time printed-by reference-ref bookmark-ref
    sequence sequence-ref subject table-count table-formula template-name time title user-defined
    user-field-get user-field-input variable-get variable-input variable-set word-count"""
INLINE = InlineNames(
    around=frozenset({"text:a", "text:meta", "text:span"}),
    kept=frozenset(f"text:{name}" for name in _FIELDS.split()),
    breaks=frozenset({"text:line-break", "text:tab"}),
    spaces=frozenset({"text:s"}),
)


def read_open_document(content: bytes, name: str, options: ReadingOptions) -> Document:
    """Read a text, a sheet or a presentation.

    Raises:
        DataError: it is damaged, encrypted or too large.
    """
    archive = Archive(content, name)
    parts = [part for part in _PARTS if part in archive]
    sources = [XmlSource(archive.read(part), f"{name}: {part}", _PREFIXES) for part in parts]
    for source in sources:
        _set_language(source, options.languages.target_tag)
    segments = [segment for source in sources for segment in _segments(source)]

    def write() -> bytes:
        for part, source in zip(parts, sources, strict=True):
            archive.change(part, source.encode())
        return archive.write()

    return Document(segments, write)


def _segments(source: XmlSource) -> Iterator[DocumentSegment]:
    """Yield the paragraphs and headings; those of notes and frames before the ones around them."""
    for end, token in enumerate(source.tokens):
        if token.kind == "end" and token.name in _PARAGRAPHS:
            first = source.partners[end] + 1
            text = read_pieces(inline_pieces(source, first, end, INLINE), MARKUP)
            if has_text(text):
                yield DocumentSegment(text, partial(replace_source, source.tokens[first:end]))


def _set_language(source: XmlSource, tag: str) -> None:
    """Write the language of the translation where one is declared; an empty tag changes nothing."""
    language, *others = tag.split("-")
    country = next((part for part in others if len(part) == 2), "none")  # not a script, as in Hans
    for token in source.tokens:
        # zxx: it is no language, such as the text of a program
        if tag and token.attribute("fo:language") not in (None, "zxx", "none"):
            set_attribute(token, "fo:language", language)
            set_attribute(token, "fo:country", country)
