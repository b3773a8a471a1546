"""A document in a file, such as a page or a file of Word: its format, its bytes, its texts."""

import contextlib
import io
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nmt.cli.lines.streams import check_stdin, input_name, is_stdin, is_typed, open_output
from nmt.data.text.compressed import SUFFIXES
from nmt.data.text.lines import open_bytes
from nmt.data.text.remote_files import RemotePath, is_file, open_file
from nmt.errors import ConfigError, DataError, print_warning
from nmt.files import explain_os_errors

if TYPE_CHECKING:
    from nmt.cli.lines.line_translation import OutputOptions
    from nmt.cli.options.documents import DocumentOptions
    from nmt.run.model import LoadedModel
    from nmt.translation.documents.document import Document, ReadingOptions

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
    with open_file_inside(path) as file:
        return recognise_format(name, file.read(PEEKED_BYTES))


@contextlib.contextmanager
def open_file_inside(path: Path) -> Iterator[io.BufferedIOBase]:
    """Open a file to read its bytes; it may be at a URL, and what is compressed is decompressed."""
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
        DataError: the file cannot be read, or another program writes it.
    """
    if path is None or is_stdin(path):
        check_stdin()
        return sys.stdin.buffer.read()
    before = _state_of(path)
    with open_file_inside(path) as file:
        content = file.read()
    if before != _state_of(path):
        raise DataError(
            f"{path}: was changed while it was read; give the command again when it is complete"
        )
    return content


def _state_of(path: Path) -> object:
    """Return what differs once a file was written or replaced; None of a URL or a missing file."""
    try:
        state = None if isinstance(path, RemotePath) else path.stat()
    except OSError:
        return None
    return state and (state.st_ino, state.st_size, state.st_mtime_ns)


def check_stdin_is_text() -> None:
    """Check that what begins on stdin is no document, whose tags would be translated as text.

    It waits until something comes, and takes nothing away.

    Raises:
        ConfigError: it is a document; the message says how to name its format.
    """
    from nmt.translation.documents.formats import PEEKED_BYTES, recognise_beginning

    if not isinstance(sys.stdin.buffer, io.BufferedReader):
        return
    if of_stream := recognise_beginning(sys.stdin.buffer.peek(PEEKED_BYTES)[:PEEKED_BYTES]):
        raise ConfigError(
            f"stdin looks like {of_stream}; say --format {of_stream}, or --format text for its "
            "lines"
        )


def check_options(options: "OutputOptions", file_format: str) -> None:
    """Check that the options fit a document, which is no lines.

    Raises:
        ConfigError: an option asks for lines of input or output.
    """
    if options.json_input or options.alignments or options.n_best > 1:
        from nmt.translation.documents.formats import FORMATS

        or_lines = "" if FORMATS[file_format].is_binary else ", or say --format text for its lines"
        raise ConfigError(
            "a document is translated as a whole, so it goes with none of --json-input, "
            f"--alignments and --n-best; leave them out{or_lines}"
        )


@dataclass(frozen=True)
class FileContent:
    """A file that is a document."""

    name: str
    """what messages call it"""
    content: bytes
    format: str


def _advice(key: str) -> str:
    """Return the end of a sentence: which option has more of a file of a format translated."""
    from nmt.translation.documents.formats import FORMATS

    if "unconfirmed" in FORMATS[key].options:
        return (
            "; --unconfirmed translates again what nobody has confirmed, --overwrite all that has "
            "a translation"
        )
    if "overwrite" in FORMATS[key].options:
        return "; --overwrite translates also what has a translation"
    if "key" in FORMATS[key].options:
        return "; --key NAME translates the values of a key, whatever they look like"
    return ""


def open_document(
    file: FileContent, loaded: "LoadedModel", language: str | None, options: "DocumentOptions"
) -> "Document":
    """Read a document for a model; `language` is that of --to, for one of several languages.

    A page without any HTML tag is read as one text, with a warning. `options` says which texts are
    translated.

    Raises:
        ConfigError: there is no such format.
        DataError: the document is not in its format, or damaged.
    """
    from nmt.translation.documents.document import LanguagePair
    from nmt.translation.documents.formats import read_document
    from nmt.translation.documents.html_page import HtmlPage

    if file.format == "html" and file.content.strip():
        page = HtmlPage.decode(file.name, file.content)
        if not _TAG.search(page.html):
            print_warning(
                f"{file.name}: has no HTML tag, and is translated as one text; without --html, "
                "each line is translated"
            )
    source, target = loaded.config.data.languages
    reading = options.reading(LanguagePair(source, language or target))
    document = read_document(file.content, file.name, file.format, reading)
    if not document.lines:
        print_warning(
            f"{file.name}: has no text to translate, and is written as it is{_advice(file.format)}"
        )
    if options.bilingual:
        return _bilingual(document, file, reading)
    return document


def _bilingual(document: "Document", file: FileContent, reading: "ReadingOptions") -> "Document":
    """Return a document that is written as a bilingual file.

    Raises:
        DataError: it has no text.
    """
    from nmt.translation.documents.bilingual import OriginalFile, bilingual_document

    if not document.lines:
        raise DataError(f"{file.name}: has no text to translate, so there is nothing to correct")
    original = OriginalFile(file.name, file.content, file.format, reading)
    return bilingual_document(document, original)


def apply_edited(edited: Path, file: Path | None, output: Path | None) -> None:
    """Write a document with the targets of a bilingual file; a warning names texts without one.

    Raises:
        ConfigError: the document is not given, and stdin is a terminal or empty.
        DataError: a file cannot be read, or they do not belong together.
    """
    from nmt.translation.documents.bilingual import apply_bilingual
    from nmt.translation.documents.formats import recognise_beginning

    content = b"" if is_typed(file) else read_bytes(file)
    if not content and is_stdin(file):
        raise ConfigError(
            "--apply needs the document from which the file was made; give it: "
            f"nmt translate --apply {edited} DOCUMENT -o OUTPUT"
        )
    of_person = read_bytes(edited)
    if recognise_beginning(of_person) not in (None, "xliff", "xml"):
        raise DataError(
            f"{edited} looks like {recognise_beginning(of_person)}, expected the XLIFF file that "
            "--bilingual wrote; the document comes after it: --apply XLIFF FILE"
        )
    written = apply_bilingual(of_person, str(edited), content, input_name(file))
    with open_output(output) as sink:
        sink.write(written)
