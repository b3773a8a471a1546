"""An HTML page in a file, translated into another file of the same encoding."""

import codecs
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nmt.cli.lines.streams import input_name, is_stdin
from nmt.data.text.lines import SUFFIXES, open_bytes
from nmt.data.text.remote_files import open_file
from nmt.errors import ConfigError, DataError, print_warning

if TYPE_CHECKING:
    from nmt.cli.lines.line_translation import OutputOptions
    from nmt.translation.translator import TranslationRequest, Translator

_SEARCHED_BYTES = 1024
"""size of the start of a page in which browsers look for its encoding"""
_DECLARED_ENCODING = re.compile(rb"""<meta[^>]*?charset\s*=\s*["']?\s*([\w.:-]+)""", re.IGNORECASE)
_TAG = re.compile("<[a-zA-Z/!]")  # the start of one, or of a comment
_BYTE_ORDER_MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


@dataclass(frozen=True)
class HtmlPage:
    """The source of a page, and the encoding of its file."""

    name: str
    """what messages call it: its path, or stdin"""
    html: str
    encoding: str
    """Python's name of it, such as utf-8"""

    @classmethod
    def read(cls, path: Path | None) -> "HtmlPage":
        """Read a page from a file, or from stdin for None and "-".

        Raises:
            ConfigError: stdin is closed.
            DataError: The file cannot be read, or is no text of its encoding.
        """
        name, content = input_name(path), _read_bytes(path)
        encoding = _encoding_of(content)
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


def _encoding_of(page: bytes) -> str:
    """Return the encoding of the byte order mark, else that which the page declares, else UTF-8."""
    for mark, encoding in _BYTE_ORDER_MARKS.items():
        if page.startswith(mark):
            return encoding
    declared = _DECLARED_ENCODING.search(page[:_SEARCHED_BYTES])
    encoding = declared[1].decode("ascii") if declared else "utf-8"
    # a declaration that can be read byte by byte is not in UTF-16: HTML's standard takes UTF-8
    is_wide = encoding.lower().startswith(("utf-16", "utf16", "utf-32", "utf32"))
    return "utf-8" if is_wide else encoding


def _read_bytes(path: Path | None) -> bytes:
    """Return the content of a file, or of stdin for None and "-"; raises what `read` raises."""
    if path is None or is_stdin(path):
        if sys.stdin is None:
            raise ConfigError("stdin is closed; give a FILE or pipe a page in")
        return sys.stdin.buffer.read()
    if path.suffix in SUFFIXES:
        with open_bytes(path) as decompressed:
            return decompressed.read()
    try:
        with open_file(path) as file:
            return file.read()
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from error


def check_options(options: "OutputOptions", is_long: bool) -> None:
    """Check that the options fit --html, which gives a page and not lines.

    `is_long` says whether an option for long texts is given: --resume or --ray.

    Raises:
        ConfigError: An option asks for lines of input or output.
    """
    if options.json_input or options.as_json or options.alignments or options.n_best > 1 or is_long:
        raise ConfigError(
            "--html gives one page, so it goes with none of --json, --json-input, --alignments, "
            "--n-best, --resume and --ray; leave them out"
        )


def translate_page(
    page: HtmlPage,
    translator: "Translator",
    request: "TranslationRequest",
    processes: int,
    language: str | None,
) -> bytes:
    """Return the translation of a page, in the encoding of the page.

    A page without any HTML tag is translated as one text, with a warning. `processes` is the number
    of processes that translate. `language` is that of --to, for a model of several languages; None:
    the model has one.
    """
    from nmt.config import spell_tag
    from nmt.translation.markup import texts_translator, translate_html

    if page.html.strip() and not _TAG.search(page.html):
        print_warning(
            f"{page.name}: has no HTML tag, and is translated as one text; without --html, each "
            "line is translated"
        )
    tag = spell_tag(language) if language else ""
    translate = texts_translator(translator, request, processes, tag)
    return page.encode(translate_html(page.html, translate))
