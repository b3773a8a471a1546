"""`nmt translate`: raw text in, raw text out, a line for a line."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nmt.cli.lines.json_lines import JsonInputOption
from nmt.cli.lines.line_format import Form
from nmt.cli.lines.line_translation import translate_lines
from nmt.cli.lines.partial_output import (
    ResumeOption,
    check_inputs_remain,
    is_complete,
    open_windows,
    refuse_to_resume,
)
from nmt.cli.lines.streams import is_typed, open_lines
from nmt.cli.options.candidates import (
    AlignmentsOption,
    CandidatesOption,
    MbrOption,
    Utility,
    refuse_needless_candidates,
    with_choices,
)
from nmt.cli.options.model import (
    BatchTokensOption,
    BeamSizeOption,
    CheckpointOption,
    CopyUnknownOption,
    CoveragePenaltyOption,
    DeviceOption,
    DocumentOption,
    EarlyStoppingOption,
    LengthPenaltyOption,
    MinLengthOption,
    ModelsOption,
    NoRepeatNgramOption,
    Normalization,
    NormalizationOption,
    Precision,
    PrecisionOption,
    SampleOption,
    SeedOption,
    ShortlistOption,
    TemperatureOption,
    TopKOption,
    TopPOption,
    load_translator,
    refuse_needless_alpha,
    sampling_of,
)
from nmt.cli.options.terminology import (
    ForbidFileOption,
    ForbidOption,
    GlossaryOption,
    terminology_of,
)
from nmt.cli.options.workers import WorkersOption, share
from nmt.errors import ConfigError

if TYPE_CHECKING:
    from nmt.translation.translator import Translator

FileArgument = Annotated[
    Path | None, typer.Argument(metavar="FILE", help="Text to translate; stdin by default.")
]
OutputOption = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FILE", help="Where to write; stdout by default."),
]
NBestOption = Annotated[
    int,
    typer.Option(
        min=1, help="So many translations of each line, as `line number ||| text ||| score`."
    ),
]
JsonOption = Annotated[
    bool, typer.Option("--json", help="A JSON object a line: source and translations.")
]
# options that change no translation, or whose effect a digest or a setting of the search tells
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
    """Translate text, a line for a line; typed at a terminal, each at once, and Ctrl-D ends."""
    sampling = sampling_of(sample, temperature, top_k, top_p, seed)
    _refuse_clashes(length_penalty, normalization, mbr, candidates, document, n_best, alignments)
    terminology = terminology_of(glossary, forbid, forbid_file)
    _exit_if_complete(resume, file, output, [glossary, forbid_file])
    with open_lines(file) as lines, open_windows(file, output, resume) as sink:
        translator = load_translator(
            *(model, checkpoint, device, precision, sampling, terminology, shortlist),
            beam_size=beam_size,
            length_penalty=length_penalty,
            length_normalization=normalization and normalization.value,
            min_length=min_length,
            no_repeat_ngram=no_repeat_ngram,
            coverage_penalty=coverage_penalty,
            copy_unknown=copy_unknown,
            early_stopping=early_stopping,
            batch_tokens=batch_tokens,
        )
        translator.prepare(n_best=candidates or n_best)  # before what is there is replaced
        done = sink.begin(lines, lambda: _settings(translator, context.params))
        chosen = with_choices(translator, mbr, candidates, alignments)
        with share(chosen, translator, workers, is_typed(file)) as shared:
            form = Form(json_input, as_json, n_best, document)
            translate_lines(shared, form, lines, done, sink, file)


def _settings(translator: "Translator", options: Mapping[str, object]) -> dict[str, object]:
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
        # with either a line depends on those translated beside it
        del search["batch_tokens"]
    if translator.shortlist:
        others["shortlist"] = translator.shortlist.digest
    weights = weights_digest(translator.run.model)[:16]
    asked = translator.terminology.digest
    return {"weights": weights, "precision": precision, "terminology": asked, **search, **others}


def _exit_if_complete(
    resume: bool, file: Path | None, output: Path | None, others: list[Path | None]
) -> None:
    """Exit if --resume finds the output complete; `others` are read besides `file`."""
    check_inputs_remain(output, [file or Path("-"), *others])
    if not resume:
        return
    refuse_to_resume(file, output)
    if is_complete(output):
        print(
            f"{output} is complete, so nothing is left to do; leave out --resume to translate anew",
            file=sys.stderr,
        )
        raise typer.Exit


def _refuse_clashes(
    length_penalty: float | None,
    normalization: Normalization | None,
    mbr: Utility | None,
    candidates: int | None,
    document: bool,
    n_best: int,
    alignments: bool,
) -> None:
    """Raise a ConfigError for options that exclude each other, or mean nothing alone."""
    refuse_needless_alpha(length_penalty, normalization)
    refuse_needless_candidates(mbr, candidates)
    if document and (n_best > 1 or alignments):
        raise ConfigError(
            "--document puts each line together from the best translations of its sentences, so "
            "it goes neither with --n-best nor with --alignments; leave them out"
        )
