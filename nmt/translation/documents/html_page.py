"""An HTML page with the encoding of its file."""

import re
from dataclasses import dataclass

from nmt.errors import DataError
from nmt.translation.documents.encodings import marked_encoding, unicode_encoding, xml_encoding
from nmt.translation.documents.formats import PEEKED_BYTES, recognise_beginning
from nmt.translation.documents.html_blocks import SEPARATING

_SEARCHED_BYTES = 1024
"""size of the start of a page in which browsers look for its encoding"""
_DECLARED_ENCODING = re.compile(rb"""<meta[^>]*?charset\s*=\s*["']?\s*([\w.:-]+)""", re.IGNORECASE)
_ROOT = re.compile(
    r"(?:\s|<\?[^>]*>|<![^>-][^>]*>|<!--.*?-->)*<(?:[\w.-]+:)?([a-z][\w.-]*)",
    re.DOTALL | re.IGNORECASE,
)
"""the first element of a document, behind declarations and comments"""


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
            raise DataError(
                f"{name}: looks like {kind}, expected a page; give one, or name the `format`"
            )
        return cls(name, html, encoding, mark)

    def encode(self, html: str) -> bytes:
        """Return a translated page in the encoding of this one.

        A character that the encoding lacks becomes a numeric character reference.
        """
        return self.mark + html.encode(self.encoding, "xmlcharrefreplace")


def _kind_of_other(html: str) -> str | None:
    """Return what a text is if its beginning is that of another format; None if it is a page."""
    beginning = html.lstrip()[:PEEKED_BYTES]
    found = recognise_beginning(beginning.encode("utf-8", "surrogatepass"))
    if found != "xml":
        return None if found == "html" else found
    root = _ROOT.match(beginning)  # a part of a page of XHTML may have <?xml?> as well
    return None if root is None or root[1].lower() in SEPARATING else f"XML with <{root[1]}>"


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
