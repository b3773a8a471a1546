"""`nmt translate`: raw text in, raw text out, a line for a line."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nmt.cli.lines.json_lines import JsonInputOption
from nmt.cli.lines.line_format import LineFormat
from nmt.cli.lines.line_translation import LineInput, translate_lines
from nmt.cli.lines.partial_output import (
    ResumeOption,
    check_inputs_remain,
    check_resumable,
    is_complete,
    open_windows,
)
from nmt.cli.lines.streams import is_typed, open_lines
from nmt.cli.options.model import (
    CheckpointOption,
    DeviceOption,
    ModelOptions,
    ModelsOption,
    Precision,
    PrecisionOption,
    load_translator,
)
from nmt.cli.options.output import (
    AlignmentsOption,
    CandidatesOption,
    DocumentOption,
    MbrOption,
    NBestOption,
    OutputOptions,
    build_request,
)
from nmt.cli.options.search import (
    BatchTokensOption,
    BeamSizeOption,
    CopyUnknownOption,
    CoveragePenaltyOption,
    EarlyStoppingOption,
    LengthPenaltyOption,
    MinLengthOption,
    NoRepeatNgramOption,
    NormalizationOption,
    SampleOption,
    SearchOptions,
    SeedOption,
    ShortlistOption,
    TemperatureOption,
    TopKOption,
    TopPOption,
    sampling_options,
)
from nmt.cli.options.terminology import (
    ForbidFileOption,
    ForbidOption,
    GlossaryOption,
    terminology_options,
)
from nmt.cli.options.workers import WorkersOption, processes_for

if TYPE_CHECKING:
    from nmt.search.sampling import Sampling
    from nmt.translation.terminology import Terminology
    from nmt.translation.translator import Translator

FileArgument = Annotated[
    Path | None, typer.Argument(metavar="FILE", help="The text to translate; stdin by default.")
]
OutputOption = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FILE", help="The file to write; stdout by default."),
]
JsonOption = Annotated[
    bool,
    typer.Option("--json", help="Write lines of JSON with source and translations."),
]
# options that change no translation, or that a digest or a setting of the search represents
NOT_COMPARED = {
    *("model", "checkpoint", "file", "output", "resume", "device", "normalization", "workers"),
    *("glossary", "forbid", "forbid_file"),
}


def translate(
    context: typer.Context,
    model: ModelsOption,
    file: FileArgument = None,
    output: OutputOption = None,
    resume: ResumeOption = False,
    document: DocumentOption = False,
    json_input: JsonInputOption = False,
    checkpoint: CheckpointOption = "best",
    beam_size: BeamSizeOption = None,
    length_penalty: LengthPenaltyOption = None,
    batch_tokens: BatchTokensOption = None,
    workers: WorkersOption = "auto",
    normalization: NormalizationOption = None,
    min_length: MinLengthOption = None,
    no_repeat_ngram: NoRepeatNgramOption = None,
    coverage_penalty: CoveragePenaltyOption = None,
    copy_unknown: CopyUnknownOption = None,
    early_stopping: EarlyStoppingOption = None,
    shortlist: ShortlistOption = None,
    n_best: NBestOption = 1,
    as_json: JsonOption = False,
    sample: SampleOption = False,
    temperature: TemperatureOption = 1.0,
    top_k: TopKOption = None,
    top_p: TopPOption = None,
    seed: SeedOption = 1,
    mbr: MbrOption = None,
    candidates: CandidatesOption = None,
    alignments: AlignmentsOption = False,
    glossary: GlossaryOption = None,
    forbid: ForbidOption = None,
    forbid_file: ForbidFileOption = None,
    device: DeviceOption = "auto",
    precision: PrecisionOption = Precision.auto,
) -> None:
    """Translate text line by line; typed lines are translated at once, and Ctrl-D ends."""
    check_inputs_remain(output, [file or Path("-"), glossary, forbid_file])
    sampling = sampling_options(sample, temperature, top_k, top_p, seed)
    search = SearchOptions(
        *(beam_size, length_penalty, normalization, min_length, no_repeat_ngram),
        *(coverage_penalty, copy_unknown, early_stopping, batch_tokens, shortlist),
    )
    options = OutputOptions(n_best, document, mbr, candidates, alignments)
    line_format = LineFormat(json_input, as_json, n_best, document)
    terminology = terminology_options(glossary, forbid, forbid_file)
    model_options = ModelOptions(model, checkpoint, device, precision)
    task = TranslationOptions(
        model_options, search, sampling, options, terminology, workers, context.params
    )
    _translate_file(task, line_format, file, output, resume)


@dataclass(frozen=True)
class TranslationOptions:
    """What the options ask for, whatever the text."""

    model: ModelOptions
    search: SearchOptions
    sampling: "Sampling | None"
    output: OutputOptions
    terminology: "Terminology"
    workers: str
    parameters: Mapping[str, object]
    """all options by name, as they were given"""


def _translate_file(
    task: TranslationOptions,
    line_format: LineFormat,
    file: Path | None,
    output: Path | None,
    resume: bool,
) -> None:
    """Load the model and translate the lines of the file; see `translate`."""
    if resume:
        _exit_if_complete(file, output)
    with open_lines(file) as lines, open_windows(file, output, resume) as sink:
        translator = load_translator(task.model, task.search, task.sampling)
        processes = processes_for(task.workers, translator.searcher.device.type, is_typed(file))
        request = build_request(task.output, translator, task.terminology)
        with translator.pipeline(request, processes) as pipeline:
            _ = translator.searcher.model  # what fails does so before an output is replaced
            done = sink.begin(
                lines, lambda: _settings(translator, task.terminology, task.parameters)
            )
            translate_lines(pipeline, LineInput(file, lines, line_format, done), sink)


def _settings(
    translator: "Translator", terminology: "Terminology", options: Mapping[str, object]
) -> dict[str, object]:
    """Everything that decides what a line becomes: weights and settings."""
    from nmt.checkpoint import weights_digest

    precision = translator.precision  # not "auto", which differs from machine to machine
    search = translator.settings.model_dump()
    others = {
        name: value
        for name, value in options.items()
        if name not in {*NOT_COMPARED, *search, "precision"}
    }
    if precision != "int8" and not translator.shortlist:
        # With either of them, the other lines of a batch have an influence.
        del search["batch_tokens"]
    if translator.shortlist:
        others["shortlist"] = translator.shortlist.digest
    weights = weights_digest(translator.run.model)[:16]
    asked = terminology.digest
    return {"weights": weights, "precision": precision, "terminology": asked, **search, **others}


def _exit_if_complete(file: Path | None, output: Path | None) -> None:
    """Exit with 0 if --resume finds a complete output."""
    check_resumable(file, output)
    if is_complete(output):
        print(
            f"{output} is complete, so nothing is left to do; leave out --resume to translate it "
            "again",
            file=sys.stderr,
        )
        raise typer.Exit
