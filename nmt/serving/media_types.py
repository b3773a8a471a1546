"""The media types of the files that are translated, for the header Content-Type."""

from mimetypes import MimeTypes
from pathlib import Path

from nmt.translation.documents.encodings import unicode_encoding
from nmt.translation.documents.html_page import encoding_of_page

_OFFICE = "application/vnd.openxmlformats-officedocument"
_MACROS = "application/vnd.ms-{}.macroEnabled.12"
_OPEN = "application/vnd.oasis.opendocument"
_ADDED = {
    ".docx": f"{_OFFICE}.wordprocessingml.document",
    ".dotx": f"{_OFFICE}.wordprocessingml.template",
    ".docm": _MACROS.format("word.document"),
    ".dotm": _MACROS.format("word.template"),
    ".pptx": f"{_OFFICE}.presentationml.presentation",
    ".potx": f"{_OFFICE}.presentationml.template",
    ".ppsx": f"{_OFFICE}.presentationml.slideshow",
    ".pptm": _MACROS.format("powerpoint.presentation"),
    ".xlsx": f"{_OFFICE}.spreadsheetml.sheet",
    ".xlsm": _MACROS.format("excel.sheet"),
    ".odt": f"{_OPEN}.text",
    ".ott": f"{_OPEN}.text-template",
    ".ods": f"{_OPEN}.spreadsheet",
    ".ots": f"{_OPEN}.spreadsheet-template",
    ".odp": f"{_OPEN}.presentation",
    ".otp": f"{_OPEN}.presentation-template",
    **dict.fromkeys([".xlf", ".xliff"], "application/xliff+xml"),
    **dict.fromkeys([".po", ".pot"], "text/x-gettext-translation"),
    ".srt": "application/x-subrip",
    ".vtt": "text/vtt",
    ".xhtml": "application/xhtml+xml",
    ".epub": "application/epub+zip",
    ".md": "text/markdown",
}
"""what `mimetypes` of the oldest Python that we support lacks"""
UNKNOWN = "application/octet-stream"
_ARE_TEXT = ("text/", "application/x-subrip")


def media_type(name: str) -> str:
    """Return the media type of a file by the suffix of its name, whatever this machine calls it."""
    known = MimeTypes()  # those of Python, and none of /etc/mime.types
    for suffix, kind in _ADDED.items():
        known.add_type(kind, suffix)
    return known.types_map[True].get(Path(name).suffix.lower(), UNKNOWN)


def content_type(name: str, content: bytes) -> str:
    """Return the header Content-Type of a file: its media type, and the encoding of a text."""
    kind = media_type(name)
    if not kind.startswith(_ARE_TEXT):
        return kind
    is_page = kind == "text/html"
    encoding = encoding_of_page(content) if is_page else unicode_encoding(content)
    return f"{kind}; charset={encoding.removesuffix('-sig')}" if encoding else kind
