"""An HTML page in a file, translated into another file of the same encoding."""

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from nmt.cli.lines.streams import input_name, is_stdin
from nmt.data.text.compressed import SUFFIXES
from nmt.data.text.lines import open_bytes
from nmt.data.text.remote_files import open_file
from nmt.errors import ConfigError, print_warning
from nmt.files import explain_os_errors

if TYPE_CHECKING:
    from nmt.cli.lines.line_translation import OutputOptions
    from nmt.translation.html.page import HtmlPage
    from nmt.translation.pipeline import TranslationRequest
    from nmt.translation.translator import Translator

_TAG = re.compile("<[a-zA-Z/!]")  # the start of one, or of a comment


def read_page(path: Path | None) -> "HtmlPage":
    """Read a page from a file, or from stdin for None and "-".

    Raises:
        ConfigError: stdin is closed.
        DataError: The file cannot be read, or is no text of its encoding.
    """
    from nmt.translation.html.page import HtmlPage  # few commands need it, and it takes time

    return HtmlPage.decode(input_name(path), _read_bytes(path))


def _read_bytes(path: Path | None) -> bytes:
    """Return the content of a file, or of stdin for None and "-"; raises as `read_page`."""
    if path is None or is_stdin(path):
        if sys.stdin is None:
            raise ConfigError("stdin is closed; give a FILE or pipe a page in")
        return sys.stdin.buffer.read()
    if path.suffix in SUFFIXES:
        with open_bytes(path) as decompressed:
            return decompressed.read()
    with explain_os_errors(path, "read"), open_file(path) as file:
        return file.read()


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
    page: "HtmlPage",
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
    from nmt.recipe.config import spell_tag
    from nmt.translation.html.languages import PageLanguages
    from nmt.translation.markup import texts_translator, translate_html

    if page.html.strip() and not _TAG.search(page.html):
        print_warning(
            f"{page.name}: has no HTML tag, and is translated as one text; without --html, each "
            "line is translated"
        )
    tag = spell_tag(language) if language else ""
    translate = texts_translator(translator, request, processes, tag)
    source, target = translator.loaded.config.data.languages
    languages = PageLanguages(source, language or target)
    return page.encode(translate_html(page.html, translate, languages))
