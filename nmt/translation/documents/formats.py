"""The formats of documents: how each is recognised and read. A new one is a line of this table."""

import pkgutil
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nmt.errors import ConfigError, DataError

if TYPE_CHECKING:
    from nmt.translation.documents.document import Document, ReadingOptions

TEXT = "text"
"""the format of plain text, whose lines are translated; it is no document"""
PEEKED_BYTES = 4096
"""of the beginning of a file, by which its format is recognised"""
_XML = rb"(?:\xef\xbb\xbf)?\s*+(?:<(?:!--(?:[^-]|-(?!->))*+--|[?!](?!--)[^>]*)>\s*+)*"
"""what stands before the first tag of a document of XML"""
_KEYS = ("key", "skip_key")
_COLUMNS = ("column", "skip_column")
_ELEMENTS = ("block", "inline")
OPTIONS_OF_NAMES = (*_KEYS, *_COLUMNS, *_ELEMENTS)
"""the options that name parts of files, of which another format has none"""


@dataclass(frozen=True)
class DocumentFormat:
    """How documents of a format are recognised and read."""

    title: str
    """what users call it"""
    suffixes: tuple[str, ...]
    """the ends of file names, in small letters"""
    reader: str
    """the function that reads one, as module:name. It takes the content, what messages call the
    file, and the options; one of text takes a `TextFile` in place of the first two. It is imported
    when it is called: every file is looked at, and most are plain text"""
    beginning: re.Pattern[bytes] = re.compile(b"(?!)")
    """what the beginning of a file matches, whatever its name is"""
    is_text: bool = False
    """whether a file says nothing about its encoding, which is known as that of any text is"""
    options: tuple[str, ...] = ()
    """those of `ReadingOptions` that choose among its texts"""
    refused: tuple[str, ...] = ()
    """suffixes of formats that are not read; a sentence says in which one to save the file"""
    written_suffix: str = ""
    """the end of the name of a translation, if that is a document of another format"""
    is_binary: bool = False
    """whether a file is no text, which a terminal could show"""
    has_kinds: bool = False
    """whether files of another suffix are of another kind, so that none can be renamed"""


FORMATS: Mapping[str, DocumentFormat] = {
    "xliff": DocumentFormat(
        "XLIFF",
        (".xlf", ".xliff", ".sdlxliff", ".mqxliff", ".mxliff"),
        "nmt.translation.documents.xliff:read_xliff",
        re.compile(_XML + rb"<(?:\w+:)?xliff\b"),
        options=("overwrite", "unconfirmed"),
    ),
    "tmx": DocumentFormat(
        "TMX",
        (".tmx",),
        "nmt.translation.documents.tmx:read_tmx",
        re.compile(_XML + rb"<tmx\b"),
        options=("overwrite",),
    ),
    "office": DocumentFormat(
        "Word, PowerPoint and Excel",
        (
            *(".docx", ".docm", ".dotx", ".dotm", ".xlsx", ".xlsm", ".xltx", ".xltm"),
            *(".pptx", ".pptm", ".potx", ".potm", ".ppsx", ".ppsm"),
        ),
        "nmt.translation.documents.office:read_office",
        re.compile(
            rb"PK\x03\x04.{26}(?:\[Content_Types\]\.xml|_rels/|docProps/|word/|ppt/|xl/)"
            rb"|\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1|\{\\rtf\d",
            re.DOTALL,
        ),
        refused=(".doc", ".xls", ".xlsb", ".ppt", ".rtf"),
        is_binary=True,
        has_kinds=True,
    ),
    "opendocument": DocumentFormat(
        "OpenDocument",
        (
            *(".odt", ".ott", ".ods", ".ots", ".odp", ".otp", ".odg", ".otg"),
            *(".fodt", ".fods", ".fodp", ".fodg"),
        ),
        "nmt.translation.documents.open_document:read_open_document",
        re.compile(
            rb"PK\x03\x04.{26}mimetypeapplication/vnd\.oasis\.opendocument"
            rb"|" + _XML + rb"<(?:\w+:)?document\b[^>]*opendocument:xmlns:office",
            re.DOTALL,
        ),
        is_binary=True,
        has_kinds=True,
    ),
    "epub": DocumentFormat(
        "EPUB",
        (".epub",),
        "nmt.translation.documents.epub:read_epub",
        re.compile(rb"PK\x03\x04.{26}mimetypeapplication/epub", re.DOTALL),
        is_binary=True,
    ),
    "po": DocumentFormat(
        "PO",
        (".po", ".pot"),
        "nmt.translation.documents.gettext:read_po",
        options=("overwrite",),
    ),
    "properties": DocumentFormat(
        "Java's properties",
        (".properties",),
        "nmt.translation.documents.java_properties:read_properties",
        options=_KEYS,
    ),
    "apple-strings": DocumentFormat(
        "Apple's strings",
        (".strings",),
        "nmt.translation.documents.apple_strings:read_apple_strings",
        is_text=True,
        options=_KEYS,
    ),
    "android": DocumentFormat(
        "Android's strings.xml",
        (),  # any XML file may have this name
        "nmt.translation.documents.android_strings:read_android_strings",
        re.compile(_XML + rb"<resources\b"),
        options=_KEYS,
    ),
    "resx": DocumentFormat(
        ".NET's resources",
        (".resx", ".resw"),
        "nmt.translation.documents.resx:read_resx",
        options=_KEYS,
    ),
    "ts": DocumentFormat(
        "TS of Qt Linguist",
        (),  # files of TypeScript have the suffix .ts as well
        "nmt.translation.documents.qt_linguist:read_ts",
        re.compile(_XML + rb"<TS\b"),
        options=("overwrite",),
    ),
    "subtitles": DocumentFormat(
        "SRT, WebVTT, SubStation Alpha and YouTube's subtitles",
        (".srt", ".vtt", ".ass", ".ssa", ".sbv"),
        "nmt.translation.documents.subtitles:read_subtitles",
        re.compile(rb"(?:\xef\xbb\xbf)?(?:WEBVTT\b|\[Script Info\])"),
        is_text=True,
        has_kinds=True,
    ),
    "markdown": DocumentFormat(
        "Markdown",
        (".md", ".markdown"),
        "nmt.translation.documents.markdown:read_markdown",
        is_text=True,
        options=_KEYS,
    ),
    "xml": DocumentFormat(
        "XML: DocBook, DITA and others",
        (".xml", ".dita", ".ditamap", ".docbook", ".dbk"),
        "nmt.translation.documents.xml:read_xml",
        options=_ELEMENTS,
    ),
    "pdf": DocumentFormat(
        "PDF",
        (".pdf",),
        "nmt.translation.documents.pdf:read_pdf",
        re.compile(rb"%PDF-"),
        written_suffix=".html",
    ),
    "html": DocumentFormat(
        "HTML", (".html", ".htm", ".xhtml"), "nmt.translation.documents.html:read_html"
    ),
    "json": DocumentFormat(
        "JSON",
        (".json", ".jsonc"),
        "nmt.translation.documents.json_values:read_json",
        is_text=True,
        options=_KEYS,
    ),
    "jsonl": DocumentFormat(
        "JSON Lines",
        (".jsonl", ".ndjson"),
        "nmt.translation.documents.json_values:read_json_lines",
        is_text=True,
        options=_KEYS,
    ),
    "arb": DocumentFormat(
        "ARB",
        (".arb",),
        "nmt.translation.documents.json_values:read_arb",
        is_text=True,
        options=_KEYS,
    ),
    "yaml": DocumentFormat(
        "YAML",
        (".yaml", ".yml"),
        "nmt.translation.documents.yaml_values:read_yaml",
        is_text=True,
        options=_KEYS,
    ),
    "csv": DocumentFormat(
        "CSV",
        (".csv",),
        "nmt.translation.documents.tables:read_table",
        is_text=True,
        options=_COLUMNS,
    ),
    "tsv": DocumentFormat(
        "TSV",
        (".tsv", ".tab"),
        "nmt.translation.documents.tables:read_table",
        is_text=True,
        options=_COLUMNS,
    ),
}

_LIKELY_BEGINNINGS = {
    "html": re.compile(_XML + rb"<html\b|\s*<!doctype html\b", re.IGNORECASE),
    "xml": re.compile(rb"(?:\xef\xbb\xbf)?\s*<\?xml\b|" + _XML + rb"<(?:feed|martif|rss|tbx)\b"),
    "subtitles": re.compile(rb"\s*(?:\d+[ \t\r]*\n)?[ \t]*\d+:\d\d[\d:]*[.,]\d+\s*-->"),
    "po": re.compile(rb"(?:\s|#[^\n]*\n)*msg(?:id|ctxt)\s+\""),
    "office": re.compile(rb"PK\x03\x04"),
}
"""what is hardly the beginning of plain text; a file with a name may be of another format"""


def recognise_format(name: str, beginning: bytes) -> str | None:
    """Return the name of the format of a file, by its content, then by its name; None: plain text.

    `beginning` has its first `PEEKED_BYTES`, or all of it.
    """
    for key, each in FORMATS.items():
        if each.beginning.match(beginning):
            return key
    return _format_of_suffix(Path(name).suffix.lower())


def _format_of_suffix(suffix: str) -> str | None:
    """Return the format whose files have a suffix, such as ".docx"; None: none has."""
    return next(
        (key for key, each in FORMATS.items() if suffix in (*each.suffixes, *each.refused)), None
    )


def recognise_beginning(beginning: bytes) -> str | None:
    """Return the format of a document without a name by its first bytes; None: it may be text."""
    found = recognise_format("", beginning)
    likely = (key for key, each in _LIKELY_BEGINNINGS.items() if each.match(beginning))
    return found or next(likely, None)


def format_named(name: str) -> str:
    """Return the format that a user names, by its own name or the suffix of its files: docx.

    Raises:
        ConfigError: there is no such format.
    """
    if name in (TEXT, *FORMATS):
        return name
    if found := _format_of_suffix(f".{name.lower().removeprefix('.')}"):
        return found
    raise ConfigError(
        f"the format is {name!r}, expected {TEXT}, the suffix of a file such as docx, or one of "
        f"{', '.join(FORMATS)}"
    )


def check_names(options: object, formats: Collection[str]) -> None:
    """Check that files of `formats` have the keys, columns, elements and states of some options.

    It is enough if one of several formats has them. `options` has the attribute `unconfirmed`
    and one for each of `OPTIONS_OF_NAMES`, as `ReadingOptions` has.

    Raises:
        ConfigError: none has.
    """
    for option in (*OPTIONS_OF_NAMES, "unconfirmed"):
        fitting = [key for key, each in FORMATS.items() if option in each.options]
        if getattr(options, option) and not set(fitting).intersection(formats):
            raise ConfigError(
                f"`{option}` is for {', '.join(fitting)}, and not for {', '.join(sorted(formats))};"
                " leave it out, or name the `format`"
            )


def read_document(content: bytes, name: str, key: str, options: "ReadingOptions") -> "Document":
    """Read a file in the format `key`; messages call it `name`.

    Raises:
        ConfigError: there is no such format.
        DataError: the file is not in this format or in its encoding, or damaged; if its content is
            of another format, the message names that one.
    """
    if key not in FORMATS:
        raise ConfigError(f"the format is {key!r}, expected one of {', '.join(FORMATS)}")
    from nmt.translation.documents.encodings import decode_text

    read: Callable[..., Document] = pkgutil.resolve_name(FORMATS[key].reader)
    try:
        if FORMATS[key].is_text:
            return read(decode_text(content, name, options.possible_sources), options)
        return read(content, name, options)
    except DataError as error:
        other = recognise_format("", content[:PEEKED_BYTES])
        if other in (None, key) or key == "xml":  # any file of XML may be read as XML
            raise
        raise DataError(f"{name} looks like {other}; leave out `format`") from error
