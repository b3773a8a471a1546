"""A document in a file, such as a page or a file of Word, translated into another such file."""

import contextlib
import io
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from nmt.cli.lines.streams import check_stdin, is_stdin
from nmt.data.text.compressed import SUFFIXES
from nmt.data.text.lines import open_bytes
from nmt.data.text.remote_files import is_file, open_file
from nmt.errors import ConfigError, print_warning
from nmt.files import explain_os_errors

if TYPE_CHECKING:
    from nmt.cli.lines.line_translation import OutputOptions
    from nmt.cli.options.documents import DocumentOptions
    from nmt.translation.pipeline import TranslationRequest
    from nmt.translation.translator import Translator

_TAG = re.compile(r"<[a-zA-Z/!]")  # the start of one, or of a comment


def format_of_file(path: Path | None) -> str | None:
    """Return the format of a document by its content and name; None: it is plain text.

    Of a compressed file, both are those of the file inside. Nothing is read from a stream, whose
    beginning could not be read again.

    Raises:
        ConfigError: the service of a URL is not known.
        DataError: the file cannot be read.
    """
    if path is None or is_stdin(path) or not is_file(path):
        return None
    from nmt.translation.documents.formats import PEEKED_BYTES, recognise_format

    name = path.stem if path.suffix in SUFFIXES else path.name
    with _open(path) as file:
        return recognise_format(name, file.read(PEEKED_BYTES))


@contextlib.contextmanager
def _open(path: Path) -> Iterator[io.BufferedIOBase]:
    """Open a file, which may be compressed or at a URL, to read its bytes."""
    if path.suffix in SUFFIXES:
        with open_bytes(path) as decompressed:
            yield decompressed
    else:
        with explain_os_errors(path, "read"), open_file(path) as file:
            yield file


def read_bytes(path: Path | None) -> bytes:
    """Return the content of a file, or of stdin for None and "-".

    Raises:
        ConfigError: stdin is closed.
        DataError: the file cannot be read.
    """
    if path is None or is_stdin(path):
        check_stdin()
        return sys.stdin.buffer.read()
    with _open(path) as file:
        return file.read()


def check_options(options: "OutputOptions", is_long: bool) -> None:
    """Check that the options fit a document, which is no lines.

    `is_long` says whether an option for long texts is given: --resume or --ray.

    Raises:
        ConfigError: an option asks for lines of input or output.
    """
    if options.json_input or options.as_json or options.alignments or options.n_best > 1 or is_long:
        raise ConfigError(
            "a document is translated as a whole, so it goes with none of --json, --json-input, "
            "--alignments, --n-best, --resume and --ray; leave them out, or say --format text for "
            "its lines"
        )


@dataclass(frozen=True)
class FileContent:
    """A file that is a document."""

    name: str
    """what messages call it"""
    content: bytes
    format: str


def translate_file(
    file: FileContent,
    translator: "Translator",
    request: "TranslationRequest",
    processes: int,
    language: str | None,
    options: "DocumentOptions",
) -> bytes:
    """Return the translation of a document, in its format.

    A page without any HTML tag is translated as one text, with a warning. `processes` is the number
    of processes that translate. `language` is that of --to, for a model of several languages; None:
    the model has one. `options` says which texts are translated. Where nothing is protected, the
    usual placeholders of programs are in a document of messages.

    Raises:
        ConfigError: there is no such format.
        DataError: the document is not in its format, or damaged.
    """
    from nmt.data.text.protected_text import usual_text
    from nmt.recipe.config import spell_tag
    from nmt.translation.documents.document import LanguagePair
    from nmt.translation.documents.formats import read_document
    from nmt.translation.documents.html_page import HtmlPage
    from nmt.translation.documents.translate import texts_translator, translate_document

    if file.format == "html" and file.content.strip():
        page = HtmlPage.decode(file.name, file.content)
        if not _TAG.search(page.html):
            print_warning(
                f"{file.name}: has no HTML tag, and is translated as one text; without --html, "
                "each line is translated"
            )
    source, target = translator.loaded.config.data.languages
    options_of_reading = options.reading(LanguagePair(source, language or target))
    document = read_document(file.content, file.name, file.format, options_of_reading)
    if not (document.plain or document.with_tags):
        print_warning(
            f"{file.name}: has no text to translate, and is written as it is; --overwrite "
            "translates also what has a translation in an XLIFF or PO file"
        )
        return file.content
    if document.is_of_program and not request.protected.patterns:
        request = replace(request, protected=usual_text(True))
    tag = spell_tag(language) if language else ""
    return translate_document(document, texts_translator(translator, request, processes, tag))
