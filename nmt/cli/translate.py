"""`nmt translate`: raw text in, raw text out, a line for a line."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from nmt.cli.lines.document_file import (
    apply_edited,
    check_options,
    format_of_file,
)
from nmt.cli.lines.document_output import segments_path
from nmt.cli.lines.file_translation import FileTranslation
from nmt.cli.lines.found_files import check_nothing_is_replaced, find_files
from nmt.cli.lines.line_translation import OutputOptions
from nmt.cli.lines.output_folder import translate_files
from nmt.cli.lines.output_format import check_output_format
from nmt.cli.lines.partial_output import check_inputs_remain, is_complete
from nmt.cli.lines.streams import check_output
from nmt.cli.options.documents import DocumentOptions
from nmt.cli.options.groups import with_option_groups
from nmt.cli.options.memory import MemoryOptions
from nmt.cli.options.model import (
    AllSearchOptions,
    ComputeOptions,
    ModelOption,
    SamplingOptions,
    make_translator,
    target_tag,
)
from nmt.cli.options.workers import WorkerOptions
from nmt.errors import ConfigError
from nmt.translation.documents.formats import TEXT, check_names

if TYPE_CHECKING:
    from nmt.data.text.protected_text import ProtectedText
    from nmt.translation.line import Terminology
    from nmt.translation.request import TranslationRequest
    from nmt.translation.translator import Translator

# options that --resume need not compare: they change no translation, or a digest stands for them
NOT_COMPARED = {
    "model",
    "checkpoint",
    "adapter",
    "file",
    "files",
    "output",
    "output_folder",
    "resume",
    "device",
    "workers",
    "ray",
    "glossary",
    "forbid",
    "forbid_file",
}
FilesArgument = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="[FILE]...",
        help="The text or the document to translate; stdin by default. Several files, and folders "
        "with all their documents and texts, need --output-folder.",
    ),
]
FolderOption = Annotated[
    Path | None,
    typer.Option(
        "--output-folder",
        metavar="FOLDER",
        help="Write a file for each FILE, and for each in a folder, under the same name in this "
        "folder.",
    ),
]
OutputOption = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FILE", help="The file to write; stdout by default."),
]
HtmlOption = Annotated[
    bool,
    typer.Option(
        "--html",
        help="The text is an HTML page: what a reader sees is translated, everything else stays.",
    ),
]
ResumeOption = Annotated[
    bool,
    typer.Option(
        "--resume",
        help="Continue an output that was interrupted; of a folder, pass over complete files.",
    ),
]


@dataclass(frozen=True)
class TermOptions:
    """What words every translation must and must not have, and what is not translated."""

    glossary: Annotated[Path | None, typer.Option(metavar="FILE")] = None
    """Lines of source term, TAB, target term: a translation has the target term if the source has
    its term as whole words. A term in small letters is found in any casing."""
    glossary_mode: Annotated[Literal["exact", "inflect", "auto"] | None, typer.Option()] = None
    """exact: terms are found and come out as they are written; inflect: the model is asked for
    them, and inflects them, which needs one trained with data.terms; auto, the default: such a
    model is asked, and terms that it does not use come out in the form that fits, as with any
    other model."""
    forbid: Annotated[list[str] | None, typer.Option(metavar="WORD")] = None
    """A word or phrase that no translation has, in any casing if it is in small letters; may be
    given several times."""
    forbid_file: Annotated[Path | None, typer.Option(metavar="FILE")] = None
    """Such words and phrases, one a line."""
    protect: Annotated[bool, typer.Option("--protect")] = False
    """Addresses, placeholders of programs such as {name}, %{count}, %s, %(name)s, <%= x %>, $name
    and :name, and HTML entities come out exactly as they are."""
    protect_pattern: Annotated[list[str] | None, typer.Option(metavar="REGEX")] = None
    """What this regular expression matches comes out exactly as it is; may be given several
    times."""

    def terminology(self) -> "Terminology":
        """Read the files and return all constraints.

        Raises:
            DataError: A file cannot be read, or a term is blank or has several lines.
        """
        from nmt.data.text.glossary import read_glossary, read_words
        from nmt.translation.line import Terminology

        terms = read_glossary(self.glossary) if self.glossary else None
        forbidden = list(self.forbid or ())
        if self.forbid_file:
            forbidden += read_words(self.forbid_file)
        return Terminology.of(terms, forbidden=forbidden, glossary_mode=self.glossary_mode)

    def protected(self) -> "ProtectedText":
        """Return the patterns of what is not translated.

        Raises:
            ConfigError: a pattern is no regular expression, or matches the empty string.
        """
        from nmt.data.text.protected_text import USUAL_PATTERNS, ProtectedText

        usual = USUAL_PATTERNS if self.protect else ()
        return ProtectedText([*usual, *(self.protect_pattern or ())])


@with_option_groups
def translate(
    *,
    context: typer.Context,
    model: Annotated[list[str] | None, ModelOption] = None,
    search: AllSearchOptions,
    sampling: SamplingOptions,
    options: OutputOptions,
    documents: DocumentOptions,
    terms: TermOptions,
    memories: MemoryOptions,
    compute: ComputeOptions,
    files: FilesArgument = None,
    output: OutputOption = None,
    output_folder: FolderOption = None,
    html: HtmlOption = False,
    resume: ResumeOption = False,
    workers: WorkerOptions,
) -> None:
    """Translate text line by line, documents, or folders of both.

    Typed lines are translated at once, and Ctrl-D ends.
    """
    if documents.apply:
        _check_one_file("--apply", files, output_folder)
        _apply(context, documents.apply, _only_file(files), output)
        return
    models = _check_models(model)
    terminology, protected = terms.terminology(), terms.protected()

    def load() -> "tuple[Translator, TranslationRequest]":
        # takes seconds: input and output are opened before
        drawn = sampling.sampling()
        translator = make_translator(models, compute, search, drawn, options.from_)
        request = options.request(translator, terminology, protected)
        to = target_tag(options.to, translator.loaded.tokenizer).strip("<>") or None
        return translator, memories.add_to(request, translator.loaded, to)

    settings = partial(_settings, terminology, context.params)
    read = [terms.glossary, terms.forbid_file, *(memories.memory or ())]
    # lines of JSON with a source are records, not a document of JSON Lines
    asked_format = "html" if html else documents.asked or (TEXT if options.json_input else None)
    with FileTranslation(load, settings, options, documents, workers) as translation:
        _check_output_options(files, output, output_folder, documents.bilingual)
        if output_folder:
            _translate_into(output_folder, translation, files, asked_format, read, resume)
        else:
            file = _only_file(files)
            file_format = asked_format or format_of_file(file) or TEXT
            _check_output(file, output, file_format, translation, read)
            _translate_one(translation, file, output, file_format, resume)


def _translate_one(
    translation: FileTranslation,
    file: Path | None,
    output: Path | None,
    file_format: str,
    resume: bool,
) -> None:
    """Translate a file, unless it is resumed and complete already."""

    def settings() -> Mapping[str, object]:
        return translation.settings(translation.loaded[0], file_format)

    if not (resume and is_complete(file, output, settings)):
        translation.translate(file, output, file_format, resume)


def _translate_into(
    folder: Path,
    translation: FileTranslation,
    files: Sequence[Path] | None,
    asked_format: str | None,
    read: Sequence[Path | None],
    resume: bool,
) -> None:
    """Translate files, and those of folders, into a folder; none that is `read` is replaced.

    Raises:
        ConfigError: an output or an option does not fit.
    """
    found = find_files(files or [Path("-")], folder, asked_format)
    check_nothing_is_replaced(found, read, translation.options.as_json)
    check_names(translation.documents, {each.format for each in found})
    for each in found:
        if each.format != TEXT:
            check_options(translation.options, each.format)
    translate_files(translation, found, folder, resume)


def _check_output(
    file: Path | None,
    output: Path | None,
    file_format: str,
    translation: FileTranslation,
    read: Sequence[Path | None],
) -> None:
    """Check that options and output of one file fit its format, and that no `read` is replaced.

    Raises:
        ConfigError: they do not.
    """
    is_document = file_format != TEXT
    inputs = [file or Path("-"), *read]
    check_inputs_remain(output, inputs, is_compressed=is_document)
    check_names(translation.documents, [file_format])
    if is_document:
        check_options(translation.options, file_format)
        check_output(segments_path(output, translation.options.as_json), inputs)
        if not translation.documents.bilingual:
            check_output_format(file, output, file_format)


def _check_models(models: list[str] | None) -> list[str]:
    """Return the models of --model; raise a ConfigError if there is none."""
    if not models:
        raise ConfigError("give --model RUN, the run directory or checkpoint that translates")
    return models


def _check_one_file(option: str, files: Sequence[Path] | None, folder: Path | None) -> None:
    """Raise a ConfigError if there are several files for an option that takes one."""
    if folder or len(files or ()) > 1 or (files and files[0].is_dir()):
        raise ConfigError(
            f"{option} takes one document, and no folder or --output-folder; give it each FILE in "
            "a command of its own, with -o FILE"
        )


def _check_output_options(
    files: Sequence[Path] | None, output: Path | None, folder: Path | None, bilingual: bool
) -> None:
    """Check that there is one kind of output, and that --bilingual has one document and file.

    Raises:
        ConfigError: that is not so.
    """
    if bilingual:
        _check_one_file("--bilingual", files, folder)
        if output and output.suffix.lower() not in (".xlf", ".xliff"):
            raise ConfigError("--bilingual writes an XLIFF file; name it, as -o FILE.xliff")
    if folder and output:
        raise ConfigError("-o FILE and --output-folder exclude each other; leave out one of them")


def _apply(context: typer.Context, edited: Path, file: Path | None, output: Path | None) -> None:
    """Write the document of --apply.

    Raises:
        ConfigError: an option is given that --apply cannot follow.
        DataError: a file cannot be read, or they do not belong together.
    """
    allowed = ("apply", "files", "output")
    given = [name for name in context.params if _is_given(context, name) and name not in allowed]
    if given:
        option = given[0].replace("_", "-")
        raise ConfigError(f"--apply translates nothing, so it does not go with --{option}")
    check_inputs_remain(output, [file or Path("-"), edited], is_compressed=True)
    if of_file := format_of_file(file):
        check_output_format(file, output, of_file)
    apply_edited(edited, file, output)


def _is_given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _only_file(files: Sequence[Path] | None) -> Path | None:
    """Return the file to translate where there is no --output-folder; None: stdin.

    Raises:
        ConfigError: there are several files, or it is a folder.
    """
    if files and len(files) > 1:
        raise ConfigError(
            f"{len(files)} files are to be translated; say with --output-folder FOLDER where their "
            "translations go"
        )
    if files and files[0].is_dir():
        raise ConfigError(
            f"{files[0]}: is a folder; say with --output-folder FOLDER where the translations of "
            "its files go"
        )
    return files[0] if files else None


def _settings(
    terminology: "Terminology",
    options: Mapping[str, object],
    translator: "Translator",
    file_format: str,
) -> dict[str, object]:
    """Return all that the translation of a file depends on, so that --resume can compare it."""
    precision = translator.searcher.precision  # not "auto", which differs from machine to machine
    search = translator.settings.model_dump()
    not_compared = {*NOT_COMPARED, *search, "precision"}
    of_documents = {each.name for each in fields(DocumentOptions)}
    if not options.get("memory"):  # so that outputs of earlier versions can be resumed
        not_compared |= {"memory", "no_exact_matches", "adapt", "adapt_document"}
    # the rows of a document's part hold all that --json writes
    not_compared |= of_documents if file_format == TEXT else {"format", "html", "as_json"}
    others = {name: value for name, value in options.items() if name not in not_compared}
    if file_format != TEXT:
        others["format"] = file_format
    if precision != "int8" and not translator.searcher.shortlist:
        # With a shortlist, a translation depends on the lines of its batch. int8 keeps the setting,
        # so that outputs of earlier versions can be resumed.
        del search["batch_tokens"]
    if translator.searcher.shortlist:
        others["shortlist"] = translator.searcher.shortlist.digest
    weights = translator.loaded.digest
    model = {"weights": weights, "precision": precision, "terminology": terminology.digest}
    return {**model, **search, **others}
