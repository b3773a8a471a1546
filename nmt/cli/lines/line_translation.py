"""The lines of `nmt translate`: read in windows, translated, and written as options ask."""

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from nmt.cli.lines.json_lines import (
    format_record,
    line_terminology,
    read_record,
    translation_record,
)
from nmt.cli.lines.partial_output import WindowOutput
from nmt.cli.lines.streams import input_name, is_regular, is_typed, progress_bar
from nmt.cli.options.model import target_tag
from nmt.errors import ConfigError

if TYPE_CHECKING:
    from nmt.data.text.protected_text import ProtectedText
    from nmt.translation.line import Line, Terminology, Translation
    from nmt.translation.pipeline import Pipeline
    from nmt.translation.request import TranslationRequest
    from nmt.translation.translator import Translator

SAMPLED_CANDIDATES = 32


@dataclass(frozen=True)
class OutputOptions:
    """Options of `nmt translate`: format of the input, what is written for a line and how."""

    to: Annotated[str | None, typer.Option(metavar="LANGUAGE")] = None
    """The language to translate into, by code or English name, for a model of several that learnt
    from tagged text: --to fr puts the tag >>fr<< before each line."""
    from_: Annotated[str | None, typer.Option("--from", metavar="LANGUAGE")] = None
    """The language of the lines, for a model that translates from several, such as NLLB.
    [default: that of its configuration]"""
    document: Annotated[bool, typer.Option("--document")] = False
    """Split each line into sentences, and join their translations. A model that has learnt context
    (data.context) takes the lines for a document, and a blank line for its end."""
    json_input: Annotated[bool, typer.Option("--json-input")] = False
    """Each line is an object with a `source`; --json passes on its other keys."""
    n_best: Annotated[int, typer.Option(min=1)] = 1
    """Number of translations of each line, written as `line number ||| text ||| score`."""
    as_json: Annotated[bool, typer.Option("--json")] = False
    """Write lines of JSON with source and translations."""
    mbr: Literal["chrf", "bleu"] | None = None
    """Minimum Bayes risk: choose the candidate of the beam or the sample that agrees best with all
    others. Comparing twice as many candidates takes four times as long."""
    candidates: Annotated[
        int | None,
        typer.Option(
            min=2,
            help="Number of candidates that --mbr compares.  "
            f"[default: {SAMPLED_CANDIDATES} samples, or the beam]",
        ),
    ] = None
    alignments: Annotated[bool, typer.Option("--alignments")] = False
    """Add a tab and the words that belong together, as source-target counted from 0; with --json
    also the log-probability of each token. The alignment is read from the attention; it is not a
    trained aligner."""

    def __post_init__(self) -> None:
        if self.candidates is not None and self.mbr is None:
            raise ConfigError(
                "--candidates says how many --mbr compares; add --mbr chrf, or leave it out"
            )
        if self.document and (self.n_best > 1 or self.alignments):
            raise ConfigError(
                "--document puts each line together from the best translations of its sentences, "
                "so it goes neither with --n-best nor with --alignments; leave them out"
            )

    def request(
        self,
        translator: "Translator",
        terminology: "Terminology",
        protected: "ProtectedText",
    ) -> "TranslationRequest":
        """Return the request for `translator.pipeline`, with what holds for every line.

        `terminology` has the words that translations must or must not have, and `protected` finds
        the parts of lines that are not translated. Raises a ConfigError if --to has no tag.
        """
        from nmt.translation.request import TranslationRequest

        target_tag(self.to, translator.loaded.tokenizer)  # raises an error if there is no such tag
        request = TranslationRequest(
            self.n_best, self.document, terminology, protected, alignments=self.alignments
        )
        if not self.mbr:  # the search alone chooses the translation
            return request
        from nmt.evaluation.metrics import bleu_tokenizer, sentence_utilities

        data = translator.loaded.config.data
        tokenize = bleu_tokenizer(data.target_language, data.tokenized)
        utilities = partial(sentence_utilities, self.mbr, tokenize=tokenize)
        is_sampled = translator.searcher.sampling is not None
        default_count = SAMPLED_CANDIDATES if is_sampled else translator.settings.beam_size
        return replace(request, utilities=utilities, candidates=self.candidates or default_count)


@dataclass(frozen=True)
class _InputLine:
    """A line of the input, and what the pipeline translates for it."""

    raw: str
    """the line as it was read: a text, or with --json-input a JSON object"""
    record: Mapping[str, object]
    """the JSON object, or {"source": text}"""
    line: "Line"
    """the text under "source", its number and its constraints"""


def translate_lines(
    pipeline: "Pipeline",
    file: Path | None,
    lines: Iterator[str],
    options: OutputOptions,
    done: int,
    output: WindowOutput,
) -> None:
    """Translate the rest of an input, a window (group of lines) at a time, into `output`.

    `lines` are those of `file` (None is stdin) after its first `done` lines; these are translated
    already. A line that somebody types is translated before the next one is read.

    Raises:
        DataError: With --json-input, a line is no object with a `source`; the message names it.
    """
    # the windows that the pipeline has read, but whose output is not written yet, oldest first
    unwritten: deque[list[_InputLine]] = deque()
    with progress_bar(file, " lines", done) as bar:
        # A file is one call of `translate_windows`, which reads ahead. Each window of a pipe is a
        # call, so that its translation is written before the next window is read.
        windows = _read_windows(file, lines, options, done + 1, unwritten)
        calls = [windows] if is_regular(file) else ([window] for window in windows)
        for windows_of_call in calls:
            # it pulls `_read_windows`, which adds each window to `unwritten`, perhaps several ahead
            for translations in pipeline.translate_windows(windows_of_call, progress=bar.update):
                window = unwritten.popleft()
                rows = (
                    _output_of(input_line, translations_of_line, options) + "\n"
                    for input_line, translations_of_line in zip(window, translations, strict=True)
                )
                output.write([each.raw for each in window], "".join(rows).encode("utf-8"))


def _read_windows(
    file: Path | None,
    lines: Iterator[str],
    options: OutputOptions,
    first: int,
    unwritten: deque[list[_InputLine]],
) -> "Iterator[list[Line]]":
    """Yield the lines in windows, numbered from `first`; typed text has windows of one line.

    `options.to` is the word of a tag of the model here, as `FileTranslation` has found it.
    Each window that is yielded is also added to `unwritten`.
    """
    from nmt.recipe.config import spell_tag
    from nmt.search.windows import WINDOW_LINES, cut_into_windows
    from nmt.translation.document import WINDOW_PARAGRAPHS
    from nmt.translation.line import Line, add_tag

    tag = spell_tag(options.to) if options.to else ""
    size = WINDOW_PARAGRAPHS if options.document else WINDOW_LINES
    size = 1 if is_typed(file) else size
    for texts in cut_into_windows(lines, size, len):  # `len` counts the characters of a line
        window = []
        for number, text in enumerate(texts, first):
            record, terminology = {"source": text}, None
            if options.json_input:
                where = f"{input_name(file)}:{number}"
                record = read_record(text, where)
                terminology = line_terminology(record, where)
            source = add_tag(record["source"], tag) if tag else record["source"]
            line = Line(number, source, terminology)
            window.append(_InputLine(text, record, line))
        unwritten.append(window)
        yield [each.line for each in window]
        first += len(texts)


def _output_of(
    input_line: _InputLine, translations: "list[Translation]", options: OutputOptions
) -> str:
    """Return the output for a line: its translation, a list of several, or a JSON object."""
    source, line = str(input_line.record["source"]), input_line.line
    if tag := line.text.removesuffix(source):  # that of --to
        translations = [each.without_tag(tag) for each in translations]
    if options.as_json:
        records = [_as_record(source, translation) for translation in translations]
        return format_record({**input_line.record, "translations": records})
    if options.n_best > 1:
        rows = []
        for translation in translations:
            row = f"{line.number} ||| {translation.text} ||| {translation.score:.4f}"
            rows.append(row + _alignment_column(source, translation, " ||| "))
        return "\n".join(rows)
    return translations[0].text + _alignment_column(source, translations[0], "\t")


def _as_record(source: str, translation: "Translation") -> dict[str, object]:
    record = translation_record(translation)
    if translation.utility is not None:
        record["utility"] = round(translation.utility, 4)
    if translation.terms:
        record["terms"] = [term._asdict() for term in translation.terms]
    alignment = translation.alignment
    if alignment is not None:
        record["alignment"] = _alignment_column(source, translation, "")
        record["tokens"] = [
            {"piece": piece, "log_probability": round(value, 4)}
            for piece, value in zip(alignment.pieces, alignment.log_probabilities, strict=True)
        ]
    return record


def _alignment_column(source: str, translation: "Translation", separator: str) -> str:
    """Return the separator and the alignment; an empty text without --alignments."""
    if translation.alignment is None:
        return ""
    from nmt.translation.spans import pharaoh

    return separator + pharaoh(translation.alignment.links, source, translation.text)
