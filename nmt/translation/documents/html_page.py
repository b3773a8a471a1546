"""An HTML page with the encoding of its file."""

import re
from dataclasses import dataclass

from nmt.errors import DataError
from nmt.translation.documents.encodings import marked_encoding, unicode_encoding, xml_encoding
from nmt.translation.documents.html_blocks import SEPARATING

_SEARCHED_BYTES = 1024
"""size of the start of a page in which browsers look for its encoding"""
_SEARCHED_CHARACTERS = 1 << 16
"""characters of the start of a page in which another format is looked for"""
_DECLARED_ENCODING = re.compile(rb"""<meta[^>]*?charset\s*=\s*["']?\s*([\w.:-]+)""", re.IGNORECASE)
_ROOT = re.compile(
    r"(?:\s|<\?[^>]*>|<![^>-][^>]*>|<!--.*?-->)*<(?:[\w.-]+:)?([a-z][\w.-]*)",
    re.DOTALL | re.IGNORECASE,
)
"""the first element of a document, behind declarations and comments"""
_OTHER_ROOTS = {
    "feed": "an Atom feed",
    "martif": "a TBX glossary",
    "resources": "Android's strings.xml",
    "rss": "an RSS feed",
    "tbx": "a TBX glossary",
    "tmx": "a TMX translation memory",
    "ts": "a TS file of Qt",
    "xliff": "XLIFF",
}
"""the first elements, in small letters, of documents that are no pages"""
_OTHER_BEGINNINGS = {
    "WEBVTT": "WebVTT subtitles",
    "[Script Info]": "SSA subtitles",
    "{\\rtf": "a document in RTF",
    "%PDF-": "a PDF document",
}
_SRT = re.compile(r"\s*(?:\d+[ \t\r]*\n)?[ \t]*\d+:\d\d[\d:]*[.,]\d+\s*-->")
_PO = re.compile(r"(?:\s|#[^\n]*\n)*msg(?:id|ctxt)\s+\"")


@dataclass(frozen=True)
class HtmlPage:
    """The source of a page, and the encoding of its file."""

    name: str
    """what messages call it, such as its path"""
    html: str
    encoding: str
    """Python's name of it, such as utf-8"""
    mark: bytes = b""
    """the byte order mark at the beginning of the file"""

    @classmethod
    def decode(cls, name: str, content: bytes) -> "HtmlPage":
        """Read the content of a file; messages call it `name`.

        Raises:
            DataError: the content is no text of its encoding, or is in another format than HTML.
        """
        mark, _ = marked_encoding(content)
        encoding = encoding_of_page(content)
        try:
            html = content[len(mark) :].decode(encoding)
        except LookupError as error:
            raise DataError(
                f"{name}: declares the encoding {encoding}, which is unknown; convert the page to "
                "UTF-8"
            ) from error
        except UnicodeError as error:
            raise DataError(
                f"{name}: is no text in {encoding}, its encoding; convert the page to UTF-8 and "
                'declare that as <meta charset="utf-8">'
            ) from error
        if "\0" in html:
            raise DataError(
                f"{name}: has zero bytes and so is no HTML page; give the source of one"
            )
        if kind := _kind_of_other(html):
            raise DataError(f"{name}: is {kind}, expected an HTML page; give the source of one")
        return cls(name, html, encoding, mark)

    def encode(self, html: str) -> bytes:
        """Return a translated page in the encoding of this one.

        A character that the encoding lacks becomes a numeric character reference.
        """
        return self.mark + html.encode(self.encoding, "xmlcharrefreplace")


def _kind_of_other(text: str) -> str | None:
    """Return what a text is if it is in a format that HTML would destroy; None if it is a page.

    Such a format is known by its root element or its first line.
    """
    text = text.lstrip()[
        :_SEARCHED_CHARACTERS
    ]  # some patterns would take long for a million spaces
    for beginning, kind in _OTHER_BEGINNINGS.items():
        if text.startswith(beginning):
            return kind
    if _SRT.match(text):
        return "SRT subtitles"
    if _PO.match(text):
        return "a PO file"
    root = _ROOT.match(text)
    name = root[1].lower() if root else ""
    if name in _OTHER_ROOTS:
        return _OTHER_ROOTS[name]
    is_xml = text.startswith("<?xml")  # as pages of XHTML are, too
    return f"XML with the root <{name}>" if is_xml and name and name not in SEPARATING else None


def encoding_of_page(page: bytes) -> str:
    """Return the encoding of the byte order mark, else that which the page declares, else UTF-8.

    It declares one in <meta charset="…">, or in <?xml encoding="…"?> at its start. UTF-16 is known
    without a mark, by its zero bytes.
    """
    _, marked = marked_encoding(page)
    if marked:
        return marked
    if b"\0" in page[:2] and (wide := unicode_encoding(page)):
        return wide
    start = page[:_SEARCHED_BYTES]
    declared = _DECLARED_ENCODING.search(start)
    encoding = declared[1].decode("ascii") if declared else xml_encoding(start) or "utf-8"
    # a declaration that can be read byte by byte is not in UTF-16: HTML's standard takes UTF-8
    is_wide = encoding.lower().startswith(("utf-16", "utf16", "utf-32", "utf32"))
    return "utf-8" if is_wide else encoding
