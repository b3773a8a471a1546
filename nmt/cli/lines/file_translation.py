"""Files that are translated one after another by the same models: lines of text, or documents."""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Self

from nmt.cli.lines.document_file import (
    FileContent,
    check_stdin_is_text,
    open_document,
    read_bytes,
)
from nmt.cli.lines.document_output import TEXTS, DocumentOutput, segments_path
from nmt.cli.lines.line_translation import OutputOptions, translate_lines
from nmt.cli.lines.partial_output import PartialOutput, open_window_output
from nmt.cli.lines.streams import (
    input_name,
    is_stdin,
    is_typed,
    open_lines,
    open_output,
    segments_bar,
)
from nmt.cli.options.documents import DocumentOptions
from nmt.cli.options.model import target_tag
from nmt.cli.options.workers import WorkerOptions
from nmt.data.text.compressed import SUFFIXES, compress
from nmt.errors import ConfigError, print_warning
from nmt.translation.documents.formats import TEXT

if TYPE_CHECKING:
    from nmt.translation.documents.document import Document
    from nmt.translation.pipeline import Pipeline
    from nmt.translation.request import TranslationRequest
    from nmt.translation.translator import Translator

EMPTY = "{}: is empty, and so is its translation"


@dataclass
class FileTranslation:
    """Translates files; use it in a `with` statement, which ends the processes that translate."""

    load: Callable[[], "tuple[Translator, TranslationRequest]"]
    """loads the models, which takes seconds, and returns what is asked for"""
    settings: Callable[["Translator", str], Mapping[str, object]]
    """returns all that the translation of a file of a format depends on"""
    options: OutputOptions
    documents: DocumentOptions
    workers: WorkerOptions
    _pipelines: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    """what closes the pipeline; one is open at a time"""
    _open: "tuple[TranslationRequest, Pipeline] | None" = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._pipelines.close()

    @cached_property
    def loaded(self) -> "tuple[Translator, TranslationRequest]":
        """The models and the request, loaded when they are first needed."""
        return self.load()

    def translate(
        self, file: Path | None, output: Path | None, file_format: str, resume: bool
    ) -> None:
        """Translate a file (None: stdin) into `output` (None: stdout).

        With `resume`, an output that was interrupted is continued.

        Raises:
            DataError: the file cannot be read or is damaged, or the output cannot be written.
            ConfigError: options contradict each other or the model.
        """
        try:
            if file_format == TEXT:
                self._translate_lines(file, output, resume)
            else:
                self._translate_document(file, output, file_format, resume)
        except BaseException:
            self._close()  # batches of the file may still be computed
            raise

    def _translate_lines(self, file: Path | None, output: Path | None, resume: bool) -> None:
        if self.documents.bilingual:
            raise ConfigError(
                "--bilingual is for documents, and the input is plain text; lines of --json have "
                "source and translation"
            )
        with open_lines(file) as lines, open_window_output(file, output, resume) as sink:
            translator, request = self.loaded
            pipeline = self._pipeline(request, is_typed(file))
            translator.searcher.load_now()  # an error must come before `begin` empties the output
            is_named = self.documents.format or self.options.json_input
            if is_stdin(file) and not is_typed(file) and not is_named:
                check_stdin_is_text()
            if not is_stdin(file):  # a stream may well have no line
                lines = _with_warning_if_empty(lines, input_name(file))
            done = sink.begin(lines, lambda: self.settings(translator, TEXT))
            if done and self.options.document and translator.loaded.config.data.context:
                print_warning(
                    f"line {done + 1} is translated without the sentences before it, which were "
                    "translated before the interruption"
                )
            options = replace(self.options, to=self._language)
            translate_lines(pipeline, file, lines, options, done, sink)

    def _translate_document(
        self, file: Path | None, output: Path | None, file_format: str, resume: bool
    ) -> None:
        from nmt.recipe.config import spell_tag
        from nmt.translation.documents.translate import translate_windows

        rows_path = segments_path(output, self.options.as_json)
        content = FileContent(input_name(file), read_bytes(file), file_format)
        if not content.content and not self.documents.bilingual:
            _write_empty(file, output, rows_path)
            return
        with open_window_output(file, output, resume, TEXTS) as sink:
            translator, request = self.loaded
            language = self._language
            document = open_document(content, translator.loaded, language, self.documents)
            pipeline = self._pipeline(self._request_of(document, request))
            translator.searcher.load_now()
            kept = DocumentOutput(sink, document)
            left = kept.begin(lambda: self.settings(translator, file_format))
            done, tag = len(kept.translations), spell_tag(language) if language else ""
            with segments_bar(content.name, done + len(left), done) as bar:
                for window in translate_windows(pipeline, left, tag, print_warning, bar.update):
                    kept.add(window)
            kept.finish(rows_path, content.content)

    @cached_property
    def _language(self) -> str | None:
        """The language of --to, as the tag of the model names it."""
        translator, _ = self.loaded
        return target_tag(self.options.to, translator.loaded.tokenizer).strip("<>") or None

    def _request_of(
        self, document: "Document", request: "TranslationRequest"
    ) -> "TranslationRequest":
        """Return how the texts of a document are translated.

        Where nothing is protected, the usual placeholders of programs are in one of messages.
        """
        if document.is_of_program and not request.protected.patterns:
            request = self._program_request
        return replace(request, document=True, alignments=bool(document.with_tags))

    @cached_property
    def _program_request(self) -> "TranslationRequest":
        from nmt.data.text.protected_text import usual_text

        _, request = self.loaded
        return replace(request, protected=usual_text(True))

    def _pipeline(self, request: "TranslationRequest", is_typed: bool = False) -> "Pipeline":
        """Return the pipeline for a request: the open one, if it has the same."""
        if self._open is None or self._open[0] != request:
            self._close()
            translator, _ = self.loaded
            pipeline = self.workers.pipeline(translator, request, is_typed)
            self._open = request, self._pipelines.enter_context(pipeline)
        return self._open[1]

    def _close(self) -> None:
        self._pipelines.close()
        self._open = None


def _with_warning_if_empty(lines: Iterator[str], name: str) -> Iterator[str]:
    """Yield lines; a warning says that there are none."""
    is_empty = True
    for line in lines:
        is_empty = False
        yield line
    if is_empty:
        print_warning(EMPTY.format(name))


def _write_empty(file: Path | None, output: Path | None, rows_path: Path | None) -> None:
    """Write the translation of an empty document, with a warning.

    Raises:
        DataError: the output cannot be written.
    """
    print_warning(EMPTY.format(input_name(file)))
    if rows_path:
        with open_output(rows_path):
            pass
    with open_window_output(file, output, resume=False) as sink:
        sink.begin(iter(()), dict)
        if isinstance(sink, PartialOutput) and sink.path.suffix in SUFFIXES:
            sink.whole_output = compress(b"", sink.path.suffix)
