"""The formats of documents: how each is recognised and read. A new one is a line of this table."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from nmt.errors import ConfigError
from nmt.translation.documents.document import Document, LanguagePair
from nmt.translation.documents.gettext import read_po
from nmt.translation.documents.office import read_office
from nmt.translation.documents.open_document import read_open_document
from nmt.translation.documents.xliff import read_xliff
from nmt.translation.markup import read_html

PEEKED_BYTES = 4096
"""of the beginning of a file, by which its format is recognised"""


@dataclass(frozen=True)
class DocumentFormat:
    """How documents of a format are recognised and read."""

    suffixes: tuple[str, ...]
    """the ends of file names, in small letters"""
    read: Callable[[bytes, str, LanguagePair], Document]
    """takes the content of a file, what messages call it, and the languages"""
    beginning: re.Pattern[bytes] = re.compile(b"(?!)")
    """what the beginning of a file matches, whatever its name is"""


FORMATS: Mapping[str, DocumentFormat] = {
    "xliff": DocumentFormat(
        (".xlf", ".xliff", ".sdlxliff", ".mqxliff", ".mxliff"),
        read_xliff,
        re.compile(rb"\s*(?:<[?!][^>]*>\s*)*<(?:\w+:)?xliff\b"),
    ),
    "office": DocumentFormat(
        (".docx", ".docm", ".dotx", ".dotm", ".pptx", ".pptm", ".potx", ".ppsx", ".xlsx", ".xlsm"),
        read_office,
        re.compile(rb"PK\x03\x04.{26}(?:\[Content_Types\]\.xml|_rels/|word/|ppt/|xl/)", re.DOTALL),
    ),
    "opendocument": DocumentFormat(
        (".odt", ".ott", ".ods", ".ots", ".odp", ".otp"),
        read_open_document,
        re.compile(rb"PK\x03\x04.{26}mimetypeapplication/vnd\.oasis\.opendocument", re.DOTALL),
    ),
    "po": DocumentFormat((".po", ".pot"), read_po),
    "html": DocumentFormat((".html", ".htm", ".xhtml"), read_html),
}


def recognise_format(name: str, beginning: bytes) -> str | None:
    """Return the name of the format of a file, by its content, then by its name; None: plain text.

    `beginning` has its first `PEEKED_BYTES`, or all of it.
    """
    for key, each in FORMATS.items():
        if each.beginning.match(beginning):
            return key
    suffix = Path(name).suffix.lower()
    return next((key for key, each in FORMATS.items() if suffix in each.suffixes), None)


def read_document(content: bytes, name: str, key: str, languages: LanguagePair) -> Document:
    """Read a file in the format `key`; messages call it `name`.

    Raises:
        ConfigError: there is no such format.
        DataError: the file is not in this format, or damaged.
    """
    if key not in FORMATS:
        raise ConfigError(f"the format is {key!r}, expected one of {', '.join(FORMATS)}")
    return FORMATS[key].read(content, name, languages)
