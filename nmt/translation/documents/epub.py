"""EPUB 2 and 3: the pages of a book, its table of contents, and what it says about itself."""

import posixpath
from collections.abc import Iterator, Sequence
from functools import partial
from urllib.parse import unquote, urlsplit

from nmt.data.languages import look_up_language
from nmt.errors import DataError
from nmt.translation.documents.archive import Archive
from nmt.translation.documents.document import (
    Document,
    DocumentSegment,
    LanguagePair,
    ReadingOptions,
    has_text,
    replace_source,
)
from nmt.translation.documents.html import XHTML_PREFIXES, page_segments
from nmt.translation.documents.html_blocks import Elements
from nmt.translation.documents.marked_text import MARKUP, read_pieces
from nmt.translation.documents.writing_systems import is_right_to_left
from nmt.translation.documents.xml_inline import InlineNames, inline_pieces
from nmt.translation.documents.xml_tokens import XmlSource, set_attribute, text_of_xml

CONTAINER, ENCRYPTION = "META-INF/container.xml", "META-INF/encryption.xml"
_PREFIXES = {
    "urn:oasis:names:tc:opendocument:xmlns:container": "",
    "http://www.idpf.org/2007/opf": "",
    "http://www.daisy.org/z3986/2005/ncx/": "",
    "http://purl.org/dc/elements/1.1/": "dc",
    "http://www.w3.org/2001/04/xmlenc#": "",
}
_PAGES = ("application/xhtml+xml", "text/html", "text/x-oeb1-document")
_CONTENTS = "application/x-dtbncx+xml"
"""the type of toc.ncx, the table of contents of EPUB 2"""
_OBFUSCATION = ("http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC")
"""what is done to fonts; anything else is done to text"""
_DESCRIPTIONS = ("dc:title", "dc:description")
INLINE = InlineNames(around=frozenset(), has_written_tags=True)


def read_epub(content: bytes, name: str, options: ReadingOptions) -> Document:
    """Read a book.

    Raises:
        DataError: it is damaged, too large, or protected by digital rights management.
    """
    archive = Archive(content, name)
    _check_rights(archive, name)
    sources: dict[str, XmlSource] = {}
    segments: list[DocumentSegment] = []
    container = XmlSource(archive.read(CONTAINER), f"{name}: {CONTAINER}", _PREFIXES)
    for package in _attributes(container, "rootfile", "full-path"):
        sources[package] = XmlSource(archive.read(package), f"{name}: {package}", _PREFIXES)
        segments += _texts(sources[package], _DESCRIPTIONS, "")
        for part, kind in _parts(sources[package], package):
            if kind not in (*_PAGES, _CONTENTS) or part in sources:
                continue
            prefixes = _PREFIXES if kind == _CONTENTS else XHTML_PREFIXES
            source = XmlSource(archive.read(part), f"{name}: {part}", prefixes)
            sources[part] = source
            if kind == _CONTENTS:
                segments += _texts(source, ("text",), "docAuthor")
                _declare_target(source, options.languages)
            else:
                elements = Elements(source.tokens, options.languages, source.partners)
                segments += page_segments(source.tokens, elements, options.languages)
        _declare_target(sources[package], options.languages)

    def write() -> bytes:
        for part, source in sources.items():
            archive.change(part, source.encode())
        return archive.write()

    return Document(segments, write)


def _check_rights(archive: Archive, name: str) -> None:
    """Raise a DataError if anything but fonts is encrypted."""
    if ENCRYPTION not in archive:
        return
    source = XmlSource(archive.read(ENCRYPTION), f"{name}: {ENCRYPTION}", _PREFIXES)
    if any(way not in _OBFUSCATION for way in _attributes(source, "EncryptionMethod", "Algorithm")):
        raise DataError(
            f"{name}: is protected by digital rights management (DRM), so its text cannot be read; "
            "ask its publisher for a file without protection"
        )


def _attributes(source: XmlSource, name: str, attribute: str) -> Iterator[str]:
    """Yield the values of an attribute of the elements of a name."""
    for token in source.tokens:
        if token.name == name and (value := token.attribute(attribute)):
            yield value


def _parts(package: XmlSource, path: str) -> Iterator[tuple[str, str]]:
    """Yield (name of the part, type) for each item of the manifest of a package at `path`."""
    for token in package.tokens:
        address = urlsplit(token.attribute("href") or "")
        if token.name == "item" and address.path and not address.scheme:
            part = posixpath.join(posixpath.dirname(path), unquote(address.path))
            yield posixpath.normpath(part), token.attribute("media-type") or ""


def _texts(source: XmlSource, names: Sequence[str], outside: str) -> Iterator[DocumentSegment]:
    """Yield the text of each element of some names that is not in an element `outside`."""
    tokens = source.tokens
    i = 0
    while i < len(tokens):
        if tokens[i].name == outside:
            i = source.end(i)
        elif tokens[i].kind == "start" and tokens[i].name in names:
            first, end = i + 1, source.partners[i]
            text = read_pieces(inline_pieces(source, first, end, INLINE), MARKUP)
            if has_text(text):
                yield DocumentSegment(text, partial(replace_source, tokens[first:end]))
            i = end
        else:
            i += 1


def _declare_target(source: XmlSource, languages: LanguagePair) -> None:
    """Write the language of the translation, and the direction of pages, where they are told."""
    if not languages.target_tag:
        return
    tokens = source.tokens
    texts = [
        tokens[i + 1]
        for i, token in enumerate(tokens)
        if token.name == "dc:language" and token.kind == "start" and tokens[i + 1].kind == "text"
    ]
    own = [text for text in texts if _is_source(text_of_xml(text.source), languages)]
    for text in own or texts[:1]:  # a book may have several
        text.source = languages.target_tag
    directions = [is_right_to_left(code) for code in (languages.source, languages.target)]
    for token in tokens:
        if _is_source(token.attribute("xml:lang") or "", languages):
            set_attribute(token, "xml:lang", languages.target_tag)
        if token.name == "spine" and token.kind == "start" and any(directions):
            direction = "rtl" if directions[1] else "ltr"
            set_attribute(token, "page-progression-direction", direction, add=True)


def _is_source(code: str, languages: LanguagePair) -> bool:
    """Return whether a code is that of the source language, in any country."""
    return look_up_language(code.strip()).base == look_up_language(languages.source).base
