"""The parts of a file of Word, PowerPoint or Excel: of which kind each is, and what it refers to.

The format is that of the Open Packaging Conventions (ECMA-376, part 2).
"""

import posixpath
import re
from collections.abc import Iterator
from urllib.parse import unquote

from nmt.errors import DataError, print_warning
from nmt.translation.documents.archive import Archive
from nmt.translation.documents.document import replace_source
from nmt.translation.documents.xml_tokens import XmlSource

PREFIXES = {
    "http://schemas.openxmlformats.org/wordprocessingml/2006/main": "w",
    "http://purl.oclc.org/ooxml/wordprocessingml/main": "w",
    "http://schemas.openxmlformats.org/drawingml/2006/main": "a",
    "http://purl.oclc.org/ooxml/drawingml/main": "a",
    "http://schemas.openxmlformats.org/drawingml/2006/chart": "c",
    "http://purl.oclc.org/ooxml/drawingml/chart": "c",
    "http://schemas.microsoft.com/office/drawing/2014/chartex": "cx",
    "http://schemas.openxmlformats.org/presentationml/2006/main": "p",
    "http://purl.oclc.org/ooxml/presentationml/main": "p",
    "http://schemas.openxmlformats.org/spreadsheetml/2006/main": "",
    "http://purl.oclc.org/ooxml/spreadsheetml/main": "",
    "http://schemas.microsoft.com/office/spreadsheetml/2018/threadedcomments": "tc",
    "http://schemas.openxmlformats.org/package/2006/content-types": "",
    "http://schemas.openxmlformats.org/package/2006/relationships": "",
    "http://purl.org/dc/elements/1.1/": "dc",
}
"""of the namespaces, those of "strict" files too"""
TYPES = "[Content_Types].xml"
_KIND = re.compile(r"([\w-]+)(?:\.macroEnabled\w*)?(?:\.main)?\+xml$")
"""the end of a content type; before it stand the program and dots"""
_BINARY_WORKBOOK = "sheet.binary.macroEnabled"
_SIGNATURES = "_xmlsignatures/"


def kinds_of_parts(archive: Archive, name: str) -> dict[str, str]:
    """Return the kind of each part of XML, such as "slide", in the order of a reader.

    Raises:
        DataError: the archive is no file of one of these programs, or is one in another format.
    """
    kinds: dict[str, str] = {}
    types = read_source(archive, TYPES, name)
    own: dict[str, str] = {}
    usual: dict[str, str] = {}
    for token in types.tokens:
        content_type = token.attribute("ContentType") or ""
        if _BINARY_WORKBOOK in content_type:
            raise DataError(f"{name}: is a binary workbook; save it as xlsx")
        if token.name == "Override":
            own[(token.attribute("PartName") or "").removeprefix("/")] = content_type
        elif token.name == "Default":
            usual[(token.attribute("Extension") or "").lower()] = content_type
    for part in archive.names:
        kind = _KIND.search(own.get(part) or usual.get(part.rpartition(".")[2].lower(), ""))
        if kind:
            kinds[part] = kind[1]
    # slide2 before slide10
    return dict(sorted(kinds.items(), key=lambda item: [len(item[0]), item[0]]))


def read_source(archive: Archive, part: str, name: str) -> XmlSource:
    """Return the tokens of a part, with the usual prefixes; messages call the file `name`.

    Raises:
        DataError: it is missing, damaged, too large, or no well-formed XML.
    """
    return XmlSource(archive.read_text(part), f"{name}: {part}", PREFIXES)


def related_parts(archive: Archive, part: str, kind: str, name: str) -> Iterator[str]:
    """Yield the parts that a part refers to by a relation of a kind, such as "table"."""
    folder, _, file = part.rpartition("/")
    relations = f"{folder}/_rels/{file}.rels".removeprefix("/")
    if relations not in archive:
        return
    for token in read_source(archive, relations, name).tokens:
        is_kind = (token.attribute("Type") or "").rpartition("/")[2] == kind
        if is_kind and token.attribute("TargetMode") != "External":
            target = posixpath.join("/", folder, unquote(token.attribute("Target") or ""))
            found = posixpath.normpath(target).lstrip("/")
            if found in archive:
                yield found


def remove_signatures(archive: Archive, name: str) -> None:
    """Leave digital signatures of a file out, with a warning: they are not of its translation."""
    signatures = [part for part in archive.names if part.startswith(_SIGNATURES)]
    if not signatures:
        return
    print_warning(f"{name}: its digital signature is left out, as it is not one of the translation")
    for part in signatures:
        archive.remove(part)
    for part, attribute in ((TYPES, "PartName"), ("_rels/.rels", "Target")):
        if part in archive:
            source = read_source(archive, part, name)
            for i, token in enumerate(source.tokens):
                if token.kind != "end" and _SIGNATURES in (token.attribute(attribute) or ""):
                    replace_source(source.tokens[i : source.end(i)], "")
            archive.change(part, source.encode())
