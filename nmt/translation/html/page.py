"""An HTML page with the encoding of its file."""

import codecs
import re
from dataclasses import dataclass

from nmt.errors import DataError

_SEARCHED_BYTES = 1024
"""size of the start of a page in which browsers look for its encoding"""
_DECLARED_ENCODING = re.compile(rb"""<meta[^>]*?charset\s*=\s*["']?\s*([\w.:-]+)""", re.IGNORECASE)
_XML_ENCODING = re.compile(rb"""<\?xml[^>]*?encoding\s*=\s*["']\s*([\w.:-]+)""")
"""at the start of a page of XHTML"""
_BYTE_ORDER_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


@dataclass(frozen=True)
class HtmlPage:
    """The source of a page, and the encoding of its file."""

    name: str
    """what messages call it, such as its path"""
    html: str
    encoding: str
    """Python's name of it, such as utf-8"""

    @classmethod
    def decode(cls, name: str, content: bytes) -> "HtmlPage":
        """Read the content of a file; messages call it `name`.

        Raises:
            DataError: it is no text of its encoding.
        """
        encoding = encoding_of_page(content)
        try:
            html = content.decode(encoding)
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
        return cls(name, html, encoding)

    def encode(self, html: str) -> bytes:
        """Return a translated page in the encoding of this one.

        A character that the encoding lacks becomes a numeric character reference.
        """
        return html.encode(self.encoding, "xmlcharrefreplace")


def encoding_of_page(page: bytes) -> str:
    """Return the encoding of the byte order mark, else that which the page declares, else UTF-8.

    It declares one in <meta charset="…">, or in <?xml encoding="…"?> at its start.
    """
    for mark, encoding in _BYTE_ORDER_MARKS.items():
        if page.startswith(mark):
            return encoding
    start = page[:_SEARCHED_BYTES]
    declared = _DECLARED_ENCODING.search(start) or _XML_ENCODING.match(start)
    encoding = declared[1].decode("ascii") if declared else "utf-8"
    # a declaration that can be read byte by byte is not in UTF-16: HTML's standard takes UTF-8
    is_wide = encoding.lower().startswith(("utf-16", "utf16", "utf-32", "utf32"))
    return "utf-8" if is_wide else encoding
