"""An HTML page in a file, translated into another file of the same encoding."""

import codecs
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nmt.cli.lines.streams import input_name, is_stdin
from nmt.errors import ConfigError, DataError, print_warning

if TYPE_CHECKING:
    from nmt.cli.lines.line_translation import OutputOptions
    from nmt.translation.translator import TranslationRequest, Translator

# browsers look for the encoding in so many bytes
_SEARCHED_BYTES = 1024
_DECLARED = re.compile(rb"""<meta[^>]*?charset\s*=\s*["']?\s*([\w.:-]+)""", re.IGNORECASE)
_TAG = re.compile("<[a-zA-Z/!]")
_MARKS = {
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

    @classmethod
    def read(cls, path: Path | None) -> "HtmlPage":
        """Read a page from a file, or from stdin for None and "-".

        The encoding is that of the byte order mark, else that which the page declares, else UTF-8.

        Raises:
            DataError: the file cannot be read, or is no text of its encoding.
        """
        name, content = input_name(path), _read_bytes(path)
        declared = _DECLARED.search(content[:_SEARCHED_BYTES])
        encoding = next(
            (encoding for mark, encoding in _MARKS.items() if content.startswith(mark)),
            declared[1].decode("ascii") if declared else "utf-8",
        )
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


def _read_bytes(path: Path | None) -> bytes:
    if path is None or is_stdin(path):
        if sys.stdin is None:
            raise ConfigError("stdin is closed; give a FILE or pipe a page in")
        return sys.stdin.buffer.read()
    try:
        return path.read_bytes()
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from error


def check_options(options: "OutputOptions", resume: bool) -> None:
    """Check that no option asks for lines of output, where --html gives a page.

    Raises:
        ConfigError: one of them does; `resume` is --resume.
    """
    if options.json_input or options.as_json or options.alignments or options.n_best > 1 or resume:
        raise ConfigError(
            "--html gives one page, so it goes with none of --json, --json-input, --alignments, "
            "--n-best and --resume; leave them out"
        )


def translate_page(
    page: HtmlPage,
    translator: "Translator",
    request: "TranslationRequest",
    processes: int,
    language: str | None,
) -> bytes:
    """Return the translation of a page; one without any tag is one text, with a warning.

    `language` is that of --to, for a model of several languages.
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
